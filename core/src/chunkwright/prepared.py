"""A chain that is ready for chunks of one shape: everything that can be checked or chosen once is done.

``prepare`` threads the chunk's spec through the codecs, checks shapes and sizes (with overflow), lets the
backends choose, and forms runs. A chain whose array->bytes codec is ``sharding_indexed`` is prepared as three
parts (what comes before it, the shard with its inner and index chains, what comes after); every other chain
is a list of runs. The result is immutable and safe to share between threads.

The methods of :class:`PreparedChain` are the calls for embedders: whole chunks, parts of chunks and batches,
in memory. Partial reads and writes of stored shards go through plans, which say what bytes they need.
"""

from __future__ import annotations

import math
from collections.abc import Buffer, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np
from numpy.typing import NDArray

from chunkwright import execute
from chunkwright.buffers import Buffers
from chunkwright.chain import MAX_CHUNK_BYTES, BoundChain
from chunkwright.codecs import ShardingIndexed, Transpose
from chunkwright.entries import Entries
from chunkwright.errors import ConfigurationError, CorruptChunkError, SelectionError
from chunkwright.explain import Explanation
from chunkwright.ports import Backend, ForeignRun, Run, Step
from chunkwright.read_plan import ReadPlan
from chunkwright.runs import Choice, form_runs, make_steps
from chunkwright.selection import entries_of
from chunkwright.shard import Shard
from chunkwright.shard_format import Layout
from chunkwright.spec import ChunkSpec, FixedSize, Size, UnboundedSize
from chunkwright.write_plan import WritePlan

if TYPE_CHECKING:
    from chunkwright.selection import Selection

__all__ = ("PreparedChain", "prepare")

MAX_INNER_CHUNKS = 2**30
"""Most inner chunks of a shard; more is taken for broken metadata."""


@attrs.frozen(eq=False, kw_only=True)
class PreparedChain:
    """A codec chain for chunks of one shape, with its backends chosen.

    Made by :meth:`chunkwright.BoundChain.prepare`.

    Parameters
    ----------
    chain
        The bound chain.
    backends
        The backends that were given, in order of preference.
    max_chunk_bytes
        Most bytes of a decoded chunk whose chain sets no bound.
    spec
        The decoded chunk.
    runs
        All runs in order of encoding; of a sharded chain none.
    head, tail_runs
        Of a sharded chain: the runs before and after the sharding codec.
    order
        Of a sharded chain: the permutation that the codec's array is of the chunk, or None when more
        than transposes come first.
    shard
        The sharding codec, when the chain has one.
    choices
        Who runs each codec.
    encoded_size
        Bytes of an encoded chunk, as far as they are known.

    Examples
    --------
    >>> import numpy as np
    >>> from chunkwright import CodecChain, ReferenceBackend
    >>> chain = CodecChain.from_json([{"name": "bytes", "configuration": {"endian": "little"}}, "crc32c"])
    >>> prepared = chain.bind("int16", 0).prepare((2, 2), backends=[ReferenceBackend()])
    >>> encoded = prepared.encode(np.arange(4, dtype="i2").reshape(2, 2))
    >>> len(encoded), prepared.decode(encoded).tolist()
    (12, [[0, 1], [2, 3]])
    >>> prepared.encode(np.zeros((2, 2), "i2")) is None
    True
    """

    chain: BoundChain
    backends: tuple[Backend, ...]
    max_chunk_bytes: int
    spec: ChunkSpec
    runs: tuple[Run | ForeignRun, ...] = ()
    head: tuple[Run | ForeignRun, ...] = ()
    tail_runs: tuple[Run | ForeignRun, ...] = ()
    order: tuple[int, ...] | None = None
    shard: Shard | None = None
    choices: tuple[Choice, ...] = ()
    encoded_size: Size = UnboundedSize()

    @property
    def tail(self) -> tuple[Run | ForeignRun, ...]:
        """The runs that are decoded before the one that makes arrays."""
        return self.runs[1:] if self.shard is None else self.tail_runs

    @property
    def is_async(self) -> bool:
        """Whether a foreign codec somewhere in the chain can only be awaited."""
        foreign = (run for run in (*self.runs, *self.head, *self.tail_runs) if isinstance(run, ForeignRun))
        inner = self.shard is not None and (self.shard.inner.is_async or self.shard.index.is_async)
        return inner or any(run.codec.is_async for run in foreign)

    @property
    def is_partial(self) -> bool:
        """Whether parts of an encoded chunk can be decoded: shards with nothing but transposes around them."""
        return self.shard is not None and self.order is not None and not self.tail_runs

    @property
    def is_wrapped_shard(self) -> bool:
        """Whether there is a sharding codec with other codecs around it.

        zarr-python writes such shards as it does any other chunk, all at once. What is stored must not tell that we do
        not: which inner chunks there are follows the same rules.
        """
        return self.shard is not None and bool(self.head or self.tail_runs)

    def encode(self, array: NDArray[Any], *, keep_empty: bool = False) -> Buffer | None:
        """Encode one chunk.

        Parameters
        ----------
        array
            Of the chunk's shape; any strides, any byte order.
        keep_empty
            Encode the chunk (and inner chunks) also when it holds nothing but the fill value.

        Returns
        -------
        Buffer or None
            Read-only bytes, or None when the chunk equals the fill value and may be left out.

        Raises
        ------
        CodecError
            When a codec cannot encode these values.
        """
        return self.encode_many([array], keep_empty=keep_empty)[0]

    def encode_many(
        self, arrays: Sequence[NDArray[Any]], *, keep_empty: bool = False, max_workers: int | None = None
    ) -> list[Buffer | None]:
        """Encode chunks.

        Parameters
        ----------
        arrays
            Each of the chunk's shape.
        keep_empty
            As in :meth:`encode`.
        max_workers
            Limit of threads.

        Returns
        -------
        list of Buffer or None
            One per array.

        Raises
        ------
        CodecError
            When a codec cannot encode these values; ``position`` is the array's.
        """
        kept: list[NDArray[Any] | None] = []
        for array in arrays:
            chunk = np.asarray(array)
            if chunk.shape != self.spec.shape:
                raise ConfigurationError("wrong shape of a chunk", expected=self.spec.shape, found=chunk.shape)
            chunk = chunk.astype(self.spec.dtype.numpy, copy=False)
            kept.append(chunk if keep_empty or not self.spec.fill_value.fills(chunk) else None)
        return execute.run_calls(execute.encode_arrays(self, kept, execute.workers(max_workers), keep_empty))

    def decode(self, buffer: Buffer) -> NDArray[Any]:
        """Decode one chunk.

        Parameters
        ----------
        buffer
            Its encoded bytes.

        Returns
        -------
        NDArray
            The chunk; it owns its memory.

        Raises
        ------
        CorruptChunkError
            When the bytes do not decode under this chain.
        """
        array = self.decode_many([buffer])[0]
        if array is None:  # only a foreign codec can answer None
            raise CorruptChunkError("decoding gave nothing")
        return array

    def decode_many(
        self, buffers: Sequence[Buffer | None], *, max_workers: int | None = None
    ) -> list[NDArray[Any] | None]:
        """Decode chunks.

        Parameters
        ----------
        buffers
            Encoded bytes; None for missing chunks.
        max_workers
            Limit of threads.

        Returns
        -------
        list of NDArray or None
            One per buffer; they own their memory.

        Raises
        ------
        CorruptChunkError
            When bytes do not decode; ``position`` is the buffer's.
        """
        return execute.run_calls(execute.decode_arrays(self, Buffers.of(buffers), execute.workers(max_workers)))

    def decode_into(self, buffer: Buffer | None, out: NDArray[Any], *, selection: Selection = ...) -> None:
        """Decode a part of one chunk into an array.

        Parameters
        ----------
        buffer
            Encoded bytes of the whole chunk, or None: the fill value.
        out
            Array of the selection's shape; any strides, and any dtype that the chunk's can be assigned to.
        selection
            What to decode, as in NumPy's basic indexing, or 1-D lists that select along their axis.

        Raises
        ------
        SelectionError
            When the selection is outside the chunk, or ``out`` has another shape.
        CorruptChunkError
            When the bytes do not decode.
        """
        entries, shape = entries_of(selection, self.spec.shape)
        if out.shape != shape:
            raise SelectionError("out has the wrong shape", expected=shape, found=out.shape)
        self.decode_many_into([buffer], entries, out)

    def decode_many_into(
        self,
        buffers: Buffers | Sequence[Buffer | None],
        entries: Entries,
        out: NDArray[Any],
        *,
        max_workers: int | None = None,
    ) -> None:
        """Decode parts of many chunks into one array.

        Parameters
        ----------
        buffers
            One per chunk.
        entries
            Selections, ordered by chunk.
        out
            The caller's array.
        max_workers
            Limit of threads.

        Raises
        ------
        CorruptChunkError
            When bytes do not decode; ``position`` is the chunk's.
        """
        rows = buffers if isinstance(buffers, Buffers) else Buffers.of(buffers)
        execute.run_calls(execute.decode_into(self, rows, entries, out, execute.workers(max_workers)))

    def plan_read(self, entries: Entries | Selection, *, whole_fraction: float = 1.0) -> ReadPlan:
        """Plan a partial read.

        Parameters
        ----------
        entries
            Selections of many chunks, or one selection of one chunk.
        whole_fraction
            Fraction of a shard's inner chunks from which on the whole shard is asked for at once.

        Returns
        -------
        ReadPlan
            Says what bytes it needs.

        Raises
        ------
        SelectionError
            When a selection is outside the chunk.
        """
        return ReadPlan(self, self._entries(entries), whole_fraction=whole_fraction)

    def plan_write(
        self,
        entries: Entries | Selection,
        *,
        complete: NDArray[np.bool_] | None = None,
        keep_empty: bool = False,
    ) -> WritePlan:
        """Plan a write.

        Parameters
        ----------
        entries
            Selections of many chunks and where in the source their elements are, or one selection of one chunk.
        complete
            bool, by chunk number: chunks of which nothing needs to be kept. By default those that one
            entry covers. For shards it is worked out from the inner chunks in any case.
        keep_empty
            Keep chunks that hold nothing but the fill value.

        Returns
        -------
        WritePlan
            Says what existing bytes it needs.

        Raises
        ------
        SelectionError
            When a selection is outside the chunk.
        """
        return WritePlan(self, self._entries(entries), complete=complete, keep_empty=keep_empty)

    def explain(self) -> Explanation:
        """Tell who runs each codec, and why.

        Returns
        -------
        Explanation
            Prints as a table; has ``to_json()``.
        """
        return Explanation.of(self)

    def _entries(self, entries: Entries | Selection) -> Entries:
        return entries if isinstance(entries, Entries) else entries_of(entries, self.spec.shape)[0]

    def __reduce__(self) -> tuple[Any, ...]:
        return prepare, (self.chain, self.spec.shape, self.backends, self.max_chunk_bytes)


def prepare(
    chain: BoundChain,
    chunk_shape: Sequence[int],
    backends: Sequence[Backend],
    max_chunk_bytes: int = MAX_CHUNK_BYTES,
) -> PreparedChain:
    """Make a bound chain ready for chunks of one shape.

    Parameters
    ----------
    chain
        The bound chain.
    chunk_shape
        Elements along each axis.
    backends
        In order of preference: the first that supports a codec takes it.
    max_chunk_bytes
        Most bytes of a decoded chunk whose chain sets no bound.

    Returns
    -------
    PreparedChain
        Immutable, safe to share between threads.

    Raises
    ------
    UnsupportedCodecError
        When no backend supports a codec.
    ConfigurationError
        When the shape does not fit the codecs.
    """
    spec = ChunkSpec(_checked_shape(chunk_shape), chain.dtype, chain.fill_value)
    _checked_size(spec)
    make = partial(PreparedChain, chain=chain, backends=tuple(backends), max_chunk_bytes=max_chunk_bytes, spec=spec)
    codecs = chain.codecs
    at = next((number for number, codec in enumerate(codecs) if isinstance(codec, ShardingIndexed)), None)
    if at is None:
        steps = make_steps(codecs, spec, spec.nbytes, max_chunk_bytes)
        runs, choices = form_runs(steps, backends)
        return make(runs=runs, choices=choices, encoded_size=steps[-1].encoded_size)
    head = make_steps(codecs[:at], spec, spec.nbytes, max_chunk_bytes, encode_fill=backends)
    given = head[-1].encoded_spec if head else spec
    sharding = codecs[at]
    assert isinstance(sharding, ShardingIndexed)
    shard = _prepare_shard(sharding, given, backends, max_chunk_bytes)
    size = sharding.encoded_size(given.nbytes, given)
    tail = make_steps(codecs[at + 1 :], given, size, max_chunk_bytes)
    head_runs, head_choices = form_runs(head, backends)
    tail_runs, tail_choices = form_runs(tail, backends)
    return make(
        head=head_runs,
        tail_runs=tail_runs,
        order=_permutation(head, spec.ndim),
        shard=shard,
        choices=(*head_choices, Choice(sharding.name, "core", "plan", ()), *tail_choices),
        encoded_size=tail[-1].encoded_size if tail else size,
    )


def _checked_shape(shape: Sequence[int]) -> tuple[int, ...]:
    extents = tuple(int(extent) for extent in shape)
    if any(extent < 0 for extent in extents):
        raise ConfigurationError("a chunk has a negative extent", found=extents)
    return extents


def _checked_size(spec: ChunkSpec) -> None:
    """Refuse shapes whose size overflows, before anybody multiplies with 64 bits."""
    if spec.elements * max(spec.dtype.numpy.itemsize, 1) >= 2**63:
        raise ConfigurationError("a chunk is too large to address", found=spec.shape)


def _permutation(head: Sequence[Step], ndim: int) -> tuple[int, ...] | None:
    order = tuple(range(ndim))
    for step in head:
        if not isinstance(step.codec, Transpose):
            return None
        order = tuple(order[axis] for axis in step.codec.order)
    return order


def _prepare_shard(codec: ShardingIndexed, spec: ChunkSpec, backends: Sequence[Backend], max_chunk_bytes: int) -> Shard:
    grid = codec.grid(spec.shape)
    if math.prod(grid) > MAX_INNER_CHUNKS:
        raise ConfigurationError("too many inner chunks in a shard", codec=codec.name, found=math.prod(grid))
    inner = prepare(codec.inner_chain(spec.dtype, spec.fill_value), codec.chunk_shape, backends, max_chunk_bytes)
    index = prepare(codec.index_chain(), (*grid, 2), backends)
    if not isinstance(index.encoded_size, FixedSize):
        raise ConfigurationError("the codecs of a shard index must have a fixed size", codec=codec.name)
    layout = Layout(index.encoded_size.nbytes, codec.index_location == "start", inner.encoded_size)
    return Shard(spec=spec, inner=inner, index=index, grid=grid, layout=layout, order=codec.order)
