"""The page of differences names tests that there are."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
PAGE = ROOT / "docs" / "differences.md"
ROWS = [line for line in PAGE.read_text("utf-8").splitlines() if line.startswith("| ") and "---" not in line]
NAMED = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", PAGE.read_text("utf-8"))


@pytest.mark.parametrize(("file", "name"), NAMED, ids=[name for _, name in NAMED])
def test_a_test_that_the_page_names_exists(file: str, name: str) -> None:
    tree = ast.parse((ROOT / file).read_text("utf-8"))
    assert name in {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


def test_every_difference_names_a_test() -> None:
    rows = [row for row in ROWS if not row.endswith("| test |")]
    assert rows
    assert [row for row in rows if "`tests/" not in row] == []
