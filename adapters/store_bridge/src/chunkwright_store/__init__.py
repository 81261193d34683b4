"""Drives chunkwright plans against stores: synchronously, on an event loop, or with one hop from it.

A caller makes plans with the core, says where their chunks are, and picks a driver::

    plan = prepared.plan_read(entries)
    read_sync([ReadJob(plan=plan, sources=[FileSource(path) for path in paths], keys=paths)], out)

Sources and sinks for files, mappings, functions and obspec-style stores are here; those for zarr-python's stores
are in :mod:`chunkwright_store.zarr`, which alone needs zarr. Anything with ``get_ranges`` is a source.
"""

from chunkwright_store._calls import await_calls
from chunkwright_store.box_reader import Boxes, BoxReader, box_reader_of
from chunkwright_store.drive_async import read_async, read_hop, write_async, write_hop
from chunkwright_store.drive_sync import Stop, read_sync, write_sync
from chunkwright_store.files import FileSink, FileSource, OpenFiles
from chunkwright_store.jobs import Limits, ReadJob, WriteJob
from chunkwright_store.locks import LOCKS, Hold, KeyLocks
from chunkwright_store.native import FileIO, FilesBatch, file_io_of
from chunkwright_store.obspec import AsyncObspecSink, AsyncObspecSource, ObspecSink, ObspecSource
from chunkwright_store.pool import run_off_loop
from chunkwright_store.sources import (
    AsyncByteSink,
    AsyncByteSource,
    AsyncFunctionSource,
    Batch,
    ByteRange,
    ByteSuffix,
    FunctionSource,
    MappingSink,
    MappingSource,
    StreamingByteSource,
    SyncByteSink,
    SyncByteSource,
)

__all__ = (
    "LOCKS",
    "AsyncByteSink",
    "AsyncByteSource",
    "AsyncFunctionSource",
    "AsyncObspecSink",
    "AsyncObspecSource",
    "Batch",
    "ByteRange",
    "ByteSuffix",
    "BoxReader",
    "Boxes",
    "FileIO",
    "FileSink",
    "FileSource",
    "OpenFiles",
    "FilesBatch",
    "FunctionSource",
    "Hold",
    "KeyLocks",
    "Limits",
    "MappingSink",
    "MappingSource",
    "ObspecSink",
    "ObspecSource",
    "ReadJob",
    "Stop",
    "StreamingByteSource",
    "SyncByteSink",
    "SyncByteSource",
    "WriteJob",
    "await_calls",
    "box_reader_of",
    "file_io_of",
    "read_async",
    "read_hop",
    "read_sync",
    "run_off_loop",
    "write_async",
    "write_hop",
    "write_sync",
)
