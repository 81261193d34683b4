"""What a pipeline has made ready for chunks of one spec: a prepared chain, or the reason why zarr must do the work.

Preparing is done once per (chain, shape, data type, fill value, backends) in a process, by value, because
zarr makes a new pipeline each time an array is opened. Chains with foreign codecs are kept by their pipeline
alone: a codec object of the user's has no value that could be compared safely.

A codec that no backend runs is handed to zarr's own codec object, as a foreign codec, and everything around
it stays where it is. In strict mode that is an error, and so is any codec that is not run by the first
backend.
"""

from __future__ import annotations

import math
import os
import threading
from collections import OrderedDict
from collections.abc import Hashable, Sequence

import attrs
from zarr.abc.codec import ArrayBytesCodecPartialDecodeMixin, ArrayBytesCodecPartialEncodeMixin, Codec
from zarr.core.array_spec import ArraySpec

from chunkwright.chain import BoundChain
from chunkwright.codecs import Foreign
from chunkwright.errors import ConfigurationError, UnsupportedCodecError
from chunkwright.ports import Backend
from chunkwright.prepared import PreparedChain
from chunkwright_store import BoxReader, FileIO, box_reader_of, file_io_of
from chunkwright_store.zarr import is_cpu
from chunkwright_zarr.codecs import chain_of
from chunkwright_zarr.specs import chunk_spec

__all__ = ("Pace", "Ready", "check_strict", "has_foreign", "make_ready")

MAX_PREPARED = 512
"""Prepared chains that a process keeps; each is a few kilobytes."""


class Pace:
    """How fast the last read of an array was.

    Examples
    --------
    >>> pace = Pace()
    >>> pace.expected(1)
    inf
    >>> pace.record(1000, 0.5)
    >>> pace.expected(3000)
    1.5
    """

    def __init__(self) -> None:
        self._seconds_per_byte = math.inf

    def record(self, nbytes: int, seconds: float) -> None:
        """Keep what a read took.

        Parameters
        ----------
        nbytes
            Decoded bytes.
        seconds
            How long it took.
        """
        self._seconds_per_byte = seconds / nbytes if nbytes else math.inf

    def expected(self, nbytes: int) -> float:
        """Return the seconds that another read should take.

        Parameters
        ----------
        nbytes
            Decoded bytes.

        Returns
        -------
        float
            Infinite when nothing was read yet.
        """
        return self._seconds_per_byte * nbytes if nbytes else 0.0


@attrs.frozen(eq=False)
class Ready:
    """A chain for chunks of one spec.

    Parameters
    ----------
    spec
        What zarr says of the chunks.
    prepared
        The prepared chain; None when zarr's own pipeline has to do the work.
    is_async
        Whether a codec can only be awaited.
    is_foreign
        Whether there is a foreign codec anywhere in the chain.
    reason
        Why zarr's own pipeline has to do the work.
    file_io
        What reads and writes local files for the chain without Python, if anything does.
    box_reader
        What reads a few boxes with little Python, if anything does.
    is_unfit
        Whether the reason is that codecs and spec do not fit each other. The spec that zarr makes a pipeline
        with can be a placeholder that fits nothing.

    Attributes
    ----------
    pace
        How fast reads are.
    """

    spec: ArraySpec
    prepared: PreparedChain | None
    is_async: bool = False
    is_foreign: bool = False
    reason: str = ""
    file_io: FileIO | None = None
    box_reader: BoxReader | None = None
    is_unfit: bool = False
    pace: Pace = attrs.field(factory=Pace, init=False)


def make_ready(
    codecs: Sequence[Codec],
    spec: ArraySpec,
    backends: tuple[Backend, ...],
    *,
    strict: bool,
    max_chunk_bytes: int,
) -> Ready:
    """Make a chain ready for chunks of one spec.

    Parameters
    ----------
    codecs
        zarr's codec objects, in order of encoding.
    spec
        What zarr says of the chunks.
    backends
        In order of preference.
    strict
        Do not hand codecs that no backend runs to zarr.
    max_chunk_bytes
        Bytes that a chunk of elements of variable length may decode to.

    Returns
    -------
    Ready
        The chain, or the reason why there is none.
    """
    if not is_cpu(spec.prototype):
        return Ready(spec, None, reason="buffers outside main memory")
    translated = chunk_spec(spec)
    if translated is None:
        return Ready(spec, None, reason="data type of Python objects")
    refused: dict[str, str] = {}
    while True:
        try:
            chain = chain_of(codecs, spec, refused=refused)
            bound = chain.bind(translated.dtype, translated.fill_value, ndim=len(spec.shape))
            if _does_own_io(bound, codecs):
                return Ready(spec, None, reason=f"{bound.codecs[0].name} reads and writes parts of chunks itself")
            return _ready(spec, _prepared(bound, spec.shape, backends, max_chunk_bytes))
        except UnsupportedCodecError as error:
            if strict or error.codec is None or error.codec in refused:
                return Ready(spec, None, reason=str(error))
            refused[error.codec] = error.message
        except ConfigurationError as error:
            return Ready(spec, None, reason=str(error), is_unfit=True)


def _ready(spec: ArraySpec, prepared: PreparedChain) -> Ready:
    return Ready(
        spec,
        prepared,
        prepared.is_async,
        has_foreign(prepared),
        file_io=file_io_of(prepared),
        box_reader=box_reader_of(prepared),
    )


def _does_own_io(chain: BoundChain, codecs: Sequence[Codec]) -> bool:
    """Whether the chain is one foreign codec that wants the chunk's place in the store instead of its bytes."""
    mixins = (ArrayBytesCodecPartialDecodeMixin, ArrayBytesCodecPartialEncodeMixin)
    return len(codecs) == 1 and isinstance(codecs[0], mixins) and isinstance(chain.codecs[0], Foreign)


def check_strict(ready: Ready) -> None:
    """Refuse what strict mode forbids.

    Parameters
    ----------
    ready
        A chain, or the reason why there is none.

    Raises
    ------
    UnsupportedCodecError
        When anything falls back.
    """
    if ready.prepared is None:
        raise UnsupportedCodecError(f"strict mode forbids zarr's own pipeline ({ready.reason})")
    for run in ready.prepared.explain().runs:
        if run.reason:
            raise UnsupportedCodecError(f"strict mode forbids a fallback ({run.reason})", codec=run.codecs[0])


def _after_fork() -> None:
    global _mutex
    _mutex = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)

_cache: OrderedDict[Hashable, PreparedChain] = OrderedDict()
_mutex = threading.Lock()


def _prepared(
    chain: BoundChain, shape: tuple[int, ...], backends: tuple[Backend, ...], max_chunk_bytes: int
) -> PreparedChain:
    key = (chain, shape, tuple(map(id, backends)), max_chunk_bytes)
    found = _get(key)
    if found is None:
        found = chain.prepare(shape, backends=backends, max_chunk_bytes=max_chunk_bytes)
        if not has_foreign(found):
            _put(key, found)
    return found


def _get(key: Hashable) -> PreparedChain | None:
    with _mutex:
        found = _cache.get(key)
        if found is not None:
            _cache.move_to_end(key)
        return found


def _put(key: Hashable, prepared: PreparedChain) -> None:
    with _mutex:
        _cache[key] = prepared
        if len(_cache) > MAX_PREPARED:
            _cache.popitem(last=False)


def has_foreign(prepared: PreparedChain) -> bool:
    """Whether a foreign codec is anywhere in a chain.

    Parameters
    ----------
    prepared
        The chain.

    Returns
    -------
    bool
        Also for chains of inner chunks.
    """
    return any(run.backend == "foreign" for run in prepared.explain().runs)
