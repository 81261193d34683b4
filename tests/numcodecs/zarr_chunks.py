"""Chunks as zarr-python writes them, with the metadata that describes them."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import numpy as np
import zarr
from numpy.typing import NDArray
from zarr.core.buffer import default_buffer_prototype
from zarr.storage import MemoryStore

from chunkwright import PreparedChain, from_array_metadata
from chunkwright_numcodecs import NumcodecsBackend

NUMBERS = ("|b1", "i1", "<u2", ">i4", "<i4", "u8", "<f2", "<f4", ">f8", "<f8", "<c8", "<c16")
OTHERS = ("M8[s]", "m8[ns]", "S5", "<U3", ">U3", "V6")
RECORD = np.dtype([("a", "<i4"), ("b", "<f8"), ("c", "S3")])
SHAPES = ((), (7,), (3, 4, 5))


def values(dtype: Any, shape: tuple[int, ...], seed: int = 0) -> NDArray[Any]:
    """Elements of any bits that the data type allows, half of them in order so that they compress."""
    dtype, rng = np.dtype(dtype), np.random.default_rng(seed)
    count = int(np.prod(shape, dtype=int))
    if dtype.kind == "b":
        return (rng.integers(0, 2, count) > 0).reshape(shape)
    if dtype.kind in "SU":
        return np.array([str(i)[: dtype.itemsize] for i in range(count)]).astype(dtype).reshape(shape)
    if dtype.names is not None:
        made = np.zeros(count, dtype)
        for name in dtype.names:
            made[name] = values(dtype[name], (count,), seed)
        return made.reshape(shape)
    if dtype.kind in "iu":
        return (np.arange(count) % 100).astype(dtype).reshape(shape)
    if dtype.kind in "fc":
        return (np.arange(count) / 7 - 3).astype(dtype).reshape(shape)
    return np.frombuffer(rng.bytes(count * dtype.itemsize), dtype).reshape(shape)


def written(array: NDArray[Any], **options: Any) -> tuple[dict[str, Any], bytes, NDArray[Any]]:
    """Array metadata, the one chunk that holds all of an array, and the array as zarr reads it back.

    Parameters
    ----------
    array
        Elements.
    **options
        For ``zarr.create_array``.
    """
    store = MemoryStore()
    made: Any = zarr.create_array(
        store=store,
        shape=array.shape,
        chunks=options.pop("chunks", array.shape),
        dtype=options.pop("dtype", array.dtype),
        config={"write_empty_chunks": True},
        **options,
    )
    made[...] = array
    names = sorted(set(store._store_dict) - {"zarr.json", ".zarray", ".zattrs"})
    metadata = "zarr.json" if made.metadata.zarr_format == 3 else ".zarray"
    return json.loads(_content(store, metadata)), _content(store, names[0]), made[...]


def _content(store: MemoryStore, key: str) -> bytes:
    found = asyncio.run(store.get(key, default_buffer_prototype()))
    assert found is not None
    return found.to_bytes()


def prepared(metadata: dict[str, Any], **options: Any) -> PreparedChain:
    """Our chain for an array's chunks, on the numcodecs backend alone."""
    bound, shape = from_array_metadata(metadata)
    assert shape is not None
    return bound.prepare(shape, backends=[NumcodecsBackend()], **options)


def same(found: NDArray[Any], expected: NDArray[Any]) -> None:
    """Equal shape and values; equal bits for elements of a fixed number of bytes."""
    assert found.shape == expected.shape
    if expected.dtype.kind in "OT":
        assert found.tolist() == expected.tolist()
    else:
        assert found.astype(expected.dtype).tobytes() == expected.tobytes()
