"""What reads a batch of selections without columns takes batches of one store and one form of chunks, and no others."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from chunkwright import CodecChain, entries_of, split
from chunkwright_rust import RustBackend
from chunkwright_store import Boxes, BoxReader, box_reader_of

LITTLE = {"name": "bytes", "configuration": {"endian": "little"}}
CHUNKS = np.arange(16, dtype="u2").reshape(2, 2, 4)
STORE, OTHER = SimpleNamespace(), SimpleNamespace()
SAID, ELSE = SimpleNamespace(), SimpleNamespace()


class Place:
    def __init__(self, store: Any) -> None:
        self.store = store


class OtherPlace(Place):
    pass


def reader() -> BoxReader:
    prepared = CodecChain.from_json([LITTLE]).bind("uint16", 0).prepare((2, 4), backends=[RustBackend()])
    found = box_reader_of(prepared)
    assert found is not None
    return found


def batch(second: Any) -> list[tuple[Any, ...]]:
    """Two rows; the second is as given."""
    place, said = second
    whole = (slice(0, 2, 1), slice(0, 4, 1))
    rows = [(Place(STORE), SAID), (place, said)]
    return [(*row, whole, (slice(2 * n, 2 * n + 2, 1), slice(0, 4, 1)), True) for n, row in enumerate(rows)]


def looked_at(rows: list[tuple[Any, ...]], store: Any, out: np.ndarray) -> Boxes | None:
    return reader().boxes(rows, store, out)


def test_a_batch_of_one_store_is_decoded() -> None:
    out = np.zeros((4, 4), "u2")
    boxes = looked_at(batch((Place(STORE), SAID)), STORE, out)
    assert boxes is not None
    boxes.decode(list(CHUNKS), None)
    np.testing.assert_array_equal(out, CHUNKS.reshape(4, 4))


@pytest.mark.parametrize(
    "second",
    [(Place(OTHER), SAID), (Place(STORE), ELSE), (OtherPlace(STORE), SAID), (SimpleNamespace(), SAID)],
    ids=["another store", "something else is said", "a place of another class", "no store"],
)
def test_others_are_left_alone(second: Any) -> None:
    assert looked_at(batch(second), STORE, np.zeros((4, 4), "u2")) is None


def test_stores_may_be_left_out_of_account() -> None:
    assert looked_at(batch((Place(OTHER), SAID)), None, np.zeros((4, 4), "u2")) is not None


@pytest.mark.parametrize("rows", [[()], [(Place(STORE), SAID)], [[Place(STORE), SAID, (), (), True]], [None]])
def test_what_is_no_row_is_left_alone(rows: Any) -> None:
    assert looked_at(rows, STORE, np.zeros((4, 4), "u2")) is None


def region(selection: tuple[Any, ...], out: np.ndarray, most: int = 100) -> Boxes | None:
    return reader().region(selection, ("a/", "."), most, out)


def of_array(boxes: Boxes, array: np.ndarray) -> list[np.ndarray]:
    """The chunks of an array that boxes ask for."""
    cells = [tuple(map(int, key.removeprefix("a/").split("."))) for key in boxes.keys]
    return [np.ascontiguousarray(array[2 * row : 2 * row + 2, 4 * column : 4 * column + 4]) for row, column in cells]


@pytest.mark.parametrize(
    "selection",
    [
        (slice(1, 9, 1), slice(3, 20, 1)),
        (slice(0, 9, 5), slice(2, 20, 9)),
        (slice(9, 10, 1 << 60), 19),
        (7, np.array([0, 3, 4, 4, 11])),
        (np.array([0, 9]), np.array([1, 2, 18])),
    ],
    ids=str,
)
def test_a_region_is_cut_along_the_chunks(selection: tuple[Any, ...]) -> None:
    array = np.arange(200, dtype="u2").reshape(10, 20)
    entries, shape = entries_of(selection, array.shape)
    out = np.zeros(shape, "u2")
    boxes = region(selection, out)
    assert boxes is not None
    parts = split(entries, (2, 4), (5, 5))
    assert boxes.keys == [f"a/{cell // 5}.{cell % 5}" for cell in parts.cell.tolist()]
    boxes.decode(of_array(boxes, array), None)
    wanted = array[np.ix_(*(np.arange(extent)[item].ravel() for item, extent in zip(selection, (10, 20), strict=True)))]
    np.testing.assert_array_equal(out, wanted.reshape(shape))


@pytest.mark.parametrize(
    "selection",
    [
        (slice(0, 2, 1),),
        (slice(0, 2, 1), slice(0, 4, 1), 0),
        (slice(0, 2, -1), slice(0, 4, 1)),
        (slice(-2, 2, 1), slice(0, 4, 1)),
        (np.array([1, 0]), slice(0, 4, 1)),
        (np.array([-1, 0]), slice(0, 4, 1)),
        (np.array([[0, 1]]), slice(0, 4, 1)),
        (np.array([0.0, 1.0]), slice(0, 4, 1)),
        (True, slice(0, 4, 1)),
        (-1, slice(0, 4, 1)),
        (1 << 64, slice(0, 4, 1)),
        (None, slice(0, 4, 1)),
    ],
    ids=str,
)
def test_other_regions_are_left_alone(selection: tuple[Any, ...]) -> None:
    assert region(selection, np.zeros((2, 4), "u2")) is None


def test_a_region_without_axes_is_left_alone() -> None:
    prepared = CodecChain.from_json([LITTLE]).bind("uint16", 0).prepare((), backends=[RustBackend()])
    found = box_reader_of(prepared)
    assert found is not None
    assert found.region((), ("c/", "/"), 100, np.zeros((), "u2")) is None


def test_a_region_of_too_many_chunks_or_another_shape_is_left_alone() -> None:
    everything = (slice(0, 1 << 62, 1), slice(0, 1 << 62, 1))
    assert region(everything, np.zeros((2, 4), "u2")) is None
    assert region((slice(0, 10, 1), slice(0, 20, 1)), np.zeros((10, 20), "u2"), most=24) is None
    for shape in ((10, 19), (11, 20), (10, 20, 1)):
        assert region((slice(0, 10, 1), slice(0, 20, 1)), np.zeros(shape, "u2")) is None
    assert region((slice(0, 10, 1), 3), np.zeros((10, 1), "u2")) is None
    assert region((slice(0, 10, 1), slice(0, 20, 1)), np.zeros((10, 20), "f8")) is None
    assert region((slice(0, 10, 1), slice(0, 20, 1)), np.zeros((10, 20), "u2"), most=25) is not None
