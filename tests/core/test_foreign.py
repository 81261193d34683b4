"""Foreign codecs run at any place in a chain, and only themselves: backends keep the rest."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from typing import Any

import numpy as np
import pytest

from chunkwright import ChunkSpec, CodecChain, CorruptChunkError, Entries, PlanError, PreparedChain, ReferenceBackend
from chunkwright.codecs import Kind
from chunkwright.spec import BoundedSize, Size, UnboundedSize
from tests.support.plans import CRC, DATA, LITTLE, Objects, sharding


class Host:
    """A codec of a host: adds one to arrays, inverts bytes, or stores arrays as text."""

    def __init__(self, kind: Kind, *, is_async: bool = False, drops: int | None = None) -> None:
        self.kind: Kind = kind
        self.name = f"host.{kind}"
        self.is_async = is_async
        self.drops = drops
        self.batches: list[int] = []

    def resolve(self, spec: ChunkSpec) -> ChunkSpec:
        return spec

    def encoded_size(self, size: Size, spec: ChunkSpec) -> Size:
        return UnboundedSize() if self.kind == "array->bytes" else size

    def _batch(self, work: Any, items: Sequence[Any]) -> Any:
        self.batches.append(len(items))
        results = [None if item is None else work(item) for item in items]
        return self._later(results) if self.is_async else results

    async def _later(self, results: list[Any]) -> list[Any]:
        await asyncio.sleep(0)
        return results

    def decode_batch(self, items: Sequence[Any], spec: ChunkSpec) -> Sequence[Any] | Awaitable[Sequence[Any]]:
        work = {
            "array->array": lambda array: array - np.asarray(1, array.dtype),
            "bytes->bytes": lambda data: bytes(255 - byte for byte in data),
            "array->bytes": lambda data: np.array(bytes(data).decode().split(), spec.dtype.numpy).reshape(spec.shape),
        }
        return self._batch(work[self.kind], items)

    def encode_batch(self, items: Sequence[Any], spec: ChunkSpec) -> Sequence[Any] | Awaitable[Sequence[Any]]:
        work: dict[str, Any] = {
            "array->array": lambda array: array + np.asarray(1, array.dtype),
            "bytes->bytes": lambda data: bytes(255 - byte for byte in bytes(data)),
            "array->bytes": lambda array: " ".join(map(str, array.ravel())).encode(),
        }
        encode = work[self.kind]
        return self._batch(
            lambda item: None if self.drops is not None and (np.asarray(item) == self.drops).all() else encode(item),
            items,
        )


def chain(codecs: Sequence[Any], *hosts: Host) -> PreparedChain:
    factories = {host.name: lambda _, host=host: host for host in hosts}
    return (
        CodecChain.from_json(codecs, foreign=factories)
        .bind("uint16", 0)
        .prepare(DATA.shape, backends=[ReferenceBackend()])
    )


ARRAYS, TEXT, INVERT = "host.array->array", "host.array->bytes", "host.bytes->bytes"
LAYOUTS: dict[str, list[Any]] = {
    "first": [ARRAYS, LITTLE, CRC],
    "last": [LITTLE, CRC, INVERT],
    "between": [LITTLE, INVERT, CRC],
    "serializer": [TEXT, CRC],
    "serializer behind a transpose": [{"name": "transpose", "configuration": {"order": [1, 0]}}, TEXT],
    "everywhere": [ARRAYS, ARRAYS, TEXT, INVERT, CRC, INVERT],
    "inside a shard": [sharding((3, 4), [ARRAYS, LITTLE, INVERT])],
    "alone inside a shard": [sharding((3, 4), [TEXT])],
    "in front of a shard": [ARRAYS, sharding((3, 4))],
    "behind a shard": [sharding((3, 4)), INVERT],
    "all around nested shards": [ARRAYS, sharding((6, 8), [ARRAYS, sharding((3, 4), [TEXT, INVERT])]), INVERT],
}


def hosts(*, is_async: bool = False) -> list[Host]:
    return [Host(kind, is_async=is_async) for kind in ("array->array", "array->bytes", "bytes->bytes")]


@pytest.mark.parametrize("name", LAYOUTS)
def test_chains_with_foreign_codecs_read_and_write_parts(name: str) -> None:
    prepared = chain(LAYOUTS[name], *hosts())
    store, want = Objects([prepared.encode(DATA)]), DATA.copy()
    store.write(prepared.plan_write((slice(2, 7), slice(None, None, 3))), np.broadcast_to(np.array(9, "u2"), (5, 6)))
    want[2:7, ::3] = 9
    assert np.array_equal(prepared.decode(store.items[0]), want)
    got = store.read(prepared.plan_read((slice(5, None), [15, 0, 3])), np.zeros((7, 3), "u2"))
    assert np.array_equal(got, want[5:, [15, 0, 3]])


@pytest.mark.parametrize("name", LAYOUTS)
def test_the_same_chains_are_driven_with_codecs_that_must_be_awaited(name: str) -> None:
    prepared, plain = chain(LAYOUTS[name], *hosts(is_async=True)), chain(LAYOUTS[name], *hosts())
    assert prepared.is_async
    assert not plain.is_async
    with pytest.raises(PlanError, match="awaited"):
        prepared.encode(DATA)
    encoded = plain.encode(DATA)

    async def drive(calls: Any) -> Any:
        try:
            call = next(calls)
            while True:
                result = call.start()
                call = calls.send(await result if call.is_async else result)
        except StopIteration as stop:
            return stop.value

    work = prepared.plan_write(...).take()
    assert work is not None
    ((_, data),) = asyncio.run(drive(work.calls(DATA)))
    assert bytes(data) == bytes(encoded or b"")
    plan, out = prepared.plan_read(...), np.zeros_like(DATA)
    store = Objects([data])
    while plan.needs.size:
        plan.feed(plan.needs["id"], [store.answer(need) for need in plan.needs])
    while ready := plan.take():
        asyncio.run(drive(ready.calls(out)))
    assert np.array_equal(out, DATA)


def test_all_inner_chunks_of_a_batch_go_to_a_foreign_codec_in_one_call() -> None:
    host = Host("array->array")
    prepared = chain([sharding((3, 4), [ARRAYS, LITTLE])], host)
    encoded = prepared.encode(DATA)
    host.batches.clear()
    prepared.decode(encoded or b"")
    assert host.batches == [16]


def test_a_foreign_codec_may_say_that_a_chunk_is_not_stored() -> None:
    for codecs in ([ARRAYS, LITTLE], [sharding((3, 4), [ARRAYS, LITTLE])]):
        prepared = chain(codecs, Host("array->array", drops=5))
        assert prepared.encode(np.full_like(DATA, 5)) is None


def test_a_foreign_codec_that_decodes_to_another_shape_is_an_error() -> None:
    prepared = chain([TEXT], Host("array->bytes"))
    host = prepared.runs[0].codec  # type: ignore[union-attr]
    host.decode_batch = lambda items, spec: [np.zeros(3) for _ in items]  # type: ignore[method-assign, misc]
    with pytest.raises(CorruptChunkError) as caught:
        prepared.decode(b"1 2 3")
    assert (caught.value.codec, caught.value.position) == (TEXT, 0)


def test_explain_tells_which_codec_is_foreign_and_why() -> None:
    explanation = chain([sharding((3, 4), [ARRAYS, LITTLE, CRC])], *hosts()).explain()
    runs = {(run.level, run.codecs): run.backend for run in explanation.runs}
    assert runs == {
        ("chunk", ("sharding_indexed",)): "core",
        ("shard: inner chunk", (ARRAYS,)): "foreign",
        ("shard: inner chunk", ("bytes", "crc32c")): "reference",
        ("shard: index", ("bytes", "crc32c")): "reference",
    }
    assert explanation.runs[1].reason == "reference: a codec of the host's own"
    assert "host.array->array" in str(explanation)
    assert explanation.to_json()["versions"] == {"reference": ReferenceBackend().version}


def test_bounds_of_foreign_codecs_are_their_own() -> None:
    host = Host("bytes->bytes")
    host.encoded_size = lambda size, spec: BoundedSize(999)  # type: ignore[method-assign]
    assert chain([LITTLE, INVERT], host).encoded_size == BoundedSize(999)


def test_an_error_of_a_foreign_codec_gets_its_position_in_the_batch() -> None:
    host = Host("array->array")
    prepared = chain([sharding((3, 4), [ARRAYS, LITTLE])], host)
    encoded = prepared.encode(DATA)

    def fail(items: Sequence[Any], spec: ChunkSpec) -> Sequence[Any]:
        raise CorruptChunkError("no", codec=ARRAYS, position=17)

    host.decode_batch = fail  # type: ignore[method-assign]
    with pytest.raises(CorruptChunkError) as caught:
        prepared.decode_many_into([encoded, encoded], Entries.whole(DATA.shape, 2), np.zeros((2, *DATA.shape), "u2"))
    assert caught.value.position == 1
