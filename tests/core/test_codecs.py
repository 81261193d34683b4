"""Codecs as values: from JSON and back, what is wrong with a configuration, equality, pickling."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chunkwright.chain import CodecChain
from chunkwright.codecs import (
    CODECS,
    KNOWN,
    Blosc,
    Bytes,
    CastValue,
    Codec,
    Crc32c,
    Gzip,
    NumcodecsArrayArray,
    NumcodecsArrayBytes,
    NumcodecsBytesBytes,
    ScalarMap,
    ScaleOffset,
    ShardingIndexed,
    Transpose,
    VLenBytes,
    VLenUTF8,
    Zstd,
    find_codec,
    numcodecs_codec,
)
from chunkwright.codecs._options import Options
from chunkwright.errors import ConfigurationError

INDEX = [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "crc32c"}]

EXAMPLES: list[tuple[Codec, dict[str, Any]]] = [
    (Bytes(), {"name": "bytes"}),
    (Bytes(endian="big"), {"name": "bytes", "configuration": {"endian": "big"}}),
    (Transpose(order=(1, 0)), {"name": "transpose", "configuration": {"order": [1, 0]}}),
    (Transpose(order=()), {"name": "transpose", "configuration": {"order": []}}),
    (Gzip(level=0), {"name": "gzip", "configuration": {"level": 0}}),
    (Zstd(level=-5, checksum=True), {"name": "zstd", "configuration": {"level": -5, "checksum": True}}),
    (
        Blosc(cname="lz4", clevel=1, shuffle="bitshuffle", typesize=4, blocksize=16),
        {
            "name": "blosc",
            "configuration": {
                "cname": "lz4",
                "clevel": 1,
                "shuffle": "bitshuffle",
                "typesize": 4,
                "blocksize": 16,
            },
        },
    ),
    (Crc32c(), {"name": "crc32c"}),
    (VLenUTF8(), {"name": "vlen-utf8"}),
    (VLenBytes(), {"name": "vlen-bytes"}),
    (ScaleOffset(), {"name": "scale_offset"}),
    (
        ScaleOffset(offset=5, scale="0x3f000000"),
        {"name": "scale_offset", "configuration": {"offset": 5, "scale": "0x3f000000"}},
    ),
    (
        CastValue(
            data_type="int8", rounding="towards-zero", out_of_range="wrap", scalar_map=ScalarMap(encode=(("NaN", 0),))
        ),
        {
            "name": "cast_value",
            "configuration": {
                "data_type": "int8",
                "rounding": "towards-zero",
                "out_of_range": "wrap",
                "scalar_map": {"encode": [["NaN", 0]]},
            },
        },
    ),
    (
        ShardingIndexed(
            chunk_shape=(2, 3), codecs=CodecChain.from_codecs([Bytes(endian="little"), Zstd()]), index_location="start"
        ),
        {
            "name": "sharding_indexed",
            "configuration": {
                "chunk_shape": [2, 3],
                "codecs": [
                    {"name": "bytes", "configuration": {"endian": "little"}},
                    {"name": "zstd", "configuration": {"level": 0, "checksum": False}},
                ],
                "index_codecs": INDEX,
                "index_location": "start",
            },
        },
    ),
    (
        NumcodecsArrayArray(codec_name="delta", options={"dtype": "<i4"}),
        {"name": "numcodecs.delta", "configuration": {"dtype": "<i4"}},
    ),
    (NumcodecsArrayBytes(codec_name="pcodec"), {"name": "numcodecs.pcodec"}),
    (
        NumcodecsBytesBytes(codec_name="lzma", options={"filters": [{"id": 3, "dist": 4}], "preset": None}),
        {"name": "numcodecs.lzma", "configuration": {"filters": [{"id": 3, "dist": 4}], "preset": None}},
    ),
]


def made(document: dict[str, Any]) -> Codec:
    """Make the codec of its metadata."""
    found = find_codec(document["name"])
    assert found is not None
    kind, make = found
    codec = make(document.get("configuration", {}))
    assert codec.kind == kind
    return codec


@pytest.mark.parametrize(("codec", "document"), EXAMPLES, ids=lambda value: getattr(value, "name", ""))
class TestEveryCodec:
    def test_is_written_as_its_metadata(self, codec: Codec, document: dict[str, Any]) -> None:
        assert codec.to_json() == document

    def test_is_read_from_its_metadata(self, codec: Codec, document: dict[str, Any]) -> None:
        assert made(document) == codec
        assert hash(made(document)) == hash(codec)

    def test_pickles(self, codec: Codec, document: dict[str, Any]) -> None:
        assert pickle.loads(pickle.dumps(codec)) == codec

    def test_does_not_know_other_keys(self, codec: Codec, document: dict[str, Any]) -> None:
        with pytest.raises(ConfigurationError, match=r"configuration\.flavour: unknown key"):
            made({**document, "configuration": {**document.get("configuration", {}), "flavour": 1}})


def test_every_name_has_a_class_of_that_name() -> None:
    arguments = {
        "cast_value": {"data_type": "int8"},
        "sharding_indexed": {"chunk_shape": [1]},
        "transpose": {"order": []},
    }
    for name, cls in CODECS.items():
        assert cls.from_configuration(arguments.get(name, {})).name == ("bytes" if name == "endian" else name)


def test_names_that_are_not_in_the_table_are_not_known() -> None:
    assert find_codec("numcodecs.nothing") is None
    assert find_codec("delta") is None
    assert find_codec("numcodecs.pickle") is None


def test_an_id_in_the_configuration_of_a_numcodecs_codec_is_not_an_option() -> None:
    assert made({"name": "numcodecs.zlib", "configuration": {"id": "zlib", "level": 1}}).configuration() == {"level": 1}


class TestWrongConfigurations:
    @pytest.mark.parametrize(
        ("name", "configuration", "found"),
        [
            ("bytes", {"endian": "middle"}, ["configuration.endian: must be one of 'little', 'big', not 'middle'"]),
            ("bytes", {"endian": 1}, ["configuration.endian: must be one of 'little', 'big', not 1"]),
            ("transpose", {}, ["configuration.order: is missing"]),
            ("transpose", {"order": "C"}, ["configuration.order: must be a list, not 'C'"]),
            ("transpose", {"order": [0, 0]}, ["configuration.order: must be a permutation of the axes, not [0, 0]"]),
            ("transpose", {"order": [0.0]}, ["configuration.order: must be an integer, not 0.0"]),
            ("transpose", {"order": [-1, 0]}, ["configuration.order: must be at least 0, not -1"]),
            ("gzip", {"level": 10}, ["configuration.level: must be between 0 and 9, not 10"]),
            ("gzip", {"level": True}, ["configuration.level: must be an integer, not True"]),
            ("zstd", {"level": 23}, ["configuration.level: must be between -131072 and 22, not 23"]),
            ("zstd", {"checksum": 1}, ["configuration.checksum: must be true or false, not 1"]),
            ("blosc", {"typesize": 0}, ["configuration.typesize: must be at least 1, not 0"]),
            (
                "blosc",
                {"cname": "lzo", "clevel": "5", "blocksize": -1},
                [
                    "configuration.cname: must be one of 'blosclz', 'lz4', 'lz4hc',",
                    "configuration.clevel: must be an integer, not '5'",
                    "configuration.blocksize: must be at least 0, not -1",
                ],
            ),
            ("scale_offset", {"offset": None}, ["configuration.offset: must be a number, not None"]),
            ("scale_offset", {"scale": True}, ["configuration.scale: must be a number, not True"]),
            ("cast_value", {}, ["configuration.data_type: is missing"]),
            ("cast_value", {"data_type": "int8", "scalar_map": []}, ["configuration.scalar_map: must be an object"]),
            ("cast_value", {"data_type": "int8", "scalar_map": {"x": []}}, ["configuration.scalar_map: must be an"]),
            (
                "cast_value",
                {"data_type": "int8", "scalar_map": {"encode": [[1, 2, 3]]}},
                ["configuration.scalar_map: must be a list of pairs"],
            ),
            ("sharding_indexed", {"chunk_shape": [0]}, ["configuration.chunk_shape: must be at least 1, not 0"]),
            ("sharding_indexed", {"chunk_shape": 2}, ["configuration.chunk_shape: must be a list, not 2"]),
            (
                "sharding_indexed",
                {"chunk_shape": [2], "codecs": {}, "index_location": "middle"},
                [
                    "configuration.codecs: must be a list of codecs, not {}",
                    "configuration.index_location: must be one of 'start', 'end', not 'middle'",
                ],
            ),
            ("numcodecs.delta", {}, ["configuration.dtype: is missing"]),
            ("numcodecs.delta", {"dtype": None}, ["configuration.dtype: is missing"]),
            (
                "numcodecs.delta",
                {"dtype": "<i4", "astype": "nonsense"},
                ["configuration.astype: must be a NumPy data type, not 'nonsense'"],
            ),
            (
                "numcodecs.delta",
                {"dtype": ["<i4"]},
                ["configuration.dtype: must be a NumPy data type, not ('<i4',)"],
            ),
        ],
    )
    def test_every_problem_is_reported_with_its_place(
        self, name: str, configuration: dict[str, Any], found: list[str]
    ) -> None:
        with pytest.raises(ConfigurationError) as caught:
            made({"name": name, "configuration": configuration})
        problems = [repr(problem) for problem in caught.value.problems]
        assert len(problems) == len(found)
        assert all(text.startswith(start) for text, start in zip(problems, found, strict=True))

    def test_objects_are_checked_when_they_are_made(self) -> None:
        with pytest.raises(ConfigurationError, match=r"zstd: configuration\.level: must be between") as caught:
            Zstd(level=99)
        assert caught.value.codec == "zstd"

    def test_a_class_for_another_kind_is_refused(self) -> None:
        with pytest.raises(ConfigurationError, match="no bytes->bytes codec of numcodecs has the id 'delta'"):
            NumcodecsBytesBytes(codec_name="delta", options={"dtype": "<i4"})
        with pytest.raises(ConfigurationError, match="numcodecs has no codec of the id 'nothing'"):
            numcodecs_codec("nothing", {})


class TestEquality:
    def test_offsets_are_compared_as_they_are_written(self) -> None:
        assert ScaleOffset(offset=0.0) != ScaleOffset(offset=-0.0)
        assert ScaleOffset(offset=1) != ScaleOffset(offset=1.0)

    def test_codecs_for_writing_in_another_order_differ(self) -> None:
        assert ShardingIndexed(chunk_shape=(1,), order="morton") != ShardingIndexed(chunk_shape=(1,), order="unordered")

    def test_options_tell_integers_from_floats_and_booleans(self) -> None:
        spellings = [Options({"offset": value}) for value in (1, 1.0, True)]
        assert len(set(spellings)) == 3
        assert Options({"a": 1, "b": 2}) == Options({"b": 2, "a": 1})
        assert Options({"a": 1}) != {"a": 1}

    def test_options_are_a_mapping_that_cannot_change(self) -> None:
        options = Options({"labels": ["a", ["b"]], "filters": [{"id": 1}], "dtype": np.dtype("<i4")})
        assert dict(options)["labels"] == ("a", ("b",))
        assert len(options) == 3
        assert options.to_json() == {"labels": ["a", ["b"]], "filters": [{"id": 1}], "dtype": "<i4"}
        assert options.with_value("labels", ["c"]).to_json()["labels"] == ["c"]
        assert options.to_json()["labels"] == ["a", ["b"]]
        assert repr(Options({"a": [1]})) == "Options({'a': [1]})"

    def test_options_take_the_values_that_numcodecs_objects_have(self) -> None:
        options = Options({"level": np.int64(3), "prefix": np.frombuffer(b"ab", "u1")})
        assert options.to_json() == {"level": 3, "prefix": b"ab"}


def attempted(name: str, configuration: Any) -> Codec | ConfigurationError:
    """Return the codec, or what is wrong with its configuration."""
    try:
        return made({"name": name, "configuration": configuration})
    except ConfigurationError as error:
        return error


ALL_NAMES = [*CODECS, *(f"numcodecs.{codec_id}" for codec_id, known in KNOWN.items() if known.in_v3)]
KEYS = ["level", "order", "endian", "chunk_shape", "codecs", "dtype", "astype", "scalar_map", "typesize", "offset"]

scalars = st.sampled_from([None, True, 0, 1, -1, 2**70, 0.5, "", "NaN", "<i4", "little", "x"])
values = (
    scalars | st.lists(scalars, max_size=3) | st.dictionaries(st.sampled_from(["encode", "a"]), scalars, max_size=2)
)


@settings(deadline=None)
@given(name=st.sampled_from(ALL_NAMES), configuration=st.dictionaries(st.sampled_from(KEYS), values, max_size=3))
def test_any_configuration_is_a_codec_or_a_configuration_error(name: str, configuration: dict[str, Any]) -> None:
    found = attempted(name, configuration)
    if isinstance(found, Codec):
        assert made(found.to_json()) == found
    else:
        assert found.problems
        assert all(problem.location[:1] == ("configuration",) for problem in found.problems)
