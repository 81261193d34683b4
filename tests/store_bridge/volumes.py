"""A small volume in every layout that a driver has to deal with, encoded by the core alone."""

from __future__ import annotations

import itertools
import math
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from chunkwright import CodecChain, Entries, PreparedChain, ReferenceBackend

BYTES = {"name": "bytes", "configuration": {"endian": "little"}}


def sharding(inner: int, codecs: list[Any], location: str = "end") -> dict[str, Any]:
    """Metadata of a sharding codec with square inner chunks."""
    configuration = {
        "chunk_shape": [inner, inner],
        "codecs": codecs,
        "index_codecs": [BYTES, "crc32c"],
        "index_location": location,
    }
    return {"name": "sharding_indexed", "configuration": configuration}


CHAINS: dict[str, list[Any]] = {
    "chunks": [BYTES, "crc32c"],
    "shards": [sharding(4, [BYTES, "crc32c"])],
    "shards with the index first": [sharding(4, [BYTES, "crc32c"], "start")],
    "nested shards": [sharding(6, [sharding(3, [BYTES, "crc32c"], "start")])],
    "shards inside a checksum": [sharding(4, [BYTES]), "crc32c"],
}

SHAPE = (30, 26)
CHUNK = (12, 12)

BOXES = {
    "everything": ((0, 30), (0, 26)),
    "one row": ((13, 14), (0, 26)),
    "a corner": ((5, 17), (9, 25)),
    "one element": ((29, 30), (25, 26)),
}


@attrs.frozen(eq=False)
class Volume:
    """A volume, its chain, and its chunks as stored."""

    data: NDArray[Any]
    prepared: PreparedChain
    stored: dict[str, bytes]

    def entries(self, box: tuple[tuple[int, int], ...]) -> tuple[Entries, list[str]]:
        """Entries of a box, and the key of each chunk."""
        return entries_of_box(box)

    def expected(self, box: tuple[tuple[int, int], ...]) -> NDArray[Any]:
        """What reading a box must give."""
        return self.data[tuple(slice(start, stop) for start, stop in box)]


def entries_of_box(box: tuple[tuple[int, int], ...]) -> tuple[Entries, list[str]]:
    """Entries of a box of the volume, numbered over the chunks that it touches, and their keys."""
    touched = [range(start // size, (stop - 1) // size + 1) for (start, stop), size in zip(box, CHUNK, strict=True)]
    cells = np.array(list(itertools.product(*touched)), np.int64)
    origin = cells * CHUNK
    first, last = np.array(box, np.int64).T
    start, stop = np.maximum(origin, first), np.minimum(origin + CHUNK, last)
    entries = Entries.boxes(
        chunk=np.arange(len(cells)), start=start - origin, count=stop - start, out_start=start - first
    )
    return entries, ["c/" + "/".join(map(str, cell)) for cell in cells.tolist()]


def volume(layout: str, *, backend: Any = None, dtype: str = "<u2") -> Volume:
    """Make the volume in a layout; no element is zero, the fill value."""
    data = np.arange(1, math.prod(SHAPE) + 1, dtype=dtype).reshape(SHAPE)
    chain = CodecChain.from_json(CHAINS[layout]).bind(np.dtype(dtype).name, 0)
    prepared = chain.prepare(CHUNK, backends=[backend or ReferenceBackend()])
    stored: dict[str, bytes] = {}
    for cell in itertools.product(*(range(-(-extent // size)) for extent, size in zip(SHAPE, CHUNK, strict=True))):
        chunk = np.zeros(CHUNK, dtype)
        part = data[tuple(slice(c * size, (c + 1) * size) for c, size in zip(cell, CHUNK, strict=True))]
        chunk[: part.shape[0], : part.shape[1]] = part
        encoded = prepared.encode(chunk)
        assert encoded is not None
        stored["c/" + "/".join(map(str, cell))] = bytes(encoded)
    return Volume(data, prepared, stored)


def decoded(volume: Volume, stored: dict[str, Any]) -> NDArray[Any]:
    """Decode all chunks with the core alone."""
    result = np.zeros(SHAPE, volume.data.dtype)
    for key, data in stored.items():
        cell = [int(part) for part in key.split("/")[1:]]
        place = tuple(slice(c * size, (c + 1) * size) for c, size in zip(cell, CHUNK, strict=True))
        part = result[place]
        part[...] = volume.prepared.decode(data)[: part.shape[0], : part.shape[1]]
    return result
