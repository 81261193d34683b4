"""A pytest plugin for a run of zarr's own tests: the tests listed in ``expected.txt`` have to fail.

It is loaded by ``tools/zarr_suite.py`` into zarr's test session, which knows nothing of this repository.
Listed tests are run, not skipped: one that passes fails the run, and so does one that no longer exists, so
the list cannot outlive its reasons.

A run that never came to our pipeline, or that used another backend than it was told to, proves nothing: it fails too.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

__all__ = (
    "pytest_collection_modifyitems",
    "pytest_sessionfinish",
    "pytest_terminal_summary",
    "pytest_testnodedown",
    "read_expected",
)

EXPECTED = Path(__file__).with_name("expected.txt")


def read_expected(path: Path = EXPECTED) -> dict[str, str]:
    """Read the list of tests that are expected to fail.

    Parameters
    ----------
    path
        The list: one node id and one reason a line, two spaces apart; lines with a leading # are remarks.

    Returns
    -------
    dict
        Reasons by node id.

    Raises
    ------
    ValueError
        When a line has no reason.
    """
    expected = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        if not line or line.startswith("#"):
            continue
        node_id, separator, reason = line.partition("  ")
        if not separator or not reason.strip():
            raise ValueError(f"{path.name}: no reason for {node_id}")
        expected[node_id] = reason.strip()
    return expected


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the listed tests as expected to fail, and stop when one of a collected file is not there."""
    collected = {item.nodeid: item for item in items}
    files = {node_id.partition("::")[0] for node_id in collected}
    for node_id, reason in read_expected().items():
        if node_id in collected:
            collected[node_id].add_marker(pytest.mark.xfail(reason=reason, strict=True))
        elif node_id.partition("::")[0] in files:
            raise pytest.UsageError(f"expected.txt lists a test that does not exist: {node_id}")


PIPELINE, BACKEND = (os.environ.get(f"ZARR_CODEC_PIPELINE__{name}", "") for name in ("PATH", "BACKEND"))
PACKAGES = {"rust": "chunkwright_rust", "numcodecs": "chunkwright_numcodecs"}
calls: Counter[str] = Counter()
"""Calls of our pipeline by path, and processes by the backends that they loaded; over all processes."""


def _used() -> dict[str, int]:
    package = sys.modules.get("chunkwright_zarr")
    counted = {} if package is None else package.counters()
    return {**counted, **{f"{name} loaded": 1 for name, module in PACKAGES.items() if module in sys.modules}}


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Add up what the processes of pytest-xdist did."""
    calls.update(getattr(node, "workeroutput", {}).get("chunkwright", {}))


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail a run that did not use what it was told to use."""
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["chunkwright"] = _used()
        return
    calls.update(_used())
    if _wrong() and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def _wrong() -> str:
    """What was not used, or used and should not have been."""
    if not PIPELINE.startswith("chunkwright_zarr."):
        return ""
    if not any(path.startswith("read.") for path in calls):
        return "no read came to our pipeline"
    if BACKEND in PACKAGES and not calls[f"{BACKEND} loaded"]:
        return f"the backend {BACKEND} was not loaded"
    return "the Rust backend was loaded" if BACKEND == "numcodecs" and calls["rust loaded"] else ""


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Say what was used."""
    terminalreporter.section("calls of our pipeline")
    terminalreporter.line(", ".join(f"{name}: {count}" for name, count in sorted(calls.items())) or "none")
    if _wrong():
        terminalreporter.line(f"error: {_wrong()}", red=True)
