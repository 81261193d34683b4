"""DirectArray gives what zarr-python's arrays and NumPy give, without zarr-python's event loop where it says so."""

from __future__ import annotations

import asyncio
import json
import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from hypothesis import given, settings
from numpy.typing import NDArray
from zarr.core.buffer import cpu, default_buffer_prototype
from zarr.core.chunk_key_encodings import V2ChunkKeyEncoding
from zarr.errors import ChunkNotFoundError
from zarr.storage import FsspecStore, LocalStore, MemoryStore, WrapperStore, ZipStore

from chunkwright import CorruptChunkError
from chunkwright_zarr import CodecPipeline, DirectArray, explain, few, read_boxes, regions
from tests.support.arrays import assert_same
from tests.zarr_python.conftest import HoppedError
from tests.zarr_python.direct import BASIC, DATA, LAYOUTS, LISTS, RUST, UNSTABLE, created, reads


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=list(LAYOUTS))
@pytest.mark.parametrize("in_memory", [True, False], ids=["memory", "files"])
def test_integers_and_slices_are_read_without_the_loop(
    tmp_path: Path, layout: dict[str, Any], in_memory: bool, no_loop: Callable[[], None]
) -> None:
    array = created(MemoryStore() if in_memory else LocalStore(tmp_path), **layout)
    direct = DirectArray(array)
    wanted = [(array[selection], array.get_basic_selection(selection)) for selection in BASIC]
    no_loop()
    for selection, both in zip(BASIC, wanted, strict=True):
        for theirs, found in zip(both, (direct[selection], direct.get_basic_selection(selection)), strict=True):
            assert type(found) is type(theirs)
            assert_same(np.asarray(found), DATA[selection])
            if isinstance(theirs, np.ndarray):
                assert found.flags.c_contiguous == theirs.flags.c_contiguous
                assert found.flags.writeable
                assert found.flags.owndata


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=list(LAYOUTS))
@pytest.mark.parametrize("in_memory", [True, False], ids=["memory", "files"])
def test_lists_are_what_zarr_reads(tmp_path: Path, layout: dict[str, Any], in_memory: bool) -> None:
    array = created(MemoryStore() if in_memory else LocalStore(tmp_path), **layout)
    direct = DirectArray(array)
    for selection in LISTS:
        theirs = array.oindex[selection]
        for found in (direct.oindex[selection], direct.get_orthogonal_selection(selection)):
            assert type(found) is type(theirs)
            assert_same(np.asarray(found), np.asarray(theirs))


def test_lists_of_chunks_are_read_without_the_loop(no_loop: Callable[[], None]) -> None:
    direct = DirectArray(created(MemoryStore(), chunks=(8, 6, 2)))
    no_loop()
    for selection in LISTS:
        direct.oindex[selection]
    assert direct.oindex[3, 4, 1].shape == ()


@pytest.mark.parametrize(
    "selection",
    [
        (slice(None, None, -1),),
        (20,),
        (-21,),
        (0, 0, 0, 0),
        (..., ...),
        (slice(0.5, 2),),
        ("field",),
        (None,),
        (slice(0, 2, 0),),
        (True,),
        (np.bool_(True),),
        (1.0,),
        (np.timedelta64(50, "s"),),
    ],
    ids=str,
)
def test_what_zarr_refuses_is_refused_by_it(selection: Any) -> None:
    array = created(MemoryStore(), chunks=(8, 6, 2))
    raised = []
    for one in (array, DirectArray(array)):
        with pytest.raises(Exception) as caught:  # noqa: PT011 -- both have to raise the same
            one[selection]
        raised.append((type(caught.value), str(caught.value)))
    assert raised[0] == raised[1]


@pytest.mark.parametrize("selection", [(slice(5, 5),), (slice(9, 3), 0), (slice(30, 40),)], ids=str)
def test_nothing_is_selected(selection: Any) -> None:
    direct = DirectArray(created(MemoryStore(), chunks=(8, 6, 2)))
    assert_same(direct[selection], DATA[selection])


@pytest.mark.parametrize(
    "selection", [([3, 1, 2],), ([],), ([20],), ([-21],), (np.ones(19, bool),), ([[1, 2]],)], ids=str
)
def test_lists_that_do_not_ascend_or_do_not_fit_are_zarrs(selection: Any) -> None:
    array = created(MemoryStore(), chunks=(8, 6, 2))
    outcomes: list[Any] = []
    for one in (array, DirectArray(array)):
        try:
            outcomes.append(one.oindex[selection].tolist())
        except Exception as error:
            outcomes.append((type(error), str(error)))
    assert outcomes[0] == outcomes[1]


def test_other_selections_are_zarrs() -> None:
    direct = DirectArray(created(MemoryStore(), chunks=(8, 6, 2)))
    assert_same(direct.vindex[[3, 1], [4, 5], [0, 2]], DATA[[3, 1], [4, 5], [0, 2]])
    assert_same(direct[DATA > 400], DATA[DATA > 400])
    assert_same(direct.blocks[1, 0], DATA[8:16, :6])
    assert_same(direct[3, [0, 2, 5]], DATA[3, [0, 2, 5]])
    assert_same(np.asarray(direct), DATA)


def test_what_zarr_is_told_is_zarrs() -> None:
    direct = DirectArray(created(MemoryStore(), chunks=(8, 6, 2)))
    out = default_buffer_prototype().nd_buffer.from_numpy_array(np.zeros((2, 15, 3), "i4"))
    assert direct.get_basic_selection(slice(3, 5), out=out) is out.as_ndarray_like()
    assert_same(out.as_numpy_array(), DATA[3:5])
    assert_same(direct.get_orthogonal_selection(slice(3, 5), prototype=default_buffer_prototype()), DATA[3:5])


@pytest.mark.filterwarnings(UNSTABLE)
def test_fields_are_zarrs() -> None:
    values = np.zeros((9, 4), [("x", "<i4"), ("y", "S3")])
    values["x"] = np.arange(36).reshape(9, 4)
    direct = DirectArray(created(MemoryStore(), values, chunks=(4, 4)))
    with pytest.raises(TypeError, match="Cannot cast"):  # as from an array of zarr's
        direct["x"]
    assert_same(direct[2:7], values[2:7])
    assert direct[3, 1] == values[3, 1]


@pytest.mark.filterwarnings(UNSTABLE)
@pytest.mark.parametrize("dtype", ["?", "i1", ">u2", "<f2", ">f8", "c8", "M8[s]", ">m8[ns]", "S5", "U3", "V4"], ids=str)
def test_data_types_are_kept(dtype: str) -> None:
    if np.dtype(dtype).kind in "bSU":
        values = (np.arange(24) % 2).astype(dtype)
    else:
        values = np.frombuffer(np.random.default_rng(1).bytes(24 * np.dtype(dtype).itemsize), dtype)
    array = created(MemoryStore(), values.reshape(4, 6), chunks=(3, 4))
    direct = DirectArray(array)
    for selection in ((slice(1, 4), slice(2, 5)), (2, 3), ...):
        assert_same(np.asarray(direct[selection]), np.asarray(array[selection]))
        assert type(direct[selection]) is type(array[selection])


def test_text_and_arrays_without_axes_are_zarrs() -> None:
    words = np.array(["a", "", "ö" * 9, "c"], dtype=np.dtypes.StringDType())
    assert DirectArray(created(MemoryStore(), words, chunks=(3,)))[1:].tolist() == words[1:].tolist()
    single = DirectArray(created(MemoryStore(), np.array(7, "i4")))
    assert (single[()], single[...]) == (7, 7)


@pytest.mark.parametrize("kind", ["zip", "wrapper", "fsspec"])
def test_other_stores_are_read_as_before(tmp_path: Path, kind: str) -> None:
    store: Any = {
        "zip": lambda: ZipStore(tmp_path / "a.zip", mode="w"),
        "wrapper": lambda: WrapperStore(MemoryStore()),
        "fsspec": lambda: FsspecStore.from_url("memory://direct"),
    }[kind]()
    direct = DirectArray(created(store, chunks=(2, 3, 1), shards=(8, 6, 2)))
    for selection in BASIC:
        assert_same(np.asarray(direct[selection]), DATA[selection])


def test_a_zip_file_of_shards_is_read_without_the_loop(tmp_path: Path, no_loop: Callable[[], None]) -> None:
    with ZipStore(tmp_path / "a.zip", mode="w") as store:
        created(store, chunks=(2, 3, 1), shards=(8, 6, 2))
    with ZipStore(tmp_path / "a.zip", mode="r") as store, zarr.config.set(RUST):
        direct = DirectArray(zarr.open_array(store, path="a/b", mode="r"))
        no_loop()
        assert_same(direct[3:17, 4:9, 1], DATA[3:17, 4:9, 1])


def test_missing_chunks_are_filled_or_refused(tmp_path: Path) -> None:
    array = created(LocalStore(tmp_path), chunks=(8, 6, 2), fill_value=9)
    (tmp_path / "a/b/c/1/0/0").unlink()
    wanted = DATA.copy()
    wanted[8:16, :6, :2] = 9
    direct = DirectArray(array)
    assert_same(direct[...], wanted)
    with pytest.raises(ChunkNotFoundError, match="c/1/0/0"):
        direct.with_config({"read_missing_chunks": False})[7:9, 0, 0]


def test_a_damaged_chunk_is_named(tmp_path: Path) -> None:
    direct = DirectArray(created(LocalStore(tmp_path), chunks=(8, 6, 2)))
    (tmp_path / "a/b/c/1/0/0").write_bytes(b"no zstd")
    assert_same(direct[:8], DATA[:8])
    with pytest.raises(CorruptChunkError) as caught:
        direct[6:9]
    assert caught.value.key == "a/b/c/1/0/0"


def test_a_key_does_not_lead_out_of_the_store(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    array = created(LocalStore(tmp_path / "outside"), chunks=(8, 6, 2))
    inside = zarr.open_array(zarr.storage.StorePath(LocalStore(tmp_path / "outside" / "a"), "b"), mode="r")
    object.__setattr__(inside.async_array.store_path, "path", "../outside/a/b")
    assert_same(DirectArray(array)[3], DATA[3])
    with pytest.raises(ValueError, match="leads out of the store"):
        DirectArray(inside)[3]


def test_writes_and_sizes_are_those_of_the_array() -> None:
    array = created(MemoryStore(), chunks=(8, 6, 2), fill_value=5)
    direct = DirectArray(array)
    direct[2:9, 3] = 77
    wanted = DATA.copy()
    wanted[2:9, 3] = 77
    assert_same(direct[...], wanted)
    direct.resize((24, 15, 3))
    assert_same(direct[18:], np.concatenate([wanted[18:], np.full((4, 15, 3), 5, "i4")]))
    assert_same(array[18:], direct[18:])


def test_arrays_of_other_pipelines_are_read_so_too(no_loop: Callable[[], None]) -> None:
    array = created(MemoryStore(), config={}, chunks=(8, 6, 2))
    with zarr.config.set({"codec_pipeline.backend": "rust"}):
        direct = DirectArray(array)
    assert not isinstance(array.async_array.codec_pipeline, CodecPipeline)
    assert isinstance(direct.async_array.codec_pipeline, CodecPipeline)
    assert isinstance(direct.with_config({"order": "F"}), DirectArray)
    no_loop()
    assert_same(direct[3:9], DATA[3:9])


def test_arrays_are_opened_pickled_and_wrapped_again(tmp_path: Path) -> None:
    created(LocalStore(tmp_path), chunks=(8, 6, 2))
    opened = DirectArray.open(zarr.storage.StorePath(LocalStore(tmp_path), "a/b"))
    again = pickle.loads(pickle.dumps(DirectArray(opened)))
    assert type(again) is DirectArray
    assert again == opened
    assert_same(again[3:9], DATA[3:9])
    with pytest.raises(TypeError, match="a zarr array is needed"):
        DirectArray(DATA)  # type: ignore[arg-type]


def test_a_running_loop_is_not_held_up(monkeypatch: pytest.MonkeyPatch) -> None:
    direct = DirectArray(created(MemoryStore(), chunks=(8, 6, 2)))
    monkeypatch.setattr(few.FewBoxes, "is_brief", False)

    async def read() -> NDArray[Any]:
        monkeypatch.setattr(regions, "region_boxes", None)
        return np.asarray(direct[3:9])

    assert_same(asyncio.run(read()), DATA[3:9])


def test_threads_read_side_by_side(tmp_path: Path) -> None:
    direct = DirectArray(created(LocalStore(tmp_path), chunks=(2, 3, 1), shards=(8, 6, 2)))
    boxes = [(slice(row, row + 7), slice(row % 9, row % 9 + 5)) for row in range(13)] * 8
    with ThreadPoolExecutor(8) as pool:
        for box, found in zip(boxes, pool.map(direct.__getitem__, boxes), strict=True):
            assert_same(found, DATA[box])


@pytest.fixture(params=[1, 2, 7])
def few_chunks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reads of more than a few chunks are cut in halves."""
    for module in (few, regions):
        monkeypatch.setattr(module, "MAX_FEW", request.param)


def test_reads_of_many_bytes_are_cut_in_halves(monkeypatch: pytest.MonkeyPatch, no_loop: Callable[[], None]) -> None:
    for layout in ("shards", "chunks"):
        direct = DirectArray(created(MemoryStore(), **LAYOUTS[layout]))
        for module in (few, regions):
            monkeypatch.setattr(module, "MAX_FEW_NBYTES", 500)
        sizes: list[int] = []
        run = few.FewBoxes.run

        def noted(self: few.FewBoxes, run: Any = run, sizes: list[int] = sizes) -> Any:
            sizes.append(self.boxes.nbytes)
            return run(self)

        with monkeypatch.context() as patch:
            patch.setattr(few.FewBoxes, "run", noted)
            assert_same(direct[3:, 2], DATA[3:, 2])
        assert len(sizes) > 1
        assert all(size <= 500 for size in sizes)


@pytest.mark.usefixtures("few_chunks")
@pytest.mark.parametrize("layout", ["chunks", "shards", "small chunks"])
def test_large_reads_are_cut_in_halves(layout: str, no_loop: Callable[[], None]) -> None:
    direct = DirectArray(created(MemoryStore(), **LAYOUTS[layout]))
    no_loop()
    for selection in BASIC:
        assert_same(np.asarray(direct[selection]), DATA[selection])
    for rows, columns in (([0, 7, 8, 19], [0, 14]), ([9, 9, 10], [5, 6])):
        assert_same(direct.oindex[rows, columns], DATA[np.ix_(rows, columns)])


def test_few_elements_of_many_chunks_are_one_read(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.arange(1000, dtype="i4")
    direct, made = DirectArray(created(MemoryStore(), values, chunks=(1,))), []
    for module in (few, regions):
        monkeypatch.setattr(module, "MAX_FEW", 10)
    region_boxes = regions.region_boxes
    monkeypatch.setattr(regions, "region_boxes", lambda *args, **keys: made.append(1) or region_boxes(*args, **keys))
    assert_same(direct[3::100], values[3::100])
    assert_same(direct.oindex[np.array([0, 500, 999])], values[[0, 500, 999]])
    assert len(made) == 2


def test_long_lists_over_many_chunks_are_not_copied_for_each(
    monkeypatch: pytest.MonkeyPatch, no_loop: Callable[[], None]
) -> None:
    direct = DirectArray(created(MemoryStore(), chunks=(20, 1, 1)))
    monkeypatch.setattr(regions, "MAX_LISTED", 30)
    most: list[int] = []
    run = few.FewBoxes.run

    def noted(self: few.FewBoxes) -> Any:
        most.append(len(self.places))
        return run(self)

    monkeypatch.setattr(few.FewBoxes, "run", noted)
    no_loop()
    rows = np.array([0, 1, 3, 7, 8, 9, 13, 19])
    assert_same(direct.oindex[rows], DATA[rows])
    assert max(most) <= 3


def test_the_other_backend_leaves_reads_to_zarr() -> None:
    with zarr.config.set({**RUST, "codec_pipeline.backend": "numcodecs"}):
        direct = DirectArray(created(MemoryStore(), config={}, chunks=(8, 6, 2)))
    for selection in BASIC:
        assert_same(np.asarray(direct[selection]), DATA[selection])


def test_buffers_of_others_are_zarrs() -> None:
    class Own(cpu.NDBuffer):
        """Somebody's."""

    direct = DirectArray(created(MemoryStore(), chunks=(8, 6, 2)))
    made: list[Any] = []
    Own.empty = classmethod(  # type: ignore[method-assign]
        lambda cls, *args, **kwargs: made.append(cls) or cpu.NDBuffer.empty.__func__(cls, *args, **kwargs)
    )
    zarr.registry.register_ndbuffer(Own, f"{Own.__module__}.Own")
    with zarr.config.set({"ndbuffer": f"{Own.__module__}.Own"}):
        assert_same(np.asarray(direct[3:9]), DATA[3:9])
    assert made


@pytest.mark.parametrize("most", [1, 3, 8192])
@settings(deadline=None, max_examples=100)
@given(case=reads())
def test_any_selection_is_what_zarr_reads(
    case: tuple[tuple[int, ...], dict[str, Any], tuple[Any, ...]], most: int
) -> None:
    shape, layout, selection = case
    values = np.arange(np.prod(shape), dtype="u2").reshape(shape)
    array = created(MemoryStore(), values, **layout)
    theirs = np.asarray(array.oindex[selection])
    with pytest.MonkeyPatch.context() as patch:
        for module in (few, regions):
            patch.setattr(module, "MAX_FEW", most)
        assert_same(np.asarray(DirectArray(array).oindex[selection]), theirs)


@pytest.mark.parametrize("dtype", ["u1", "i1", "i2", "u8"])
def test_lists_may_have_a_type_that_the_axis_is_too_long_for(dtype: str, no_loop: Callable[[], None]) -> None:
    values = np.arange(40_000, dtype="i4")
    direct = DirectArray(created(MemoryStore(), values, chunks=(5000,)))
    no_loop()
    numbers = np.array([0, 1, 127], dtype)
    assert_same(direct.oindex[numbers], values[numbers])
    if dtype == "i1":
        assert_same(direct.oindex[np.array([-2, -1], "i1")], values[-2:])


@pytest.mark.parametrize("out", [np.zeros((2, 15, 3), "i4"), np.zeros(1)], ids=["fits", "one element"])
def test_results_go_into_zarrs_buffers_only(out: NDArray[Any]) -> None:
    direct = DirectArray(created(MemoryStore(), chunks=(8, 6, 2)))
    for get in (direct.get_basic_selection, direct.get_orthogonal_selection):
        with pytest.raises(TypeError, match="NDBuffer"):
            get(slice(3, 5), out=out)  # type: ignore[arg-type]


class FolderOfHundred(V2ChunkKeyEncoding):
    """Puts every hundred chunks into a folder of their own."""

    def encode_chunk_key(self, chunk_coords: tuple[int, ...]) -> str:
        return "-".join(f"{number // 100}/{number:x}" for number in chunk_coords)


def test_keys_that_somebody_else_makes_are_asked_for() -> None:
    values = np.arange(400, dtype="i4").reshape(200, 2)
    array = created(MemoryStore(), values, chunks=(1, 2))
    metadata = replace(array.metadata, chunk_key_encoding=FolderOfHundred(separator="/"))
    object.__setattr__(array.async_array, "metadata", metadata)
    array[...] = values
    direct = DirectArray(array)
    assert_same(direct[...], values)
    direct[150:] = -values[150:]
    assert_same(array[...], np.concatenate([values[:150], -values[150:]]))
    assert_same(read_boxes(array, [[120, 0]], (30, 2))[0], values[120:150])
    assert any("1/" in key for key in array.store._store_dict)


@pytest.mark.parametrize(
    ("shape", "chunks", "selection"),
    [
        ((1 << 64, 3), (1 << 60, 1), (slice((1 << 63) - 3, (1 << 63) + 3), 0)),
        ((1 << 64, 3), (1 << 60, 1), (slice((1 << 63) + 5, (1 << 63) + 99), 0)),
        ((1 << 66,), (1 << 60,), (slice(None, None, 1 << 62),)),
        ((1 << 66,), (1 << 60,), ((1 << 65) + 1,)),
        ((1 << 70,), (1 << 66,), (slice(-3, None),)),
        ((10,), (1 << 63,), (slice(3),)),
        (((1 << 63) - 1,), (1 << 62,), (slice(-3, None),)),
        ((1 << 63,), (1 << 60,), ...),
    ],
    ids=str,
)
def test_arrays_longer_than_memory_are_read_as_by_zarr(
    shape: tuple[int, ...], chunks: tuple[int, ...], selection: Any
) -> None:
    document = {
        "zarr_format": 3, "node_type": "array", "shape": shape, "data_type": "uint8", "fill_value": 7,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": chunks}},
        "chunk_key_encoding": {"name": "default"}, "codecs": [{"name": "bytes"}],
    }  # fmt: skip
    store = MemoryStore({"zarr.json": cpu.Buffer.from_bytes(json.dumps(document).encode())})
    outcomes: list[Any] = []
    with zarr.config.set(RUST):
        array = zarr.open_array(store, mode="r")
    for one in (zarr.open_array(store, mode="r"), DirectArray(array)):
        try:
            outcomes.append(np.asarray(one[selection]).tolist())
        except Exception as error:
            outcomes.append(type(error))
    assert outcomes[0] == outcomes[1]


def test_large_shards_are_left_to_zarr_which_can_be_interrupted(
    monkeypatch: pytest.MonkeyPatch, no_loop: Callable[[], None]
) -> None:
    direct = DirectArray(created(MemoryStore(), **LAYOUTS["shards"]))
    for module in (few, regions):
        monkeypatch.setattr(module, "MAX_FEW_NBYTES", 100)
    assert_same(direct[1:15, 4], DATA[1:15, 4])
    no_loop()
    assert_same(direct[1:6, 4, 1], DATA[1:6, 4, 1])
    with pytest.raises(HoppedError):
        direct[1:15, 4]


def test_an_array_is_equal_to_the_one_it_was_made_of() -> None:
    array = created(MemoryStore(), chunks=(8, 6, 2))
    assert DirectArray(array) == array == DirectArray(array)
    assert DirectArray(array) != created(MemoryStore(), chunks=(8, 6, 1))
    with pytest.raises(TypeError, match="unhashable"):
        hash(DirectArray(array))


def test_it_is_explained() -> None:
    array = created(MemoryStore(), chunks=(8, 6, 2))
    assert "on the calling thread" in explain(DirectArray(array)).read.reason
    assert "on the calling thread" not in explain(array).read.reason
    late = DirectArray(created(WrapperStore(MemoryStore()), chunks=(8, 6, 2)))
    assert explain(late).read.path == "async"
