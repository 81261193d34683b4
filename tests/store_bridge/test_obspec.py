"""Chunks of obspec-style stores."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from obstore.exceptions import GenericError
from obstore.store import LocalStore, MemoryStore

from chunkwright_store import AsyncObspecSink, AsyncObspecSource, ByteSuffix, ObspecSink, ObspecSource

RANGES = [(4, 6), ByteSuffix(1), (0, 2), None]
EXPECTED = [b"ef", b"f", b"ab", b"abcdef"]


@pytest.fixture(params=["memory", "local"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    made = MemoryStore() if request.param == "memory" else LocalStore(tmp_path)
    made.put("c/0", b"abcdef")
    return made


async def test_ranges_of_all_kinds_come_back_in_their_order(store: Any) -> None:
    assert [bytes(part) for part in ObspecSource(store, "c/0").get_ranges(RANGES)] == EXPECTED
    assert [bytes(part) for part in await AsyncObspecSource(store, "c/0").get_ranges(RANGES)] == EXPECTED
    [group] = [group async for group in AsyncObspecSource(store, "c/0").stream_ranges(RANGES)]
    assert [(at, bytes(part)) for at, part in group] == list(enumerate(EXPECTED))


@pytest.mark.parametrize("ranges", [RANGES, [(0, 2)], [None]])
async def test_a_missing_object_is_a_missing_chunk(store: Any, ranges: Any) -> None:
    assert ObspecSource(store, "c/1").get_ranges(ranges) == [None] * len(ranges)
    assert await AsyncObspecSource(store, "c/1").get_ranges(ranges) == [None] * len(ranges)


async def test_other_errors_of_the_store_pass_through() -> None:
    store = MemoryStore()
    store.put("c/0", b"abcdef")
    with pytest.raises(GenericError):
        ObspecSource(store, "c/0").get_ranges([(20, 30)])
    with pytest.raises(GenericError):
        await AsyncObspecSource(store, "c/0").get_ranges([(20, 30)])


async def test_objects_are_replaced_and_deleted_also_when_they_are_missing(store: Any) -> None:
    ObspecSink(store, "c/0").set(memoryview(b"new"))
    assert bytes(store.get("c/0").buffer()) == b"new"
    ObspecSink(store, "c/0").delete()
    ObspecSink(store, "c/0").delete()
    await AsyncObspecSink(store, "c/1").set(memoryview(b"newer"))
    assert bytes(store.get("c/1").buffer()) == b"newer"
    await AsyncObspecSink(store, "c/1").delete()
    await AsyncObspecSink(store, "c/1").delete()
    assert ObspecSource(store, "c/1").get_ranges([None]) == [None]
