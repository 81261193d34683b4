"""What a backend makes of a run: kernels, one per step, put together to decode and encode one chunk.

Decoding goes last kernel first. After every kernel the size is checked against what the chain allows, and
whatever a codec library raises becomes a :class:`~chunkwright.errors.CorruptChunkError` that names the codec.
Errors while *encoding* are about the caller's values, not about stored bytes, and pass through as raised.

A run of nothing but transposes and ``bytes`` in front of its compressors is *direct*: the bytes are the elements,
and a compressor that can decode into memory that it is given puts them straight into place.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import attrs
import numpy as np
from numpy.typing import NDArray

from chunkwright.buffers import Buffers
from chunkwright.entries import Entries
from chunkwright.errors import ChunkLengthError, CodecError, CorruptChunkError
from chunkwright.kernels import Kernel, decoded_limit, inverse_order
from chunkwright.ports import Step
from chunkwright.spec import ChunkSpec

__all__ = ("Program",)

COPIED_AT_ONCE = 4
"""Bytes that are copied while a compressor gets one done."""


@attrs.frozen(eq=False)
class _Direct:
    """Layout of a chunk whose decoded bytes are its elements: their dtype and the permutation of the axes."""

    stored: np.dtype[Any]
    order: tuple[int, ...]

    def target(self, place: NDArray[Any]) -> NDArray[np.uint8] | None:
        """The memory of a chunk's place in an array of the stored dtype, when the bytes fit there as they are."""
        array = place.transpose(self.order)
        # Libraries write wherever they are told to; where NumPy would refuse to, it has to be asked.
        is_fit = array.flags.c_contiguous and array.flags.writeable
        return array.reshape(-1).view(np.uint8) if is_fit else None


class Program:
    """A run, compiled for one chunk at a time. Immutable: threads share it.

    Parameters
    ----------
    steps
        Steps of the run, in order of encoding.
    kernels
        One per step.

    Attributes
    ----------
    spec
        The array on the decoded side of the first step.
    fill
        Its fill value as a 0-d array.
    cost
        About how much work a chunk is, in bytes that pass a compressor.
    """

    def __init__(self, steps: Sequence[Step], kernels: Sequence[Kernel]) -> None:
        self.spec: ChunkSpec = steps[0].spec
        self.cost = _cost(self.spec, kernels)
        self._only_copies = _only_copies(kernels)
        pairs = list(zip(kernels, steps, strict=True))
        self._encoders = tuple(kernels)
        self._bytes = tuple((kernel, *_bounds(step)) for kernel, step in reversed(pairs) if _is_bytes(step))
        self._arrays = tuple((kernel, step.spec) for kernel, step in reversed(pairs) if not _is_bytes(step))
        self._makes_bytes = steps[-1].codec.kind != "array->array"
        # Compressors make new bytes; the codecs before them may hand on the caller's own memory.
        self._may_share = self._makes_bytes and not self._bytes
        last = self._bytes[-1][0] if self._bytes else None
        self._direct = None
        if last is not None and last.decode_into is not None:
            self._last = last, last.decode_into
            self._direct = _direct(self._arrays)
        self.fill = _fill(self.spec)

    def reading_cost(self, entries: Entries, buffers: Buffers) -> int:
        """Return about how much work it is to read parts of a chunk.

        Parameters
        ----------
        entries
            What is read of all chunks.
        buffers
            The chunks.

        Returns
        -------
        int
            Like :attr:`cost`; where chunks in memory are only copied, what is not wanted costs nothing.
        """
        if not self._only_copies or not entries.is_boxes or buffers.is_stored:
            return self.cost
        elements = int(entries.count.prod(axis=1).sum())
        return elements * self.spec.dtype.numpy.itemsize // max(len(buffers), 1) // COPIED_AT_ONCE

    def decodes_to(self, dtype: np.dtype[Any]) -> bool:
        """Whether chunks can be decoded without a copy at all, into arrays of a data type.

        Parameters
        ----------
        dtype
            Data type of the array.

        Returns
        -------
        bool
            If so, :meth:`target` says where.
        """
        return self._direct is not None and self._direct.stored == dtype

    def target(self, place: NDArray[Any]) -> NDArray[np.uint8] | None:
        """Return the memory that a chunk can be decoded into without a copy.

        Parameters
        ----------
        place
            Where the chunk goes: an array of its shape, of a data type that :meth:`decodes_to` allows.

        Returns
        -------
        NDArray or None
            uint8, one-dimensional; None when there has to be a copy.
        """
        return None if self._direct is None else self._direct.target(place)

    def decode(self, item: Any) -> Any:
        """Decode one chunk.

        Parameters
        ----------
        item
            What the last step makes: bytes or an array.

        Returns
        -------
        NDArray or Buffer
            What the first step takes; arrays have any strides and byte order. Perhaps a view of ``item``.

        Raises
        ------
        CorruptChunkError
            When the chunk does not decode.
        """
        return self._decode_arrays(self._decode_bytes(item, self._bytes))

    def decode_to(self, item: Any, target: NDArray[np.uint8]) -> None:
        """Decode one chunk into the memory that :meth:`target` returned.

        Parameters
        ----------
        item
            Encoded bytes.
        target
            uint8, one-dimensional.

        Raises
        ------
        CorruptChunkError
            When the chunk does not decode.
        """
        kernel, into = self._last
        item = self._decode_bytes(item, self._bytes[:-1])
        try:
            into(item, target)
        except Exception as error:
            _raise(error, kernel)

    def decode_owned(self, item: Any, *, is_scratch: bool = False) -> NDArray[Any]:
        """Decode one chunk to an array that shares no memory with anything and has the decoded dtype.

        Parameters
        ----------
        item
            Encoded bytes, or an array when the run has array->array codecs only.
        is_scratch
            Whether nobody needs the encoded bytes any more, so that the array may share memory with them.

        Returns
        -------
        NDArray
            Writable, any strides.

        Raises
        ------
        CorruptChunkError
            When the chunk does not decode.
        """
        dtype, direct = self.spec.dtype.numpy, self._direct
        if direct is not None and dtype == direct.stored:
            stored = np.empty([self.spec.shape[axis] for axis in direct.order], dtype)
            self.decode_to(item, stored.reshape(-1).view(np.uint8))
            return stored.transpose(inverse_order(direct.order))
        array: NDArray[Any] = self.decode(item)
        if array.dtype != dtype:
            return array.astype(dtype)
        if array.flags.writeable and is_scratch:
            return array
        source = item if isinstance(item, np.ndarray) else np.frombuffer(item, np.uint8)
        return array if array.flags.writeable and not np.may_share_memory(array, source) else array.copy()

    def encode(self, item: Any, *, owned: bool = False) -> Any:
        """Encode one chunk.

        Parameters
        ----------
        item
            What the first step takes.
        owned
            Whether nobody else holds, or will change, the memory of ``item``.

        Returns
        -------
        NDArray or Buffer
            What the last step makes. Bytes are read-only and share no memory with an ``item`` that is not owned.
        """
        source = item
        for kernel in self._encoders:
            item = kernel.encode(item)
        if not self._makes_bytes or type(item) is bytes:
            return item
        if self._may_share and not owned and isinstance(item, np.ndarray) and np.may_share_memory(item, source):
            return item.tobytes()
        return memoryview(item).toreadonly()

    def _decode_bytes(self, item: Any, kernels: tuple[tuple[Kernel, int, int], ...]) -> Any:
        if not kernels:
            return item
        kernel = kernels[0][0]
        try:
            for kernel, exact, most in kernels:
                item = kernel.decode(item)
                size = len(item)
                if size != exact and (exact >= 0 or size > most):
                    _raise_size(kernel, exact, most, size)
        except Exception as error:
            _raise(error, kernel)
        return item

    def _decode_arrays(self, item: Any) -> Any:
        if not self._arrays:
            return item
        kernel = self._arrays[0][0]
        try:
            for kernel, spec in self._arrays:
                item = kernel.decode(item)
                if item.shape != spec.shape:
                    item = _reshaped(item, spec, kernel)
        except Exception as error:
            _raise(error, kernel)
        return item


def _cost(spec: ChunkSpec, kernels: Sequence[Kernel]) -> int:
    nbytes = spec.elements * spec.dtype.numpy.itemsize
    return nbytes // COPIED_AT_ONCE if _only_copies(kernels) else nbytes


def _only_copies(kernels: Sequence[Kernel]) -> bool:
    return all(kernel.stored is not None or kernel.order is not None for kernel in kernels)


def _is_bytes(step: Step) -> bool:
    return step.codec.kind == "bytes->bytes"


def _bounds(step: Step) -> tuple[int, int]:
    exact, most = decoded_limit(step)
    return -1 if exact is None else exact, most


def _direct(arrays: Sequence[tuple[Kernel, ChunkSpec]]) -> _Direct | None:
    """The layout, when there is a ``bytes`` kernel with nothing but transposes in front; given in decoding order."""
    if not arrays or arrays[0][0].stored is None:
        return None
    orders = [kernel.order for kernel, _ in reversed(arrays[1:]) if kernel.order is not None]
    if len(orders) != len(arrays) - 1:
        return None
    order = tuple(range(arrays[0][1].ndim))
    for permutation in orders:
        order = tuple(order[axis] for axis in permutation)
    return _Direct(arrays[0][0].stored, order)


def _fill(spec: ChunkSpec) -> NDArray[Any]:
    """The fill value as a 0-d array, so that an object is never mistaken for a sequence to broadcast."""
    value = spec.fill_value.value
    if isinstance(value, np.ndarray) and not spec.dtype.variable:
        return value
    array = np.empty((), object)
    array[()] = value
    return array


def _reshaped(array: NDArray[Any], spec: ChunkSpec, kernel: Kernel) -> NDArray[Any]:
    """Filters flatten what they are given; anything but all the elements in C order is a wrong chunk."""
    if array.size != spec.elements:
        raise ChunkLengthError("wrong number of elements", codec=kernel.codec, expected=spec.elements, found=array.size)
    return array.reshape(spec.shape)


def _raise_size(kernel: Kernel, exact: int, most: int, size: int) -> NoReturn:
    expected: object = exact if exact >= 0 else f"at most {most}"
    raise ChunkLengthError("wrong decoded size", codec=kernel.codec, expected=expected, found=size)


def _raise(error: Exception, kernel: Kernel) -> NoReturn:
    """Raise what a kernel's exception means to the caller."""
    if isinstance(error, CodecError):
        error.codec = error.codec or kernel.codec
        raise error
    if isinstance(error, kernel.passes) or (isinstance(error, MemoryError) and kernel.bounded):
        raise error
    text = str(error) or type(error).__name__
    raise CorruptChunkError(f"cannot be decoded ({text})", codec=kernel.codec) from error
