"""Every benchmark runs, and every contender gives in it what NumPy gives."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from benches.results import Results

ROOT = Path(__file__).resolve().parents[2]
SUITES = {"grid", "volumes", "latency", "crops", "sweep", "memory"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where a quick run has left its results."""
    out = tmp_path_factory.mktemp("benches")
    command = [sys.executable, "-m", "benches", "--quick", "--out", out, "--folder", tmp_path_factory.mktemp("arrays")]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    return out


@pytest.fixture(scope="module")
def results(folder: Path) -> Results:
    """What the quick run measured."""
    return Results.load(folder / "results.json")


def test_nobody_fails_or_is_wrong(results: Results) -> None:
    assert results.failures == []


def test_every_suite_has_times(results: Results) -> None:
    assert {row.cell.suite for row in results.rows} == SUITES


def test_everyone_takes_part(results: Results) -> None:
    assert {row.contender for row in results.rows} == set(results.contenders)


def test_the_grid_is_run_on_every_store(results: Results) -> None:
    stores = {row.cell.store for row in results.rows if row.cell.suite == "grid"}
    assert stores == {"local", "memory", "obstore", "fsspec", "zip"}


def test_we_take_part_in_every_cell(results: Results) -> None:
    for suite in SUITES:
        for cell, rows in results.by_cell(suite).items():
            assert any(results.role(name) == "ours" for name in rows), cell


def test_some_cells_are_run_on_one_cpu(results: Results) -> None:
    assert 1 in {row.cell.cpus for row in results.rows}


def test_the_page_shows_pictures_that_exist(folder: Path) -> None:
    page = (folder / "report.html").read_text("utf-8")
    names = [part.split("'", 1)[0] for part in page.split("<img src='")[1:]]
    assert names
    assert all((folder / name).stat().st_size for name in names)


def test_kept_results_can_be_reported_and_compared_again(folder: Path, tmp_path: Path) -> None:
    kept = folder / "results.json"
    command = [sys.executable, "-m", "benches", "--from", kept, "--compare", kept, "--out", tmp_path]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    last = [line.split() for line in run.stdout.splitlines() if "geometric mean of all" in line]
    assert [line[-1] for line in last] == ["1.00"]
