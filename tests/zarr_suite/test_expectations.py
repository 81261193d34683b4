"""The list of expected failures holds what it promises, in a test session of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PLUGIN = Path(__file__).with_name("expectations.py")

TESTS = """
def test_that_fails():
    assert False


def test_that_passes():
    assert True
"""


def outcome(folder: Path, *expected: str) -> tuple[int, str]:
    """Run two tests with a list of expected failures; return pytest's exit status and output."""
    shutil.copy(PLUGIN, folder)
    (folder / "expected.txt").write_text("\n".join(expected))
    (folder / "test_two.py").write_text(TESTS)
    options = ["-p", "expectations", "-p", "no:cacheprovider", "--rootdir", str(folder), "-q"]
    command = [sys.executable, "-m", "pytest", *options]
    environment = {**os.environ, "PYTHONPATH": str(folder), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    run = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    return run.returncode, run.stdout + run.stderr


def test_a_listed_test_may_fail(tmp_path: Path) -> None:
    status, text = outcome(tmp_path, "# a remark", "test_two.py::test_that_fails  it must")
    assert status == pytest.ExitCode.OK
    assert "1 passed, 1 xfailed" in text


def test_a_failing_test_that_is_not_listed_fails_the_run(tmp_path: Path) -> None:
    assert outcome(tmp_path)[0] == pytest.ExitCode.TESTS_FAILED


def test_a_listed_test_that_passes_fails_the_run(tmp_path: Path) -> None:
    expected = ("test_two.py::test_that_fails  it must", "test_two.py::test_that_passes  it must")
    assert outcome(tmp_path, *expected)[0] == pytest.ExitCode.TESTS_FAILED


def test_a_listed_test_that_does_not_exist_fails_the_run(tmp_path: Path) -> None:
    status, text = outcome(tmp_path, "test_two.py::test_that_fails  it must", "test_two.py::test_gone  it was there")
    assert status == pytest.ExitCode.USAGE_ERROR
    assert "test_gone" in text


def test_an_entry_without_a_reason_fails_the_run(tmp_path: Path) -> None:
    status, text = outcome(tmp_path, "test_two.py::test_that_fails")
    assert status != pytest.ExitCode.OK
    assert "no reason" in text
