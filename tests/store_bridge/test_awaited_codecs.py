"""Foreign codecs that can only be awaited."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from typing import Any

import attrs
import numpy as np
import pytest

from chunkwright import CodecChain, ReferenceBackend
from chunkwright_store import Limits, read_async, write_async
from tests.store_bridge.remotes import Remote, read_job, write_job
from tests.store_bridge.volumes import BOXES, BYTES, volume

PATIENCE = 30


class Awaited:
    """A foreign codec that can only be awaited, and notes on which thread that happens."""

    name = "tests.awaited"
    kind = "bytes->bytes"
    is_async = True

    def __init__(self) -> None:
        self.threads: set[int] = set()
        self.fails = False

    def resolve(self, spec: Any) -> Any:
        return spec

    def encoded_size(self, size: Any, spec: Any) -> Any:
        return size

    def decode_batch(self, items: Sequence[Any], spec: Any) -> Any:
        return self._inverted(items)

    def encode_batch(self, items: Sequence[Any], spec: Any) -> Any:
        return self._inverted(items)

    async def _inverted(self, items: Sequence[Any]) -> list[Any]:
        self.threads.add(threading.get_ident())
        await asyncio.sleep(0)
        if self.fails:
            raise ZeroDivisionError
        return [None if item is None else bytes(255 - byte for byte in memoryview(item).cast("B")) for item in items]


def with_awaited_codec(codec: Awaited, *, sharded: bool) -> Any:
    inner: list[Any] = [BYTES, {"name": codec.name}]
    metadata = inner
    if sharded:
        configuration = {"chunk_shape": [4, 4], "codecs": inner, "index_codecs": [BYTES, "crc32c"]}
        metadata = [{"name": "sharding_indexed", "configuration": configuration}]
    chain = CodecChain.from_json(metadata, foreign={codec.name: lambda configuration: codec})
    return chain.bind("uint16", 0).prepare((12, 12), backends=[ReferenceBackend()])


@pytest.mark.parametrize("sharded", [False, True])
async def test_codecs_that_must_be_awaited_are_awaited_on_the_loop(sharded: bool) -> None:
    codec, remote = Awaited(), Remote({})
    made = attrs.evolve(volume("chunks"), prepared=with_awaited_codec(codec, sharded=sharded))
    await write_async([write_job(made, BOXES["everything"], remote)], made.data, is_async=True)
    out = np.zeros((30, 26), "u2")
    await read_async([read_job(made, BOXES["everything"], remote)], out, is_async=True)
    np.testing.assert_array_equal(out, made.data)
    assert codec.threads == {threading.get_ident()}


class Immediate(Awaited):
    """A foreign codec that needs no loop, in a chain with one that does."""

    name = "tests.immediate"
    is_async = False

    def _inverted(self, items: Sequence[Any]) -> Any:
        self.threads.add(threading.get_ident())
        if self.fails:
            raise ZeroDivisionError
        return [None if item is None else bytes(255 - byte for byte in memoryview(item).cast("B")) for item in items]


async def test_other_foreign_codecs_of_the_chain_stay_off_the_loop() -> None:
    awaited, immediate, remote = Awaited(), Immediate(), Remote({})
    codecs = {codec.name: codec for codec in (awaited, immediate)}
    foreign = {name: lambda configuration, codec=codec: codec for name, codec in codecs.items()}
    chain = CodecChain.from_json([BYTES, {"name": immediate.name}, {"name": awaited.name}], foreign=foreign)
    prepared = chain.bind("uint16", 0).prepare((12, 12), backends=[ReferenceBackend()])
    made = attrs.evolve(volume("chunks"), prepared=prepared)
    await write_async([write_job(made, BOXES["everything"], remote)], made.data, is_async=True)
    out = np.zeros((30, 26), "u2")
    await read_async([read_job(made, BOXES["everything"], remote)], out, is_async=True)
    np.testing.assert_array_equal(out, made.data)
    assert awaited.threads == {threading.get_ident()}
    assert threading.get_ident() not in immediate.threads
    immediate.fails = True
    with pytest.raises(ZeroDivisionError):
        await read_async([read_job(made, BOXES["everything"], remote)], out, is_async=True)


async def test_many_reads_through_a_codec_that_must_be_awaited_end_with_one_worker() -> None:
    codec, remote = Awaited(), Remote({})
    made = attrs.evolve(volume("chunks"), prepared=with_awaited_codec(codec, sharded=True))
    await write_async([write_job(made, BOXES["everything"], remote)], made.data, is_async=True)
    outs = [np.zeros((30, 26), "u2") for _ in range(64)]
    limits = Limits(max_workers=1)
    reads = [read_async([read_job(made, BOXES["everything"], remote)], out, limits, is_async=True) for out in outs]
    await asyncio.wait_for(asyncio.gather(*reads), PATIENCE)
    for out in outs:
        np.testing.assert_array_equal(out, made.data)


async def test_an_error_of_an_awaited_codec_passes_through() -> None:
    codec, remote = Awaited(), Remote({})
    made = attrs.evolve(volume("chunks"), prepared=with_awaited_codec(codec, sharded=False))
    await write_async([write_job(made, BOXES["everything"], remote)], made.data, is_async=True)
    codec.fails = True
    with pytest.raises(ZeroDivisionError):
        await read_async([read_job(made, BOXES["everything"], remote)], np.zeros((30, 26), "u2"), is_async=True)
