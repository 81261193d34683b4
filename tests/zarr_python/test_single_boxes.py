"""A single box is read without plans where the backend can, and is what zarr's own slicing gives."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from numpy.typing import NDArray
from zarr.errors import ChunkNotFoundError
from zarr.storage import LocalStore, MemoryStore

from chunkwright import CorruptChunkError
from chunkwright_zarr import known, read_boxes, read_boxes_async
from chunkwright_zarr.few import FewBoxes
from tests.support.arrays import assert_same

NATIVE = {"codec_pipeline.path": "chunkwright_zarr.CodecPipeline", "codec_pipeline.backend": "rust"}
DATA = np.arange(20 * 15, dtype="i4").reshape(20, 15)
LAYOUTS: dict[str, dict[str, Any]] = {
    "chunks": {"chunks": (8, 6)},
    "shards": {"chunks": (2, 3), "shards": (8, 6)},
    "version 2, Fortran order": {"chunks": (8, 6), "zarr_format": 2, "order": "F"},
    "one chunk": {"chunks": (20, 15)},
}
STARTS = [(0, 0), (7, 5), (15, 9), (3, 2), (8, 6)]


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many chunks each box had that was read without a plan."""
    made: list[int] = []
    run = FewBoxes.run

    def noted(self: FewBoxes) -> Any:
        made.append(len(self.places))
        return run(self)

    monkeypatch.setattr(FewBoxes, "run", noted)
    return made


def created(store: Any, config: dict[str, Any] = NATIVE, **layout: Any) -> Any:
    with zarr.config.set(config):
        array = zarr.create_array(store, name="a/b", shape=DATA.shape, dtype=DATA.dtype, **layout)
    array[...] = DATA
    return array


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=list(LAYOUTS))
@pytest.mark.parametrize("in_memory", [True, False], ids=["memory", "files"])
@pytest.mark.parametrize("shape", [(5, 6), (1, 1), (0, 3), (4, 0)], ids=str)
def test_a_box_is_what_slicing_gives(
    tmp_path: Path, layout: dict[str, Any], in_memory: bool, shape: tuple[int, int], runs: list[int]
) -> None:
    array = created(MemoryStore() if in_memory else LocalStore(tmp_path), **layout)
    for row, column in STARTS:
        wanted = DATA[row : row + shape[0], column : column + shape[1]]
        assert_same(read_boxes(array, [(row, column)], shape)[0], wanted)
        assert_same(asyncio.run(read_boxes_async(array, [(row, column)], shape))[0], wanted)
    assert len(runs) == (2 * len(STARTS) if 0 not in shape else 0)


@pytest.mark.parametrize("out", [np.zeros((1, 5, 6), "i4", order="F"), np.zeros((2, 10, 12), "i4")[::2, ::2, ::2]])
def test_a_box_goes_into_the_array_that_is_given(out: NDArray[Any], runs: list[int]) -> None:
    array = created(MemoryStore(), chunks=(8, 6))
    assert read_boxes(array, [(7, 5)], (5, 6), out=out) is out
    assert_same(out[0], DATA[7:12, 5:11])
    assert runs == [4]


def test_elements_that_have_to_be_converted_are_left_to_plans(runs: list[int]) -> None:
    out = read_boxes(created(MemoryStore(), chunks=(8, 6)), [(7, 5)], (5, 6), out=np.zeros((1, 5, 6), "f8"))
    assert_same(out[0], DATA[7:12, 5:11].astype("f8"))
    assert runs == []


def test_a_box_of_many_chunks_needs_no_plan(runs: list[int]) -> None:
    assert_same(read_boxes(created(MemoryStore(), chunks=(2, 2)), [(0, 0)], DATA.shape)[0], DATA)
    assert runs == [80]


def test_irregular_chunks_are_left_to_plans(runs: list[int]) -> None:
    with zarr.config.set({"array.rectilinear_chunks": True}):
        uneven = created(MemoryStore(), chunks=[[8, 12], [15]])
        assert_same(read_boxes(uneven, [(1, 1)], (9, 9))[0], DATA[1:10, 1:10])
    assert runs == []


def test_arrays_of_other_pipelines_are_read_so_too(runs: list[int]) -> None:
    array = created(MemoryStore(), {}, chunks=(8, 6))
    with zarr.config.set(NATIVE):
        assert_same(read_boxes(array, [(7, 5)], (5, 6))[0], DATA[7:12, 5:11])
    assert runs == [4]


def test_an_array_that_was_resized_is_read_with_its_new_shape() -> None:
    array = created(MemoryStore(), chunks=(8, 6), fill_value=9)
    read_boxes(array, [(15, 9)], (5, 6))
    array.resize((24, 15))
    assert_same(read_boxes(array, [(19, 9)], (5, 6))[0], np.vstack([DATA[19:, 9:], np.full((4, 6), 9, "i4")]))


def test_missing_and_damaged_chunks_are_named(tmp_path: Path) -> None:
    array = created(LocalStore(tmp_path), chunks=(8, 6), fill_value=9)
    (tmp_path / "a/b/c/0/1").unlink()
    assert (read_boxes(array, [(7, 5)], (1, 6))[0, 0, 1:] == 9).all()
    strict = array.with_config({"read_missing_chunks": False})
    with pytest.raises(ChunkNotFoundError, match=r"'c/0/1'"):
        read_boxes(strict, [(7, 5)], (5, 6))
    (tmp_path / "a/b/c/1/1").write_bytes(b"no zstd")
    with pytest.raises(CorruptChunkError) as caught:
        read_boxes(array, [(7, 5)], (5, 6))
    assert caught.value.key == "a/b/c/1/1"


def test_what_is_kept_of_arrays_is_little() -> None:
    known._chunks_of.cache_clear()
    for _ in range(2 * known.KNOWN_ARRAYS):
        read_boxes(created(MemoryStore(), chunks=(8, 6)), [(0, 0)], (1, 1))
    assert known._chunks_of.cache_info().currsize == known.KNOWN_ARRAYS
