"""The codec pipeline that zarr-python is given.

It keeps zarr's codec objects and what was chosen when it was made, and does nothing by itself: a call is
turned into entries and plans, and the store bridge drives them. Chains are made ready on first use for each
chunk spec, because the spec that zarr gives when it makes a pipeline may be a placeholder.

How a batch is driven depends on where its bytes are, and on nothing else:

- exactly zarr's memory and local stores, and byte getters in memory: synchronously, in one thread for
  the whole batch; or right here, when this is zarr's own event loop and the work is small;
- everything else, and chains with a codec that can only be awaited: on the event loop;
- what has no counterpart in chunkwright (buffers outside main memory, data types of Python objects,
  selections that no indexer of zarr's makes, a foreign codec that wants to do its own IO): by zarr's own
  default pipeline, under our locks. That is counted, logged, and an error in strict mode.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray
from zarr.abc.codec import ArrayArrayCodec, ArrayBytesCodec, BytesBytesCodec, Codec, GetResult
from zarr.abc.codec import CodecPipeline as ZarrCodecPipeline
from zarr.core.chunk_utils import evolve_codecs
from zarr.core.codec_pipeline import (
    BatchedCodecPipeline,
    codecs_from_list,
    codecs_from_list_unchecked,
    pipeline_supports_partial_decode,
    pipeline_supports_partial_encode,
)
from zarr.core.config import config

from chunkwright.errors import SelectionError, UnsupportedCodecError
from chunkwright_zarr import whole
from chunkwright_zarr.config import Settings, backends_for, read_settings
from chunkwright_zarr.counters import count
from chunkwright_zarr.few import drive_few, few_boxes
from chunkwright_zarr.reads import drive_read, results
from chunkwright_zarr.ready import Ready, check_strict, make_ready
from chunkwright_zarr.selections import Group, grouped
from chunkwright_zarr.specs import copyable, same_spec
from chunkwright_zarr.writes import drive_write, locks_of

if TYPE_CHECKING:
    from zarr.core.array_spec import ArraySpec
    from zarr.core.buffer import Buffer, NDBuffer
    from zarr.core.dtype.wrapper import TBaseDType, TBaseScalar, ZDType
    from zarr.core.metadata.v3 import ChunkGridMetadata

__all__ = ("CodecPipeline",)

MAX_READY = 1024
"""Chunk specs that a pipeline keeps a chain ready for."""


class CodecPipeline(ZarrCodecPipeline):
    """A zarr-python codec pipeline on chunkwright.

    Made by zarr, when the configuration names it. Pipelines are equal when their codecs and settings are,
    and they pickle.

    Parameters
    ----------
    codecs
        In order of encoding; a valid chain.
    settings
        What was chosen.

    Examples
    --------
    >>> import zarr
    >>> with zarr.config.set({"codec_pipeline.path": "chunkwright_zarr.CodecPipeline"}):
    ...     array = zarr.create_array({}, shape=(4, 4), chunks=(2, 2), dtype="i4")
    >>> array[1:3, 1:3] = 7
    >>> array[2].tolist()
    [0, 7, 7, 0]
    """

    def __init__(self, codecs: Iterable[Codec], settings: Settings) -> None:
        self.codecs = tuple(codecs)
        self.settings = settings
        self._backends = backends_for(settings.backend)
        self._last: Ready | None = None
        self._known: dict[ArraySpec, Ready] = {}

    @classmethod
    def from_codecs(cls, codecs: Iterable[Codec]) -> Self:
        """Make a pipeline of codecs, with what is configured now.

        Parameters
        ----------
        codecs
            zarr's codec objects, in order of encoding.

        Returns
        -------
        Self
            The pipeline.

        Raises
        ------
        BackendUnavailableError
            When a backend that was asked for by name is not there.
        """
        array_array, array_bytes, bytes_bytes = codecs_from_list(codecs)
        return cls((*array_array, array_bytes, *bytes_bytes), read_settings())

    def evolve_from_array_spec(self, array_spec: ArraySpec) -> Self:
        """Fill in what the codecs leave to the array's data type.

        Parameters
        ----------
        array_spec
            A chunk's spec; its shape and configuration may be placeholders.

        Returns
        -------
        Self
            The pipeline of the evolved codecs.

        Raises
        ------
        UnsupportedCodecError
            In strict mode, when the first backend does not run every codec.
        """
        evolved = type(self)(evolve_codecs(self.codecs, array_spec), self.settings)
        if self.settings.strict:
            ready = evolved._made_ready(array_spec)
            if not ready.is_unfit:
                check_strict(ready)
        return evolved

    def ready_for(self, spec: ArraySpec) -> Ready:
        """Return the chain for chunks of one spec.

        Parameters
        ----------
        spec
            What zarr says of the chunk.

        Returns
        -------
        Ready
            The chain, or the reason why zarr's own pipeline has to do the work.

        Raises
        ------
        UnsupportedCodecError
            In strict mode, when anything would fall back.
        """
        last = self._last
        if last is not None and same_spec(last.spec, spec):
            return last
        ready = self._known.get(spec)
        if ready is None:
            ready = self._made_ready(spec)
            if self.settings.strict:
                check_strict(ready)
            if len(self._known) >= MAX_READY:
                self._known.clear()
            self._known[spec] = ready
        self._last = ready
        return ready

    def _made_ready(self, spec: ArraySpec) -> Ready:
        strict, most = self.settings.strict, self.settings.max_chunk_bytes
        return make_ready(self.codecs, spec, self._backends, strict=strict, max_chunk_bytes=most)

    @cached_property
    def default(self) -> BatchedCodecPipeline:
        """zarr's own pipeline of the same codecs."""
        array_array, array_bytes, bytes_bytes = codecs_from_list_unchecked(self.codecs)
        return BatchedCodecPipeline(
            array_array_codecs=array_array,
            array_bytes_codec=array_bytes,
            bytes_bytes_codecs=bytes_bytes,
            batch_size=config.get("codec_pipeline.batch_size", 1),
        )

    def __iter__(self) -> Iterator[Codec]:
        return iter(self.codecs)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and (other.codecs, other.settings) == (self.codecs, self.settings)

    def __hash__(self) -> int:
        return hash((self.codecs, self.settings))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.codecs, self.settings)

    def __repr__(self) -> str:
        return f"CodecPipeline({list(self.codecs)!r}, {self.settings!r})"

    @property
    def array_array_codecs(self) -> tuple[ArrayArrayCodec, ...]:
        """The codecs that turn arrays into arrays."""
        return tuple(codec for codec in self.codecs if isinstance(codec, ArrayArrayCodec))

    @property
    def array_bytes_codec(self) -> ArrayBytesCodec:
        """The codec that turns arrays into bytes."""
        return next(codec for codec in self.codecs if isinstance(codec, ArrayBytesCodec))

    @property
    def bytes_bytes_codecs(self) -> tuple[BytesBytesCodec, ...]:
        """The codecs that turn bytes into bytes."""
        return tuple(codec for codec in self.codecs if isinstance(codec, BytesBytesCodec))

    @property
    def supports_partial_decode(self) -> bool:
        """Whether the array->bytes codec says that it can decode parts, and is alone, as zarr asks it."""
        return pipeline_supports_partial_decode(
            self.array_bytes_codec,
            array_array_codecs=self.array_array_codecs,
            bytes_bytes_codecs=self.bytes_bytes_codecs,
            require_no_aa_bb=True,
        )

    @property
    def supports_partial_encode(self) -> bool:
        """Whether the array->bytes codec says that it can encode parts, and is alone, as zarr asks it."""
        return pipeline_supports_partial_encode(
            self.array_bytes_codec,
            array_array_codecs=self.array_array_codecs,
            bytes_bytes_codecs=self.bytes_bytes_codecs,
            require_no_aa_bb=True,
        )

    def validate(
        self, *, shape: tuple[int, ...], dtype: ZDType[TBaseDType, TBaseScalar], chunk_grid: ChunkGridMetadata
    ) -> None:
        """Check the codecs against an array's metadata, each by its own rules.

        Parameters
        ----------
        shape
            Shape of the array.
        dtype
            zarr's data type.
        chunk_grid
            zarr's chunk grid.
        """
        for codec in self.codecs:
            codec.validate(shape=shape, dtype=dtype, chunk_grid=chunk_grid)

    def compute_encoded_size(self, byte_length: int, array_spec: ArraySpec) -> int:
        """Return how many bytes an encoded chunk has, as the codecs say.

        Parameters
        ----------
        byte_length
            Bytes of the decoded chunk.
        array_spec
            What zarr says of the chunk.

        Returns
        -------
        int
            Bytes of the encoded chunk.

        Raises
        ------
        NotImplementedError
            When a codec's output varies in length.
        """
        for codec in self.codecs:
            byte_length = codec.compute_encoded_size(byte_length, array_spec)
            array_spec = codec.resolve_metadata(array_spec)
        return byte_length

    async def decode(
        self, chunk_bytes_and_specs: Iterable[tuple[Buffer | None, ArraySpec]]
    ) -> Iterable[NDBuffer | None]:
        """Decode whole chunks.

        Parameters
        ----------
        chunk_bytes_and_specs
            Encoded chunks with their specs; None stays None.

        Returns
        -------
        iterable of NDBuffer or None
            One per chunk.

        Raises
        ------
        CorruptChunkError
            When bytes do not decode.
        """
        batch = list(chunk_bytes_and_specs)
        return await whole.decode(self, batch)

    async def encode(
        self, chunk_arrays_and_specs: Iterable[tuple[NDBuffer | None, ArraySpec]]
    ) -> Iterable[Buffer | None]:
        """Encode whole chunks.

        Parameters
        ----------
        chunk_arrays_and_specs
            Chunks with their specs; None stays None.

        Returns
        -------
        iterable of Buffer or None
            One per chunk; None when a codec says that the chunk is not to be stored.
        """
        batch = list(chunk_arrays_and_specs)
        return await whole.encode(self, batch)

    async def read(
        self,
        batch_info: Iterable[tuple[Any, ArraySpec, Any, Any, bool]],
        out: NDBuffer,
        drop_axes: tuple[int, ...] = (),
    ) -> tuple[GetResult, ...]:
        """Read parts of chunks into an array.

        Parameters
        ----------
        batch_info
            For each chunk where its bytes are, its spec, what is selected, where that goes, and whether
            that is all of it.
        out
            The array that is read into.
        drop_axes
            Axes of the chunks that ``out`` has not.

        Returns
        -------
        tuple of dict
            For each chunk ``{"status": "present"}`` or ``{"status": "missing"}``.

        Raises
        ------
        CorruptChunkError
            When bytes do not decode; it names the chunk's key.
        """
        batch = list(batch_info)
        if not batch:
            return ()
        array, reason = _in_main_memory(out)
        if not reason:
            few = few_boxes(self.ready_for(batch[0][1]), batch, array, drop_axes)
            if few is not None:
                return results(await drive_few(few))
            groups = grouped(batch)
            readies, reason = self._readies(groups)
        if not reason:
            try:
                return await drive_read(groups, readies, array, drop_axes)
            except SelectionError:
                reason = "a selection of an unknown form"
        self.refuse_if_strict(reason)
        count("read", "default", reason)
        return await self.default.read(batch, out, drop_axes)

    async def write(
        self,
        batch_info: Iterable[tuple[Any, ArraySpec, Any, Any, bool]],
        value: NDBuffer,
        drop_axes: tuple[int, ...] = (),
    ) -> None:
        """Write an array into parts of chunks.

        Parameters
        ----------
        batch_info
            For each chunk where its bytes are, its spec, what is selected, where the values are, and
            whether that is all of it.
        value
            The values.
        drop_axes
            Axes of the chunks that ``value`` has not.

        Raises
        ------
        CodecError
            When old bytes do not decode or values do not encode; it names the chunk's key.
        """
        batch = list(batch_info)
        if not batch:
            return
        array, reason = _in_main_memory(value)
        if not reason:
            groups = grouped(batch)
            readies, reason = self._readies(groups)
        if not reason:
            try:
                await drive_write(groups, readies, array, drop_axes)
            except SelectionError:
                reason = "a selection of an unknown form"
            else:
                return
        self.refuse_if_strict(reason)
        count("write", "default", reason)
        async with locks_of(batch):
            await self.default.write(batch, value, drop_axes)

    def _readies(self, groups: Sequence[Group]) -> tuple[list[Ready], str]:
        """The chain of each group, and the first reason why zarr's own pipeline has to do the work."""
        readies = [self.ready_for(group.spec) for group in groups]
        return readies, next((ready.reason for ready in readies if ready.prepared is None), "")

    def refuse_if_strict(self, reason: str) -> None:
        """Raise when strict mode forbids what would come next.

        Parameters
        ----------
        reason
            Why zarr's own pipeline would be used.

        Raises
        ------
        UnsupportedCodecError
            In strict mode.
        """
        if self.settings.strict:
            raise UnsupportedCodecError(f"strict mode forbids zarr's own pipeline ({reason})")


def _in_main_memory(buffer: NDBuffer) -> tuple[NDArray[Any], str]:
    """The array of a buffer, and why there is none that is of use."""
    array = buffer.as_ndarray_like()
    if isinstance(array, np.ndarray):
        return copyable(np.asarray(array)), ""
    return np.empty(0), "buffers outside main memory"
