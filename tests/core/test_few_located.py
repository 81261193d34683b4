"""A few index entries are looked at in plain Python, with the result that NumPy gives for many."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chunkwright.errors import ShardIndexError
from chunkwright.shard_format import ABSENT, FEW, Layout, locate
from chunkwright.spec import BoundedSize, FixedSize, UnboundedSize

NUMBERS = st.sampled_from([0, 1, 7, 15, 16, 17, 40, 99, 2**31, 2**63 - 17, 2**63 - 1, 2**63, 2**64 - 2, int(ABSENT)])
SIZES = st.sampled_from([FixedSize(16), BoundedSize(17), UnboundedSize()])


def outcome(entries: np.ndarray, layout: Layout, shard_size: int | None) -> tuple[list[int], list[int]] | str:
    try:
        offset, length = locate(entries, layout, shard_size)
    except ShardIndexError as error:
        return str(error)
    assert (offset.dtype, length.dtype) == (np.int64, np.int64)
    return offset[:1].tolist(), length[:1].tolist()


@given(
    entry=st.tuples(NUMBERS, NUMBERS),
    size=SIZES,
    at_start=st.booleans(),
    shard_size=st.sampled_from([None, 16, 40, 100, 2**40]),
)
def test_one_entry_is_what_it_is_among_many(
    entry: tuple[int, int], size: FixedSize | BoundedSize | UnboundedSize, at_start: bool, shard_size: int | None
) -> None:
    layout = Layout(index_size=16, at_start=at_start, inner_size=size)
    one = np.array([entry], np.uint64)
    many = np.concatenate([one, np.full((FEW, 2), ABSENT)])
    assert outcome(one, layout, shard_size) == outcome(many, layout, shard_size)


@pytest.mark.parametrize("count", [0, FEW, FEW + 1])
def test_all_entries_are_looked_at(count: int) -> None:
    layout = Layout(index_size=16, at_start=False, inner_size=UnboundedSize())
    entries = np.array([(number, 1) for number in range(count)], np.uint64).reshape(-1, 2)
    offset, length = locate(entries, layout, 100)
    assert (offset.tolist(), length.tolist()) == (list(range(count)), [1] * count)
    if count:
        entries[-1, 1] = 90
        with pytest.raises(ShardIndexError) as caught:
            locate(entries, layout, 100)
        assert caught.value.position == count - 1
