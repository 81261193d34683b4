"""Shard indexes are checked before an offset is used, and shards are put together as zarr-python does."""

from __future__ import annotations

import numpy as np
import pytest

from chunkwright.errors import ShardIndexError
from chunkwright.shard_format import ABSENT, Layout, assemble, inner_chunk_order, kept_spans, locate, place
from chunkwright.spec import BoundedSize, FixedSize, UnboundedSize

END = Layout(index_size=32, at_start=False, inner_size=UnboundedSize())
START = Layout(index_size=32, at_start=True, inner_size=UnboundedSize())


def table(*rows: tuple[int, int]) -> np.ndarray:
    return np.array(rows, np.uint64).reshape(-1, 2)


@pytest.mark.parametrize(
    ("layout", "size", "row"),
    [
        (END, 100, (1 << 40, 2)),
        (END, 100, (2**64 - 2, 8)),
        (END, 100, (0, 1 << 50)),
        (END, None, (2**63, 1)),
        (END, None, (2**63 - 1, 2**63 - 1)),
        (END, 100, (60, 9)),
        (END, None, (2**64 - 1, 4)),
        (END, None, (4, 2**64 - 1)),
        (START, 100, (31, 4)),
        (START, 100, (96, 5)),
        (Layout(32, False, FixedSize(4)), None, (0, 3)),
        (Layout(32, False, BoundedSize(4)), None, (0, 5)),
    ],
)
def test_entries_out_of_bounds_are_refused(layout: Layout, size: int | None, row: tuple[int, int]) -> None:
    with pytest.raises(ShardIndexError) as caught:
        locate(table((40, 4), row), layout, size)
    assert caught.value.position == 1


def test_missing_inner_chunks_have_no_place() -> None:
    offset, length = locate(table((0, 4), (int(ABSENT), int(ABSENT))), END, 36)
    assert (offset.tolist(), length.tolist()) == ([0, -1], [4, 0])


def test_inner_chunks_may_share_bytes() -> None:
    offset, _ = locate(table((0, 4), (0, 4), (2, 2)), END, 36)
    assert offset.tolist() == [0, 0, 2]


def test_a_shard_shorter_than_its_index_is_refused() -> None:
    with pytest.raises(ShardIndexError, match="too short"):
        END.index_span(31)


@pytest.mark.parametrize("layout", [END, START])
def test_a_shard_is_data_in_order_and_its_index(layout: Layout) -> None:
    lengths = np.array([2, 0, 3, 1])
    order = np.array([3, 2, 1, 0])
    placement = place(lengths, order, layout)
    shard = assemble(
        placement, layout, b"i" * 32, [(0, b"aa"), (3, b"d")], [(int(placement.start[2]), memoryview(b"ccc"))]
    )
    assert bytes(shard) == (b"i" * 32 + b"dcccaa" if layout.at_start else b"dcccaa" + b"i" * 32)
    assert shard.readonly
    assert placement.table[1].tolist() == [int(ABSENT)] * 2
    offset, length = locate(placement.table, layout, len(shard))
    assert [bytes(shard[o : o + n]) for o, n in zip(offset, length, strict=True) if o >= 0] == [b"aa", b"ccc", b"d"]


def test_neighbours_that_stay_neighbours_are_copied_at_once() -> None:
    spans = kept_spans(memoryview(b"abcdefgh"), np.array([0, 2, 6]), np.array([2, 2, 2]), np.array([10, 12, 14]))
    assert [(start, bytes(view)) for start, view in spans] == [(10, b"abcd"), (14, b"gh")]


@pytest.mark.parametrize("order", ["morton", "lexicographic", "colexicographic", "unordered"])
@pytest.mark.parametrize("grid", [(), (1,), (7,), (2, 3), (4, 4, 4), (5, 1, 3), (33, 2)])
def test_inner_chunks_are_written_in_the_order_of_zarr_python(grid: tuple[int, ...], order: str) -> None:
    from zarr.codecs import ShardingCodec

    theirs = ShardingCodec(chunk_shape=(1,) * len(grid))._subchunk_order_iter(grid, order)  # type: ignore[arg-type]
    want = [int(np.ravel_multi_index(where, grid)) if grid else 0 for where in theirs]
    assert inner_chunk_order(grid, order).tolist() == want
