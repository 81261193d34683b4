"""The embedding example reads what zarr-python reads, and fetches no more than it needs."""

from __future__ import annotations

import asyncio
import importlib
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def embed(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    yield importlib.import_module("embed")
    for name in ("embed", "sample_array"):
        sys.modules.pop(name, None)


@pytest.fixture
def root(embed: Any, tmp_path: Path) -> Path:
    return Path(importlib.import_module("sample_array").sample_array(tmp_path))


SELECTIONS: list[Any] = [
    ...,
    (slice(30, 35), 5),
    (slice(None, None, 9), slice(60, 3, -2)),
    ([90, 3, 3], slice(None)),
    (slice(4, 4), slice(None)),
]


@pytest.mark.parametrize("selection", SELECTIONS, ids=str)
def test_the_example_reads_what_zarr_python_reads(embed: Any, root: Path, selection: Any) -> None:
    want = np.asarray(zarr.open_array(root, mode="r")[...])[selection]
    reader = embed.Reader(root)
    assert np.array_equal(reader.read(selection), want)
    assert np.array_equal(asyncio.run(reader.read_async(selection)), want)


def test_the_example_fetches_the_index_and_the_touched_inner_chunks_alone(embed: Any, root: Path) -> None:
    reader = embed.Reader(root)
    reader.read((slice(0, 8), slice(4, 12)))
    index = np.frombuffer((root / "c" / "0" / "0").read_bytes()[-(16 * 16 + 4) : -4], "<u8").reshape(4, 4, 2)
    assert reader.fetched == 16 * 16 + 4 + int(index[0, :2, 1].sum())


def test_a_chunk_without_a_file_is_not_fetched(embed: Any, root: Path) -> None:
    (root / "c" / "0" / "0").unlink()
    reader = embed.Reader(root)
    assert not reader.read((slice(0, 8), slice(0, 8))).any()
    assert reader.fetched == 0
