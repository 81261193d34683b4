"""Stores of every kind, forks, memory that is shared by mistake, settings that change."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import icechunk
import numpy as np
import obstore.store
import pytest
import zarr
from zarr.storage import MemoryStore, ObjectStore, ZipStore

from tests.support.arrays import assert_same, read_and_write, reopened, stored
from tests.support.pipelines import DEFAULT, FUSED, Pipeline
from tests.support.processes import run_python


def test_stored_chunks_share_no_memory_with_the_callers_arrays(pipeline: Pipeline) -> None:
    """zarr-python#4157: changing the array afterwards rewrote stored chunks."""
    for shards in (None, (8,)):
        source = np.arange(8)
        array = zarr.create_array(MemoryStore(), shape=(8,), chunks=(4,), shards=shards, dtype="i8", compressors=None)
        array[...] = source
        source[:] = -1
        assert_same(array[...], np.arange(8))
        array[...][:] = 99
        array[0:4][:] = 99
        assert_same(array[...], np.arange(8))


def test_a_shard_in_a_zip_file_is_read_in_part(tmp_path: Path, pipeline: Pipeline) -> None:
    """zarr-python#4187 and #1018, zarrista#152: neither a synchronous store nor a tree of files."""
    reference = np.arange(400, dtype="u2").reshape(20, 20)
    with ZipStore(tmp_path / "a.zip", mode="w") as store:
        zarr.create_array(store, shape=(20, 20), chunks=(5, 5), shards=(10, 20), dtype="u2")[...] = reference
    with ZipStore(tmp_path / "a.zip", mode="r") as store:
        array = zarr.open_array(store, mode="r")
        assert_same(array[3:12, 4:17], reference[3:12, 4:17])
        assert_same(array[...], reference)


def test_a_shard_that_icechunk_keeps_inline_is_read_in_part(pipeline: Pipeline) -> None:
    """icechunk#1019 and #735: byte ranges of an inline chunk gave the wrong part."""
    repository = icechunk.Repository.create(
        storage=icechunk.in_memory_storage(), config=icechunk.RepositoryConfig(inline_chunk_threshold_bytes=512)
    )
    store = repository.writable_session("main").store
    array = zarr.create_array(store, name="foo", shape=(11,), chunks=(2,), shards=(10,), dtype="f8", fill_value=-1)
    reference = np.linspace(35, 70, 11)
    array[...] = reference
    assert_same(array[10:], reference[10:])
    read_and_write(array, reference, np.s_[3:6], 0)


def test_a_forked_child_reads_and_writes_after_the_parent_did(tmp_path: Path, pipeline: Pipeline) -> None:
    """zarrs-python#171, iohub#416: it waited for threads that only the parent has."""
    printed = run_python(
        f"""
        import os
        import numpy as np, zarr

        path = {str(tmp_path / "a")!r}
        array = zarr.create_array(path, shape=(256, 256), chunks=(32, 32), shards=(128, 128), dtype="i4")
        array[...] = np.arange(65536).reshape(256, 256)
        array[0:64]
        child = os.fork()
        if child == 0:
            status = 1
            try:
                again = zarr.open_array(path, mode="r+")
                assert again[...].sum() == sum(range(65536))
                again[0:10] = 1
                assert array[0:10].sum() == 2560
                status = 0
            finally:
                os._exit(status)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), array[0:10].sum())
        """,
        pipeline,
    )
    assert printed == "0 2560"


def test_an_array_keeps_its_pipeline_when_the_setting_changes(tmp_path: Path, pipeline: Pipeline) -> None:
    """zarr-python#3341: the global is read again inside the sharding codec."""
    reference = np.arange(64.0).reshape(8, 8)
    array = stored(tmp_path / "a", reference, chunks=(2, 2), shards=(4, 8))
    for other in (DEFAULT, FUSED):
        with zarr.config.set({"codec_pipeline.path": other}):
            read_and_write(array, reference, np.s_[2, 2:6], -1)
            assert_same(array[1:7, 3], reference[1:7, 3])
            opened_inside = reopened(tmp_path / "a")
        assert_same(opened_inside[...], reference)
        assert_same(array[...], reference)


def test_an_array_may_be_assigned_to_another(tmp_path: Path, pipeline: Pipeline) -> None:
    """zarr-python#3611: nested use of the event loop raised."""
    reference = np.arange(36).reshape(6, 6)
    source = stored(tmp_path / "source", reference, chunks=(4, 4), shards=(4, 8))
    target = zarr.create_array(str(tmp_path / "target"), shape=(6, 6), chunks=(3, 2), dtype="i8")
    target[...] = source
    assert_same(target[...], reference)


@pytest.mark.parametrize("shards", [None, (10, 20)], ids=str)
def test_an_object_store_in_memory_reads_and_writes(pipeline: Pipeline, shards: Any) -> None:
    """zarrs-python#44 and #64: a store that cannot be handed to another Rust extension."""
    store = ObjectStore(obstore.store.MemoryStore())
    reference = np.arange(400, dtype="u2").reshape(20, 20)
    array = zarr.create_array(store, name="x/y", shape=(20, 20), chunks=(5, 5), shards=shards, dtype="u2")
    array[...] = reference
    read_and_write(array, reference, np.s_[7:13, 2:9], 0)
    again = zarr.open_array(store, path="x/y", mode="r")
    assert_same(again[6:14, 1:10], reference[6:14, 1:10])
    assert_same(again[...], reference)
