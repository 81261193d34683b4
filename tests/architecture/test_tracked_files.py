"""Nothing that is committed depends on the machine it was written on."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.architecture.repository import ROOT, tracked_files

# Put together here so that this file does not contain what it looks for.
FOLDERS = "|".join(["home", "Users", "root", "work", "opt"])
MACHINE_PATH = re.compile(rf"(?<![\w.$*}}\])/-])/(?:{FOLDERS})/\w")
HOSTS = [".".join(parts) for parts in (("pypi", "org"), ("pythonhosted", "org"))]
REGISTRY_HOSTS = re.compile("|".join(map(re.escape, HOSTS)))

LARGEST = 500_000


def texts() -> dict[Path, str]:
    """Return the tracked files that are text, by path inside the repository."""
    found = {}
    for path in tracked_files():
        data = path.read_bytes()
        if b"\0" not in data:
            found[path.relative_to(ROOT)] = data.decode("utf-8")
    return found


@pytest.mark.parametrize("pattern", [MACHINE_PATH, REGISTRY_HOSTS], ids=["paths", "registries"])
def test_no_tracked_file_names_this_machine(pattern: re.Pattern[str]) -> None:
    hits = [f"{path}: {match[0]}" for path, text in texts().items() for match in pattern.finditer(text)]
    assert hits == []


def test_the_pattern_knows_a_machine_path_when_it_sees_one() -> None:
    folder = "home"
    assert MACHINE_PATH.search(f"see /{folder}/someone/data")
    assert not MACHINE_PATH.search(f"see core/{folder}/data and ./{folder}/x")


def test_tracked_files_are_small() -> None:
    assert [str(path) for path in tracked_files() if path.stat().st_size > LARGEST] == []


def test_modules_stay_below_the_hard_limit_of_lines() -> None:
    counts = {path: text.count("\n") for path, text in texts().items() if path.suffix in {".py", ".rs"}}
    assert {str(path): lines for path, lines in counts.items() if lines > 500} == {}
