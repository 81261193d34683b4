"""The page of what is supported is what the tool makes of the code, and other implementations are those tested."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from tools.supported.samples import SampleError, check_samples

ROOT = Path(__file__).resolve().parent.parent.parent
PAGE = ROOT / "docs" / "supported.md"
IMPLEMENTATIONS = (ROOT / "tests" / "interop" / "implementations.py").read_text("utf-8")


def check(page: Path) -> subprocess.CompletedProcess[str]:
    """Run the tool in a process of its own, in which no test has registered codecs."""
    command = [sys.executable, "-m", "tools.supported", "--check", "--page", str(page)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_the_page_says_what_is_so() -> None:
    checked = check(PAGE)
    assert checked.returncode == 0, f"`make supported` would change:\n{checked.stdout}{checked.stderr}"


def test_a_page_that_says_something_else_is_told_by_line(tmp_path: Path) -> None:
    lines = PAGE.read_text("utf-8").splitlines(keepends=True)
    changes = [next(at for at, line in enumerate(lines) if line.startswith(row)) for row in ("| `zstd`", "| `bool`")]
    for at in changes:
        lines[at] = lines[at].replace("same values", "no").replace("read", "no")
    changed = tmp_path / "supported.md"
    changed.write_text("".join(lines), "utf-8")
    checked = check(changed)
    assert checked.returncode == 1
    told = [line for line in checked.stdout.splitlines() if line.startswith("-| ")]
    assert told == [f"-{lines[at].rstrip()}" for at in changes]
    assert changed.read_text("utf-8") == "".join(lines)


def test_a_codec_without_a_sample_is_named() -> None:
    with pytest.raises(SampleError, match="zarr-python registers new, which has no sample"):
        check_samples("zarr-python", ["old", "new"], ["old"])


def test_a_sample_of_no_codec_is_named() -> None:
    with pytest.raises(SampleError, match="a sample of old, which zarr-python does not register"):
        check_samples("zarr-python", ["new"], ["new", "old"])


def cells(line: str) -> list[str]:
    """Return what stands between the bars of a table's row."""
    return [cell.strip(" `") for cell in line.strip("|").split("|")]


OTHERS = [cells(line) for line in PAGE.read_text("utf-8").splitlines() if line.endswith(".py` |")]


@pytest.mark.parametrize("row", OTHERS, ids=lambda row: row[0])
def test_another_implementation_is_tested_in_the_version_that_is_told(row: list[str]) -> None:
    package, told = row[1].split()
    assert version(package) == told
    assert package.replace("-", "_") in (ROOT / row[-1]).read_text("utf-8") + IMPLEMENTATIONS
