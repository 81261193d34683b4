"""Write plans keep what is not written, delete what became empty, and read nothing they need not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from chunkwright import CorruptChunkError, Entries, PlanError
from tests.support.plans import CHAINS, DATA, LITTLE, SELECTIONS, Objects, expected, prepared, sharding


def assign(data: np.ndarray, selection: Any, value: Any) -> None:
    """Assign orthogonally."""
    if isinstance(selection, tuple) and sum(isinstance(item, list) for item in selection) > 1:
        data[np.ix_(*selection)] = value
    else:
        data[selection] = value


@pytest.mark.parametrize("selection", SELECTIONS, ids=str)
@pytest.mark.parametrize("name", CHAINS)
def test_a_partial_write_changes_what_numpy_changes(name: str, selection: Any) -> None:
    chain = prepared(CHAINS[name], DATA.shape)
    for old in (DATA, np.zeros_like(DATA)):
        store, want = Objects([chain.encode(old)]), old.copy()
        value = np.arange(1000, 1000 + expected(selection).size, dtype="u2").reshape(expected(selection).shape)
        store.write(chain.plan_write(selection), value)
        assign(want, selection, value)
        got = np.zeros_like(want) if store.items[0] is None else chain.decode(store.items[0])
        assert np.array_equal(got, want)


@pytest.mark.parametrize("name", CHAINS)
def test_a_chunk_that_became_empty_is_deleted_unless_empties_are_kept(name: str) -> None:
    chain = prepared(CHAINS[name], DATA.shape)
    store = Objects([chain.encode(DATA)])
    store.write(chain.plan_write(...), np.broadcast_to(np.array(0, "u2"), DATA.shape))
    assert store.items == [None]
    store.write(chain.plan_write(..., keep_empty=True), np.zeros_like(DATA))
    assert store.items[0] is not None
    assert not chain.decode(store.items[0]).any()


@pytest.mark.parametrize("name", CHAINS)
def test_writing_a_whole_chunk_needs_no_old_bytes(name: str) -> None:
    chain = prepared(CHAINS[name], DATA.shape)
    assert not chain.plan_write(...).needs.size
    assert chain.plan_write((slice(1, None), slice(None))).needs.size == 1


def test_a_shard_is_complete_only_when_all_inner_chunks_are() -> None:
    chain = prepared([sharding((3, 4))], DATA.shape)
    flags = np.array([True])
    assert chain.plan_write((slice(0, 11), slice(None)), complete=flags).needs.size == 1
    plain = prepared([LITTLE], DATA.shape)
    assert plain.plan_write((slice(0, 11), slice(None)), complete=flags).needs.size == 0


def test_a_shard_keeps_the_one_inner_chunk_that_is_not_written() -> None:
    chain = prepared([sharding((3, 4))], DATA.shape)
    store, want = Objects([chain.encode(DATA)]), DATA.copy()
    # Everything but the inner chunk in the last corner, as two entries of one chunk.
    entries = Entries.boxes(
        chunk=np.zeros(2, np.int64),
        start=np.array([[0, 0], [9, 0]]),
        count=np.array([[9, 16], [3, 12]]),
        out_start=np.array([[0, 0], [9, 0]]),
    )
    value = DATA + 1000
    store.write(chain.plan_write(entries, complete=np.array([True])), value)
    want[:9], want[9:, :12] = value[:9], value[9:, :12]
    assert np.array_equal(chain.decode(store.items[0]), want)  # type: ignore[arg-type]


def test_a_shard_behind_another_codec_is_complete_when_its_host_says_so() -> None:
    """As in zarr-python: what lies beyond the array's edge becomes the fill value."""
    chain = prepared([{"name": "transpose", "configuration": {"order": [1, 0]}}, sharding((4, 3))], DATA.shape)
    store = Objects([chain.encode(DATA)])
    store.write(chain.plan_write((slice(0, 11), slice(None)), complete=np.array([True])), DATA[:11])
    got = chain.decode(store.items[0])  # type: ignore[arg-type]
    assert np.array_equal(got[:11], DATA[:11])
    assert not got[11:].any()


def test_all_inner_chunks_behind_another_codec_are_kept_empty() -> None:
    """As in zarr-python: a shard behind another codec is encoded all at once, and so are its empty inner chunks."""
    chain = prepared([{"name": "transpose", "configuration": {"order": [1, 0]}}, sharding((4, 3))], DATA.shape)
    store = Objects([None])
    store.write(chain.plan_write((0, 0), keep_empty=True), np.array(0, "u2"))
    assert store.items[0] == bytes(chain.encode(np.zeros_like(DATA), keep_empty=True) or b"")


def test_what_a_complete_chunk_does_not_cover_becomes_the_fill_value() -> None:
    chain = prepared([LITTLE], DATA.shape, fill=9)
    store = Objects([chain.encode(DATA)])
    store.write(chain.plan_write((slice(0, 2), slice(None)), complete=np.array([True])), DATA[:2])
    got = chain.decode(store.items[0])  # type: ignore[arg-type]
    assert np.array_equal(got[:2], DATA[:2])
    assert (got[2:] == 9).all()


def test_untouched_inner_chunks_are_spliced_not_decoded() -> None:
    chain = prepared([sharding((3, 4))], DATA.shape)
    shard = bytearray(chain.encode(DATA) or b"")
    shard[3] ^= 255  # inner chunk (0, 0) can no longer be decoded
    store = Objects([bytes(shard)])
    store.write(chain.plan_write((11, 15)), np.array(5, "u2"))
    got = np.zeros((6, 16), "u2")
    store.read(chain.plan_read((slice(6, 12), slice(None))), got)
    assert got[5, 15] == 5
    assert np.array_equal(got[:5], DATA[6:11])
    with pytest.raises(CorruptChunkError):
        store.read(chain.plan_read((0, 0)), np.zeros((), "u2"))
    with pytest.raises(CorruptChunkError):
        store.write(chain.plan_write((0, 0)), np.array(5, "u2"))


def test_many_partial_writes_give_the_shard_that_one_write_gives() -> None:
    chain = prepared([sharding((3, 4))], DATA.shape)
    store = Objects([None])
    for row in range(12):
        for column in (0, 8):
            box = (slice(row, row + 1), slice(column, column + 8))
            store.write(chain.plan_write(box), DATA[box])
    assert store.items[0] == bytes(chain.encode(DATA) or b"")


def test_of_two_entries_for_one_element_the_later_wins() -> None:
    for codecs in ([LITTLE], [sharding((2,))]):
        chain = prepared(codecs, (6,))
        entries = Entries.boxes(
            chunk=np.zeros(2, np.int64),
            start=np.array([[0], [3]]),
            count=np.array([[6], [2]]),
            out_start=np.array([[0], [6]]),
        )
        store = Objects([None])
        store.write(chain.plan_write(entries), np.array([1, 1, 1, 1, 1, 1, 8, 8], "u2"))
        assert chain.decode(store.items[0]).tolist() == [1, 1, 1, 8, 8, 1]  # type: ignore[arg-type]


def test_encoded_chunks_do_not_follow_the_callers_array() -> None:
    chain = prepared([LITTLE], (4,))
    source = np.arange(1, 5, dtype="u2")
    work = chain.plan_write(...).take()
    assert work is not None
    data = work.run(source)[0][1]
    source[:] = 0
    assert data is not None
    assert chain.decode(data).tolist() == [1, 2, 3, 4]
    assert memoryview(data).readonly


def test_feeding_what_is_not_open_is_refused() -> None:
    plan = prepared([LITTLE], (4,)).plan_write(slice(0, 2))
    for ids, data in (([1], [None]), ([0, 0], [None, None]), ([0], [])):
        with pytest.raises(PlanError):
            plan.feed(ids, data)
    plan.feed([0], [None])
    with pytest.raises(PlanError):
        plan.feed([0], [None])


def test_existing_bytes_may_be_left_to_whoever_carries_out_the_work() -> None:
    # Chunks 1 and 3 keep something; chunk 2 is not written.
    entries = Entries.boxes(
        chunk=np.array([3, 0, 1]),
        start=np.array([[1], [0], [0]]),
        count=np.array([[1], [4], [2]]),
        out_start=np.array([[0], [4], [8]]),
    )
    plan = prepared([LITTLE], (4,)).plan_write(entries)
    plan.feed_later()
    assert plan.needs.size == 0
    seen = {}
    while work := plan.take(2 * 8):
        seen |= dict(zip(work.chunk.tolist(), work.existing.missing.tolist(), strict=True))
        assert work.entries.chunk.tolist() == list(range(len(work.chunk)))
    assert seen == {0: True, 1: False, 3: False}


def test_existing_bytes_cannot_be_left_when_they_were_fed_or_taken() -> None:
    fed = prepared([LITTLE], (4,)).plan_write(slice(0, 2))
    fed.feed([0], [None])
    taken = prepared([LITTLE], (4,)).plan_write(...)
    taken.take()
    for plan in (fed, taken):
        with pytest.raises(PlanError):
            plan.feed_later()


def test_work_comes_in_pieces_of_the_size_that_was_asked_for() -> None:
    chain = prepared([LITTLE], (4,))
    plan = chain.plan_write(Entries.whole((4,), 10))
    sizes = []
    while work := plan.take(3 * 8):
        sizes.append(len(work.run(np.ones((10, 4), "u2"))))
    assert sorted(sizes) == [1, 3, 3, 3]
