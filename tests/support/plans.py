"""A tiny store for plans: objects in a dict, and counters of what was fetched."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chunkwright import CodecChain, PreparedChain, ReferenceBackend
from chunkwright.needs import RANGE, SUFFIX

LITTLE = {"name": "bytes", "configuration": {"endian": "little"}}
CRC = {"name": "crc32c"}
GZIP = {"name": "gzip", "configuration": {"level": 1}}


def sharding(inner: Sequence[int], codecs: Sequence[Any] = (LITTLE, GZIP), **more: Any) -> dict[str, Any]:
    """Metadata of a sharding codec."""
    configuration = {"chunk_shape": list(inner), "codecs": list(codecs), "index_codecs": [LITTLE, CRC]}
    return {"name": "sharding_indexed", "configuration": {**configuration, **more}}


def prepared(codecs: Sequence[Any], shape: Sequence[int], dtype: str = "uint16", fill: Any = 0) -> PreparedChain:
    """A chain on the reference backend."""
    return CodecChain.from_json(list(codecs)).bind(dtype, fill).prepare(shape, backends=[ReferenceBackend()])


class Objects:
    """Encoded chunks by number; answers needs and counts them."""

    def __init__(self, items: Sequence[Any]) -> None:
        self.items = [None if item is None else bytes(item) for item in items]
        self.requests = 0
        self.fetched = 0

    def answer(self, need: Any) -> bytes | None:
        """Fetch what one need asks for."""
        self.requests += 1
        item = self.items[int(need["chunk"])]
        if item is None:
            return None
        start, stop = int(need["start"]), int(need["stop"])
        if need["kind"] == SUFFIX:
            item = item[max(len(item) - stop, 0) :]
        elif need["kind"] == RANGE:
            item = item[start:stop]
        self.fetched += len(item)
        return item

    def read(self, plan: Any, out: NDArray[Any]) -> NDArray[Any]:
        """Drive a read plan, all needs of a round at once."""
        while plan.needs.size:
            needs = plan.needs
            plan.feed(needs["id"], [self.answer(need) for need in needs])
        while work := plan.take():
            work.run(out)
        return out

    def write(self, plan: Any, source: NDArray[Any]) -> None:
        """Drive a write plan."""
        needs = plan.needs
        if needs.size:
            plan.feed(needs["id"], [self.answer(need) for need in needs])
        while work := plan.take():
            for chunk, data in work.run(np.asarray(source)):
                self.items[chunk] = None if data is None else bytes(data)


DATA = np.arange(1, 12 * 16 + 1, dtype="u2").reshape(12, 16)
CHAINS: dict[str, list[Any]] = {
    "plain": [LITTLE, CRC],
    "shard": [sharding((3, 4))],
    "index at the start": [sharding((3, 4), index_location="start")],
    "raw inner chunks": [sharding((2, 8), [LITTLE])],
    "nested": [sharding((6, 8), [sharding((3, 4), [sharding((1, 2))], index_location="start")])],
    "transposed": [{"name": "transpose", "configuration": {"order": [1, 0]}}, sharding((4, 3))],
    "transposed inside": [sharding((3, 4), [{"name": "transpose", "configuration": {"order": [1, 0]}}, LITTLE])],
    "codec outside": [sharding((3, 4)), CRC],
}
SELECTIONS: list[Any] = [
    ...,
    (slice(2, 5), slice(3, 4)),
    (4, slice(None, None, -3)),
    (slice(None, None, 5), 15),
    ([11, 0, 0, 5], slice(1, 16, 4)),
    ([3, 1], [2, 9, 2]),
    (0, 0),
    (slice(3, 3), slice(None)),
]


def expected(selection: Any, data: np.ndarray = DATA) -> np.ndarray:
    """What orthogonal NumPy indexing gives."""
    if isinstance(selection, tuple) and sum(isinstance(item, list) for item in selection) > 1:
        return data[np.ix_(*selection)]
    return np.asarray(data[selection])
