"""Whole chunks in memory: what zarr asks of a pipeline that it nests inside a codec of its own.

Chunks are grouped by spec and each group is one batch. Nothing is read or stored, and the rule that chunks of
nothing but the fill value are left out does not apply: whoever nests a pipeline has its own.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from chunkwright import execute
from chunkwright.buffers import Buffers
from chunkwright_store import await_calls, run_off_loop
from chunkwright_zarr.config import max_workers
from chunkwright_zarr.counters import Call, count
from chunkwright_zarr.inline import is_small, on_private_loop
from chunkwright_zarr.ready import Ready
from chunkwright_zarr.specs import copyable

if TYPE_CHECKING:
    from zarr.core.array_spec import ArraySpec
    from zarr.core.buffer import Buffer, NDBuffer

    from chunkwright_zarr.pipeline import CodecPipeline

__all__ = ("decode", "encode")


async def decode(pipeline: CodecPipeline, batch: Sequence[tuple[Buffer | None, ArraySpec]]) -> list[NDBuffer | None]:
    """Decode whole chunks.

    Parameters
    ----------
    pipeline
        Whose codecs to use.
    batch
        Encoded chunks with their specs.

    Returns
    -------
    list of NDBuffer or None
        One per chunk.
    """
    results: list[NDBuffer | None] = [None] * len(batch)
    for spec, rows in _by_spec(batch).items():
        ready = pipeline.ready_for(spec)
        items = [batch[row][0] for row in rows]
        if ready.prepared is None:
            _fall_back(pipeline, "decode", ready.reason)
            arrays = list(await pipeline.default.decode([(item, spec) for item in items]))
        else:
            buffers = Buffers.of([None if item is None else item.as_numpy_array() for item in items])
            calls = execute.decode_arrays(ready.prepared, buffers, max_workers())
            decoded = await _run(ready, calls, len(rows), "decode")
            make = spec.prototype.nd_buffer.from_ndarray_like
            native = spec.dtype.to_native_dtype()
            arrays = [None if array is None else make(_as_declared(array, native)) for array in decoded]
        for row, array in zip(rows, arrays, strict=True):
            results[row] = array
    return results


async def encode(pipeline: CodecPipeline, batch: Sequence[tuple[NDBuffer | None, ArraySpec]]) -> list[Buffer | None]:
    """Encode whole chunks.

    Parameters
    ----------
    pipeline
        Whose codecs to use.
    batch
        Chunks with their specs.

    Returns
    -------
    list of Buffer or None
        One per chunk.
    """
    results: list[Buffer | None] = [None] * len(batch)
    for spec, rows in _by_spec(batch).items():
        ready = pipeline.ready_for(spec)
        items = [batch[row][0] for row in rows]
        if ready.prepared is None:
            _fall_back(pipeline, "encode", ready.reason)
            buffers = list(await pipeline.default.encode([(item, spec) for item in items]))
        else:
            dtype = ready.prepared.spec.dtype.numpy
            arrays = [None if item is None else _array_of(item, dtype) for item in items]
            calls = execute.encode_arrays(ready.prepared, arrays, max_workers(), spec.config.write_empty_chunks)
            encoded = await _run(ready, calls, len(rows), "encode")
            make: Any = spec.prototype.buffer.from_bytes
            buffers = [None if data is None else make(data) for data in encoded]
        for row, buffer in zip(rows, buffers, strict=True):
            results[row] = buffer
    return results


def _array_of(chunk: NDBuffer, dtype: np.dtype[Any]) -> NDArray[Any]:
    return copyable(chunk.as_numpy_array()).astype(dtype, copy=False)


def _as_declared(array: NDArray[Any], native: np.dtype[Any]) -> NDArray[Any]:
    """Dates that were treated as integers are dates again."""
    return array.view(native) if native.kind in "mM" and array.dtype.kind == "i" else array


def _fall_back(pipeline: CodecPipeline, call: Call, reason: str) -> None:
    pipeline.refuse_if_strict(reason)
    count(call, "default", reason)


def _by_spec(batch: Sequence[tuple[Any, ArraySpec]]) -> dict[ArraySpec, list[int]]:
    rows: dict[ArraySpec, list[int]] = {}
    for row, (_, spec) in enumerate(batch):
        rows.setdefault(spec, []).append(row)
    return rows


async def _run[T](ready: Ready, calls: Generator[Any, Any, T], chunks: int, what: Call) -> T:
    if ready.is_async:
        count(what, "async")
        return await await_calls(calls)
    if on_private_loop() and is_small(ready, chunks):
        count(what, "inline")
        return execute.run_calls(calls)
    count(what, "sync")
    return await run_off_loop(lambda: execute.run_calls(calls))
