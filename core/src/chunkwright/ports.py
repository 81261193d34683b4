"""The two things that the outside world gives to a chain: backends and foreign codecs.

A *backend* computes whole batches and knows no store and no plan. ``prepare`` asks each backend, in order
of preference, whether it supports a codec; consecutive codecs that one backend took form a
:class:`Run`, and the backend is called once per run and batch. A *foreign codec* is any Python codec
that an embedder or the zarr adapter brings along; it is a run of its own and is executed between backend
runs, never inside a backend.

Contract of the backend calls:

- Batches are columns. ``buffers`` and ``entries`` are described in :mod:`chunkwright.buffers` and
  :mod:`chunkwright.entries`; entries are ordered by chunk, and each chunk is decoded once.
- A missing chunk (offset -1) is filled with the fill value.
- No allocation follows a size that was read from encoded bytes before it was checked against the sizes
  of the run's steps.
- An error is a ``CodecError`` whose ``position`` is the row of its chunk in the batch. Chunks of the batch
  that did not fail may or may not have been done.
- ``max_workers`` limits the threads of one call; None is the backend's own choice.
- Calls come from any thread, several at a time.
"""

from __future__ import annotations

from collections.abc import Awaitable, Buffer, Callable, Sequence
from typing import Any, Literal, Protocol, runtime_checkable

import attrs
from numpy.typing import NDArray

from chunkwright.buffers import Buffers
from chunkwright.codecs._base import Codec, Kind
from chunkwright.entries import Entries
from chunkwright.spec import ChunkSpec, Size

__all__ = ("Backend", "ForeignCall", "ForeignCodec", "ForeignRun", "Run", "Step", "Supported", "Unsupported")


@attrs.frozen
class Supported:
    """A backend can run a codec.

    Parameters
    ----------
    kernel
        Which implementation will run it, for ``explain()``.

    Examples
    --------
    >>> bool(Supported(kernel="libzstd"))
    True
    """

    kernel: str = ""

    def __bool__(self) -> bool:
        return True


@attrs.frozen
class Unsupported:
    """A backend cannot run a codec.

    Parameters
    ----------
    reason
        Why, for ``explain()`` and for errors in strict mode.

    Examples
    --------
    >>> bool(Unsupported("no such codec here"))
    False
    """

    reason: str

    def __bool__(self) -> bool:
        return False


@attrs.frozen(eq=False)
class Step:
    """One codec at its place in a prepared chain.

    Parameters
    ----------
    codec
        The bound codec.
    spec
        The array on its decoded side; for bytes->bytes codecs that of the array->bytes codec.
    encoded_spec
        The array on its encoded side (array->array codecs), otherwise ``spec``.
    decoded_size
        Bytes on its decoded side: what decoding must give.
    encoded_size
        Bytes on its encoded side: what decoding is given.
    kernel
        What the backend said would run it.
    max_bytes
        Most bytes that decoding may make when ``decoded_size`` sets no bound.

    Examples
    --------
    >>> from chunkwright import CodecChain, ReferenceBackend
    >>> chain = CodecChain.from_json([{"name": "bytes", "configuration": {"endian": "little"}}, "crc32c"])
    >>> prepared = chain.bind("int16", 0).prepare((4,), backends=[ReferenceBackend()])
    >>> [(step.codec.name, step.encoded_size.nbytes) for step in prepared.runs[0].steps]
    [('bytes', 8), ('crc32c', 12)]
    """

    codec: Codec
    spec: ChunkSpec
    encoded_spec: ChunkSpec
    decoded_size: Size
    encoded_size: Size
    kernel: str = ""
    max_bytes: int = 2**31


@attrs.frozen(eq=False)
class Run:
    """Consecutive steps that one backend executes in one call.

    Parameters
    ----------
    backend
        Who executes them.
    steps
        In order of encoding, at least one.
    compiled
        What the backend's ``compile`` made of the steps.

    Examples
    --------
    >>> from chunkwright import CodecChain, ReferenceBackend
    >>> chain = CodecChain.from_json([{"name": "bytes", "configuration": {"endian": "little"}}, "crc32c"])
    >>> prepared = chain.bind("int16", 0).prepare((4,), backends=[ReferenceBackend()])
    >>> [(run.backend.name, run.kinds) for run in prepared.runs]
    [('reference', ('array->bytes', 'bytes->bytes'))]
    """

    backend: Backend
    steps: tuple[Step, ...]
    compiled: Any

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """Kinds of the steps, in order."""
        return tuple(step.codec.kind for step in self.steps)


@attrs.frozen(eq=False)
class ForeignRun:
    """One foreign codec at its place in a prepared chain.

    Parameters
    ----------
    codec
        The foreign codec.
    step
        Its place; ``step.codec`` stands for it in the chain.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> codec = SimpleNamespace(name="reversed", kind="bytes->bytes", is_async=False)
    >>> ForeignRun(codec, step=None).kinds
    ('bytes->bytes',)
    """

    codec: ForeignCodec
    step: Step

    @property
    def steps(self) -> tuple[Step, ...]:
        """The one step, as a tuple."""
        return (self.step,)

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """Its kind, as a tuple."""
        return (self.codec.kind,)


@runtime_checkable
class Backend(Protocol):
    """Computes batches. Backends are compared by identity and named by ``name``."""

    @property
    def name(self) -> str:
        """Name, as in the configuration and in the entry-point group ``chunkwright.backends``."""

    @property
    def version(self) -> str:
        """Version of the backend's distribution."""

    def supports(self, codec: Codec, spec: ChunkSpec) -> Supported | Unsupported:
        """Say whether a bound codec can be run, bit-compatibly, on a spec.

        Parameters
        ----------
        codec
            The bound codec.
        spec
            The array on its decoded side (bytes->bytes: that of the array->bytes codec).

        Returns
        -------
        Supported or Unsupported
            With the kernel, or with the reason.
        """

    def compile(self, steps: Sequence[Step]) -> Any:
        """Make whatever the backend wants at hand for every batch of a run.

        Parameters
        ----------
        steps
            In order of encoding, all of them supported.

        Returns
        -------
        Any
            Kept as ``run.compiled``; must be safe to share between threads.
        """

    def decode_into(
        self, run: Run, buffers: Buffers, entries: Entries, out: NDArray[Any], *, max_workers: int | None = None
    ) -> None:
        """Decode chunks and put the entries' elements into the caller's array.

        Parameters
        ----------
        run
            A run that starts at the chain's first codec and contains its array->bytes codec.
        buffers
            One row per chunk.
        entries
            Selections of these chunks, ordered by chunk.
        out
            Any strides, any byte order, and any dtype that NumPy can assign the chunk's dtype to.
        max_workers
            Limit of threads.
        """

    def encode_from(
        self,
        run: Run,
        source: NDArray[Any],
        entries: Entries,
        *,
        base: Sequence[NDArray[Any] | None],
        keep_empty: bool,
        max_workers: int | None = None,
    ) -> list[Buffer | None]:
        """Gather chunks from the caller's array and encode them.

        Parameters
        ----------
        run
            A run that starts at the chain's first codec and contains its array->bytes codec.
        source
            The caller's array; zero strides are fine.
        entries
            Selections of the chunks and where in ``source`` their elements are, ordered by chunk.
        base
            For each chunk what it held before (changed by the call), or None: the fill value.
        keep_empty
            Whether a chunk that holds nothing but the fill value is encoded all the same.
        max_workers
            Limit of threads.

        Returns
        -------
        list of Buffer or None
            One per chunk of ``base``; None when it equals the fill value and need not be kept.
        """

    def decode_arrays(
        self, run: Run, items: Sequence[Any | None], *, max_workers: int | None = None
    ) -> list[NDArray[Any] | None]:
        """Decode whole chunks to the arrays on the decoded side of the run's first step.

        Parameters
        ----------
        run
            A run of array->array codecs and perhaps the array->bytes codec and more.
        items
            Buffers when the run has the array->bytes codec, else arrays; None stays None.
        max_workers
            Limit of threads.

        Returns
        -------
        list of NDArray or None
            Arrays that own their memory (they may be changed).
        """

    def encode_arrays(
        self, run: Run, items: Sequence[NDArray[Any] | None], *, max_workers: int | None = None
    ) -> list[Any | None]:
        """Encode whole chunks, without the emptiness rule.

        Parameters
        ----------
        run
            A run that starts with an array->array or array->bytes codec.
        items
            Arrays; None stays None.
        max_workers
            Limit of threads.

        Returns
        -------
        list
            Buffers when the run has the array->bytes codec, else arrays.
        """

    def decode_bytes(self, run: Run, buffers: Buffers, *, max_workers: int | None = None) -> list[Buffer | None]:
        """Decode the bytes of a run of bytes->bytes codecs.

        Parameters
        ----------
        run
            A run of bytes->bytes codecs.
        buffers
            One row per chunk.
        max_workers
            Limit of threads.

        Returns
        -------
        list of Buffer or None
            One per row, None for missing ones.
        """

    def encode_bytes(
        self, run: Run, items: Sequence[Buffer | None], *, max_workers: int | None = None
    ) -> list[Buffer | None]:
        """Encode bytes with a run of bytes->bytes codecs.

        Parameters
        ----------
        run
            A run of bytes->bytes codecs.
        items
            Buffers; None stays None.
        max_workers
            Limit of threads.

        Returns
        -------
        list of Buffer or None
            One per item.
        """


@runtime_checkable
class ForeignCodec(Protocol):
    """A codec that some Python code brings along, for instance one that a user registered with zarr.

    Items of a batch are arrays or buffers, as its kind says; None stays None. ``decode_batch`` and
    ``encode_batch`` return a list, or (``is_async``) an awaitable of one.
    """

    @property
    def name(self) -> str:
        """Name of the codec."""

    @property
    def kind(self) -> Kind:
        """Kind of the codec."""

    @property
    def is_async(self) -> bool:
        """Whether it can only be awaited on an event loop."""

    def resolve(self, spec: ChunkSpec) -> ChunkSpec:
        """Return the spec that the next codec is given.

        Parameters
        ----------
        spec
            What this codec is given.

        Returns
        -------
        ChunkSpec
            Unchanged for all but array->array codecs.
        """

    def encoded_size(self, size: Size, spec: ChunkSpec) -> Size:
        """Return how many bytes it makes.

        Parameters
        ----------
        size
            Bytes that it is given.
        spec
            Spec of the array that the array->bytes codec is given.

        Returns
        -------
        Size
            Unbounded when it cannot tell.
        """

    def decode_batch(
        self, items: Sequence[Any | None], spec: ChunkSpec
    ) -> Sequence[Any | None] | Awaitable[Sequence[Any | None]]:
        """Decode a batch.

        Parameters
        ----------
        items
            Arrays or buffers.
        spec
            The array on the codec's decoded side.

        Returns
        -------
        sequence or awaitable of one
            One per item.
        """

    def encode_batch(
        self, items: Sequence[Any | None], spec: ChunkSpec
    ) -> Sequence[Any | None] | Awaitable[Sequence[Any | None]]:
        """Encode a batch; an item may become None, which means that the chunk is not stored.

        Parameters
        ----------
        items
            Arrays or buffers.
        spec
            The array on the codec's decoded side.

        Returns
        -------
        sequence or awaitable of one
            One per item.
        """


@attrs.frozen(eq=False)
class ForeignCall:
    """One call of a foreign codec, handed out by the executor so that the driver decides where it runs.

    Parameters
    ----------
    run
        Which foreign codec, where in the chain.
    items
        The batch.
    direction
        Decode or encode.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> def decode_batch(items, spec):
    ...     return [item[::-1] for item in items]
    >>> codec = SimpleNamespace(name="reversed", kind="bytes->bytes", is_async=False, decode_batch=decode_batch)
    >>> call = ForeignCall(ForeignRun(codec, SimpleNamespace(spec=None)), [b"cba"], "decode")
    >>> call.is_async, call.start()
    (False, [b'abc'])
    """

    run: ForeignRun
    items: Sequence[Any | None]
    direction: Literal["decode", "encode"]

    @property
    def is_async(self) -> bool:
        """Whether the call must be awaited."""
        return self.run.codec.is_async

    def start(self) -> Any:
        """Call the codec.

        Returns
        -------
        Any
            A sequence, or an awaitable of one when ``is_async``.
        """
        codec = self.run.codec
        call: Callable[..., Any] = codec.decode_batch if self.direction == "decode" else codec.encode_batch
        return call(self.items, self.run.step.spec)
