"""The part of the Zarr format that the contenders written here by hand know.

That is: version 3, one regular grid of chunks or of shards, little-endian elements of fixed size, one compressor or
none. It is deliberately not taken from chunkwright: a rival must stand on its own.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from math import prod
from typing import Any, Self

import attrs
import google_crc32c
import numpy as np
from numcodecs.blosc import Blosc
from numcodecs.zstd import Zstd
from numpy.typing import NDArray

from benches.rivals.base import CannotDoError

__all__ = ("INDEX_ENTRY", "MISSING", "StoredFormat", "key_of", "shard_pieces")

MISSING = 2**64 - 1
INDEX_ENTRY = 16
CHECKSUM = 4

type Cell = tuple[int, ...]


@attrs.frozen(eq=False)
class StoredFormat:
    """How an array is stored. A cell is what is compressed as one: an inner chunk, or an unsharded chunk."""

    shape: Cell
    dtype: np.dtype[Any]
    chunk: Cell
    cell: Cell
    codec: Any

    @classmethod
    def from_metadata(cls, text: bytes | memoryview) -> Self:
        """Read the metadata of an array, or raise :exc:`CannotDoError`."""
        metadata = json.loads(bytes(text))
        if metadata["data_type"] == "string":
            raise CannotDoError("strings are not handled by hand")
        chunk = tuple(metadata["chunk_grid"]["configuration"]["chunk_shape"])
        cell, codecs = chunk, metadata["codecs"]
        if codecs[0]["name"] == "sharding_indexed":
            cell, codecs = tuple(codecs[0]["configuration"]["chunk_shape"]), codecs[0]["configuration"]["codecs"]
        dtype = np.dtype(metadata["data_type"]).newbyteorder("<")
        return cls(tuple(metadata["shape"]), dtype, chunk, cell, _codec(codecs[1:]))

    @property
    def is_sharded(self) -> bool:
        """Whether a chunk is a shard."""
        return self.chunk != self.cell

    @property
    def cells_per_chunk(self) -> Cell:
        """How many cells a chunk has along each axis."""
        return tuple(whole // part for whole, part in zip(self.chunk, self.cell, strict=True))

    @property
    def cell_nbytes(self) -> int:
        """The decoded size of a cell."""
        return prod(self.cell) * self.dtype.itemsize

    @property
    def index_nbytes(self) -> int:
        """The size of a shard index, which lies at the end of a shard, with its checksum."""
        return prod(self.cells_per_chunk) * INDEX_ENTRY + CHECKSUM

    def number_in_chunk(self, cell: Cell) -> int:
        """Return the number of a cell in its shard's index."""
        return int(
            np.ravel_multi_index(
                [at % count for at, count in zip(cell, self.cells_per_chunk, strict=True)], self.cells_per_chunk
            )
        )

    def index(self, tail: bytes | memoryview) -> NDArray[np.uint64]:
        """Return offsets and lengths from the end of a shard."""
        entries = np.frombuffer(tail, "<u8", count=2 * prod(self.cells_per_chunk))
        return entries.reshape(-1, 2)


def key_of(chunk: Cell) -> str:
    """Return the key of a chunk."""
    return "/".join(map(str, ("c", *chunk)))


def shard_pieces(cells: Sequence[Any]) -> list[Any]:
    """Return a shard as pieces to be written one after the other; a cell that is None is missing."""
    lengths = np.array([MISSING if cell is None else len(cell) for cell in cells], np.uint64)
    present = lengths != MISSING
    ends = np.cumsum(np.where(present, lengths, 0), dtype=np.uint64)
    entries = np.stack([np.where(present, ends - lengths, MISSING), lengths], axis=1).astype("<u8").tobytes()
    checksum = struct.pack("<I", google_crc32c.value(entries))
    return [*(cell for cell in cells if cell is not None), entries, checksum]


def _codec(codecs: Sequence[Any]) -> Any:
    """numcodecs' codec for the compressor, or None."""
    if not codecs:
        return None
    configuration = codecs[0]["configuration"]
    if codecs[0]["name"] == "zstd":
        return Zstd(level=configuration["level"])
    shuffles = {"noshuffle": Blosc.NOSHUFFLE, "shuffle": Blosc.SHUFFLE}
    return Blosc(configuration["cname"], configuration["clevel"], shuffles[configuration["shuffle"]])
