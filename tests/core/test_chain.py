"""Codec chains: exact round trips, all problems at once, binding."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chunkwright.chain import BoundChain, CodecChain
from chunkwright.codecs import (
    Blosc,
    Bytes,
    CastValue,
    Crc32c,
    Foreign,
    ForeignArrayArray,
    Gzip,
    NumcodecsArrayArray,
    ShardingIndexed,
    Transpose,
    VLenBytes,
    VLenUTF8,
    foreign_codec,
)
from chunkwright.errors import ConfigurationError, UnknownCodecError
from chunkwright.spec import ChunkSpec, DataType, FillValue, FixedSize, UnboundedSize
from tests.core.host import Host

LITTLE = {"name": "bytes", "configuration": {"endian": "little"}}
INDEX = [LITTLE, {"name": "crc32c"}]


def sharding(*codecs: Any, **configuration: Any) -> dict[str, Any]:
    """Return the metadata of a sharding codec."""
    return {
        "name": "sharding_indexed",
        "configuration": {
            "chunk_shape": [2, 2],
            "codecs": list(codecs),
            "index_codecs": INDEX,
            "index_location": "end",
            **configuration,
        },
    }


def problems_of(document: Any, **options: Any) -> list[str]:
    """Return everything that is wrong with a list of codecs."""
    with pytest.raises(ConfigurationError) as caught:
        CodecChain.from_json(document, **options)
    return [repr(problem) for problem in caught.value.problems]


class TestRoundTrip:
    @pytest.mark.parametrize(
        "document",
        [
            ["bytes"],
            [LITTLE, {"name": "gzip", "configuration": {}}],
            [{"name": "bytes", "configuration": {"endian": "little"}, "must_understand": True}],
            [{"name": "endian", "configuration": {"endian": "big"}}],
            [LITTLE, {"name": "strange", "configuration": {"a": [1, {"b": None}]}, "must_understand": False}],
            [sharding(sharding(LITTLE, "crc32c", chunk_shape=[1, 1]))],
            [{"name": "vlen-utf8", "configuration": {}}],
        ],
    )
    def test_what_was_read_is_written(self, document: list[Any]) -> None:
        assert CodecChain.from_json(document).to_json() == document

    def test_what_is_written_can_be_changed_without_harm(self) -> None:
        document = [{"name": "gzip", "configuration": {"level": 1}}]
        chain = CodecChain.from_json(["bytes", *document])
        document[0]["configuration"] = {"level": 2}
        chain.to_json()[1]["configuration"]["level"] = 3
        assert chain.to_json() == ["bytes", {"name": "gzip", "configuration": {"level": 1}}]

    def test_chains_of_objects_are_written_in_canonical_form(self) -> None:
        chain = CodecChain.from_codecs([Transpose(order=(0,)), Bytes(endian="little"), Crc32c()])
        assert chain.to_json() == [{"name": "transpose", "configuration": {"order": [0]}}, *INDEX]

    def test_spelling_does_not_count_in_comparisons(self) -> None:
        short, long = CodecChain.from_json(["bytes", "crc32c"]), CodecChain.from_codecs([Bytes(), Crc32c()])
        assert short == long
        assert hash(short) == hash(long)

    def test_a_codec_that_need_not_be_understood_is_left_out(self) -> None:
        chain = CodecChain.from_json([LITTLE, {"name": "strange", "must_understand": False}])
        assert chain.codecs == (Bytes(endian="little"),)

    def test_pickles_with_its_spelling(self) -> None:
        chain = CodecChain.from_json(["bytes", sharded := {"name": "zstd", "configuration": {"level": 1}}])
        assert pickle.loads(pickle.dumps(chain)).to_json() == ["bytes", sharded]


class TestProblems:
    def test_all_of_them_are_reported_at_once_with_their_places(self) -> None:
        document = [
            {"name": "gzip", "configuration": {"level": 10, "speed": 1}},
            {"name": "strange"},
            sharding("zstd", {"name": "bytes", "configuration": {"endian": "middle"}}),
            {"name": "transpose", "configuration": {"order": [0]}},
            7,
            {"name": 1, "configuration": [], "must_understand": "no", "extra": 0},
        ]
        assert problems_of(document) == [
            "codecs[0].configuration.level: must be between 0 and 9, not 10",
            "codecs[0].configuration.speed: unknown key",
            "codecs[1]: unknown codec 'strange'",
            "codecs[2].configuration.codecs[1].configuration.endian: must be one of 'little', 'big', not 'middle'",
            "codecs[2].configuration.codecs[0]: a bytes->bytes codec comes after the array->bytes codec",
            "codecs[4]: must be a name or an object, not 7",
            "codecs[5].extra: unknown key",
            "codecs[5].name: must be a string",
            "codecs[5].configuration: must be an object",
            "codecs[5].must_understand: must be true or false",
            "codecs[0]: a bytes->bytes codec comes after the array->bytes codec",
            "codecs[3]: an array->array codec comes before the array->bytes codec",
        ]

    @pytest.mark.parametrize(
        ("document", "found"),
        [
            ([], "codecs: there is no array->bytes codec"),
            (["crc32c"], "codecs: there is no array->bytes codec"),
            ([LITTLE, "vlen-utf8"], "codecs[1]: there is an array->bytes codec already"),
            ("bytes", "codecs: must be a list of codecs, not 'bytes'"),
            (None, "codecs: must be a list of codecs, not None"),
        ],
    )
    def test_kinds_must_make_a_chain(self, document: Any, found: str) -> None:
        assert problems_of(document) == [found]

    def test_shards_in_shards_in_shards_without_end_are_a_problem(self) -> None:
        document: Any = ["bytes"]
        for _ in range(500):
            document = [sharding(*document)]
        assert problems_of(document)[0].endswith("are nested too deeply")

    def test_chains_of_objects_are_checked_too(self) -> None:
        with pytest.raises(ConfigurationError, match=r"codecs\[0\]: a bytes->bytes codec comes after"):
            CodecChain.from_codecs([Gzip(), Bytes()])

    def test_unknown_codecs_alone_have_an_error_of_their_own(self) -> None:
        with pytest.raises(UnknownCodecError) as caught:
            CodecChain.from_json([LITTLE, "strange", "stranger"])
        assert caught.value.codec == "strange"
        assert len(caught.value.problems) == 2

    def test_an_unknown_codec_may_be_the_missing_one(self) -> None:
        assert problems_of(["strange", "crc32c"]) == ["codecs[0]: unknown codec 'strange'"]


class TestForeign:
    def test_a_factory_is_given_the_configuration(self) -> None:
        chain = CodecChain.from_json(
            [LITTLE, {"name": "host", "configuration": {"a": 1}}], foreign={"host": lambda options: Host(options)}
        )
        codec = chain.codecs[1]
        assert isinstance(codec, Foreign)
        assert codec.foreign.configuration == {"a": 1}  # type: ignore[attr-defined]
        assert codec.to_json() == {"name": "host", "configuration": {"a": 1}}

    def test_comes_before_a_codec_of_ours(self) -> None:
        chain = CodecChain.from_json([LITTLE, "gzip"], foreign={"gzip": Host})
        assert isinstance(chain.codecs[1], Foreign)

    def test_is_found_within_shards(self) -> None:
        chain = CodecChain.from_json([sharding(LITTLE, "host")], foreign={"host": Host})
        shard = chain.codecs[0]
        assert isinstance(shard, ShardingIndexed)
        assert isinstance(shard.codecs.codecs[1], Foreign)

    def test_has_no_place_in_an_index(self) -> None:
        document = [sharding(LITTLE, index_codecs=[LITTLE, "host"])]
        assert problems_of(document, foreign={"host": Host}) == [
            "codecs[0].configuration.index_codecs: the encoded index must have a fixed size"
        ]

    def test_is_equal_only_to_itself(self) -> None:
        host = Host()
        assert foreign_codec(host) == foreign_codec(host, {"other": "options"})
        assert hash(foreign_codec(host)) == hash(foreign_codec(host))
        assert foreign_codec(host) != foreign_codec(Host())

    def test_says_what_the_next_codec_is_given(self) -> None:
        host = Host(kind="array->array", to="<i4")
        chain = CodecChain.from_codecs([foreign_codec(host), Bytes(endian="little"), Blosc()])
        bound = chain.bind("int8", 0, ndim=2)
        assert isinstance(bound.codecs[0], ForeignArrayArray)
        assert bound.codecs[2].configuration()["typesize"] == 4
        assert bound.encoded_size((2, 3)) == UnboundedSize()
        assert bound.codecs[0].encoded_size(
            FixedSize(6), ChunkSpec((2, 3), bound.dtype, bound.fill_value)
        ) == FixedSize(24)


class TestBinding:
    def test_each_codec_is_given_what_the_one_before_makes(self) -> None:
        chain = CodecChain.from_codecs(
            [
                Transpose(order=(1, 0)),
                CastValue(data_type="int32"),
                NumcodecsArrayArray(codec_name="fixedscaleoffset", options={"offset": 0, "scale": 1, "astype": "<i2"}),
                Bytes(endian="little"),
                Blosc(),
            ]
        )
        bound = chain.bind("int8", 5)
        assert bound.codecs[2].configuration()["dtype"] == "int32"
        assert bound.codecs[3] == Bytes(endian="little")
        assert bound.codecs[4].configuration()["typesize"] == 2

    def test_views_by_kind(self) -> None:
        bound = CodecChain.from_codecs([Transpose(order=(0,)), Bytes(), Gzip(), Crc32c()]).bind("int8")
        assert bound.array_array == (Transpose(order=(0,)),)
        assert bound.array_bytes == Bytes()
        assert bound.bytes_bytes == (Gzip(), Crc32c())

    def test_sizes_are_threaded_through_the_chain(self) -> None:
        chain = CodecChain.from_codecs(
            [Transpose(order=(1, 0)), CastValue(data_type="int32"), Bytes(endian="big"), Crc32c()]
        )
        assert chain.bind("int8").encoded_size((3, 5)) == FixedSize(64)

    def test_bound_chains_are_values(self) -> None:
        chain = CodecChain.from_json([sharding(LITTLE, "blosc")])
        bound = chain.bind("float32", "NaN")
        assert bound == chain.bind("float32", np.float32("nan"))
        assert hash(bound) == hash(chain.bind("float32", "NaN"))
        assert bound != chain.bind("float32", "0x7fc00001")
        again: BoundChain = pickle.loads(pickle.dumps(bound))
        assert (again, hash(again)) == (bound, hash(bound))

    def test_binding_again_changes_nothing(self) -> None:
        bound = CodecChain.from_json([sharding(LITTLE, "blosc")]).bind("int16")
        assert bound.unbound().bind(bound.dtype, bound.fill_value) == bound

    @pytest.mark.parametrize(
        ("dtype", "fill_value", "expected"),
        [
            (np.dtype("<f4"), "-Infinity", np.float32("-inf")),
            (np.dtype("<f4"), -0.0, np.float32(-0.0)),
            (np.dtype("<f4"), np.float32(2.5), np.float32(2.5)),
            (DataType(np.dtype(">i2")), 3, np.int16(3)),
            ("complex64", 1 + 2j, np.complex64(1 + 2j)),
            ("complex64", [1, "NaN"], None),
            ({"name": "numpy.datetime64", "configuration": {"unit": "s", "scale_factor": 1}}, 5, np.datetime64(5, "s")),
            (np.dtype("<M8[s]"), np.datetime64(5, "s"), np.datetime64(5, "s")),
            (np.dtype("S3"), b"ab", np.bytes_(b"ab")),
            (np.dtype("S3"), "YWI=", np.bytes_(b"ab")),
            (np.dtype([("a", "i1"), ("b", "i1")]), (1, 2), None),
            (np.dtype([("a", "i1"), ("b", "i1")]), {"a": 1}, None),
        ],
    )
    def test_takes_fill_values_as_values_and_as_json(self, dtype: Any, fill_value: Any, expected: Any) -> None:
        bound = CodecChain.from_codecs([Bytes(endian="little")]).bind(dtype, fill_value)
        assert bound.fill_value.value.dtype == bound.dtype.numpy
        assert expected is None or bound.fill_value == FillValue.of(bound.dtype, expected)

    def test_takes_a_fill_value_as_it_is(self) -> None:
        fill = FillValue.of(DataType(np.dtype("i1")), 3)
        assert CodecChain.from_codecs([Bytes()]).bind("int8", fill).fill_value is fill

    @pytest.mark.parametrize(
        ("codec", "holds"),
        [(VLenUTF8(), "string"), (VLenBytes(), "bytes"), (foreign_codec(Host(kind="array->bytes")), "object")],
    )
    def test_objects_are_what_the_codec_stores(self, codec: Any, holds: str) -> None:
        assert CodecChain.from_codecs([codec]).bind(np.dtype(object)).dtype.variable == holds

    def test_numpy_strings_are_strings(self) -> None:
        dtype = CodecChain.from_codecs([VLenUTF8()]).bind(np.dtypes.StringDType(), "a").dtype
        assert dtype == DataType(np.dtypes.StringDType(), "string")

    def test_a_fill_value_that_does_not_fit_is_an_error(self) -> None:
        with pytest.raises(ConfigurationError, match="300 does not fit as a fill value of int8"):
            CodecChain.from_codecs([Bytes()]).bind("int8", 300)

    @pytest.mark.parametrize(
        ("codecs", "found"),
        [
            (["bytes"], "bytes: codecs[0]: endian is missing for data type int16"),
            (["vlen-utf8"], "vlen-utf8: codecs[0]: wrong data type: expected string, found int16"),
            (
                [{"name": "scale_offset", "configuration": {"scale": 0}}, LITTLE],
                "scale_offset: codecs[0].configuration.scale: must not be 0",
            ),
            (["numcodecs.packbits", "bytes"], "numcodecs.packbits: codecs[0]: cannot encode int16"),
            ([sharding("bytes")], "bytes: codecs[0].configuration.codecs[0]: endian is missing for data type int16"),
        ],
    )
    def test_what_does_not_go_with_the_data_type_has_its_place(self, codecs: list[Any], found: str) -> None:
        with pytest.raises(ConfigurationError) as caught:
            CodecChain.from_json(codecs).bind("int16")
        assert str(caught.value) == found

    def test_an_unknown_data_type_is_an_error(self) -> None:
        with pytest.raises(ConfigurationError, match="unknown data type 'int7'"):
            CodecChain.from_codecs([Bytes()]).bind("int7", 0)


names = st.sampled_from(
    ["bytes", "gzip", "crc32c", "transpose", "vlen-utf8", "strange", "numcodecs.zlib", "sharding_indexed"]
)
items = st.one_of(
    names,
    st.fixed_dictionaries(
        {"name": names | st.integers()},
        optional={
            "configuration": st.dictionaries(
                st.sampled_from(["level", "order", "endian"]), st.integers(-1, 3) | st.none()
            ),
            "must_understand": st.booleans(),
            "other": st.none(),
        },
    ),
    st.none(),
)


def read(document: list[Any]) -> CodecChain | ConfigurationError:
    """Return the chain of a list of codecs, or what is wrong with it."""
    try:
        return CodecChain.from_json(document)
    except ConfigurationError as error:
        return error


@settings(deadline=None)
@given(st.lists(items, max_size=4))
def test_any_list_is_a_chain_that_round_trips_or_a_configuration_error(document: list[Any]) -> None:
    found = read(document)
    if isinstance(found, CodecChain):
        assert found.to_json() == document
        assert CodecChain.from_json([codec.to_json() for codec in found.codecs]) == found
    else:
        assert found.problems
        assert all(problem.location[0] == "codecs" for problem in found.problems)
