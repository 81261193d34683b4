"""What reads and writes have in common on their way to the store bridge: how they are driven, with what limits."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from zarr.core.array_spec import ArraySpec

from chunkwright.entries import Entries
from chunkwright.errors import CodecError
from chunkwright.prepared import PreparedChain
from chunkwright_store import Limits, Stop
from chunkwright_store.jobs import name_chunk
from chunkwright_store.packed import Packed, packed_in
from chunkwright_store.zarr import Kind, classify, key_of
from chunkwright_zarr.config import max_workers, setting, shard_index_cache
from chunkwright_zarr.ready import Ready
from chunkwright_zarr.selections import Group

__all__ = (
    "MAX_PLANNED_ON_LOOP",
    "Keys",
    "kind_of_store",
    "limits_for",
    "packed_shards",
    "prepared_chain",
    "read_files",
    "whole_fraction",
    "whole_nbytes",
)

MAX_PLANNED_ON_LOOP = 64
"""Chunks of a call that are planned on the loop; more are planned in a thread."""

CONCURRENCY = 10
"""Requests that are under way at a time where zarr's configuration does not say."""

WHOLE_NBYTES = 1 << 20
"""Local shards of so many decoded bytes are read whole: that is faster than asking for the index first."""


class Keys(Sequence[str]):
    """Keys of chunks, made when an error needs one.

    Parameters
    ----------
    getters
        Where the chunks are.
    """

    def __init__(self, getters: Sequence[Any]) -> None:
        self._getters = getters

    def __len__(self) -> int:
        return len(self._getters)

    def __getitem__(self, number: Any) -> Any:
        return key_of(self._getters[number])


def whole_nbytes(chain: PreparedChain) -> int:
    """Guess how many bytes a whole encoded chunk has.

    Parameters
    ----------
    chain
        The prepared chain.

    Returns
    -------
    int
        As many as decoded; 1 MiB for elements of variable length.
    """
    return max(chain.spec.nbytes.nbytes or 1 << 20, 1)


def whole_fraction(chain: PreparedChain, kind: Kind) -> float:
    """Say from which share of its inner chunks on a shard is read whole.

    Parameters
    ----------
    chain
        The prepared chain.
    kind
        How the read is driven.

    Returns
    -------
    float
        0.0, any share, where reading it whole costs next to nothing; else 1.0.
    """
    cheap = kind == "memory" or (kind == "local" and whole_nbytes(chain) <= WHOLE_NBYTES)
    return 0.0 if cheap else 1.0


def prepared_chain(ready: Ready) -> PreparedChain:
    """Return the chain that is there.

    Parameters
    ----------
    ready
        Not one that zarr's own pipeline has to do the work of.

    Returns
    -------
    PreparedChain
        The chain.
    """
    assert ready.prepared is not None
    return ready.prepared


def kind_of_store(groups: Sequence[Group], readies: Iterable[Ready], *, reading: bool = False) -> Kind:
    """Say how a batch is driven.

    Parameters
    ----------
    groups
        Its rows, by spec.
    readies
        The chain of each group.
    reading
        Whether nothing is written.

    Returns
    -------
    Kind
        What the store bridge says of the byte getters; ``async`` for codecs that can only be awaited.
    """
    if any(ready.is_async for ready in readies):
        return "async"
    return classify((row[0] for group in groups for row in group.rows), reading=reading)


def read_files(
    ready: Ready,
    place: str | Packed,
    keys: Sequence[str],
    entries: Entries,
    out: NDArray[Any],
    limits: Limits,
    stop: Stop | None,
) -> NDArray[np.bool_]:
    """Let the backend read local files, or chunks in one, by itself.

    Parameters
    ----------
    ready
        The chain of the chunks, whose backend can do so.
    place
        The folder of the store, or where chunks are in one file.
    keys
        Where each chunk is.
    entries
        Selections of the chunks, numbered as the keys are.
    out
        The array that is read into.
    limits
        Of the call.
    stop
        Looked at now and then.

    Returns
    -------
    NDArray
        bool, one per key: whether the chunk was there.

    Raises
    ------
    CodecError
        With the key of the chunk.
    """
    assert ready.file_io is not None
    files, chain = ready.file_io, prepared_chain(ready)
    read = (
        partial(files.read_packed_into, chain, place)
        if isinstance(place, Packed)
        else partial(files.read_into, chain, place, keys)
    )
    try:
        return read(entries, out, max_workers=limits.max_workers, shard_index_cache=limits.shard_index_cache, stop=stop)
    except CodecError as error:
        name_chunk(error, keys)
        raise


def packed_shards(ready: Ready, getters: Sequence[Any]) -> Packed | None:
    """Find shards that lie in one file.

    Parameters
    ----------
    ready
        The chain of the chunks.
    getters
        Where they are.

    Returns
    -------
    Packed or None
        None for all others. Chunks without shards are read whole, and zip stores look at their checksums then.
    """
    chain = ready.prepared
    is_partial = chain is not None and chain.shard is not None and chain.is_partial
    return packed_in(getters) if is_partial and not ready.is_async else None


def limits_for(spec: ArraySpec) -> Limits:
    """Return the limits of a call, as the array and zarr's configuration have them.

    Parameters
    ----------
    spec
        What zarr says of the chunks.

    Returns
    -------
    Limits
        For the store bridge.
    """
    return Limits(
        max_gap=spec.config.sharding_coalesce_max_gap_bytes,
        max_size=spec.config.sharding_coalesce_max_bytes,
        concurrency=setting("async.concurrency") or CONCURRENCY,
        max_workers=max_workers(),
        shard_index_cache=shard_index_cache(),
    )
