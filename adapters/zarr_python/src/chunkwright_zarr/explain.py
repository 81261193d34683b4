"""Tell how reads and writes of an array are done: by which backends, along which path, and why.

An explanation is made from what the pipeline would use, so nothing is guessed; nothing is read or written
either. Arrays that were opened with another pipeline are explained as well, by saying so.
"""

from __future__ import annotations

from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Self

import attrs
from zarr.core.array import AsyncArray
from zarr.core.array_spec import ArraySpec
from zarr.core.buffer import default_buffer_prototype
from zarr.core.metadata.v3 import RectilinearChunkGridMetadata
from zarr.storage import StorePath

from chunkwright.explain import ExplainedRun
from chunkwright_store.zarr import classify
from chunkwright_zarr.arrays import AnyArray, async_array_of
from chunkwright_zarr.direct import DirectArray
from chunkwright_zarr.driving import packed_shards
from chunkwright_zarr.pipeline import CodecPipeline
from chunkwright_zarr.ready import Ready

__all__ = ("ArrayExplanation", "ExplainedPath", "explain")

PATHS = {
    "memory": ("sync", "a memory store of zarr's own: one thread per batch, small work at once"),
    "local": ("sync", "files of this machine: one thread per batch, small work at once"),
    "sync": ("sync", "byte getters in memory: one thread per batch, small work at once"),
    "async": ("async", "this store is driven on the event loop, decoding in threads"),
}


@attrs.frozen
class ExplainedPath:
    """How one kind of call is done.

    Parameters
    ----------
    path
        ``sync``, ``async``, or ``default``: by zarr's own pipeline.
    reason
        Why.

    Examples
    --------
    >>> ExplainedPath("async", "this store is driven on the event loop").path
    'async'
    """

    path: str
    reason: str


NATIVE = ExplainedPath("sync", "native files of this machine: one thread per batch, small work at once")
PACKED = ExplainedPath("sync", "shards in a zip archive are read where they lie in the file")


@attrs.frozen
class ArrayExplanation:
    """How reads and writes of an array are done.

    Parameters
    ----------
    runs
        Which codecs are run by which backend, level by level; empty when zarr's own pipeline runs them.
    read, write
        The paths.
    versions
        Name and version of each package that has a part in it.

    Examples
    --------
    >>> import zarr
    >>> explanation = ArrayExplanation.of(zarr.create_array({}, shape=(4,), dtype="i2"))
    >>> explanation.read.reason
    'the array was opened with zarr.core.codec_pipeline.BatchedCodecPipeline'
    """

    runs: tuple[ExplainedRun, ...]
    read: ExplainedPath
    write: ExplainedPath
    versions: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, array: AnyArray) -> Self:
        """Explain an array.

        Parameters
        ----------
        array
            Any zarr array.

        Returns
        -------
        Self
            The explanation.

        Raises
        ------
        TypeError
            When it is none.
        """
        inner = async_array_of(array)
        versions = {name: found for name in ("chunkwright", "zarr") if (found := _version(name))}
        pipeline = inner.codec_pipeline
        if not isinstance(pipeline, CodecPipeline):
            name = f"{type(pipeline).__module__}.{type(pipeline).__qualname__}"
            path = ExplainedPath("default", f"the array was opened with {name}")
            return cls((), path, path, tuple(versions.items()))
        ready = pipeline.ready_for(_spec(inner))
        first = inner.store_path / inner.metadata.encode_chunk_key((0,) * inner.ndim)
        read, write = (_path(ready, first, reading=reading) for reading in (True, False))
        if isinstance(array, DirectArray):
            read, write = (_direct(path) for path in (read, write))
        if ready.prepared is None:
            return cls((), read, write, tuple(versions.items()))
        explained = ready.prepared.explain()
        return cls(explained.runs, read, write, (*versions.items(), *explained.versions))

    def to_json(self) -> dict[str, Any]:
        """Return the explanation as JSON values.

        Returns
        -------
        dict
            ``runs``, ``read``, ``write`` and ``versions``.
        """
        return {
            "runs": [attrs.asdict(run) for run in self.runs],
            "read": attrs.asdict(self.read),
            "write": attrs.asdict(self.write),
            "versions": dict(self.versions),
        }

    def __str__(self) -> str:
        rows = [("level", "codecs", "backend", "kernels", "reason")]
        for run in self.runs:
            kernels = " ".join(dict.fromkeys(filter(None, run.kernels)))
            rows.append((run.level, " ".join(run.codecs), run.backend, kernels, run.reason))
        widths = [max(len(row[column]) for row in rows) for column in range(5)]
        lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows] if self.runs else []
        lines += [f"read   {self.read.path}: {self.read.reason}", f"write  {self.write.path}: {self.write.reason}"]
        return "\n".join([*lines, "with   " + ", ".join(f"{name} {found}" for name, found in self.versions)])


def explain(array: AnyArray) -> ArrayExplanation:
    """Tell how reads and writes of an array are done.

    Parameters
    ----------
    array
        Any zarr array. For grids of chunks that differ in shape, the first chunk stands for all.

    Returns
    -------
    ArrayExplanation
        Prints as a table; has ``to_json()``.

    Raises
    ------
    TypeError
        When it is no zarr array, a group for instance.

    Examples
    --------
    >>> import zarr, chunkwright_zarr
    >>> with chunkwright_zarr.use(backend="numcodecs"):
    ...     array = zarr.create_array({}, shape=(8,), chunks=(2,), shards=(4,), dtype="i2")
    >>> explanation = explain(array)
    >>> [(run.level, run.codecs, run.backend) for run in explanation.runs][:2]
    [('chunk', ('sharding_indexed',), 'core'), ('shard: inner chunk', ('bytes', 'zstd'), 'numcodecs')]
    >>> explanation.read.path
    'sync'
    """
    return ArrayExplanation.of(array)


def _spec(array: AsyncArray[Any]) -> ArraySpec:
    """The spec of the first chunk, as zarr makes it for reads."""
    metadata, config = array.metadata, array.config
    if metadata.zarr_format == 2:
        shape, config = metadata.chunks, replace(config, order=metadata.order)
    elif isinstance(metadata.chunk_grid, RectilinearChunkGridMetadata):
        edges = metadata.chunk_grid.chunk_shapes
        shape = tuple(length if isinstance(length, int) else length[0] for length in edges)
    else:
        shape = metadata.chunk_grid.chunk_shape
    return ArraySpec(shape, metadata.dtype, metadata.fill_value, config, default_buffer_prototype())


def _path(ready: Ready, chunk: StorePath, *, reading: bool) -> ExplainedPath:
    if ready.prepared is None:
        return ExplainedPath("default", ready.reason)
    if ready.is_async:
        return ExplainedPath("async", "a codec can only be awaited on an event loop")
    kind = classify([chunk], reading=reading)
    if reading and kind == "async" and packed_shards(ready, [chunk]) is not None:
        return NATIVE if ready.file_io is not None else PACKED
    return NATIVE if kind == "local" and ready.file_io is not None else ExplainedPath(*PATHS[kind])


def _direct(path: ExplainedPath) -> ExplainedPath:
    """The path of an array that does on the calling thread what it can."""
    if path.path != "sync":
        return path
    return ExplainedPath("sync", f"{path.reason}; integers, slices and lists on the calling thread where possible")


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
