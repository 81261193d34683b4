"""What the backend says it can run, and what it is as a value."""

from __future__ import annotations

import pickle
import sys
from typing import Any

import attrs
import numcodecs
import numpy as np
import pytest

from chunkwright import Backend, CodecChain, UnsupportedCodecError, from_array_metadata
from chunkwright.codecs import CODECS, KNOWN
from chunkwright_numcodecs import NumcodecsBackend, cast_value
from chunkwright_numcodecs.backend import _KERNELS

LITTLE = {"name": "bytes", "configuration": {"endian": "little"}}


def prepared(codecs: list[Any], dtype: str = "float32", **options: Any) -> Any:
    return CodecChain.from_json(codecs).bind(dtype, 0).prepare((4,), backends=[NumcodecsBackend()], **options)


def refusal(codecs: list[Any], dtype: str = "float32") -> str:
    with pytest.raises(UnsupportedCodecError) as caught:
        prepared(codecs, dtype)
    return str(caught.value)


def test_backends_are_values_and_can_be_pickled():
    backend = NumcodecsBackend()
    assert isinstance(backend, Backend)
    assert pickle.loads(pickle.dumps(backend)) == backend == NumcodecsBackend()
    assert hash(backend) == hash(NumcodecsBackend())
    assert backend.name == "numcodecs"


def test_every_codec_that_is_known_has_a_kernel():
    shared = {"bytes", "endian", "transpose", "sharding_indexed"}
    assert {name for name in CODECS if name not in shared} | {f"numcodecs.{name}" for name in KNOWN} == set(_KERNELS)


def test_shards_are_left_to_the_core():
    codecs = [
        {
            "name": "sharding_indexed",
            "configuration": {"chunk_shape": [2], "codecs": [LITTLE], "index_codecs": [LITTLE]},
        }
    ]
    assert not NumcodecsBackend().supports(prepared(codecs).chain.codecs[0], prepared(codecs).spec)


def test_what_cannot_be_bounded_is_told():
    told = {name for name, (_, text) in _KERNELS.items() if "not bounded" in text}
    assert told == {"numcodecs.msgpack2", "numcodecs.pickle", "numcodecs.pcodec", "numcodecs.zfpy"}


def test_the_kernel_is_told_to_explain():
    texts = [run.kernel for run in prepared([LITTLE, {"name": "zstd", "configuration": {}}]).choices]
    assert texts == ["numpy", "numcodecs, headers checked"]


def test_a_library_that_is_missing_is_a_reason(monkeypatch):
    def missing(codec_id: str) -> type[Any]:
        raise ImportError("no such library here")

    monkeypatch.setattr("chunkwright_numcodecs.backend.library_class", missing)
    assert "no such library here" in refusal([LITTLE, {"name": "numcodecs.lz4", "configuration": {}}])


def test_a_class_that_numcodecs_leaves_out_is_a_reason(monkeypatch):
    monkeypatch.delattr("numcodecs.lzma.LZMA")
    assert "numcodecs has no LZMA here" in refusal([LITTLE, {"name": "numcodecs.lzma", "configuration": {}}])


def test_a_configuration_that_numcodecs_refuses_is_a_reason():
    text = refusal([{"name": "numcodecs.quantize", "configuration": {"digits": 2, "dtype": "<i4"}}, LITTLE])
    assert "numcodecs refuses the configuration: only floating point data types are supported" in text


def test_a_codec_that_a_host_registered_under_a_name_of_numcodecs_is_not_used(monkeypatch):
    class Other(numcodecs.Zlib):
        def encode(self, buf: Any) -> bytes:
            raise AssertionError

    monkeypatch.setitem(numcodecs.registry.codec_registry, "zlib", Other)
    chain = prepared([LITTLE, {"name": "numcodecs.zlib", "configuration": {}}])
    assert chain.encode(np.ones(4, "f4")) is not None


CAST = [{"name": "cast_value", "configuration": {"data_type": "int8"}}, LITTLE]


class TestCastValue:
    def test_needs_its_library(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "cast_value_rs", None)
        assert "needs the library cast-value-rs" in refusal(CAST)

    def test_needs_a_version_that_takes_arrays_of_any_order(self, monkeypatch):
        monkeypatch.setattr(cast_value, "version", lambda name: "0.4.1")
        assert "needs cast-value-rs 0.4.2, found 0.4.1" in refusal(CAST)

    @pytest.mark.parametrize("found", ["0.4.2", "0.10.0", "1.0", "2"])
    def test_takes_newer_ones(self, monkeypatch, found):
        monkeypatch.setattr(cast_value, "version", lambda name: found)
        prepared(CAST)

    def test_takes_a_build_that_has_no_version(self, monkeypatch):
        def unknown(name: str) -> str:
            raise cast_value.PackageNotFoundError

        monkeypatch.setattr(cast_value, "version", unknown)
        prepared(CAST)

    def test_of_arrays_in_any_order_and_byte_order(self):
        codecs = [{"name": "transpose", "configuration": {"order": [1, 0]}}, *CAST]
        chain = CodecChain.from_json(codecs).bind(np.dtype(">f4"), 0).prepare((2, 3), backends=[NumcodecsBackend()])
        array = np.array([[1, 2, 3], [4, 5, 6]], ">f4")
        assert bytes(chain.encode(array)) == bytes([1, 4, 2, 5, 3, 6])
        np.testing.assert_array_equal(chain.decode(bytes([1, 4, 2, 5, 3, 6])), array)

    @pytest.mark.parametrize("value", [200, np.nan])
    def test_values_that_do_not_fit_are_told_while_encoding(self, value):
        with pytest.raises(ValueError, match=r"out of range|NaN"):
            prepared(CAST).encode(np.full(4, value, "f4"))


def test_pickles_where_the_process_allows_them(monkeypatch):
    monkeypatch.setattr("numcodecs.pickles.ALLOW_UNSAFE_PICKLE_DECODE", True)
    metadata = {
        "zarr_format": 2, "shape": [2], "chunks": [2], "dtype": "|O", "order": "C", "fill_value": None,
        "filters": [{"id": "pickle", "protocol": 4}], "compressor": {"id": "zlib", "level": 1},
    }  # fmt: skip
    chain = from_array_metadata(metadata)[0].prepare((2,), backends=[NumcodecsBackend()])
    array = np.array([{"a": 1}, None], object)
    encoded = chain.encode(array)
    assert bytes(encoded) == numcodecs.Zlib(1).encode(numcodecs.Pickle(4).encode(array))
    assert chain.decode(encoded).tolist() == array.tolist()


def test_strings_are_objects_or_of_numpys_string_dtype():
    bound = CodecChain.from_json(["vlen-utf8"]).bind("string", "")
    words = ["a", "żółw"]
    for dtype in (np.dtype(object), np.dtypes.StringDType()):
        kind = attrs.evolve(bound.dtype, numpy=dtype)
        chain = CodecChain.from_json(["vlen-utf8"]).bind(kind, "fill").prepare((2,), backends=[NumcodecsBackend()])
        for given in (np.array(words, object), np.array(words, np.dtypes.StringDType()), np.array(words)):
            found = chain.decode(chain.encode(given))
            assert found.dtype == dtype
            assert found.tolist() == words


@pytest.mark.parametrize(("before", "after"), [(None, False), (True, True), (False, False)])
def test_threads_of_blosc_are_turned_off_unless_somebody_chose(monkeypatch, before, after):
    monkeypatch.setattr("numcodecs.blosc.use_threads", before)
    prepared([LITTLE, {"name": "blosc", "configuration": {"cname": "lz4"}}])
    assert numcodecs.blosc.use_threads is after
