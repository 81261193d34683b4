"""Many crops in one call: what zarr's own slicing gives, with every chunk read once, from any store and process."""

from __future__ import annotations

import asyncio
import tracemalloc
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
import zarr
import zarr.codecs as zc
from hypothesis import given
from numpy.typing import NDArray
from zarr.core.buffer import BufferPrototype, core
from zarr.core.chunk_grids import ChunkGrid
from zarr.errors import ChunkNotFoundError
from zarr.storage import MemoryStore, WrapperStore
from zarr.testing.buffer import NDBufferUsingTestNDArrayLike, TestBuffer

from chunkwright import CorruptChunkError, SelectionError, UnsupportedCodecError
from chunkwright_zarr import boxes as boxes_module
from chunkwright_zarr import crops as crops_module
from chunkwright_zarr import known, read_boxes, read_boxes_async, use
from chunkwright_zarr.crops import Boxes, cut, regions, touched
from chunkwright_zarr.edges import edges_of
from tests.differential.dtypes import DTYPES, DType
from tests.differential.effort import effort
from tests.differential.layouts import Layout, layouts
from tests.support.arrays import assert_same, chunk_files, flip, stored
from tests.support.codecs import Invert, RawPartial
from tests.support.pipelines import DEFAULT, Pipeline, pipeline
from tests.support.processes import run_python
from tests.support.stores import Counting
from tests.zarr_python.ours import Paths

__all__ = ("pipeline",)

DATA = np.arange(40 * 30, dtype="u2").reshape(40, 30)
SHARDED: dict[str, Any] = {"chunks": (5, 5), "shards": (20, 10)}


class Wrapped(WrapperStore[MemoryStore]):
    """A store that is driven asynchronously, because it is no longer exactly a memory store."""


@pytest.fixture
def uneven_chunks() -> Iterator[None]:
    with zarr.config.set({"array.rectilinear_chunks": True}):
        yield


@pytest.fixture(params=["staged", "direct", "piecemeal"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """All boxes go by way of stages, or none, or regions are as small as can be."""
    monkeypatch.setattr(crops_module, "MIN_OVERLAP", np.inf if request.param == "direct" else 0)
    if request.param == "piecemeal":
        monkeypatch.setattr(boxes_module, "STAGE_NBYTES", (64, 64))
        monkeypatch.setattr(crops_module, "MAX_PIECES", 2)
    return str(request.param)


def sliced(array: Any, starts: Any, shape: tuple[int, ...]) -> list[Any]:
    """What zarr gives, or NumPy, box by box."""
    return [
        array[tuple(slice(first, first + length) for first, length in zip(start, shape, strict=True))]
        for start in starts
    ]


def assert_boxes(found: NDArray[Any], array: Any, starts: Any, shape: tuple[int, ...]) -> None:
    assert found.shape == (len(starts), *shape)
    for box, expected in zip(found, sliced(array, starts, shape), strict=True):
        assert_same(box, expected)


def written(store: Any, **options: Any) -> Any:
    array = zarr.create_array(store, shape=DATA.shape, dtype=DATA.dtype, **options)
    array[...] = DATA
    return array


def random_starts(count: int, shape: tuple[int, ...], extents: tuple[int, ...] = DATA.shape) -> NDArray[np.int64]:
    return np.random.default_rng(0).integers(0, np.subtract(extents, shape) + 1, (count, len(shape)))


def _box(data: st.DataObject, extents: tuple[int, ...]) -> tuple[list[list[int]], tuple[int, ...]]:
    shape = tuple(data.draw(st.tuples(*(st.integers(min(1, extent), extent) for extent in extents)), label="shape"))
    one = st.tuples(*(st.integers(0, extent - length) for extent, length in zip(extents, shape, strict=True)))
    return [list(start) for start in data.draw(st.lists(one, max_size=6), label="starts")], shape


def _target(data: st.DataObject, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any] | None:
    kinds = ["none", "contiguous", "strided", "Fortran"]
    if dtype.kind in "iufc":
        kinds += ["swapped", "wider"]
    kind = data.draw(st.sampled_from(kinds), label="out")
    if kind == "none":
        return None
    if kind == "strided":
        return np.empty([2 * extent for extent in shape], dtype)[tuple(slice(None, None, 2) for _ in shape)]
    if kind == "Fortran":
        return np.empty(shape, dtype, order="F")
    if kind == "swapped":
        return np.empty(shape, dtype.newbyteorder("S"))
    if kind == "wider":
        return np.empty(shape, "c16")
    return np.empty(shape, dtype)


def _created(data: st.DataObject, layout: Layout) -> Any:
    """An array of which some boxes were written, under the pipeline in use."""
    random = np.random.default_rng(data.draw(st.integers(0, 2**32), label="seed"))
    store: Any = MemoryStore()
    if data.draw(st.booleans(), label="wrapped"):
        store = Wrapped(store)
    array = layout.create(store, layout.dtype.scalar(random))
    for _ in range(data.draw(st.integers(0, 2), label="writes")):
        ends = [sorted(random.integers(0, extent + 1, 2).tolist()) for extent in layout.shape]
        box = tuple(slice(*pair) for pair in ends)
        values = layout.dtype.values(random, tuple(stop - start for start, stop in ends))
        if values.size:
            array[box] = values
    return array


@pytest.mark.usefixtures("uneven_chunks", "way")
@pytest.mark.filterwarnings("ignore:Combining a `sharding_indexed` codec:UserWarning")
@pytest.mark.filterwarnings("ignore::zarr.errors.UnstableSpecificationWarning")
@pytest.mark.filterwarnings("ignore:Casting complex values:numpy.exceptions.ComplexWarning")
@given(data=st.data())
@effort(60)
def test_boxes_of_random_layouts_are_what_zarr_slices(pipeline: Pipeline, data: st.DataObject) -> None:
    dtype: DType = data.draw(st.sampled_from(DTYPES))
    array = _created(data, data.draw(layouts(dtype)))
    starts, shape = _box(data, array.shape)
    out = _target(data, (len(starts), *shape), dtype.numpy)
    found = read_boxes(array, starts, shape, out)
    assert out is None or found is out
    for box, expected in zip(found, sliced(array, starts, shape), strict=True):
        assert_same(box, expected if out is None else np.asarray(expected, out.dtype))
    assert_boxes(asyncio.run(read_boxes_async(array.async_array, starts, shape)), array, starts, shape)


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("wrap", [MemoryStore, lambda: Wrapped(MemoryStore())], ids=["memory", "asynchronous"])
@pytest.mark.parametrize("options", [{"chunks": (7, 7)}, SHARDED], ids=["chunks", "shards"])
def test_overlapping_and_repeated_boxes_are_read(pipeline: Pipeline, wrap: Any, options: Any) -> None:
    array = written(wrap(), **options)
    starts = random_starts(100, (9, 8))
    assert_boxes(read_boxes(array, starts, (9, 8)), DATA, starts, (9, 8))


@pytest.mark.usefixtures("way")
def test_each_chunk_is_fetched_once_and_others_never(pipeline: Pipeline) -> None:
    store = Counting(MemoryStore())
    array = written(store, chunks=(10, 10), compressors=None)
    store.reset()
    read_boxes(array, random_starts(50, (7, 6), (20, 30)), (7, 6))
    assert store.requests == 6
    assert store.nbytes == 6 * 200


def test_of_a_shard_the_index_and_the_touched_inner_chunks_are_fetched_once(pipeline: Pipeline, way: str) -> None:
    store = Counting(MemoryStore())
    options = {"sharding_coalesce_max_gap_bytes": 0}
    array = written(store, compressors=None, config=options, **SHARDED)
    store.reset()
    starts = [[0, 0], [1, 2], [1, 1]]
    assert_boxes(read_boxes(array, starts, (9, 3)), DATA, starts, (9, 3))
    assert store.nbytes == 8 * 16 + 4 + 2 * 50


def test_all_inner_chunks_of_a_shard_are_fetched_as_one_object(pipeline: Pipeline, way: str) -> None:
    store = Counting(MemoryStore())
    array = written(store, **SHARDED)
    store.reset()
    read_boxes(array, random_starts(300, (12, 8), (20, 10)), (12, 8))
    assert store.requests == 1


def test_boxes_that_overlap_a_lot_go_by_way_of_a_stage_and_others_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    staged: list[tuple[int, ...]] = []
    copy_boxes = boxes_module.copy_boxes

    def spy(boxes: Boxes, stage: NDArray[Any], *rest: Any) -> None:
        staged.append(stage.shape)
        copy_boxes(boxes, stage, *rest)

    monkeypatch.setattr(boxes_module, "copy_boxes", spy)
    array = written({}, chunks=(5, 5))
    read_boxes(array, [[0, 0], [0, 9], [20, 20]], (9, 9))
    assert staged == []
    starts = [[2, 3], [4, 4], [3, 5], [2, 4]]
    assert_boxes(read_boxes(array, starts, (9, 9)), DATA, starts, (9, 9))
    assert staged == [(11, 11)]


def test_arrays_without_axes_are_read(pipeline: Pipeline, way: str) -> None:
    array = zarr.create_array({}, shape=(), dtype="f4")
    array[...] = 2.5
    assert read_boxes(array, np.empty((3, 0), int), ()).tolist() == [2.5, 2.5, 2.5]
    assert read_boxes(array, [(), ()], ()).tolist() == [2.5, 2.5]


@pytest.mark.usefixtures("uneven_chunks", "way")
def test_chunks_of_many_shapes_are_read(pipeline: Pipeline) -> None:
    array = written(Counting(MemoryStore()), chunks=[[3, 1, 16, 20], [11, 2, 2, 15]])
    starts = random_starts(30, (8, 9))
    assert_boxes(read_boxes(array, starts, (8, 9)), DATA, starts, (8, 9))


@pytest.mark.parametrize("starts", [[], np.empty((0, 2)), np.empty((0, 2), "u1")], ids=["list", "float", "uint8"])
def test_no_boxes_are_an_empty_array(starts: Any) -> None:
    found = read_boxes(written({}), starts, (3, 4))
    assert found.shape == (0, 3, 4)
    assert found.dtype == DATA.dtype


def test_boxes_of_no_elements_are_read_without_a_look_at_the_store() -> None:
    store = Counting(MemoryStore())
    array = written(store)
    store.reset()
    assert read_boxes(array, [[1, 30], [40, 2]], (0, 0)).shape == (2, 0, 0)
    assert store.requests == 0


@pytest.mark.parametrize(
    ("start", "shape"),
    [((-1, 0), (3, 4)), ((38, 0), (3, 4)), ((0, 27), (3, 4)), ((0, 0), (41, 1)), ((2**63, 0), (3, 4))],
    ids=["negative", "beyond the first axis", "beyond the last axis", "larger than the array", "beyond int64"],
)
def test_a_box_outside_the_array_is_named(start: tuple[int, int], shape: tuple[int, int]) -> None:
    array, starts = written({}), np.array([(0, 0), start], "u8" if max(start) > 2**62 else "i8")
    with pytest.raises(IndexError, match=r"box \d does not lie within the array") as caught:
        read_boxes(array, starts, shape)
    assert isinstance(caught.value, SelectionError)
    assert caught.value.position == (0 if shape[0] > 40 else 1)
    with pytest.raises(SelectionError):
        asyncio.run(read_boxes_async(array, starts, shape))


@pytest.mark.parametrize(
    ("starts", "shape", "said"),
    [
        ([0, 0], (3, 4), "another shape"),
        ([[0, 0, 0]], (3, 4), "another shape"),
        ([[0.0, 0.0]], (3, 4), "integers"),
        ([[True, False]], (3, 4), "integers"),
        ([[0, 0]], (3,), "another number of axes"),
        ([[0, 0]], (3, -4), "negative"),
    ],
)
def test_starts_and_shapes_of_another_form_are_refused(starts: Any, shape: Any, said: str) -> None:
    with pytest.raises(SelectionError, match=said):
        read_boxes(written({}), starts, shape)


def test_an_array_to_read_into_must_fit() -> None:
    array = written({})
    with pytest.raises(ValueError, match="shape"):
        read_boxes(array, [[0, 0]], (3, 4), np.empty((3, 4), "u2"))
    with pytest.raises(TypeError, match="NumPy array, not list"):
        read_boxes(array, [[0, 0]], (3, 4), [0])  # type: ignore[arg-type]
    frozen = np.empty((1, 3, 4), "u2")
    frozen.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        read_boxes(array, [[0, 0]], (3, 4), frozen)


@pytest.mark.parametrize("overlap", [1, 9])
def test_an_array_that_cannot_take_the_values_is_an_error_of_numpys(overlap: int) -> None:
    array = zarr.create_array({}, shape=(4,), chunks=(2,), dtype="U3", fill_value="x")
    with pytest.raises(ValueError, match="invalid literal"):
        read_boxes(array, [[1]] * overlap, (2,), np.empty((overlap, 2), int))


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("wrap", [MemoryStore, lambda: Wrapped(MemoryStore())], ids=["memory", "asynchronous"])
def test_missing_chunks_are_the_fill_value_unless_the_array_forbids_it(pipeline: Pipeline, wrap: Any) -> None:
    store = wrap()
    array = zarr.create_array(store, shape=(12, 12), chunks=(3, 3), shards=(6, 6), dtype="i2", fill_value=-3)
    array[:6, :6] = 1
    expected = array[...]
    starts = [[0, 0], [1, 2], [4, 4], [7, 7]]
    assert_boxes(read_boxes(array, starts, (5, 5)), expected, starts, (5, 5))
    strict = zarr.open_array(store, config={"read_missing_chunks": False})
    assert_boxes(read_boxes(strict, starts[:2], (4, 4)), expected, starts[:2], (4, 4))
    with pytest.raises(ChunkNotFoundError, match=r"3 missing chunks.*'c/0/1', 'c/1/0', 'c/1/1'"):
        read_boxes(strict, starts, (5, 5))
    with pytest.raises(ChunkNotFoundError, match="3 missing chunks"):
        asyncio.run(read_boxes_async(strict, starts, (5, 5)))


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_arrays_of_another_pipeline_are_read_by_ours(zarr_format: Any) -> None:
    with Pipeline(DEFAULT).use():
        array = written({}, chunks=(7, 7), zarr_format=zarr_format, order="F" if zarr_format == 2 else None)
    paths, starts = Paths(), random_starts(9, (9, 8))
    assert_boxes(read_boxes(array, starts, (9, 8)), DATA, starts, (9, 8))
    assert paths()["read.sync"] == 1
    assert not any("default" in path for path in paths())


@pytest.mark.usefixtures("way")
def test_codecs_that_can_only_be_awaited_are_awaited(pipeline: Pipeline) -> None:
    serializer = zc.ShardingCodec(chunk_shape=(5, 5), codecs=[zc.BytesCodec(), Invert()])
    array = written({}, chunks=(20, 10), serializer=serializer, compressors=None)
    paths, starts = Paths(), random_starts(9, (9, 8))
    found = read_boxes(array, starts, (9, 8))
    assert "read.async" in paths()
    assert_boxes(found, DATA, starts, (9, 8))


def test_what_our_pipeline_cannot_do_is_read_by_zarr_and_counted(pipeline: Pipeline) -> None:
    array = written({}, chunks=(20, 10), serializer=RawPartial(), compressors=None)
    paths, starts = Paths(), random_starts(9, (9, 8))
    assert_boxes(read_boxes(array, starts, (9, 8)), DATA, starts, (9, 8))
    [reason] = paths()
    assert reason == "read.default: tests.raw_partial reads and writes parts of chunks itself"
    assert_boxes(asyncio.run(read_boxes_async(array, starts, (9, 8))), DATA, starts, (9, 8))


def test_strict_mode_refuses_what_our_pipeline_cannot_do(pipeline: Pipeline) -> None:
    with Pipeline(DEFAULT).use():
        array = written({}, chunks=(20, 10), serializer=RawPartial(), compressors=None)
    with zarr.config.set({"codec_pipeline.strict": True}), pytest.raises(UnsupportedCodecError, match="strict"):
        read_boxes(array, [[0, 0]], (3, 4))


@pytest.mark.parametrize(
    "prototype",
    [BufferPrototype(core.Buffer, core.NDBuffer), BufferPrototype(TestBuffer, NDBufferUsingTestNDArrayLike)],
    ids=["outside main memory", "subclasses"],
)
def test_the_result_is_numpys_whatever_buffers_zarr_uses(
    prototype: BufferPrototype, monkeypatch: pytest.MonkeyPatch, pipeline: Pipeline
) -> None:
    array = written({}, chunks=(20, 10))
    monkeypatch.setattr(known, "default_buffer_prototype", lambda: prototype)
    found = read_boxes(array, [[1, 2]], (3, 4))
    assert type(found) is np.ndarray
    assert_boxes(found, DATA, [[1, 2]], (3, 4))


@pytest.mark.parametrize("overlap", [1, 9])
def test_a_damaged_chunk_is_named(pipeline: Pipeline, tmp_path: Path, overlap: int) -> None:
    array = stored(tmp_path / "a", DATA, compressors=[zc.GzipCodec(), zc.Crc32cCodec()], **SHARDED)
    flip(chunk_files(tmp_path / "a")[3], 7)
    with pytest.raises(CorruptChunkError, match=r"crc32c.*'c/1/0'"):
        read_boxes(array, [[21, 2]] * overlap, (17, 6))
    assert_boxes(read_boxes(array, [[0, 0]] * overlap, (17, 6)), DATA, [[0, 0]] * overlap, (17, 6))


@pytest.mark.usefixtures("way")
def test_local_stores_are_read_with_several_threads_and_calls_at_once(pipeline: Pipeline, tmp_path: Path) -> None:
    array = stored(tmp_path / "a", DATA, **SHARDED)
    starts = random_starts(64, (9, 8))

    async def several() -> list[NDArray[Any]]:
        return await asyncio.gather(*(read_boxes_async(array, part, (9, 8)) for part in np.split(starts, 8)))

    with zarr.config.set({"threading.max_workers": 3}):
        assert_boxes(np.concatenate(asyncio.run(several())), DATA, starts, (9, 8))


@pytest.mark.parametrize("overlap", [1, 3], ids=["direct", "staged"])
def test_few_encoded_shards_and_one_small_stage_are_in_memory_at_a_time(
    pipeline: Pipeline, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, overlap: int
) -> None:
    monkeypatch.setattr(boxes_module, "STAGE_NBYTES", (4 << 20, 4 << 20))
    data = np.random.default_rng(0).integers(0, 255, (32 << 20,), "u1")
    array = stored(tmp_path / "a", data, chunks=(1 << 16,), shards=(2 << 20,), compressors=zc.ZstdCodec(level=0))
    starts = np.repeat(np.arange(0, 32 << 20, 8 << 20), overlap)[:, None]
    out = np.empty((len(starts), 8 << 20), "u1")
    with zarr.config.set({"threading.max_workers": 2}):
        read_boxes(array, [[0]], (1,))
        tracemalloc.start()
        try:
            read_boxes(array, starts, (8 << 20,), out)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert (out[::overlap].ravel() == data).all()
    assert (out == np.repeat(out[::overlap], overlap, axis=0)).all()
    assert peak < 20 << 20


@pytest.mark.parametrize("method", ["fork", "spawn"])
@pytest.mark.parametrize("store", ["LocalStore", "Counting"])
def test_loader_workers_read_boxes(pipeline: Pipeline, tmp_path: Path, method: str, store: str) -> None:
    stored(tmp_path / "a", DATA, **SHARDED)
    code = f"""
    import functools, multiprocessing
    import numpy as np, zarr
    from zarr.storage import LocalStore
    from chunkwright_zarr import read_boxes
    from tests.support.stores import Counting

    if __name__ == "__main__":
        store = LocalStore({str(tmp_path / "a")!r})
        array = zarr.open_array(Counting(store) if {store!r} == "Counting" else store, mode="r")
        starts = np.random.default_rng(0).integers(0, (31, 22), (8, 20, 2))
        read = functools.partial(read_boxes, array, shape=(9, 8))
        expected = [read(part) for part in starts]  # threads and loops are running when the workers are made
        with multiprocessing.get_context({method!r}).Pool(2) as workers:
            found = workers.map(read, starts, chunksize=1)
        print(all((one == other).all() for one, other in zip(found, expected, strict=True)), len(found))
    """
    assert run_python(code, pipeline) == "True 8"


def test_regions_share_no_chunk_and_lose_no_element() -> None:
    edges = edges_of(ChunkGrid.from_sizes((40, 30), ([3, 1, 16, 20], 7)))
    boxes = Boxes.of(random_starts(40, (9, 8)), (9, 8))
    for max_stage in (1, 50, 400, 10_000):
        seen: set[tuple[int, ...]] = set()
        counts = np.zeros((40, 9, 8), int)
        for region in regions(boxes, edges, edges, max_stage):
            cells = {tuple(cell) for pieces in cut(region.boxes, edges) for cell in pieces.cells.tolist()}
            assert not cells & seen
            seen |= cells
            assert not region.is_staged or region.boxes.bounds[1].prod() <= max_stage
            for place, count in zip(region.boxes.out_start, region.boxes.count, strict=True):
                counts[place[0]][tuple(map(slice, place[1:], place[1:] + count))] += 1
        assert (counts == 1).all()


def test_a_region_of_too_many_pieces_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crops_module, "MAX_PIECES", 16)
    edges = edges_of(ChunkGrid.from_sizes((1000,), (10,)))
    boxes = Boxes.of(np.arange(0, 990, 10)[:, None], (10,))
    found = list(regions(boxes, edges, edges, 1))
    assert max(len(region.boxes) for region in found) <= 16
    assert sum(len(region.boxes) for region in found) == 99
    ends = [(int(region.boxes.start.min()), int(region.boxes.last.max())) for region in found]
    assert all(before[1] < after[0] for before, after in pairwise(ends))


def test_grids_with_more_cells_than_64_bits_count_are_cut() -> None:
    extent = 2**60
    edges = edges_of(ChunkGrid.from_sizes((extent, extent), (1, 1)))
    starts = np.array([[extent - 2, extent - 2], [0, 0]])
    [pieces] = cut(Boxes.of(starts, (2, 1)), edges)
    assert pieces.cells.tolist() == [[0, 0], [1, 0], [extent - 2, extent - 2], [extent - 1, extent - 2]]


def test_what_is_touched_is_clipped_to_the_stage() -> None:
    edges = edges_of(ChunkGrid.from_sizes((20, 20), (4, 6)))
    boxes = Boxes.of(np.array([[3, 3], [9, 14]]), (2, 2))
    found = touched(boxes, edges)
    assert found.start.tolist() == [[3, 3], [4, 3], [8, 12]]
    assert found.count.tolist() == [[1, 3], [4, 3], [3, 4]]
    assert (found.out_start[:, 1:] == found.start - 3).all()


def test_boxes_are_read_under_use_with_a_backend_of_choice() -> None:
    with use(backend="numcodecs", strict=True):
        array = written({}, chunks=(7, 7))
    assert_boxes(read_boxes(array, [[1, 2]], (3, 4)), DATA, [[1, 2]], (3, 4))


def test_what_is_no_array_is_named() -> None:
    group: Any = zarr.create_group({})
    with pytest.raises(TypeError, match=r"a zarr array is needed, not zarr\..*Group"):
        read_boxes(group, [[0]], (1,))
    with pytest.raises(TypeError, match=r"a zarr array is needed, not zarr\..*Group"):
        asyncio.run(read_boxes_async(group, [[0]], (1,)))


@pytest.mark.usefixtures("uneven_chunks", "pipeline")
def test_boxes_across_the_edges_of_uneven_chunks_are_what_zarr_slices() -> None:
    array = zarr.create_array({}, shape=(10, 9), chunks=[[3, 5, 2], [4, 5]], dtype="u2")
    array[...] = DATA[:10, :9]
    starts = np.indices((8, 7)).reshape(2, -1).T
    found = read_boxes(array, starts, (3, 3))
    assert_same(found, np.stack([DATA[row : row + 3, column : column + 3] for row, column in starts]))
