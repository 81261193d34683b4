"""Every data type of zarr's, and values for it that meet the corners: signed zeros, NaN, NaT, empty, non-ASCII.

Where zarr compares with the fill value by value and we compare bit for bit, the two differ in what they leave
out of a store. Values that show the difference (NaN and zeros of either sign in complex numbers and in
structures) are left out here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray
from zarr.core.dtype import VariableLengthBytes

type Rng = np.random.Generator
type Values = Callable[[Rng, int], Any]


@attrs.frozen(eq=False)
class DType:
    """A data type as ``create_array`` takes it, with a source of values."""

    name: str
    zarr: Any
    numpy: np.dtype[Any]
    draw: Values
    variable: bool = False
    formats: tuple[int, ...] = (2, 3)

    def values(self, random: Rng, shape: tuple[int, ...]) -> NDArray[Any]:
        """An array of this data type."""
        array = np.empty(shape, self.numpy)
        flat = array.reshape(-1)
        drawn = self.draw(random, array.size)
        if self.numpy.kind == "O":  # the objects may be arrays, which NumPy would take apart
            for at, value in enumerate(drawn):
                flat[at] = value
        else:
            flat[:] = drawn
        return array

    def scalar(self, random: Rng) -> Any:
        """One value, as a fill value or as a scalar to assign."""
        value = self.values(random, (1,))
        return value[0]

    def __repr__(self) -> str:
        return self.name


def choice(*pool: Any) -> Values:
    """Any of a few values."""
    return lambda random, count: [pool[at] for at in random.integers(0, len(pool), count)]


def _bits(dtype: np.dtype[Any]) -> Values:
    """Any bit pattern, or (every other time) one of a few small numbers, so that equal chunks come up."""

    def draw(random: Rng, count: int) -> Any:
        if random.random() < 0.5:
            return random.integers(0, 3, count).astype(dtype)
        return np.frombuffer(random.bytes(count * dtype.itemsize), dtype)

    return draw


def _complex(random: Rng, count: int) -> Any:
    pool = np.array([1.0, -2.5, np.inf, 3.0])
    return pool[random.integers(0, 4, count)] + 1j * pool[random.integers(0, 2, count)]


def _times(dtype: np.dtype[Any]) -> Values:
    pool = np.array([np.iinfo("i8").min, 0, 1, -1, 10**9], "i8").view(dtype)
    return lambda random, count: pool[random.integers(0, 5, count)]


def _records(dtype: np.dtype[Any]) -> Values:
    def draw(random: Rng, count: int) -> Any:
        array = np.zeros(count, dtype)
        for name in dtype.names or ():
            field = array[name]
            if field.dtype.names:
                field[...] = _records(field.dtype)(random, count)
            elif field.dtype.kind == "S":
                field[...] = choice(b"", b"ab", b"xyz")(random, count)
            else:
                field[...] = random.integers(1, 4, count)
        return array

    return draw


def _plain(name: str, draw: Values | None = None) -> DType:
    dtype = np.dtype(name)
    return DType(name, dtype, dtype, draw or _bits(dtype))


FLOATS = choice(0.0, -0.0, 1.5, -2.25, np.inf, -np.inf, np.nan, 6e-8)
TEXT = choice("", "a", "ß", "abc", "日本語")
STRINGS = choice("", "a", "ß", "long " * 9, "日本語", "a\x00b", "🙂")
BLOBS = choice(b"", b"a", b"\x00\x01", b"\xff" * 20)

POINT = np.dtype([("x", "<i4"), ("y", "<f8")])
NESTED = np.dtype([("a", "<u2"), ("b", [("c", "S3"), ("d", "<f4")])])

DTYPES = [
    _plain("bool", choice(False, True)),
    *(_plain(name) for name in ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8")),
    *(_plain(name, FLOATS) for name in ("f2", "f4", "f8")),
    *(_plain(name, _complex) for name in ("c8", "c16")),
    *(_plain(name, _times(np.dtype(name))) for name in ("M8[s]", "M8[10ns]", "m8[ms]")),
    _plain("S3", choice(b"", b"a", b"ab", b"xyz", b"a\x00b")),
    _plain("U3", TEXT),
    _plain("V5", lambda random, count: np.frombuffer(random.bytes(count * 5), "V5")),
    DType("point", POINT, POINT, _records(POINT)),
    DType("nested", NESTED, NESTED, _records(NESTED)),
    DType("string", "string", np.dtypes.StringDType(), STRINGS, variable=True),
    DType("bytes", VariableLengthBytes(), np.dtype(object), BLOBS, variable=True),
    *(attrs.evolve(_plain(name), formats=(2,)) for name in (">i2", ">u8")),
    *(attrs.evolve(_plain(name, FLOATS), formats=(2,)) for name in (">f4",)),
    attrs.evolve(_plain(">c8", _complex), formats=(2,)),
    attrs.evolve(_plain(">M8[s]", _times(np.dtype(">M8[s]"))), formats=(2,)),
    attrs.evolve(_plain(">U2", TEXT), formats=(2,)),
]

INTEGERS = [dtype for dtype in DTYPES if dtype.numpy.kind in "iu"]
