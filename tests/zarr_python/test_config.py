"""What is configured is read when a pipeline is made, and backends are found by name."""

from __future__ import annotations

import logging
import subprocess
import sys
from importlib.metadata import EntryPoint, EntryPoints
from typing import Any

import numpy as np
import pytest
import zarr

from chunkwright import BackendUnavailableError, ChunkLengthError, ConfigurationError, ReferenceBackend
from chunkwright_zarr import CodecPipeline, config, use
from chunkwright_zarr.config import Settings, backends_for, max_workers, read_settings


class Installed:
    """Entry points as if other backends were installed."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._monkeypatch = monkeypatch
        monkeypatch.setattr(config, "_loaded", {})
        monkeypatch.setattr(config, "_absent", set())
        self.looked_for: list[str] = []

    def only(self, **values: str) -> None:
        points = EntryPoints(EntryPoint(name, value, config.GROUP) for name, value in values.items())

        def found(**wanted: Any) -> Any:
            self.looked_for.append(wanted.get("name", ""))
            return points.select(**wanted)

        self._monkeypatch.setattr(config, "entry_points", found)


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Installed:
    return Installed(monkeypatch)


NUMCODECS = "chunkwright_numcodecs:NumcodecsBackend"
REFERENCE = "chunkwright:ReferenceBackend"
BROKEN = "no_such_module_at_all:Backend"


def names(choice: str) -> list[str]:
    return [backend.name for backend in backends_for(choice)]


def test_settings_have_defaults() -> None:
    assert read_settings() == Settings("auto", False)


@pytest.mark.parametrize(
    ("value", "expected"),
    [(True, True), ("true", True), (" On", True), ("false", False), ("", False), (0, False), (None, False)],
)
def test_strict_may_come_as_text(value: Any, expected: bool) -> None:
    with zarr.config.set({"codec_pipeline.strict": value}):
        assert read_settings().strict is expected


@pytest.mark.parametrize("value", ["maybe", "2", 2, [True], {}])
def test_strictness_that_is_neither_true_nor_false_is_an_error(value: Any) -> None:
    with zarr.config.set({"codec_pipeline.strict": value}), pytest.raises(ConfigurationError, match="strict"):
        read_settings()


@pytest.mark.parametrize(
    ("value", "expected"), [(None, 1 << 31), (1000, 1000), ("1000", 1000), (np.int64(9), 9), (1 << 80, 1 << 48)]
)
def test_the_largest_chunk_may_be_set(value: Any, expected: int) -> None:
    with zarr.config.set({"codec_pipeline.max_chunk_bytes": value}):
        assert read_settings().max_chunk_bytes == expected


@pytest.mark.parametrize("value", [0, -1, True, 1.5, "2 GiB", [1]])
def test_a_largest_chunk_that_is_no_number_of_bytes_is_an_error(value: Any) -> None:
    setting = zarr.config.set({"codec_pipeline.max_chunk_bytes": value})
    with setting, pytest.raises(ConfigurationError, match="max_chunk_bytes"):
        read_settings()


@pytest.mark.parametrize("backend", ["numcodecs", "rust"])
def test_chunks_of_text_may_be_as_large_as_is_set_when_the_array_is_opened(backend: str) -> None:
    store = zarr.storage.MemoryStore()
    zarr.create_array(store, shape=(4,), dtype="str")[...] = "x" * 1000

    def opened(limit: int) -> Any:
        with use(backend=backend), zarr.config.set({"codec_pipeline.max_chunk_bytes": limit}):
            return zarr.open_array(store)

    small, large = opened(2000), opened(1 << 80)
    assert large[0] == "x" * 1000
    with pytest.raises(ChunkLengthError):
        small[0]


def test_a_backend_must_be_a_name() -> None:
    with zarr.config.set({"codec_pipeline.backend": 3}), pytest.raises(ConfigurationError):
        read_settings()


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({}, None),
        ({"threading.max_workers": 5}, 5),
        ({"threading.max_workers": 5, "codec_pipeline.max_workers": 2}, 2),
        ({"codec_pipeline.max_workers": "3"}, 3),
        ({"codec_pipeline.max-workers": 4}, 4),
        ({"codec_pipeline.max_workers": 0}, 1),
        ({"codec_pipeline.max_workers": 1 << 80}, 1 << 20),
    ],
)
def test_the_first_limit_of_threads_that_is_set_holds(values: dict[str, Any], expected: int | None) -> None:
    with zarr.config.set(values):
        assert max_workers() == expected


@pytest.mark.parametrize("value", ["many", float("inf"), float("nan")])
def test_a_limit_of_threads_that_is_no_number_is_logged_and_ignored(
    value: Any, caplog: pytest.LogCaptureFixture
) -> None:
    with zarr.config.set({"codec_pipeline.max_workers": value}), caplog.at_level(logging.WARNING, "chunkwright_zarr"):
        assert max_workers() is None
    assert repr(value) in caplog.text


def test_auto_is_rust_if_installed_then_numcodecs(installed: Installed) -> None:
    installed.only(numcodecs=NUMCODECS, rust=REFERENCE)
    assert names("auto") == ["reference", "numcodecs"]


def test_auto_without_rust_is_numcodecs_and_looks_once(installed: Installed) -> None:
    installed.only(numcodecs=NUMCODECS)
    assert names("auto") == names("auto") == ["numcodecs"]
    assert installed.looked_for.count("rust") == 1


def test_auto_passes_over_a_backend_that_does_not_load_and_logs_it_once(
    installed: Installed, caplog: pytest.LogCaptureFixture
) -> None:
    installed.only(numcodecs=NUMCODECS, rust=BROKEN)
    with caplog.at_level(logging.WARNING, "chunkwright_zarr"):
        assert names("auto") == names("auto") == ["numcodecs"]
    assert caplog.text.count("no_such_module_at_all") == 1


def test_numcodecs_never_loads_rust(installed: Installed) -> None:
    installed.only(numcodecs=NUMCODECS, rust=BROKEN)
    assert names("numcodecs") == ["numcodecs"]
    assert "rust" not in installed.looked_for


def test_a_backend_that_is_asked_for_must_be_there(installed: Installed) -> None:
    installed.only(numcodecs=NUMCODECS)
    with pytest.raises(BackendUnavailableError) as caught:
        backends_for("rust")
    assert (caught.value.backend, caught.value.hint) == ("rust", "install chunkwright-rust")


def test_a_backend_that_is_asked_for_must_load(installed: Installed) -> None:
    installed.only(numcodecs=NUMCODECS, rust=BROKEN)
    with pytest.raises(BackendUnavailableError, match="does not load"):
        backends_for("rust")


def test_an_unknown_backend_is_told_what_there_is(installed: Installed) -> None:
    installed.only(numcodecs=NUMCODECS)
    with pytest.raises(BackendUnavailableError, match="installed are numcodecs"):
        backends_for("cuda")


def test_any_entry_point_can_be_named_and_the_portable_backend_follows(installed: Installed) -> None:
    installed.only(numcodecs=NUMCODECS, mine=REFERENCE)
    assert names("mine") == ["reference", "numcodecs"]


def test_an_entry_point_may_be_an_object(installed: Installed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("chunkwright.reference.MADE", ReferenceBackend(), raising=False)
    installed.only(numcodecs=NUMCODECS, mine="chunkwright.reference:MADE")
    assert names("mine") == ["reference", "numcodecs"]


def pipeline_of(array: Any) -> Any:
    return array.async_array.codec_pipeline


def test_arrays_opened_inside_use_keep_their_choice(installed: Installed) -> None:
    installed.only(numcodecs=NUMCODECS, mine=REFERENCE)
    outside = zarr.config.get("codec_pipeline.path")
    with use(backend="mine", strict=True):
        inside = zarr.create_array({}, shape=(4,), dtype="i4", compressors=None)
    assert zarr.config.get("codec_pipeline.path") == outside
    assert pipeline_of(inside).settings == Settings("mine", True)
    assert [backend.name for backend in pipeline_of(inside)._backends] == ["reference", "numcodecs"]
    assert not isinstance(pipeline_of(zarr.create_array({}, shape=(4,), dtype="i4")), CodecPipeline)


def test_use_nests_and_keeps_what_is_not_given(installed: Installed) -> None:
    installed.only(numcodecs=NUMCODECS, mine=REFERENCE)
    with use(backend="mine"), use(strict=True):
        assert read_settings() == Settings("mine", True)
        with use(backend="numcodecs", strict=False):
            assert read_settings() == Settings("numcodecs", False)
        assert read_settings() == Settings("mine", True)
    assert read_settings() == Settings("auto", False)


def test_use_refuses_a_backend_that_is_not_there(installed: Installed) -> None:
    installed.only(numcodecs=NUMCODECS)
    with pytest.raises(BackendUnavailableError), use(backend="rust"):
        raise AssertionError("not reached")


def test_importing_the_plugin_loads_no_backend_and_changes_no_setting() -> None:
    code = """
import sys, zarr
before = dict(zarr.config.config)
import chunkwright_zarr
assert dict(zarr.config.config) == before
print(sorted(name for name in sys.modules if name.startswith(("chunkwright_numcodecs", "chunkwright_rust"))))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
