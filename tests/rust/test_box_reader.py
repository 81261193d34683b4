"""What reads a batch of selections without columns takes batches of one store and one form of chunks, and no others."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from chunkwright import CodecChain
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
