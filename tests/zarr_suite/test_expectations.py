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


USES = """
import {package}
import zarr


def test_that_reads():
    zarr.create_array({{}}, shape=(4,), dtype="i4")[...]
"""


def outcome(folder: Path, *expected: str, tests: str = TESTS, **variables: str) -> tuple[int, str]:
    """Run two tests with a list of expected failures; return pytest's exit status and output."""
    shutil.copy(PLUGIN, folder)
    (folder / "expected.txt").write_text("\n".join(expected))
    (folder / "test_two.py").write_text(tests)
    options = ["-p", "expectations", "-p", "no:cacheprovider", "--rootdir", str(folder), "-q"]
    command = [sys.executable, "-m", "pytest", *options]
    environment = {**os.environ, "PYTHONPATH": str(folder), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", **variables}
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


def used(folder: Path, path: str, backend: str, package: str = "os") -> tuple[int, str]:
    """The outcome of a run that reads an array, told to use a pipeline and a backend."""
    variables = {"ZARR_CODEC_PIPELINE__PATH": path, "ZARR_CODEC_PIPELINE__BACKEND": backend}
    return outcome(folder, tests=USES.format(package=package), **variables)


OURS = "chunkwright_zarr.CodecPipeline"


@pytest.mark.parametrize("backend", ["numcodecs", "rust"])
def test_a_run_under_our_pipeline_says_what_it_used(tmp_path: Path, backend: str) -> None:
    status, text = used(tmp_path, OURS, backend)
    assert status == pytest.ExitCode.OK
    assert f"{backend} loaded: 1" in text
    assert "read.inline: 1" in text


def test_a_run_that_never_came_to_our_pipeline_fails(tmp_path: Path) -> None:
    status, text = outcome(tmp_path, "test_two.py::test_that_fails  it must", ZARR_CODEC_PIPELINE__PATH=OURS)
    assert status == pytest.ExitCode.TESTS_FAILED
    assert "error: no read came to our pipeline" in text


def test_a_run_on_numcodecs_that_loads_the_rust_backend_fails(tmp_path: Path) -> None:
    status, text = used(tmp_path, OURS, "numcodecs", "chunkwright_rust")
    assert status == pytest.ExitCode.TESTS_FAILED
    assert "error: the Rust backend was loaded" in text


def test_at_most_a_dozen_tests_are_listed() -> None:
    listed = [line for line in PLUGIN.with_name("expected.txt").read_text("utf-8").splitlines() if line[:1] != "#"]
    assert 0 < len(listed) <= 12
