"""Explanations say who runs what, along which path, and why."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
import zarr
import zarr.codecs as zc
from zarr.storage import LocalStore, MemoryStore, WrapperStore

from chunkwright_zarr import ArrayExplanation, explain
from tests.support.codecs import AddOne, Invert, RawPartial, registered


@pytest.fixture(autouse=True)
def ours() -> Iterator[None]:
    chosen = {"codec_pipeline.path": "chunkwright_zarr.CodecPipeline", "codec_pipeline.backend": "numcodecs"}
    with registered(), zarr.config.set(chosen):
        yield


def runs(explanation: ArrayExplanation) -> list[tuple[str, tuple[str, ...], str]]:
    return [(run.level, run.codecs, run.backend) for run in explanation.runs]


def array_of(store: Any = None, **options: Any) -> Any:
    defaults: dict[str, Any] = {"shape": (8, 8), "chunks": (4, 4), "dtype": "i2"}
    return zarr.create_array(MemoryStore() if store is None else store, **{**defaults, **options})


def test_every_level_of_a_shard_is_listed() -> None:
    explanation = explain(array_of(chunks=(2, 2), shards=(4, 4)))
    assert runs(explanation) == [
        ("chunk", ("sharding_indexed",), "core"),
        ("shard: inner chunk", ("bytes", "zstd"), "numcodecs"),
        ("shard: index", ("bytes", "crc32c"), "numcodecs"),
    ]


def test_a_foreign_codec_is_a_run_of_its_own_with_the_reason() -> None:
    explanation = explain(array_of(filters=[AddOne()], compressors=[zc.ZstdCodec(), Invert()]))
    assert runs(explanation) == [
        ("chunk", ("tests.add_one",), "foreign"),
        ("chunk", ("bytes", "zstd"), "numcodecs"),
        ("chunk", ("tests.invert",), "foreign"),
    ]
    assert "not one of zarr's own codecs" in explanation.runs[0].reason
    assert explanation.read.path == explanation.write.path == "async"


def test_a_v2_array_is_listed_as_the_chain_that_it_is_run_as() -> None:
    explanation = explain(array_of(zarr_format=2, order="F"))
    assert runs(explanation) == [("chunk", ("transpose", "bytes", "numcodecs.zstd"), "numcodecs")]


@pytest.mark.parametrize(("kind", "path"), [("memory", "sync"), ("local", "sync"), ("wrapper", "async")])
def test_the_store_decides_the_path(kind: str, path: str, tmp_path: Any) -> None:
    stores = {"memory": MemoryStore(), "local": LocalStore(tmp_path), "wrapper": WrapperStore(MemoryStore())}
    explanation = explain(array_of(stores[kind]))
    assert explanation.read.path == explanation.write.path == path
    assert explanation.read.reason


def test_what_zarrs_own_pipeline_does_is_said_with_the_reason() -> None:
    explanation = explain(array_of(serializer=RawPartial(), compressors=None))
    assert explanation.runs == ()
    assert (explanation.read.path, explanation.write.path) == ("default", "default")
    assert "tests.raw_partial" in explanation.read.reason


def test_an_array_of_another_pipeline_is_explained_by_saying_so() -> None:
    with zarr.config.set({"codec_pipeline.path": "zarr.core.codec_pipeline.BatchedCodecPipeline"}):
        explanation = explain(array_of())
    assert explanation.read.path == "default"
    assert "BatchedCodecPipeline" in explanation.read.reason


def test_uneven_chunks_are_explained_by_the_first() -> None:
    with zarr.config.set({"array.rectilinear_chunks": True}):
        explanation = explain(array_of(shape=(60,), chunks=[[10, 20, 30]]))
    assert runs(explanation) == [("chunk", ("bytes", "zstd"), "numcodecs")]


def test_asynchronous_arrays_are_explained_too() -> None:
    array = array_of()
    assert explain(array.async_array) == explain(array)


def test_an_explanation_prints_as_a_table_and_is_json() -> None:
    explanation = explain(array_of(compressors=[Invert()]))
    lines = str(explanation).splitlines()
    assert [line.split()[0] for line in lines] == ["level", "chunk", "chunk", "read", "write", "with"]
    document = json.loads(json.dumps(explanation.to_json()))
    assert set(document) == {"runs", "read", "write", "versions"}
    assert document["runs"][1]["backend"] == "foreign"
    assert document["versions"]["zarr"] == zarr.__version__
    assert {"chunkwright", "numcodecs"} < set(document["versions"])


@pytest.mark.parametrize("thing", ["group", "list"])
def test_what_is_no_array_is_named(thing: str) -> None:
    given: Any = zarr.create_group({}) if thing == "group" else [1, 2]
    name = f"{type(given).__module__}.{type(given).__qualname__}"
    with pytest.raises(TypeError, match=f"a zarr array is needed, not {name}"):
        explain(given)
