"""What is the same in every call on an array, kept for the arrays that were used last."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import attrs
from zarr.codecs._v2 import V2Codec
from zarr.core.array import AsyncArray
from zarr.core.array_spec import ArraySpec
from zarr.core.buffer import BufferPrototype, cpu, default_buffer_prototype
from zarr.core.chunk_grids import ChunkGrid
from zarr.core.metadata import ArrayV2Metadata

from chunkwright_store.zarr import is_cpu
from chunkwright_zarr.config import Settings, read_settings
from chunkwright_zarr.edges import Edges, edges_of
from chunkwright_zarr.grid_array import KeyFormat, key_format_of
from chunkwright_zarr.pipeline import CodecPipeline

__all__ = ("Chunks", "chunks_of", "pipeline_of")

KNOWN_ARRAYS = 32
"""Arrays of which is kept what is the same in every call."""


@attrs.frozen(eq=False)
class Chunks:
    """The chunks of an array.

    Parameters
    ----------
    edges
        Where they begin and end, per axis.
    spec
        What zarr says of the first.
    keys
        How keys are made, when that is in one of zarr's own ways and the chunks lie on a regular grid.
    """

    edges: tuple[Edges, ...]
    spec: ArraySpec
    keys: KeyFormat | None


def chunks_of(array: AsyncArray[Any]) -> Chunks:
    """Return where the chunks of an array are, and of what form.

    Parameters
    ----------
    array
        The array.

    Returns
    -------
    Chunks
        For reading into main memory.

    Examples
    --------
    >>> import zarr
    >>> array = zarr.create_array({}, name="a", shape=(9,), chunks=(4,), dtype="i2").async_array
    >>> chunks_of(array).spec.shape, chunks_of(array).keys
    ((4,), KeyFormat(prefix='a/c/', separator='/'))
    """
    of_array = _Same(array.metadata), _Same(array.config)
    return _chunks_of(*of_array, array.store_path.path, default_buffer_prototype())


@lru_cache(maxsize=KNOWN_ARRAYS)
def _chunks_of(metadata: _Same, options: _Same, path: str, prototype: BufferPrototype) -> Chunks:
    about, config = metadata.object, options.object
    if isinstance(about, ArrayV2Metadata):
        config = replace(config, order=about.order)
    if not is_cpu(prototype):
        prototype = cpu.buffer_prototype
    edges = edges_of(ChunkGrid.from_metadata(about))
    shape = tuple(along.first for along in edges)
    is_regular = len(edges) > 0 and all(along.bounds is None for along in edges)
    keys = key_format_of(about, path) if is_regular else None
    return Chunks(edges, ArraySpec(shape, about.dtype, about.fill_value, config, prototype), keys)


def pipeline_of(array: AsyncArray[Any], spec: ArraySpec) -> CodecPipeline:
    """Return our pipeline for an array, whichever it was opened with.

    Parameters
    ----------
    array
        The array.
    spec
        Of its chunks.

    Returns
    -------
    CodecPipeline
        The array's own, if that is ours.

    Raises
    ------
    UnsupportedCodecError
        In strict mode, when the first backend does not run every codec.
    """
    if isinstance(array.codec_pipeline, CodecPipeline):
        return array.codec_pipeline
    return _pipeline_of(_Same(array.metadata), _Same(spec), read_settings())


@lru_cache(maxsize=KNOWN_ARRAYS)
def _pipeline_of(metadata: _Same, spec: _Same, settings: Settings) -> CodecPipeline:
    about = metadata.object
    if isinstance(about, ArrayV2Metadata):
        codecs: Sequence[Any] = (V2Codec(filters=about.filters, compressor=about.compressor),)
    else:
        codecs = about.codecs
    return CodecPipeline(codecs, settings).evolve_from_array_spec(spec.object)


@attrs.frozen(eq=False)
class _Same:
    """One object and no other, however equal: metadata and settings, which are replaced and never changed."""

    object: Any

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.object is self.object

    def __hash__(self) -> int:
        return id(self.object)
