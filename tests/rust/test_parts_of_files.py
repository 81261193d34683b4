"""Large chunks that nothing was done to: only the bytes that are wanted are read, and those between if they are few."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from chunkwright import ChunkLengthError, PreparedChain
from chunkwright.selection import entries_of
from chunkwright_rust import RustBackend
from tests.rust.chains import BIG, LITTLE, prepare

FILES = RustBackend.file_io
assert FILES is not None

SHAPE = (96, 400)
TRANSPOSE = {"name": "transpose", "configuration": {"order": [1, 0]}}
CHAINS: dict[str, list[Any]] = {"little": [LITTLE], "big": [BIG], "transposed": [TRANSPOSE, LITTLE]}
VALUES = np.random.default_rng(5).integers(-(2**62), 2**62, SHAPE)

SELECTIONS: dict[str, Any] = {
    "a row": 40,
    "a column": (slice(None), 7),
    "the last element": (95, 399),
    "a box": (slice(10, 30), slice(60, 80)),
    "steps": (slice(50, 70, 3), slice(1, 80, 7)),
    "backwards": (slice(30, 20, -1), slice(None, None, -2)),
    "lists": ([5, 9, 30], [70, 2, 3]),
    "far rows": (slice(3, 96, 20), slice(10, 20)),
    "far rows backwards": (slice(95, None, -31), slice(None, None, -1)),
    "far rows in any order": ([90, 0, 40, 41, 40], [399, 0]),
    "everything": (slice(None), slice(None)),
    "nothing": (slice(5, 5), 0),
}


@pytest.fixture(params=list(CHAINS))
def chain(request: pytest.FixtureRequest) -> PreparedChain:
    return prepare(CHAINS[request.param], "int64", SHAPE, fill_value=-3)


def stored(chain: PreparedChain, root: Path) -> None:
    encoded = chain.encode(VALUES)
    assert encoded is not None
    (root / "c").write_bytes(encoded)


def read(chain: PreparedChain, root: Path, selection: Any, key: str = "c") -> np.ndarray:
    entries, shape = entries_of(selection, SHAPE)
    out = np.zeros(shape, "i8")
    FILES.read_into(chain, root, [key], entries, out)
    return out


@pytest.mark.parametrize("selection", SELECTIONS.values(), ids=list(SELECTIONS))
def test_parts_are_what_numpy_selects(chain: PreparedChain, tmp_path: Path, selection: Any) -> None:
    stored(chain, tmp_path)
    expected = (
        VALUES[np.ix_(*selection)]
        if isinstance(selection, tuple) and isinstance(selection[0], list)
        else VALUES[selection]
    )
    np.testing.assert_array_equal(read(chain, tmp_path, selection), expected)


@pytest.mark.parametrize("change", [-1, 1, -(96 * 400 * 8)])
def test_a_file_of_the_wrong_length_is_refused_whatever_is_wanted(
    chain: PreparedChain, tmp_path: Path, change: int
) -> None:
    stored(chain, tmp_path)
    content = (tmp_path / "c").read_bytes()
    (tmp_path / "c").write_bytes((content + b"\0")[: len(content) + change])
    for selection in (0, (slice(None), 7), slice(0, 96, 40)):
        with pytest.raises(ChunkLengthError) as caught:
            read(chain, tmp_path, selection)
        assert (caught.value.codec, caught.value.position) == ("bytes", 0)
        assert (caught.value.expected, caught.value.found) == (len(content), len(content) + change)


def test_missing_chunks_are_the_fill_value(chain: PreparedChain, tmp_path: Path) -> None:
    assert (read(chain, tmp_path, 40, key="elsewhere") == -3).all()
