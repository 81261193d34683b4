"""What a user does is done under our pipeline and under zarr-python's default one, and compared.

Each test is a function of a store; what it returns, what it stores, what it warns of and what it raises must be the
same. An exception may be of a subclass, with a better message.
"""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import attrs
import numpy as np
import pytest
import zarr
import zarr.codecs as zc
from zarr.api import asynchronous
from zarr.core.array_spec import ArraySpec
from zarr.core.buffer import cpu, default_buffer_prototype
from zarr.core.group import GroupMetadata
from zarr.errors import ChunkNotFoundError
from zarr.storage import MemoryStore

from chunkwright_zarr import CodecPipeline
from tests.support.codecs import AddOne, Invert
from tests.support.pipelines import DEFAULT, Pipeline, pipeline

__all__ = ("pipeline",)

pytestmark = pytest.mark.usefixtures("pipeline")

type Action = Callable[[MemoryStore], Any]

SHARDED: dict[str, Any] = {"shape": (10, 9), "chunks": (2, 3), "shards": (4, 6), "dtype": "i4"}
PLAIN: dict[str, Any] = {"shape": (10, 9), "chunks": (4, 3), "dtype": "i4"}
LAYOUTS: dict[str, dict[str, Any]] = {
    "plain": PLAIN,
    "sharded": SHARDED,
    "v2": {**PLAIN, "zarr_format": 2},
    "foreign": {**PLAIN, "filters": [AddOne()], "compressors": [Invert()]},
    "foreign in shards": {**SHARDED, "filters": [AddOne()], "compressors": [Invert()]},
    "around shards": {
        **PLAIN, "chunks": (4, 6), "filters": [zc.TransposeCodec(order=(1, 0))], "compressors": [zc.Crc32cCodec()],
        "serializer": zc.ShardingCodec(chunk_shape=(2, 2)),
    },
}  # fmt: skip
VALUES = np.arange(90, dtype="i4").reshape(10, 9)


@attrs.frozen
class Outcome:
    """What came of an action."""

    result: Any
    error: BaseException | None
    warned: list[tuple[str, str]]
    stored: dict[str, bytes]


def outcome(action: Action) -> Outcome:
    """Do it with a new store."""
    store, result, error = MemoryStore(), None, None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = action(store)
        except Exception as raised:
            error = raised
    warned = [(item.category.__name__, str(item.message)) for item in caught]
    stored = {key: value.to_bytes() for key, value in store._store_dict.items()}
    return Outcome(_plain(result), error, warned, stored)


def _plain(result: Any) -> Any:
    """Arrays as lists with their dtype."""
    if isinstance(result, tuple | list):
        return [_plain(item) for item in result]
    return (str(result.dtype), result.tolist()) if isinstance(result, np.ndarray | np.generic) else result


def both(action: Action) -> tuple[Outcome, Outcome]:
    """Do it under our pipeline and under zarr's default one."""
    ours = outcome(action)
    with Pipeline(DEFAULT).use():
        return ours, outcome(action)


def assert_same(action: Action) -> Any:
    """Compare the results of what works."""
    ours, theirs = both(action)
    for found in (theirs, ours):
        if found.error is not None:
            raise found.error
    assert (ours.result, ours.warned) == (theirs.result, theirs.warned)
    assert ours.stored == theirs.stored
    return ours.result


def assert_same_error(action: Action) -> BaseException:
    """Compare what fails, but for the message."""
    ours, theirs = both(action)
    assert theirs.error is not None
    assert isinstance(ours.error, type(theirs.error)), (ours.error, theirs.error)
    assert (ours.warned, ours.stored) == (theirs.warned, theirs.stored)
    return ours.error


@pytest.fixture(params=LAYOUTS)
def options(request: pytest.FixtureRequest) -> dict[str, Any]:
    return LAYOUTS[request.param]


# What is stored and what is deleted, and when.


@pytest.mark.parametrize("keep_empty", [False, True])
@pytest.mark.parametrize("fill", [0, 7])
def test_chunks_come_and_go_as_under_zarr(options: dict[str, Any], fill: int, keep_empty: bool) -> None:
    def action(store: MemoryStore) -> Any:
        config = {"write_empty_chunks": keep_empty}
        array = zarr.create_array(store, **options, fill_value=fill, config=config)
        keys = []
        selections = np.s_[0:4, 0:6], np.s_[2:6, 1], np.s_[0:4], np.s_[...], np.s_[4:]
        for selection, value in zip(selections, (1, fill, fill, None, fill), strict=True):
            array[selection] = VALUES if value is None else value
            keys.append(sorted(store._store_dict))
        array.resize((5, 9))
        keys.append(sorted(store._store_dict))
        array[...] = fill
        array.append(np.full((4, 9), 3, "i4"))
        keys.append(sorted(store._store_dict))
        array.resize((12, 11))
        return keys, array[...]

    assert_same(action)


# Status, order and missing chunks.


@pytest.mark.parametrize("kind", ["plain", "sharded", "foreign", "around shards"])
def test_the_status_of_each_chunk_comes_in_the_order_of_the_batch(kind: str) -> None:
    cells = [(1, 0), (0, 0), (2, 0), (1, 1)]

    def action(store: MemoryStore) -> Any:
        array = zarr.create_array(store, **LAYOUTS[kind], fill_value=5).async_array
        prototype, key = default_buffer_prototype(), array.metadata.encode_chunk_key
        shape = LAYOUTS[kind].get("shards", LAYOUTS[kind]["chunks"])
        zarr.Array(array)[4:8] = VALUES[4:8]
        spec = ArraySpec(shape, array.metadata.dtype, array.metadata.fill_value, array.config, prototype)
        first = (slice(0, 1), slice(0, 1))
        out = prototype.nd_buffer.create(shape=(4, 1), dtype=np.dtype("i4"), order="C", fill_value=0)
        batch = [
            (array.store_path / key(cell), spec, first, (slice(row, row + 1), slice(0, 1)), False)
            for row, cell in enumerate(cells)
        ]
        statuses = asyncio.run(array.codec_pipeline.read(batch, out))
        return [status["status"] for status in statuses], out.as_numpy_array()

    assert assert_same(action)[0] == ["present", "missing", "missing", "present"]


def test_missing_chunks_are_an_error_that_names_the_same_chunks(options: dict[str, Any]) -> None:
    def action(store: MemoryStore) -> Any:
        array = zarr.create_array(store, **options, config={"read_missing_chunks": False})
        array[0:4] = 1
        array[0:4]
        array[...]

    assert isinstance(assert_same_error(action), ChunkNotFoundError)


# The same misuse, the same exception.

MISUSES: dict[str, Callable[[Any], Any]] = {
    "too many indices": lambda array: array[0, 0, 0],
    "out of bounds": lambda array: array[10, 0],
    "a list out of bounds": lambda array: array.oindex[[0, 10]],
    "a mask of another shape": lambda array: array[np.ones((3, 3), bool)],
    "a float as index": lambda array: array[1.5],
    "text as index": lambda array: array["x"],
    "a negative step": lambda array: array[::-1],
    "values that do not broadcast": lambda array: array.__setitem__(..., np.zeros(10, "i4")),
    "values of too many axes": lambda array: array.__setitem__(np.s_[0:3], np.zeros((2, 3, 9), "i4")),
    "text for numbers": lambda array: array.__setitem__(0, "abc"),
    "None for numbers": lambda array: array.__setitem__(0, None),
    "an object for numbers": lambda array: array.__setitem__((0, 0), object()),
    "a shape of the wrong length": lambda array: array.resize((3,)),
    "an append of another shape": lambda array: array.append(np.zeros((2, 5), "i4")),
    "vindex of unequal lists": lambda array: array.vindex[[0, 1], [0, 1, 2]],
    "vindex set with another shape": lambda array: array.vindex.__setitem__(([0, 2], [1, 3]), np.zeros(3)),
    "a block out of bounds": lambda array: array.blocks[7],
    "out of another shape": lambda array: array.get_basic_selection(
        0, out=cpu.NDBuffer.from_numpy_array(np.zeros(5, "i4"))
    ),
}


#: zarr lets these pass; so do we, with the same result.
TOLERATED: dict[str, Callable[[Any], Any]] = {
    "values of another shape": lambda array: array.__setitem__(np.s_[0:3], np.zeros((4, 9), "i4")),
    "oindex set with another shape": lambda array: array.oindex.__setitem__(([0, 2], [1, 3]), np.zeros((3, 2))),
    "out of another dtype": lambda array: array.get_basic_selection(
        0, out=cpu.NDBuffer.from_numpy_array(np.zeros(9, "U1"))
    ),
}


@pytest.mark.parametrize("misuse", MISUSES)
@pytest.mark.parametrize("kind", ["plain", "sharded", "v2"])
def test_misuse_raises_what_zarr_raises(kind: str, misuse: str) -> None:
    def action(store: MemoryStore) -> Any:
        array = zarr.create_array(store, **LAYOUTS[kind])
        array[...] = VALUES
        MISUSES[misuse](array)

    assert_same_error(action)


@pytest.mark.parametrize("misuse", TOLERATED)
@pytest.mark.parametrize("kind", ["plain", "sharded", "v2"])
def test_misuse_that_zarr_lets_pass_does_the_same(kind: str, misuse: str) -> None:
    def action(store: MemoryStore) -> Any:
        array = zarr.create_array(store, **LAYOUTS[kind])
        array[...] = VALUES
        return TOLERATED[misuse](array), array[...]

    assert_same(action)


def test_a_read_only_array_refuses_writes_as_under_zarr(options: dict[str, Any]) -> None:
    def action(store: MemoryStore) -> Any:
        zarr.create_array(store, **options)
        zarr.open_array(store, mode="r")[0] = 1

    assert_same_error(action)


@pytest.mark.parametrize("damage", ["cut", "empty", "longer"])
@pytest.mark.parametrize("kind", ["plain", "sharded", "v2", "around shards"])
def test_damage_raises_at_least_what_zarr_raises(kind: str, damage: str) -> None:
    def action(store: MemoryStore) -> Any:
        array = zarr.create_array(store, **LAYOUTS[kind])
        array[...] = VALUES
        stored = store._store_dict
        key = next(key for key in sorted(stored) if key[0] in "c0")
        data = stored[key].to_bytes()
        stored[key] = cpu.Buffer.from_bytes({"cut": data[:-3], "empty": b"", "longer": data + b"x"}[damage])
        return array[...]

    ours, theirs = both(action)
    if theirs.error is None:
        assert (ours.error, ours.result) == (None, theirs.result)
    else:
        assert ours.error is not None
        assert isinstance(ours.error, ValueError | RuntimeError)


# Warnings.


@pytest.mark.filterwarnings("always")
def test_the_same_is_warned_of(options: dict[str, Any]) -> None:
    def action(store: MemoryStore) -> Any:
        array = zarr.create_array(store, **options)
        array[1:5] = VALUES[1:5]
        zarr.open_array(store)[2:3] = 1
        return zarr.open_array(store)[...]

    assert_same(action)


# Configuration that changes, groups, consolidated metadata, hierarchies.


def test_settings_of_zarrs_that_change_after_opening_are_heeded_as_under_zarr(options: dict[str, Any]) -> None:
    def action(store: MemoryStore) -> Any:
        array = zarr.create_array(store, **options, fill_value=3)
        with zarr.config.set({"array.write_empty_chunks": True, "array.order": "F", "async.concurrency": 1}):
            array[0:5] = 3
            before = sorted(store._store_dict)
            again = zarr.open_array(store)
            again[0:5] = 3
            return before, sorted(store._store_dict), again[...].flags.f_contiguous

    assert_same(action)


def test_an_array_keeps_its_backend_when_the_setting_changes(pipeline: Pipeline) -> None:
    array = zarr.create_array({}, **PLAIN)
    for other in ("numcodecs", "rust"):
        with zarr.config.set({"codec_pipeline.backend": other}):
            array[0:3] = 1
            assert array.async_array.codec_pipeline.settings.backend == pipeline.backend


def test_groups_consolidated_metadata_and_hierarchies_hold_the_same(options: dict[str, Any]) -> None:
    def action(store: MemoryStore) -> Any:
        zarr_format = options.get("zarr_format", 3)
        nodes = {key: value for key, value in options.items() if key != "zarr_format"}
        root = zarr.create_group(store, zarr_format=zarr_format)
        first = root.require_group("a").create_array("x", **nodes)
        first[...] = VALUES
        made = dict(zarr.create_hierarchy(
            store=store, nodes={"b": GroupMetadata(zarr_format=zarr_format), "b/y": first.metadata}, overwrite=False
        ))  # fmt: skip
        made["b/y"][2:7] = VALUES[2:7]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            zarr.consolidate_metadata(store)
        opened = zarr.open_consolidated(store)
        opened["a/x"][0] = -1
        members = sorted(name for name, _ in opened.members(max_depth=None))
        tree = zarr.open_group(store, mode="r")
        return members, tree["a/x"][...], tree["b"]["y"][1:9, 2:5], opened["b/y"][...]

    assert_same(action)


def test_arrays_of_groups_use_our_pipeline() -> None:
    store = MemoryStore()
    array = zarr.create_group(store).create_array("x", **SHARDED)
    zarr.create_hierarchy(store=store, nodes={"y": array.metadata}, overwrite=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        zarr.consolidate_metadata(store)
    group = zarr.open_consolidated(store)
    nodes = [array, group["x"], zarr.open(store, path="x"), *(node for _, node in group.members())]
    assert all(isinstance(node.async_array.codec_pipeline, CodecPipeline) for node in nodes)  # type: ignore[union-attr]


# The async API, loops, threads.


def test_the_async_api_gives_the_same(options: dict[str, Any]) -> None:
    async def steps(store: MemoryStore) -> Any:
        array = await asynchronous.create_array(store, **options)
        await array.setitem(np.s_[...], VALUES)
        await asyncio.gather(*(array.setitem(np.s_[row], -row) for row in range(0, 10, 4)))
        opened = await asynchronous.open_array(store=store)
        parts = await asyncio.gather(opened.getitem(np.s_[2:9, 1::3]), opened.getitem((4, 4)), opened.getitem(...))
        listed = [await opened.oindex.getitem(([1, 7], [0, 8])), await opened.vindex.getitem(([1, 7], [0, 8]))]
        await opened.resize((6, 9))
        return *parts, *listed, await opened.getitem(...), await opened.nchunks_initialized()

    assert_same(lambda store: asyncio.run(steps(store)))


def test_threads_that_read_and_write_their_own_chunks_agree(options: dict[str, Any]) -> None:
    def action(store: MemoryStore) -> Any:
        array = zarr.create_array(store, **options)
        rows = options.get("shards", options["chunks"])[0]

        def work(first: int) -> Any:
            array[first : first + rows] = VALUES[first : first + rows]
            return array[first : first + rows]

        with ThreadPoolExecutor(4) as threads:
            return list(threads.map(work, range(0, 10, rows)))

    assert_same(action)


def test_a_shard_that_was_replaced_is_read_anew() -> None:
    def action(store: MemoryStore) -> Any:
        array, other = zarr.create_array(store, **SHARDED), zarr.create_array({}, **SHARDED)
        array[...], other[...] = VALUES, VALUES[::-1] * 1000
        before = array[0:2, 0:3]
        store._store_dict["c/0/0"] = other.store._store_dict["c/0/0"]
        after = array[0:2, 0:3]
        del store._store_dict["c/0/0"]
        return before, after, array[0:2, 0:3]

    assert_same(action)


def test_save_load_and_copy_give_the_same() -> None:
    def action(store: MemoryStore) -> Any:
        zarr.save_array(store, VALUES)
        again = zarr.load(store)
        like = zarr.full_like(zarr.open_array(store), fill_value=4, store=MemoryStore())
        return again, like[...], zarr.array(VALUES, chunks=(3, 3))[...], zarr.ones((3, 3), chunks=(2, 2))[...]

    assert_same(action)
