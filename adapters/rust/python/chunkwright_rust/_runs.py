"""What the backend compiles runs of codecs to, one class per kind of run.

- :class:`FixedRun`: elements of a fixed number of bytes; the native module does everything, except where the
  caller's array has a dtype that only NumPy can convert to or from.
- :class:`ItemsRun`: strings and bytes of variable length; the native module goes as far as lists of Python objects.
- :class:`BytesRun`: bytes->bytes codecs alone, after or between those of other backends.
- :class:`ArraysRun`: array->array codecs alone, before those of other backends.
"""

from __future__ import annotations

from collections.abc import Buffer, Iterator, Sequence
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from chunkwright.buffers import Buffers
from chunkwright.codecs import Transpose
from chunkwright.entries import Entries
from chunkwright.errors import CodecError
from chunkwright.kernels import decoded_limit
from chunkwright.ports import Step
from chunkwright.scatter import gather, scatter
from chunkwright.spec import ChunkSpec, DataType
from chunkwright_rust import _native
from chunkwright_rust._kernels import find
from chunkwright_rust._layout import (
    columns_of,
    converted,
    fill_bytes,
    opaque,
    ranges_of,
    rows_of,
    significant,
    unit_between,
)
from chunkwright_rust._native import Program

__all__ = ("FILES", "ArraysRun", "BytesRun", "FixedRun", "ItemsRun", "compile_run")

# Only where files can be read at a position.
FILES: type[_native.Files] | None = getattr(_native, "Files", None)

# Decoded bytes that are held at a time where NumPy has to put them into the caller's array.
_BLOCK = 32 << 20


def compile_run(steps: Sequence[Step]) -> ArraysRun | BytesRun | FixedRun | ItemsRun:
    """Compile a run.

    Parameters
    ----------
    steps
        In order of encoding, all of them supported.

    Returns
    -------
    ArraysRun, BytesRun, FixedRun or ItemsRun
        Immutable, safe to share between threads.
    """
    kinds = [step.codec.kind for step in steps]
    if "array->bytes" not in kinds:
        return ArraysRun(steps) if kinds[0] == "array->array" else BytesRun(steps)
    middle = steps[kinds.index("array->bytes")]
    return ItemsRun(steps) if middle.spec.dtype.variable else FixedRun(steps)


def _order(steps: Sequence[Step]) -> tuple[int, ...]:
    """The permutation that all transposes are together."""
    order = tuple(range(steps[0].spec.ndim))
    for step in steps:
        if isinstance(step.codec, Transpose):
            order = tuple(order[axis] for axis in step.codec.order)
    return order


type _Stage = tuple[str, str, dict[str, int], str, int | None, int]


def _stages(steps: Sequence[Step], stored: np.dtype[Any] | None = None) -> list[_Stage]:
    """What is done to bytes, as the native module takes it; ``stored`` is the dtype that elements have there."""
    return [
        _stage(step, stored)
        for step in steps
        if step.codec.kind == "bytes->bytes" or step.codec.name in ("numcodecs.bitround", "numcodecs.pcodec")
    ]


def _stage(step: Step, stored: np.dtype[Any] | None) -> _Stage:
    spec = step.spec
    if stored is not None and step.codec.kind != "bytes->bytes":
        spec = attrs.evolve(spec, dtype=DataType(stored))
    found = find(step.codec, spec)
    assert not isinstance(found, str)
    exact, most = decoded_limit(step)
    options = {name: int(value) for name, value in found.options.items()}
    return step.codec.name, found.kernel, options, found.text, exact, most


class BytesRun:
    """Bytes->bytes codecs alone.

    Parameters
    ----------
    steps
        In order of encoding.
    """

    def __init__(self, steps: Sequence[Step]) -> None:
        self._program = Program([], [], b"", None, _stages(steps))

    def decode_bytes(self, buffers: Buffers, max_workers: int | None) -> list[Buffer | None]:
        """Decode each row; see :class:`~chunkwright.ports.Backend`."""
        return self._program.decode_bytes(rows_of(buffers), max_workers)

    def encode_bytes(self, items: Sequence[Buffer | None], max_workers: int | None) -> list[Buffer | None]:
        """Encode each item; see :class:`~chunkwright.ports.Backend`."""
        return self._program.encode_bytes(rows_of(Buffers.of(items)), max_workers)


class ArraysRun:
    """Array->array codecs alone.

    Parameters
    ----------
    steps
        In order of encoding.
    """

    def __init__(self, steps: Sequence[Step]) -> None:
        spec, dtype = steps[0].spec, steps[0].spec.dtype.numpy
        self._order = _order(steps)
        self._inverse = tuple(np.argsort(self._order).tolist())
        self._shape = tuple(spec.shape[axis] for axis in self._order)
        self._dtype = dtype
        stages = _stages(steps, dtype)
        fill = bytes(dtype.itemsize)
        self._program = Program(list(spec.shape), list(self._order), fill, None, stages) if stages else None

    def decode_arrays(self, items: Sequence[Any | None], max_workers: int | None) -> list[NDArray[Any] | None]:
        """Decode whole chunks; see :class:`~chunkwright.ports.Backend`."""
        return [None if item is None else item.transpose(self._inverse).copy() for item in items]

    def encode_arrays(self, items: Sequence[NDArray[Any] | None], max_workers: int | None) -> list[Any | None]:
        """Encode whole chunks; see :class:`~chunkwright.ports.Backend`."""
        if self._program is None:
            return [None if item is None else item.transpose(self._order) for item in items]
        arrays = [None if item is None else opaque(item.astype(self._dtype, copy=False)) for item in items]
        encoded = self._program.encode_each(arrays, 1, max_workers)
        return [None if item is None else np.frombuffer(item, self._dtype).reshape(self._shape) for item in encoded]


class _ArrayRun:
    """What runs with an array->bytes codec share."""

    def __init__(self, steps: Sequence[Step]) -> None:
        self._spec: ChunkSpec = steps[0].spec
        self._order = _order(steps)
        self._inverse = tuple(np.argsort(self._order).tolist())

    def decode_arrays(self, items: Sequence[Any | None], max_workers: int | None) -> list[NDArray[Any] | None]:
        """Decode whole chunks; see :class:`~chunkwright.ports.Backend`."""
        raise NotImplementedError

    def _assignable(self, items: Sequence[Any | None], max_workers: int | None) -> list[NDArray[Any] | None]:
        """Decode whole chunks to arrays that can be assigned to one of the chain's dtype."""
        return self.decode_arrays(items, max_workers)

    def _decode_by_numpy(self, buffers: Buffers, entries: Entries, out: NDArray[Any], max_workers: int | None) -> None:
        """Decode to arrays, some at a time, and let NumPy assign them."""
        fill = _scalar(self._spec.fill_value.value)
        decode = self._assignable if out.dtype == self._spec.dtype.numpy else self.decode_arrays
        at_once = max(_BLOCK // max(self._spec.elements * self._spec.dtype.numpy.itemsize, 1), 1)
        for chunks, part in _blocks(entries, at_once):
            try:
                arrays = decode(list(buffers.take(chunks).views()), max_workers)
            except CodecError as error:
                if error.position is not None:
                    error.at(int(chunks[error.position]))
                raise
            scatter(arrays, part, out, fill)


class FixedRun(_ArrayRun):
    """Transposes, ``bytes``, and bytes->bytes codecs.

    Parameters
    ----------
    steps
        In order of encoding.
    """

    def __init__(self, steps: Sequence[Step]) -> None:
        super().__init__(steps)
        dtype = self._spec.dtype.numpy
        middle = next(step for step in steps if step.codec.kind == "array->bytes")
        self.stored = _stored(middle)
        self.unit = unit_between(dtype, self.stored)
        fill = fill_bytes(self._spec.fill_value, self.stored)
        self.program = Program(
            list(self._spec.shape), list(self._order), fill, significant(self.stored), _stages(steps, self.stored)
        )
        self._stored_shape = tuple(self._spec.shape[axis] for axis in self._order)

    def decode_into(self, buffers: Buffers, entries: Entries, out: NDArray[Any], max_workers: int | None) -> None:
        """Decode into the caller's array; see :class:`~chunkwright.ports.Backend`."""
        if not self.takes(out.dtype):
            self._decode_by_numpy(buffers, entries, out, max_workers)
            return
        target = self.target(entries, out, max_workers)
        if FILES is not None and isinstance(buffers.owners, FILES):
            buffers.owners.decode_into(self.program, ranges_of(buffers), *target)
        else:
            self.program.decode_into(rows_of(buffers), *target)

    def target(self, entries: Entries, out: NDArray[Any], max_workers: int | None) -> tuple[Any, ...]:
        """Return what the native module has to know of the caller's array, whose dtype is one that is taken."""
        return columns_of(entries), opaque(out), *self.element(out.dtype), max_workers

    def element(self, dtype: np.dtype[Any]) -> tuple[int, bytes]:
        """Return how elements are copied into arrays of a dtype that is taken, and the fill value there."""
        unit = unit_between(dtype, self.stored)
        assert unit is not None
        return unit, fill_bytes(self._spec.fill_value, dtype)

    def source(self, source: NDArray[Any]) -> tuple[NDArray[np.void], int]:
        """Return an array that is encoded as the native module takes it, and how many bytes are reversed together."""
        unit = unit_between(source.dtype, self.stored)
        return (opaque(converted(source, self.stored)), 1) if unit is None else (opaque(source), unit)

    def takes(self, dtype: np.dtype[Any]) -> bool:
        """Say whether elements go straight into arrays of a dtype.

        Parameters
        ----------
        dtype
            The dtype of the caller's array.

        Returns
        -------
        bool
            False when NumPy has to convert them.
        """
        return unit_between(dtype, self.stored) is not None

    def decode_arrays(self, items: Sequence[Any | None], max_workers: int | None) -> list[NDArray[Any] | None]:
        """Decode whole chunks; see :class:`~chunkwright.ports.Backend`."""
        dtype, unit = (self.stored, 1) if self.unit is None else (self._spec.dtype.numpy, self.unit)
        arrays = [
            None if item is None else np.empty(self._stored_shape, dtype).transpose(self._inverse) for item in items
        ]
        outs = [None if array is None else opaque(array) for array in arrays]
        self.program.decode_each(rows_of(Buffers.of(items)), outs, unit, max_workers)
        return [array if array is None else array.astype(self._spec.dtype.numpy, copy=False) for array in arrays]

    def encode_from(
        self,
        source: NDArray[Any],
        entries: Entries,
        base: Sequence[NDArray[Any] | None],
        keep_empty: bool,
        max_workers: int | None,
    ) -> list[Buffer | None]:
        """Gather and encode chunks; see :class:`~chunkwright.ports.Backend`."""
        array, unit = self.source(source)
        held, base_unit = self._as_stored(base)
        units = (unit, base_unit)
        return self.program.encode_from(array, columns_of(entries), held, units, keep_empty, max_workers)

    def rewrite_from(
        self, source: NDArray[Any], entries: Entries, existing: Buffers, keep_empty: bool, max_workers: int | None
    ) -> list[Buffer | None]:
        """Gather and encode chunks over old ones; see :class:`~chunkwright.rewriting.Rewrites`."""
        array, unit = self.source(source)
        return self.program.rewrite_from(array, columns_of(entries), rows_of(existing), unit, keep_empty, max_workers)

    def encode_arrays(self, items: Sequence[NDArray[Any] | None], max_workers: int | None) -> list[Any | None]:
        """Encode whole chunks; see :class:`~chunkwright.ports.Backend`."""
        arrays, unit = self._as_stored(items)
        return self.program.encode_each(arrays, unit, max_workers)

    def _as_stored(self, arrays: Sequence[NDArray[Any] | None]) -> tuple[list[NDArray[np.void] | None], int]:
        dtype, unit = (self.stored, 1) if self.unit is None else (self._spec.dtype.numpy, self.unit)
        return [None if array is None else opaque(array.astype(dtype, copy=False)) for array in arrays], unit


class ItemsRun(_ArrayRun):
    """Transposes, ``vlen-utf8`` or ``vlen-bytes``, and bytes->bytes codecs.

    Parameters
    ----------
    steps
        In order of encoding.
    """

    def __init__(self, steps: Sequence[Step]) -> None:
        super().__init__(steps)
        middle = next(step for step in steps if step.codec.kind == "array->bytes")
        self._name = middle.codec.name
        self._is_text = self._name == "vlen-utf8"
        self._is_even = self._is_text and TEXT is not None and self._spec.dtype.numpy == TEXT
        self._shape = middle.spec.shape
        self._program = Program([], [], b"", None, _stages(steps))

    def decode_into(self, buffers: Buffers, entries: Entries, out: NDArray[Any], max_workers: int | None) -> None:
        """Decode into the caller's array; see :class:`~chunkwright.ports.Backend`."""
        self._decode_by_numpy(buffers, entries, out, max_workers)

    def decode_arrays(self, items: Sequence[Any | None], max_workers: int | None) -> list[NDArray[Any] | None]:
        """Decode whole chunks; see :class:`~chunkwright.ports.Backend`."""
        arrays = self._assignable(items, max_workers)
        return [None if array is None else array.astype(self._spec.dtype.numpy, copy=False) for array in arrays]

    def _assignable(self, items: Sequence[Any | None], max_workers: int | None) -> list[NDArray[Any] | None]:
        rows, count = rows_of(Buffers.of(items)), self._spec.elements
        form = self._is_text, self._is_even
        made = self._program.decode_items(rows, count, self._name, form, max_workers)
        return [None if elements is None else self._array(elements) for elements in made]

    def encode_from(
        self,
        source: NDArray[Any],
        entries: Entries,
        base: Sequence[NDArray[Any] | None],
        keep_empty: bool,
        max_workers: int | None,
    ) -> list[Buffer | None]:
        """Gather and encode chunks; see :class:`~chunkwright.ports.Backend`."""
        arrays = gather(source, entries, base, self._spec, keep_empty=keep_empty)
        return self.encode_arrays(arrays, max_workers)

    def encode_arrays(self, items: Sequence[NDArray[Any] | None], max_workers: int | None) -> list[Any | None]:
        """Encode whole chunks; see :class:`~chunkwright.ports.Backend`."""
        lists = [None if item is None else item.transpose(self._order).ravel().tolist() for item in items]
        return self._program.encode_items(lists, self._is_text, max_workers)

    def _array(self, elements: list[Any] | tuple[int, Buffer]) -> NDArray[Any]:
        if isinstance(elements, tuple):
            width, data = elements
            array: NDArray[Any] = np.frombuffer(data, f"S{width}")
        else:
            array = np.empty(len(elements), self._spec.dtype.numpy)
            array[:] = elements
        return array.reshape(self._shape).transpose(self._inverse)


def _text_dtype() -> np.dtype[Any] | None:
    """NumPy's type for texts, if it takes bytes of one length for UTF-8."""
    dtype = np.dtypes.StringDType()
    try:
        taken = np.array(["ä\0€".encode(), b"", b"b"]).astype(dtype)
    except (TypeError, ValueError, UnicodeError):
        return None
    return dtype if taken.tolist() == ["ä\0€", "", "b"] else None


TEXT = _text_dtype()
"""The type of arrays that texts which are laid out evenly can be assigned to; None when there is none."""


def _stored(step: Step) -> np.dtype[Any]:
    """The dtype of elements as an array->bytes codec has them."""
    dtype = step.spec.dtype.numpy
    if step.codec.name == "numcodecs.pcodec":
        return dtype.newbyteorder("=")
    endian = step.codec.configuration().get("endian")
    return dtype if endian is None else dtype.newbyteorder("<" if endian == "little" else ">")


def _scalar(value: Any) -> Any:
    """The fill value as a 0-d array, so that no element is mistaken for a sequence to broadcast."""
    if isinstance(value, np.ndarray):
        return value
    array = np.empty((), object)
    array[()] = value
    return array


def _blocks(entries: Entries, at_once: int) -> Iterator[tuple[NDArray[np.int64], Entries]]:
    """Cut entries into parts of so many chunks: the chunks, and the entries with these numbered from 0."""
    chunks, number = np.unique(entries.chunk, return_inverse=True)
    for begin in range(0, len(chunks), at_once):
        rows = np.flatnonzero((number >= begin) & (number < begin + at_once))
        yield chunks[begin : begin + at_once], entries.take(rows).with_chunk(number[rows] - begin)
