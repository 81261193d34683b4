"""Decoding and encoding cells with as little Python in between as can be.

Each thread has its own contexts and its own scratch memory, which stay in its cache.
"""

from __future__ import annotations

import threading
from typing import Any

import numcodecs.blosc
import numpy as np
import zstandard
from numcodecs.zstd import Zstd
from numpy.typing import NDArray

from benches.rivals.stored_format import StoredFormat

__all__ = ("Coder",)

type Segments = NDArray[np.uint64]


class _Local(threading.local):
    """What a thread has for itself."""

    def __init__(self) -> None:
        self.decompressor = zstandard.ZstdDecompressor()
        self.compressors: dict[int, zstandard.ZstdCompressor] = {}
        self.scratch = np.empty(0, np.uint8)


_local = _Local()


class Coder:
    """Decodes and encodes the cells of one array."""

    def __init__(self, form: StoredFormat) -> None:
        self.form = form
        self.codec = form.codec

    def decode_one(self, encoded: Any) -> NDArray[Any]:
        """Return one cell, in scratch memory or as a view of the encoded bytes."""
        if self.codec is None:
            return self._shaped(np.frombuffer(encoded, np.uint8))[0, ...]
        scratch = _scratch(self.form.cell_nbytes)
        if isinstance(self.codec, Zstd):
            numcodecs.zstd.decompress(encoded, scratch)
        else:
            numcodecs.blosc.decompress(encoded, scratch)
        return self._shaped(scratch)[0, ...]

    def decode_many(self, data: Any, segments: Segments) -> NDArray[Any]:
        """Return cells whose encoded bytes lie one after the other; ``segments`` are offsets and lengths."""
        count = len(segments)
        if not isinstance(self.codec, Zstd):
            view = memoryview(data)
            cells = [self.decode_one(view[start : start + length]).copy() for start, length in segments.tolist()]
            return np.stack(cells)
        frames = zstandard.BufferWithSegments(data, segments.tobytes())
        sizes = np.full(count, self.form.cell_nbytes, "<u8").tobytes()
        decoded = _local.decompressor.multi_decompress_to_buffer(frames, decompressed_sizes=sizes)
        return self._shaped(_joined(decoded, self.form.cell_nbytes))

    def encode_many(self, cells: NDArray[Any]) -> list[Any]:
        """Return the encoded bytes of contiguous cells."""
        nbytes = self.form.cell_nbytes
        flat = cells.reshape(-1).view(np.uint8)
        if self.codec is None:
            return [memoryview(flat[first : first + nbytes]) for first in range(0, len(flat), nbytes)]
        if not isinstance(self.codec, Zstd):
            return [self.codec.encode(cell) for cell in cells]
        starts = np.arange(len(cells), dtype="<u8") * nbytes
        segments = np.stack([starts, np.full_like(starts, nbytes)], axis=1)
        source = zstandard.BufferWithSegments(memoryview(flat), segments.tobytes())
        encoded = _compressor(self.codec.level).multi_compress_to_buffer(source)
        return [encoded[number] for number in range(len(encoded))]

    def _shaped(self, flat: NDArray[np.uint8]) -> NDArray[Any]:
        return flat.view(self.form.dtype).reshape(-1, *self.form.cell)


def _compressor(level: int) -> zstandard.ZstdCompressor:
    made = _local.compressors.get(level)
    if made is None:
        made = _local.compressors[level] = zstandard.ZstdCompressor(level=level)
    return made


def _scratch(nbytes: int) -> NDArray[np.uint8]:
    if len(_local.scratch) < nbytes:
        _local.scratch = np.empty(nbytes, np.uint8)
    return _local.scratch[:nbytes]


def _joined(segments: Any, nbytes: int) -> NDArray[np.uint8]:
    """Return segments as one array; without a copy when they lie in one piece of memory, as those of one thread do."""
    first, last = np.frombuffer(segments[0], np.uint8), np.frombuffer(segments[len(segments) - 1], np.uint8)
    total = len(segments) * nbytes
    if last.ctypes.data - first.ctypes.data == total - nbytes:
        joined = np.lib.stride_tricks.as_strided(first, (total,), (1,))
        joined.flags.writeable = False
        return joined
    return np.frombuffer(b"".join(segments), np.uint8)
