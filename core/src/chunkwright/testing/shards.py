"""Checks of shards: what a backend does with them as a whole is what the core makes of it inner chunk by inner chunk.

Each check compares one backend with itself: once as it is, once without what it offers for shards as a whole
(:mod:`chunkwright.shard_ports`). Bytes are the same, elements are those of NumPy, and what is refused is refused alike.
A backend that offers nothing of the kind is compared with NumPy alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, cast

import attrs
import numpy as np
from numpy.typing import NDArray

from chunkwright.chain import CodecChain
from chunkwright.entries import Entries
from chunkwright.errors import CodecError, UnsupportedCodecError
from chunkwright.ports import Backend
from chunkwright.prepared import PreparedChain
from chunkwright.selection import entries_of
from chunkwright.testing.cases import values

__all__ = ("Form", "shard_checks", "without_shards")

_SHARDS = frozenset({"shard_reader", "shard_writer"})
_LITTLE: dict[str, Any] = {"name": "bytes", "configuration": {"endian": "little"}}
_BIG: dict[str, Any] = {"name": "bytes", "configuration": {"endian": "big"}}
_ZSTD: dict[str, Any] = {"name": "zstd", "configuration": {"level": 1, "checksum": True}}
_CRC: dict[str, Any] = {"name": "crc32c"}


class _InnerChunkByInnerChunk:
    """A backend without what it offers for shards as a whole."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    def __getattr__(self, name: str) -> Any:
        if name in _SHARDS:
            raise AttributeError(name)
        return getattr(self._backend, name)


def without_shards(backend: Backend) -> Backend:
    """Hide what a backend offers for shards as a whole.

    Parameters
    ----------
    backend
        The backend.

    Returns
    -------
    Backend
        It does the same, inner chunk by inner chunk.

    Examples
    --------
    >>> from chunkwright import ReferenceBackend
    >>> without_shards(ReferenceBackend()).name
    'reference'
    """
    return cast(Backend, _InnerChunkByInnerChunk(backend))


@attrs.frozen
class Form:
    """One way to cut and encode shards.

    Parameters
    ----------
    shape, inner
        Shapes of a shard and of an inner chunk.
    codecs, index_codecs
        What is done to inner chunks and to the index.
    dtype
        The data type.
    at_start
        Whether the index comes first.
    order
        Permutation of axes before the sharding codec.

    Examples
    --------
    >>> Form((4, 4), (2, 2), [{"name": "bytes"}], [{"name": "bytes"}]).dtype
    '<u2'
    """

    shape: tuple[int, ...]
    inner: tuple[int, ...]
    codecs: list[dict[str, Any]]
    index_codecs: list[dict[str, Any]]
    dtype: Any = "<u2"
    at_start: bool = False
    order: tuple[int, ...] | None = None

    def prepared(self, backend: Backend) -> PreparedChain:
        """Prepare the chain.

        Parameters
        ----------
        backend
            The only backend.

        Returns
        -------
        PreparedChain
            For chunks of this shape.
        """
        sharding = {
            "chunk_shape": list(self.inner),
            "codecs": self.codecs,
            "index_codecs": self.index_codecs,
            "index_location": "start" if self.at_start else "end",
        }
        codecs: list[dict[str, Any]] = [{"name": "sharding_indexed", "configuration": sharding}]
        if self.order is not None:
            codecs.insert(0, {"name": "transpose", "configuration": {"order": list(self.order)}})
        fill = values(self.dtype, (), 9)[()]
        return CodecChain.from_json(codecs).bind(np.dtype(self.dtype), fill).prepare(self.shape, backends=[backend])


_FORMS: dict[str, Form] = {
    "plain": Form((6, 4, 4), (2, 2, 2), [_LITTLE], [_LITTLE]),
    "compressed": Form((8, 12), (4, 3), [_LITTLE, _ZSTD], [_LITTLE, _CRC]),
    "index first": Form((8, 6), (2, 3), [_LITTLE, _ZSTD, _CRC], [_LITTLE, _CRC], at_start=True),
    "other byte order": Form((9,), (3,), [_BIG], [_BIG, _CRC], dtype=">i4"),
    "foreign byte order": Form((9, 2), (3, 2), [_BIG, _CRC], [_BIG], dtype="<f8"),
    "transposed": Form((4, 6, 2), (2, 2, 3), [_LITTLE, _ZSTD], [_LITTLE, _CRC], order=(2, 0, 1), dtype="<c8"),
    "transposed inside": Form(
        (6, 4), (3, 2), [{"name": "transpose", "configuration": {"order": [1, 0]}}, _LITTLE], [_LITTLE, _CRC]
    ),
    "transposed index": Form(
        (6, 4), (3, 2), [_LITTLE], [{"name": "transpose", "configuration": {"order": [2, 0, 1]}}, _LITTLE, _CRC]
    ),
    "one inner chunk": Form((3, 3), (3, 3), [_LITTLE, _CRC], [_LITTLE], dtype="|S3"),
    "no axes": Form((), (), [_LITTLE], [_LITTLE, _CRC]),
}


def shard_checks(backend: Backend) -> Iterator[tuple[str, Callable[[], None]]]:
    """Make the checks that a backend's codecs allow.

    Parameters
    ----------
    backend
        The backend.

    Yields
    ------
    tuple
        A name, and what raises AssertionError when the backend does not do as it should.

    Examples
    --------
    >>> from chunkwright import ReferenceBackend
    >>> for name, ask in shard_checks(ReferenceBackend()):
    ...     ask()
    """
    for name, form in _FORMS.items():
        try:
            form.prepared(backend)
        except UnsupportedCodecError:
            continue
        # One at a time: a shard of 16 inner chunks is damaged in many places.
        yield f"shards: {name}", partial(_written_and_read, form, backend)
        yield f"damaged shards: {name}", partial(_damaged, form, backend)


def _written_and_read(form: Form, backend: Backend) -> None:
    chain, plain = form.prepared(backend), form.prepared(without_shards(backend))
    rng = np.random.default_rng(5)
    array = np.broadcast_to(chain.spec.full(), form.shape).copy()
    stored: bytes | None = None
    for step in range(12):
        entries, shape = _boxes(form.shape, rng)
        source = np.asarray(chain.spec.full()[()] if step % 4 == 3 else values(form.dtype, shape, step))
        source = np.broadcast_to(source, shape)
        keep = step % 3 == 0
        written = [_write(one, stored, entries, source, keep) for one in (chain, plain)]
        assert written[0] == written[1]
        stored = written[0]
        _assign(array, entries, source)
        _read(chain, stored, array, rng)


def _boxes(shape: tuple[int, ...], rng: np.random.Generator) -> tuple[Entries, tuple[int, ...]]:
    """One or two boxes, with steps, of a shard, which take a new first axis of the source each."""
    parts, out_shape = [], [1, *shape]
    for number in range(int(rng.integers(1, 3))):
        start = np.array([int(rng.integers(0, extent)) for extent in shape], np.int64)
        if rng.integers(0, 3) == 0:
            start[:] = 0
        step = rng.integers(1, 4, len(shape)) if rng.integers(0, 2) else np.ones(len(shape), np.int64)
        most = [(extent - 1 - first) // by + 1 for extent, first, by in zip(shape, start, step, strict=True)]
        whole = rng.integers(0, 2) == 0
        count = np.array([limit if whole else int(rng.integers(1, limit + 1)) for limit in most], np.int64)
        parts.append((start, count, step, number))
        out_shape[0] = number + 1
    columns = [np.array([part[column] for part in parts], np.int64).reshape(len(parts), -1) for column in range(4)]
    starts, counts, steps, numbers = columns
    zeros = np.zeros_like(starts)
    entries = Entries.boxes(
        chunk=np.zeros(len(parts), np.int64),
        start=starts,
        count=counts,
        step=steps,
        out_start=np.concatenate([numbers, zeros], axis=1),
        axes=tuple(range(1, len(shape) + 1)),
    )
    return entries, tuple(out_shape)


def _places(entries: Entries, row: int) -> tuple[tuple[slice, ...], tuple[Any, ...]]:
    """What an entry selects of the chunk, and of the array beside it."""
    columns = zip(*(column[row].tolist() for column in (entries.start, entries.count, entries.step)), strict=True)
    inside = tuple(slice(start, start + (count - 1) * step + 1, step) for start, count, step in columns)
    return inside, (row, *(slice(0, count) for count in entries.count[row].tolist()))


def _assign(array: NDArray[Any], entries: Entries, source: NDArray[Any]) -> None:
    for row in range(len(entries)):
        inside, outside = _places(entries, row)
        array[inside] = source[outside]


def _write(
    chain: PreparedChain, stored: bytes | None, entries: Entries, source: NDArray[Any], keep_empty: bool
) -> bytes | None:
    plan = chain.plan_write(entries, keep_empty=keep_empty)
    plan.feed(plan.needs["id"], [stored] * len(plan.needs))
    work = plan.take()
    assert work is not None
    [(_, made)] = work.run(source, max_workers=2)
    return None if made is None else bytes(made)


def _read(chain: PreparedChain, stored: bytes | None, array: NDArray[Any], rng: np.random.Generator) -> None:
    out = np.empty(array.shape, array.dtype.newbyteorder())
    chain.decode_into(stored, out)
    assert out.astype(array.dtype).tobytes() == array.tobytes()
    entries, shape = _boxes(array.shape, rng)
    found, wanted = np.zeros(shape, array.dtype), np.zeros(shape, array.dtype)
    chain.decode_many_into([stored], entries, found, max_workers=2)
    for row in range(len(entries)):
        inside, outside = _places(entries, row)
        wanted[outside] = array[inside]
    assert found.tobytes() == wanted.tobytes()


def _damaged(form: Form, backend: Backend) -> None:
    """Any bytes are a shard, or refused; alike by both ways, for a read, and for a write beside them."""
    chain, plain = form.prepared(backend), form.prepared(without_shards(backend))
    encoded = chain.encode(values(form.dtype, form.shape, 3), keep_empty=True)
    assert encoded is not None
    good, rng = bytes(encoded), np.random.default_rng(6)
    part, shape = entries_of((0,) * len(form.shape), form.shape)
    source = values(form.dtype, shape, 4)
    for changed in _changes(good, rng):
        outcomes = [_outcome(partial(_decoded, one, changed)) for one in (chain, plain)]
        assert outcomes[0] == outcomes[1]
        outcomes = [_outcome(partial(_write, one, changed, part, source, True)) for one in (chain, plain)]
        assert outcomes[0] == outcomes[1]


def _changes(good: bytes, rng: np.random.Generator) -> Iterator[bytes]:
    for length in range(0, len(good), max(len(good) // 16, 1)):
        yield good[:length]
    for number in range(300):
        changed = bytearray(good)
        for at in rng.integers(0, len(good), rng.integers(1, 4)):
            changed[at] = (0, 1, 0x7F, 0x80, 0xFF, int(rng.integers(0, 256)))[int(rng.integers(0, 6))]
        if number % 3 == 0:
            begin = int(rng.integers(0, len(good)))
            changed[begin : begin + 16] = b"\xff" * len(changed[begin : begin + 16])
        yield bytes(changed)


def _decoded(chain: PreparedChain, stored: bytes) -> bytes:
    return chain.decode(stored).tobytes()


def _outcome(ask: Callable[[], Any]) -> Any:
    """A result, or what is wrong: the class of the error and the codec that found it."""
    try:
        return ask()
    except CodecError as error:
        return type(error).__name__, error.codec, error.position
