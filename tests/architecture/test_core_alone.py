"""The core works in an environment that has nothing but numpy and attrs."""

from __future__ import annotations

import ast
import hashlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture.repository import DISTRIBUTIONS, ROOT

EXAMPLE = ROOT / "examples" / "embed.py"


def output(*command: str | Path) -> str:
    """Run a command and return what it printed."""
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, f"{command}\n{run.stdout}\n{run.stderr}"
    return run.stdout


@pytest.fixture(scope="module")
def lonely_python() -> Path:
    """Return the Python of an environment that holds the core alone; kept for the next run."""
    metadata = (DISTRIBUTIONS["chunkwright"] / "pyproject.toml").read_bytes()
    key = hashlib.sha256(metadata + sys.version.encode()).hexdigest()[:12]
    folder = ROOT / ".work" / f"core-alone-{key}"
    python = folder / "bin" / "python"
    done = folder / "complete"
    if not done.exists():
        output(sys.executable, "-m", "venv", "--clear", folder)
        output(python, "-m", "pip", "install", "--quiet", "--editable", DISTRIBUTIONS["chunkwright"])
        done.touch()
    return python


def test_the_core_needs_only_numpy_and_attrs(lonely_python: Path) -> None:
    listing = json.loads(output(lonely_python, "-m", "pip", "list", "--format=json"))
    assert {item["name"] for item in listing} - {"pip"} == {"attrs", "chunkwright", "numpy"}


def test_the_embedding_example_runs_on_the_core_alone(lonely_python: Path) -> None:
    output(lonely_python, "-W", "error", EXAMPLE)


def test_the_reader_of_the_embedding_example_takes_less_than_sixty_lines() -> None:
    classes = [node for node in ast.parse(EXAMPLE.read_text("utf-8")).body if isinstance(node, ast.ClassDef)]
    (reader,) = (node for node in classes if node.name == "Reader")
    assert reader.end_lineno is not None
    assert reader.end_lineno < 60, "imports and the reader"
