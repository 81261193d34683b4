"""What the benchmarks do without zarr: geometry, shards, the limit, the store with latency, places."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import zarr
from zarr.abc.store import RangeByteRequest, SuffixByteRequest
from zarr.core.buffer import default_buffer_prototype

from benches.data import DataSet, make_data
from benches.latency import LatencyStore
from benches.layouts import Layout
from benches.operations import Call, standard_operations
from benches.places import PLACES, LocalPlace, Located, stored
from benches.rivals.geometry import out_shape, pieces
from benches.rivals.limit import Limit
from benches.rivals.numcodecs_threads import NumcodecsThreads
from benches.rivals.stored_format import shard_pieces

DATA = make_data("photons", 64)
CALLS = [call for operation in standard_operations(DATA) for call in operation.calls]


@pytest.fixture(params=[Layout(16, "zstd"), Layout(8, "zstd", 32), Layout(32, "blosc"), Layout(32, "raw", 64)], ids=str)
def place(request: pytest.FixtureRequest) -> Iterator[LocalPlace]:
    """Photon counts on local disk, in cells that the limit handles one by one or many at a time."""
    found = stored(request.param, DATA)
    yield found
    found.remove()


@pytest.mark.parametrize("cell", [(16, 16, 16), (7, 64, 5), (64, 64, 64), (1, 1, 64)])
def test_pieces_put_together_what_numpy_selects(cell: tuple[int, ...]) -> None:
    shape = DATA.values.shape
    for call in CALLS:
        out = np.full(out_shape(call, shape), 0, DATA.values.dtype)
        for piece in pieces(call, shape, cell):
            box = tuple(slice(at * edge, (at + 1) * edge) for at, edge in zip(piece.cell, cell, strict=True))
            out[piece.out] = DATA.values[box][piece.inner]
        assert np.array_equal(out, call.of(DATA.values))


def test_a_piece_is_whole_when_it_takes_all_that_lies_in_the_array() -> None:
    found = list(pieces(Call((slice(0, 10), slice(2, 9))), (10, 9), (4, 4)))
    assert [piece.is_whole for piece in found] == [False, True, True] * 3


@pytest.mark.parametrize("contender", [Limit(), NumcodecsThreads()], ids=lambda one: one.name)
@pytest.mark.parametrize("kind", ["local", "memory"])
def test_what_is_written_by_hand_is_read_by_zarr(place: LocalPlace, kind: str, contender: Any) -> None:
    copy = PLACES[kind].of(place.folder)
    opened = contender.open(copy)
    state = DATA.values.copy()
    for operation in standard_operations(DATA):
        if operation.writes:
            operation.apply(state)
            opened.write(operation.calls[0], operation.values[0])
            assert np.array_equal(copy.read_back(), state), operation.name
    opened.close()
    copy.remove()


def test_a_shard_with_missing_cells_is_read_by_zarr() -> None:
    data = DataSet("two", np.array([0, 0, 7, 8], np.uint16), "uint16")
    place = stored(Layout(2, "raw", 4), data)
    (place.folder / "c/0").write_bytes(b"".join(shard_pieces([None, data.values[2:].tobytes()])))
    assert np.array_equal(place.read_back(), data.values)
    place.remove()


@pytest.mark.parametrize("kind", PLACES)
def test_every_place_holds_the_same_bytes(place: LocalPlace, kind: str) -> None:
    copy = PLACES[kind].of(place.folder)
    located = copy.locate("c/0/0/0")
    if isinstance(located, Located):
        content = located.path.read_bytes()[located.start : located.start + located.length]
    else:
        content = bytes(located)
    assert content == (place.folder / "c/0/0/0").read_bytes()
    assert np.array_equal(copy.read_back(), DATA.values)
    copy.remove()


def test_the_store_with_latency_counts_requests_bytes_and_rounds() -> None:
    prototype = default_buffer_prototype()
    store = LatencyStore({"c/0": prototype.buffer.from_bytes(bytes(range(100)))}, 0)

    async def requests() -> list[Any]:
        store.next_call()
        tail = store.get("c/0", prototype, SuffixByteRequest(10))
        parts = (store.get("c/0", prototype, RangeByteRequest(start, start + 5)) for start in range(5))
        missing = store.get("c/1", prototype)
        return await asyncio.gather(tail, *parts, missing)

    tail, *parts, missing = asyncio.run(requests())
    assert tail.to_bytes() == bytes(range(90, 100))
    assert [part.to_bytes()[0] for part in parts] == [0, 1, 2, 3, 4]
    assert missing is None
    assert (store.requests, store.nbytes) == (7, 35)
    assert store.rounds(10) == 2  # what comes first, then the ranges
    assert store.rounds(2) == 4


def test_zarr_reads_from_the_store_with_latency() -> None:
    store = LatencyStore({}, 0)
    array = zarr.create_array(store, shape=(8,), chunks=(2,), dtype="uint8")
    array[...] = np.arange(8)
    store.forget()
    assert array[2:6].tolist() == [2, 3, 4, 5]
    assert store.requests == 2
