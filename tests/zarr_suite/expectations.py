"""A pytest plugin for a run of zarr's own tests: the tests listed in ``expected.txt`` have to fail.

It is loaded by ``tools/zarr_suite.py`` into zarr's test session, which knows nothing of this repository.
Listed tests are run, not skipped: one that passes fails the run, and so does one that no longer exists, so
the list cannot outlive its reasons.
"""

from __future__ import annotations

from pathlib import Path

import pytest

__all__ = ("pytest_collection_modifyitems", "read_expected")

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
