"""Sources and sinks for zarr-python's stores: the only module here that imports zarr.

:func:`classify` decides how a call may be driven, by exact class. Having synchronous methods is not enough:
every ``WrapperStore`` inherits them, so a wrapper that overrides only ``get`` would be passed by, and its
readers given what it hides.

- ``memory``: the stored buffer is taken once per read; ranges are views of it.
- ``local``: files are read directly, through one descriptor per shard, and replaced directly, with zarr's own rules for
  what is missing and what may be written. Windows may refuse to replace a file for a while, which the store sits out.
  Files behind obstore and fsspec are read so too.
- ``sync``: byte getters that are no ``StorePath`` and can be read synchronously, such as those of the inner
  chunks of a shard that zarr itself decodes.
- ``async``: everything else. Later ranges of a chunk go through ``Store.get_ranges`` with the array's limits,
  except where a store further down overrides ``get`` alone: that override decides.

Only buffers in host memory are served (:func:`is_cpu`); buffers are taken and made without a copy, and what is
made has the class that the array's prototype asks for.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Buffer, Hashable, Iterable, Iterator, Sequence
from typing import Any, Literal

from zarr.abc.store import (
    ByteGetter,
    ByteRequest,
    ByteSetter,
    RangeByteRequest,
    Store,
    SuffixByteRequest,
    SyncByteGetter,
)
from zarr.core.buffer import Buffer as ZarrBuffer
from zarr.core.buffer import BufferPrototype, cpu
from zarr.storage import LocalStore, ManagedMemoryStore, MemoryStore, StorePath, WrapperStore

from chunkwright_store._groups import raise_unless_missing
from chunkwright_store._identity import weak_identity
from chunkwright_store._snapshots import snapshot_of
from chunkwright_store.files import FileSink, FileSource
from chunkwright_store.held import content
from chunkwright_store.jobs import Limits
from chunkwright_store.roots import path_below, plain_root, root_of
from chunkwright_store.sources import ByteRange, ByteSuffix, closing, cut

__all__ = (
    "Kind",
    "classify",
    "is_cpu",
    "key_of",
    "lock_keys",
    "sinks_of",
    "sources_of",
    "store_identity",
)

type Kind = Literal["memory", "local", "sync", "async"]


def is_cpu(prototype: BufferPrototype) -> bool:
    """Whether buffers of a prototype are in host memory.

    Parameters
    ----------
    prototype
        As in an array's spec.

    Returns
    -------
    bool
        True for zarr's CPU buffers and their subclasses.

    Examples
    --------
    >>> from zarr.core.buffer import default_buffer_prototype
    >>> is_cpu(default_buffer_prototype())
    True
    """
    return issubclass(prototype.buffer, cpu.Buffer) and issubclass(prototype.nd_buffer, cpu.NDBuffer)


def classify(getters: Iterable[ByteGetter], *, reading: bool = False) -> Kind:
    """Say how the chunks of one call can be driven.

    Parameters
    ----------
    getters
        Byte getters or setters of one call.
    reading
        Whether nothing is written: files that another library would read are as good as those of a local store then.

    Returns
    -------
    Kind
        The kind that all of them share, otherwise ``async``.

    Examples
    --------
    >>> store = MemoryStore()
    >>> classify([StorePath(store, "c/0"), StorePath(store, "c/1")])
    'memory'
    >>> classify([StorePath(WrapperStore(store), "c/0")])
    'async'
    """
    store: Store | None = None
    kind: Kind | None = None
    for getter in getters:
        if type(getter) is StorePath:
            if getter.store is store:
                continue
            store = getter.store
            found = _kind_of_store(store, reading)
        else:
            found = "async" if isinstance(getter, StorePath) or not isinstance(getter, SyncByteGetter) else "sync"
        if kind is not None and found != kind:
            return "async"
        kind = found
    return kind or "async"


def _kind_of_store(store: Store, reading: bool) -> Kind:
    # An instance may carry methods of its own, as tests and profilers do: they decide then.
    if not _OVERRIDES.isdisjoint(vars(store)):
        return "async"
    if type(store) in (MemoryStore, ManagedMemoryStore):
        return "memory"
    if type(store) is LocalStore or (reading and plain_root(store) is not None):
        return "local"
    return "async"


_OVERRIDES = {"get", "get_sync", "set", "set_sync", "delete", "delete_sync", "get_ranges"}


def key_of(getter: ByteGetter) -> str:
    """Return the key of a chunk, for errors.

    Parameters
    ----------
    getter
        A byte getter.

    Returns
    -------
    str
        Path within the store; for other getters their representation.

    Examples
    --------
    >>> key_of(StorePath(MemoryStore(), "a/c/0"))
    'a/c/0'
    """
    path = getattr(getter, "path", None)
    if isinstance(path, str):
        return path
    coords = getattr(getter, "chunk_coords", None)
    return repr(getter) if coords is None else f"inner chunk {coords}"


def sources_of(getters: Iterable[ByteGetter], kind: Kind, prototype: BufferPrototype, limits: Limits) -> list[Any]:
    """Make the sources of the chunks of a call.

    Parameters
    ----------
    getters
        Byte getters.
    kind
        What ``classify`` said of them.
    prototype
        Buffers to ask the store for.
    limits
        Given to stores that merge ranges themselves.

    Returns
    -------
    list of SyncByteSource or AsyncByteSource
        One per getter; asynchronous for ``async``.

    Examples
    --------
    >>> from zarr.core.buffer import default_buffer_prototype
    >>> getter = StorePath(MemoryStore({"c/0": cpu.Buffer.from_bytes(b"abc")}), "c/0")
    >>> [source] = sources_of([getter], "memory", default_buffer_prototype(), Limits())
    >>> bytes(source.whole())
    b'abc'
    """
    if kind == "memory":
        return [_MemorySource(getter, prototype) for getter in getters]
    if kind == "sync":
        return [_SyncGetterSource(getter, prototype) for getter in getters]
    if kind == "local":
        return [FileSource(path) for path in _local_paths(getters)]
    return list(_async_sources(getters, prototype, limits))


def _async_sources(getters: Iterable[ByteGetter], prototype: BufferPrototype, limits: Limits) -> Iterator[Any]:
    store: Store | None = None
    merges = False
    for getter in getters:
        if type(getter) is not StorePath:
            yield _AsyncGetterSource(getter, prototype)
            continue
        if getter.store is not store:
            store = getter.store
            merges = _merges_ranges(store)
        yield _StoreSource(getter, prototype, limits) if merges else _AsyncGetterSource(getter, prototype)


def sinks_of(setters: Iterable[ByteSetter], kind: Kind, prototype: BufferPrototype) -> list[Any]:
    """Make the sinks of the chunks of a call.

    Parameters
    ----------
    setters
        Byte setters.
    kind
        What ``classify`` said of them.
    prototype
        Whose buffers the store is given.

    Returns
    -------
    list of SyncByteSink or AsyncByteSink
        One per setter; asynchronous for ``async``.

    Raises
    ------
    ValueError
        When a local store is read-only, or a key leads out of it.

    Examples
    --------
    >>> from zarr.core.buffer import default_buffer_prototype
    >>> store = MemoryStore()
    >>> [sink] = sinks_of([StorePath(store, "c/0")], "memory", default_buffer_prototype())
    >>> sink.set(b"abc")
    >>> store.get_sync("c/0").to_bytes()
    b'abc'
    """
    if kind == "async":
        return [_AsyncSetterSink(setter, prototype) for setter in setters]
    if kind == "local" and os.name != "nt":
        return [FileSink(path) for path in _local_paths(setters, writable=True)]
    return [_SyncSetterSink(setter, prototype) for setter in setters]


def _local_paths(getters: Iterable[ByteGetter], *, writable: bool = False) -> Iterator[str]:
    store: Store | None = None
    root = ""
    for getter in getters:
        assert isinstance(getter, StorePath)
        if getter.store is not store:
            store = getter.store
            root = root_of(store, writable=writable)
        yield path_below(root, getter.path)


def _numpy(buffer: ZarrBuffer | None) -> Buffer | None:
    return None if buffer is None else buffer.as_numpy_array()


def _request(wanted: ByteRange) -> ByteRequest | None:
    if wanted is None:
        return None
    if isinstance(wanted, ByteSuffix):
        return SuffixByteRequest(wanted.length)
    return RangeByteRequest(wanted[0], wanted[1])


class _Chunk:
    """Any source or sink: a byte getter or setter, and the buffers that it deals in."""

    __slots__ = ("_at", "_prototype")

    def __init__(self, at: Any, prototype: BufferPrototype) -> None:
        self._at = at
        self._prototype = prototype


class _MemorySource(_Chunk):
    """One chunk of a memory store: its buffer is taken once, so that all ranges are of one version."""

    __slots__ = ("_content", "_taken")

    def __init__(self, at: Any, prototype: BufferPrototype) -> None:
        super().__init__(at, prototype)
        self._content: Buffer | None = None
        self._taken = False

    def whole(self) -> Buffer | None:
        if not self._taken:
            self._content = content(self._at, self._prototype)
            self._taken = True
        return self._content

    def get_ranges(self, ranges: Sequence[ByteRange], /) -> list[Buffer | None]:
        content = self.whole()
        return [None if content is None else cut(content, wanted) for wanted in ranges]


class _SyncGetterSource(_Chunk):
    """One chunk behind a byte getter with ``get_sync``."""

    __slots__ = ()

    def get_ranges(self, ranges: Sequence[ByteRange], /) -> list[Buffer | None]:
        get, prototype = self._at.get_sync, self._prototype
        return [_numpy(get(prototype=prototype, byte_range=_request(wanted))) for wanted in ranges]


class _AsyncGetterSource(_Chunk):
    """One chunk behind any byte getter; the driver asks for one range a call."""

    __slots__ = ()

    async def get_ranges(self, ranges: Sequence[ByteRange], /) -> list[Buffer | None]:
        return [_numpy(await self._at.get(self._prototype, _request(wanted))) for wanted in ranges]


class _StoreSource(_AsyncGetterSource):
    """One chunk of a store whose ``get_ranges`` can be used: later ranges of a chunk come in one call."""

    __slots__ = ("_limits",)

    def __init__(self, at: StorePath, prototype: BufferPrototype, limits: Limits) -> None:
        super().__init__(at, prototype)
        self._limits = limits

    def version(self) -> Hashable | None:
        snapshot = _snapshot(self._at.store)
        return None if snapshot is None else (snapshot, self._at.path)

    async def stream_ranges(self, ranges: Sequence[ByteRange], /) -> AsyncIterator[list[tuple[int, Buffer | None]]]:
        limits = self._limits
        unanswered = set(range(len(ranges)))
        groups = self._at.store.get_ranges(
            self._at.path,
            [_request(wanted) for wanted in ranges],
            prototype=self._prototype,
            max_gap_bytes=limits.max_gap,
            max_coalesced_bytes=limits.max_size,
        )
        try:
            async with closing(groups):
                async for group in groups:
                    unanswered.difference_update(at for at, _ in group)
                    yield [(at, _numpy(buffer)) for at, buffer in group]
        except BaseExceptionGroup as errors:
            raise_unless_missing(errors)
        # When the shard went away while it was read, what has not come is missing.
        yield [(at, None) for at in unanswered]


def _snapshot(store: Store) -> Hashable | None:
    """The snapshot that a store shows, unless an object of it decides by itself what is read."""
    while not _OVERRIDES & vars(store).keys():
        if type(store) is not WrapperStore:
            return snapshot_of(store)
        store = store._store
    return None


def _merges_ranges(store: Store) -> bool:
    """Whether ``get_ranges`` of a store leads to the same bytes as its ``get``.

    It does not where a class, or the object itself, overrides ``get`` but inherits a ``get_ranges`` that passes it
    by, as ``WrapperStore``'s does. The one of ``Store`` calls ``get``.
    """
    places = [vars(store), *map(vars, type(store).__mro__)]
    gets, merges = (
        next((depth for depth, names in enumerate(places) if name in names), len(places))
        for name in ("get", "get_ranges")
    )
    if merges == len(places) or places[merges] is vars(store):
        return True  # an object that answers to any name, such as a mock, or has its own
    owner = type(store).__mro__[merges - 1]
    if owner is WrapperStore and gets == merges:
        return _merges_ranges(store._store)  # type: ignore[attr-defined]
    return owner is Store or gets >= merges


class _SyncSetterSink(_Chunk):
    """One chunk behind a byte setter with ``set_sync`` and ``delete_sync``."""

    __slots__ = ()

    def set(self, data: Buffer, /) -> None:
        self._at.set_sync(_buffer(data, self._prototype))

    def delete(self) -> None:
        self._at.delete_sync()


class _AsyncSetterSink(_Chunk):
    """One chunk behind any byte setter."""

    __slots__ = ()

    async def set(self, data: Buffer, /) -> None:
        await self._at.set(_buffer(data, self._prototype))

    async def delete(self) -> None:
        await self._at.delete()


def _buffer(data: Buffer, prototype: BufferPrototype) -> ZarrBuffer:
    return prototype.buffer.from_bytes(data)  # type: ignore[arg-type]  # any buffer will do


def store_identity(store: Store) -> Hashable:
    """Return a value that is equal for two stores when they are known to hold the same chunks.

    Stores cannot be hashed, and compare by content. Two objects of the exact classes for directories and
    memory are the same when the real path or the dictionary is; a bare ``WrapperStore`` is what it wraps; any
    other store is itself alone, for as long as it lives.

    Parameters
    ----------
    store
        Any store.

    Returns
    -------
    Hashable
        The identity.

    Examples
    --------
    >>> store = MemoryStore()
    >>> store_identity(store) == store_identity(store.with_read_only(True)) == store_identity(WrapperStore(store))
    True
    >>> store_identity(store) == store_identity(MemoryStore())
    False
    """
    if type(store) is LocalStore:
        return ("local", os.path.realpath(store.root))
    if type(store) in (MemoryStore, ManagedMemoryStore):
        return ("memory", id(store._store_dict))  # type: ignore[attr-defined]
    if type(store) is WrapperStore:
        return store_identity(store._store)
    return weak_identity(store)


def lock_keys(setters: Iterable[ByteSetter]) -> list[Hashable]:
    """Return what the chunks of a write are locked by.

    Parameters
    ----------
    setters
        Byte setters of one call.

    Returns
    -------
    list of Hashable
        One for each that is a ``StorePath``; other setters lead to memory that nobody else can reach.

    Examples
    --------
    >>> store = ManagedMemoryStore("lock-keys")
    >>> inner = ManagedMemoryStore("lock-keys", path="a")
    >>> lock_keys([StorePath(store, "a/c/0")]) == lock_keys([StorePath(inner, "c/0")])
    True
    """
    keys: list[Hashable] = []
    store: Store | None = None
    identity: Hashable = None
    prefix = ""
    for setter in setters:
        if not isinstance(setter, StorePath):
            continue
        if setter.store is not store:
            store = setter.store
            identity, prefix = _lock_space(store)
        keys.append((identity, prefix + setter.path))
    return keys


def _lock_space(store: Store) -> tuple[Hashable, str]:
    """An identity and a prefix: stores that lie within one another agree on both together with the key."""
    while type(store) is WrapperStore:
        store = store._store
    if type(store) is LocalStore:
        return "local", os.path.realpath(store.root) + "/"
    if type(store) is ManagedMemoryStore and store.path:
        return store_identity(store), store.path + "/"
    return store_identity(store), ""
