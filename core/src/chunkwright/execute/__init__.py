"""Run prepared chains on batches, from bytes in memory to arrays and back.

Everything here is a generator of foreign calls; see :mod:`chunkwright.execute._calls` for how it is driven.
"""

from __future__ import annotations

from chunkwright.execute._calls import Calls, positions, run_calls, workers
from chunkwright.execute._decode import decode_arrays, decode_into
from chunkwright.execute._encode import encode_arrays, encode_from
from chunkwright.execute._shards import index_rows, read_indexes

__all__ = (
    "Calls",
    "decode_arrays",
    "decode_into",
    "encode_arrays",
    "encode_from",
    "index_rows",
    "positions",
    "read_indexes",
    "run_calls",
    "workers",
)
