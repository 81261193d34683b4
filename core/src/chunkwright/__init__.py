"""Storage-free Zarr chunk codecs: chains, shards, and plans for partial reads and writes.

The life of a chain::

    CodecChain.from_json(metadata)            what the metadata says
        .bind(dtype, fill_value)              checked and completed for a data type
        .prepare(chunk_shape, backends=[...]) ready for chunks of one shape

A :class:`PreparedChain` encodes and decodes chunks in memory, one or many, whole or in part. Chunks in a store are
read and written through plans (:meth:`PreparedChain.plan_read`, :meth:`PreparedChain.plan_write`): they say
which bytes they need, are fed, and hand out work. Nothing in this package performs IO.
"""

from __future__ import annotations

from chunkwright.array_metadata import from_array_metadata
from chunkwright.buffers import Buffers
from chunkwright.chain import BoundChain, CodecChain
from chunkwright.entries import Entries, IndexList
from chunkwright.errors import (
    BackendUnavailableError,
    ChecksumError,
    ChunkLengthError,
    CodecError,
    ConfigurationError,
    CorruptChunkError,
    PlanError,
    Problem,
    SelectionError,
    ShardIndexError,
    UnknownCodecError,
    UnsupportedCodecError,
)
from chunkwright.explain import ExplainedRun, Explanation
from chunkwright.grid import Split, split
from chunkwright.needs import NEED, RANGE, SUFFIX, WHOLE, Fetches, coalesce
from chunkwright.ports import Backend, ForeignCall, ForeignCodec, ForeignRun, Run, Step, Supported, Unsupported
from chunkwright.prepared import PreparedChain
from chunkwright.read_plan import ReadPlan, ReadWork
from chunkwright.reference import ReferenceBackend
from chunkwright.selection import entries_of, entries_of_pairs
from chunkwright.spec import BoundedSize, ChunkSpec, DataType, FillValue, FixedSize, Size, UnboundedSize
from chunkwright.write_plan import WritePlan, WriteWork

__all__ = (
    "NEED",
    "RANGE",
    "SUFFIX",
    "WHOLE",
    "Backend",
    "BackendUnavailableError",
    "BoundChain",
    "BoundedSize",
    "Buffers",
    "ChecksumError",
    "ChunkLengthError",
    "ChunkSpec",
    "CodecChain",
    "CodecError",
    "ConfigurationError",
    "CorruptChunkError",
    "DataType",
    "Entries",
    "ExplainedRun",
    "Explanation",
    "Fetches",
    "FillValue",
    "FixedSize",
    "ForeignCall",
    "ForeignCodec",
    "ForeignRun",
    "IndexList",
    "PlanError",
    "PreparedChain",
    "Problem",
    "ReadPlan",
    "ReadWork",
    "ReferenceBackend",
    "Run",
    "SelectionError",
    "ShardIndexError",
    "Size",
    "Split",
    "Step",
    "Supported",
    "UnboundedSize",
    "UnknownCodecError",
    "Unsupported",
    "UnsupportedCodecError",
    "WritePlan",
    "WriteWork",
    "__version__",
    "coalesce",
    "entries_of",
    "entries_of_pairs",
    "from_array_metadata",
    "split",
)

__version__ = "0.1.0"
