"""Binding codecs to data types, compared with what zarr's ``evolve_from_array_spec`` and ``resolve_metadata`` do."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from zarr.core.array_spec import ArrayConfig, ArraySpec
from zarr.core.buffer import default_buffer_prototype
from zarr.core.dtype import get_data_type_from_json
from zarr.registry import get_codec_class

from chunkwright.chain import CodecChain
from chunkwright.codecs import (
    Blosc,
    Bytes,
    CastValue,
    Codec,
    Crc32c,
    Gzip,
    NumcodecsArrayArray,
    NumcodecsBytesBytes,
    ScaleOffset,
    ShardingIndexed,
    Transpose,
    VLenBytes,
    VLenUTF8,
    find_codec,
)
from chunkwright.dtype_json import dtype_from_json
from chunkwright.errors import ConfigurationError
from chunkwright.spec import BoundedSize, ChunkSpec, DataType, FillValue, FixedSize, UnboundedSize
from tests.core.zarr_dtypes import ALL, FIXED, FLOATS, INTEGERS, VARIABLE

pytestmark = pytest.mark.filterwarnings(
    "ignore:The data type", "ignore:Missing 'endian'", "ignore:The 'generic' unit:DeprecationWarning"
)

CONFIGURATIONS: list[tuple[str, dict[str, Any]]] = [
    ("bytes", {}),
    ("bytes", {"endian": "little"}),
    ("bytes", {"endian": "big"}),
    ("transpose", {"order": [1, 0]}),
    ("gzip", {"level": 2}),
    ("zstd", {"level": 2, "checksum": True}),
    ("crc32c", {}),
    ("blosc", {}),
    ("blosc", {"typesize": 3}),
    ("blosc", {"shuffle": "noshuffle"}),
    ("blosc", {"cname": "lz4", "clevel": 9, "shuffle": "bitshuffle", "typesize": 8, "blocksize": 256}),
    ("numcodecs.shuffle", {}),
    ("numcodecs.shuffle", {"elementsize": 2}),
    ("numcodecs.zlib", {"level": 3}),
    ("numcodecs.crc32", {}),
    ("numcodecs.adler32", {"location": "end"}),
]

NUMERIC: list[tuple[str, dict[str, Any]]] = [
    ("numcodecs.delta", {"dtype": "<i4"}),
    ("numcodecs.delta", {"dtype": "<i4", "astype": "<i2"}),
    ("numcodecs.fixedscaleoffset", {"offset": 1, "scale": 2}),
    ("numcodecs.fixedscaleoffset", {"offset": 1, "scale": 2, "astype": "|u1"}),
    ("numcodecs.fixedscaleoffset", {"offset": 1, "scale": 2, "dtype": "<f8", "astype": ">i2"}),
    ("numcodecs.astype", {"encode_dtype": ">f4"}),
    ("numcodecs.astype", {"encode_dtype": "<f4", "decode_dtype": "<f8"}),
    ("scale_offset", {"offset": 0, "scale": 1}),
    ("cast_value", {"data_type": "float64"}),
]


def array_spec(document: Any, shape: tuple[int, ...] = (4, 6)) -> ArraySpec:
    """Return zarr's spec of a chunk."""
    dtype = get_data_type_from_json(document, zarr_format=3)
    config = ArrayConfig(order="C", write_empty_chunks=False)
    return ArraySpec(shape, dtype, dtype.default_scalar(), config, default_buffer_prototype())


def chunk_spec(document: Any, shape: tuple[int, ...] = (4, 6)) -> ChunkSpec:
    """Return our spec of a chunk."""
    dtype = dtype_from_json(document)
    return ChunkSpec(shape, dtype, FillValue.of(dtype, None))


def made(name: str, configuration: dict[str, Any]) -> Codec:
    """Make our codec of its metadata."""
    found = find_codec(name)
    assert found is not None
    return found[1](configuration)


def evolved(name: str, configuration: dict[str, Any], spec: ArraySpec) -> Any:
    """Make zarr's codec of its metadata and evolve it."""
    codec = get_codec_class(name).from_dict({"name": name, "configuration": configuration})
    return codec.evolve_from_array_spec(spec)


def normal(document: Any) -> Any:
    """Return JSON with lists for tuples and without empty configurations."""
    name, configuration = document["name"], document.get("configuration") or {}
    return name, {key: list(value) if isinstance(value, tuple) else value for key, value in configuration.items()}


@pytest.mark.parametrize(("name", "configuration"), CONFIGURATIONS)
@pytest.mark.parametrize("document", ALL, ids=str)
def test_binding_fills_in_what_zarr_fills_in(name: str, configuration: dict[str, Any], document: Any) -> None:
    ours = made(name, configuration)
    spec = chunk_spec(document)
    if name == "bytes" and document in VARIABLE:
        with pytest.raises(ConfigurationError, match="variable length"):
            ours.bind(spec.dtype, spec.fill_value)
        return
    try:
        theirs = evolved(name, configuration, array_spec(document))
    except ValueError:
        with pytest.raises(ConfigurationError, match="endian is missing"):
            ours.bind(spec.dtype, spec.fill_value)
    else:
        bound = ours.bind(spec.dtype, spec.fill_value)
        assert normal(bound.to_json()) == normal(theirs.to_dict())
        assert bound.bind(spec.dtype, spec.fill_value) == bound


@pytest.mark.parametrize(("name", "configuration"), NUMERIC)
@pytest.mark.parametrize("document", [*INTEGERS, *FLOATS])
def test_codecs_of_numbers_bind_and_resolve_as_in_zarr(name: str, configuration: dict[str, Any], document: str) -> None:
    spec, theirs_spec = chunk_spec(document), array_spec(document)
    bound = made(name, configuration).bind(spec.dtype, spec.fill_value)
    theirs = evolved(name, configuration, theirs_spec)
    assert normal(bound.to_json()) == normal(theirs.to_dict())
    resolved, expected = bound.encoded_spec(spec), theirs.resolve_metadata(theirs_spec)
    assert resolved.shape == expected.shape
    assert resolved.dtype.numpy == expected.dtype.to_native_dtype()
    assert resolved.fill_value.value == expected.fill_value
    assert resolved.fill_value.value.dtype == resolved.dtype.numpy


@pytest.mark.parametrize("document", FLOATS)
def test_quantize_takes_the_data_type_of_the_array(document: str) -> None:
    spec = chunk_spec(document)
    bound = made("numcodecs.quantize", {"digits": 2}).bind(spec.dtype, spec.fill_value)
    assert normal(bound.to_json()) == normal(
        evolved("numcodecs.quantize", {"digits": 2}, array_spec(document)).to_dict()
    )
    assert bound.encoded_spec(spec) == spec


def test_quantize_makes_the_data_type_that_its_options_name() -> None:
    spec = chunk_spec("float64")
    codec = NumcodecsArrayArray(codec_name="quantize", options={"digits": 1, "dtype": "<f8", "astype": "<f4"})
    assert codec.encoded_spec(spec).dtype.numpy == np.dtype("f4")


@pytest.mark.parametrize("shape", [(), (1,), (7,), (8,), (3, 5)])
def test_packbits_resolves_to_the_shape_that_zarr_resolves_to(shape: tuple[int, ...]) -> None:
    theirs = evolved("numcodecs.packbits", {}, array_spec("bool", shape)).resolve_metadata(array_spec("bool", shape))
    resolved = made("numcodecs.packbits", {}).encoded_spec(chunk_spec("bool", shape))
    assert (resolved.shape, resolved.dtype.numpy) == (theirs.shape, theirs.dtype.to_native_dtype())


@pytest.mark.parametrize(
    ("name", "configuration", "document"),
    [
        ("numcodecs.packbits", {}, "uint8"),
        ("numcodecs.bitround", {"keepbits": 3}, "int32"),
        ("numcodecs.quantize", {"digits": 2}, "int32"),
        ("numcodecs.delta", {"dtype": "<i4"}, "string"),
        ("numcodecs.fixedscaleoffset", {"offset": 1, "scale": 2}, "bytes"),
        ("scale_offset", {}, "bool"),
        ("scale_offset", {}, "string"),
        ("cast_value", {"data_type": "int8"}, "complex64"),
        ("cast_value", {"data_type": "int8"}, "bytes"),
        ("vlen-utf8", {}, "int8"),
        ("vlen-utf8", {}, "bytes"),
        ("vlen-bytes", {}, "string"),
    ],
)
def test_a_data_type_that_a_codec_is_not_made_for_is_an_error(
    name: str, configuration: dict[str, Any], document: str
) -> None:
    spec = chunk_spec(document)
    with pytest.raises(ConfigurationError) as caught:
        made(name, configuration).bind(spec.dtype, spec.fill_value)
    assert caught.value.codec == name


def test_codecs_for_elements_of_variable_length_bind_to_them() -> None:
    strings, data = chunk_spec("string"), chunk_spec("bytes")
    objects = DataType(np.dtype(object), "object")
    assert VLenUTF8().bind(strings.dtype, strings.fill_value) == VLenUTF8()
    assert VLenBytes().bind(data.dtype, data.fill_value) == VLenBytes()
    assert VLenBytes().bind(objects, FillValue.of(objects, None)) == VLenBytes()


def test_categorize_takes_texts_and_makes_numbers() -> None:
    codec = NumcodecsArrayArray(codec_name="categorize", options={"labels": ["a"], "dtype": "<U3"})
    dtype = DataType(np.dtype("<U3"))
    spec = ChunkSpec((4,), dtype, FillValue.of(dtype, "a"))
    assert codec.bind(dtype, spec.fill_value) == codec
    assert codec.encoded_spec(spec).dtype.numpy == np.dtype("u1")
    assert codec.encoded_spec(spec).fill_value.value == 0


class TestBytes:
    def test_declared_byte_order_needs_no_endian(self) -> None:
        dtype = DataType(np.dtype([("a", "<i4"), ("b", ">i4")]))
        codec = Bytes(declared=True)
        assert codec.bind(dtype, FillValue.of(dtype, None)) is codec

    def test_records_without_endian_are_little_endian(self) -> None:
        spec = chunk_spec(FIXED[-2])
        with warnings.catch_warnings(action="ignore"):
            assert Bytes().bind(spec.dtype, spec.fill_value).endian == "little"


class TestTranspose:
    def test_the_shape_is_permuted(self) -> None:
        assert Transpose(order=(2, 0, 1)).encoded_spec(chunk_spec("int8", (2, 3, 4))).shape == (4, 2, 3)

    def test_another_number_of_axes_is_an_error(self) -> None:
        with pytest.raises(ConfigurationError, match="transpose: order does not have one entry per axis"):
            Transpose(order=(1, 0)).encoded_spec(chunk_spec("int8", (2, 3, 4)))


class TestScaleOffset:
    def test_offset_and_scale_become_values_of_the_data_type(self) -> None:
        offset, scale = ScaleOffset(offset="0x3f800001", scale=2).scalars(DataType(np.dtype("f4")))
        assert (offset.tobytes()[::-1].hex(), float(scale)) == ("3f800001", 2.0)

    @pytest.mark.parametrize(
        ("offset", "scale", "found"),
        [
            (300, 1, ["configuration.offset"]),
            (0, 0, ["configuration.scale: must not be 0"]),
            (0, "0", ["configuration.scale: must not be 0"]),
            ("NaN", 0.5, ["configuration.offset", "configuration.scale"]),
        ],
    )
    def test_what_the_data_type_has_not_is_located(self, offset: Any, scale: Any, found: list[str]) -> None:
        dtype = DataType(np.dtype("u1"))
        with pytest.raises(ConfigurationError) as caught:
            ScaleOffset(offset=offset, scale=scale).bind(dtype, FillValue.of(dtype, 0))
        problems = [repr(problem) for problem in caught.value.problems]
        assert len(problems) == len(found)
        assert all(text.startswith(start) for text, start in zip(problems, found, strict=True))


class TestCastValue:
    def test_tables_are_checked_on_both_sides(self) -> None:
        codec = CastValue(data_type="uint8", scalar_map={"encode": [["NaN", 0], [1, 256]], "decode": [[0, "NaN"]]})
        dtype = DataType(np.dtype("f4"))
        with pytest.raises(ConfigurationError) as caught:
            codec.bind(dtype, FillValue.of(dtype, 0))
        assert [problem.location for problem in caught.value.problems] == [
            ("configuration", "scalar_map", "encode", 1, 1)
        ]

    def test_a_good_table_binds(self) -> None:
        codec = CastValue(data_type="uint8", scalar_map={"encode": [["NaN", 0]]})
        dtype = DataType(np.dtype("f4"))
        assert codec.bind(dtype, FillValue.of(dtype, 0)) == codec

    def test_wrapping_needs_integers(self) -> None:
        with pytest.raises(ConfigurationError, match=r"configuration.out_of_range: 'wrap' needs an integer data type"):
            CastValue(data_type="float32", out_of_range="wrap")


class TestSharding:
    INNER = CodecChain.from_codecs([Bytes(endian="little"), Blosc()])

    def test_both_chains_are_bound(self) -> None:
        spec = chunk_spec("int16")
        bound = ShardingIndexed(chunk_shape=(2, 2), codecs=self.INNER, order="lexicographic").bind(
            spec.dtype, spec.fill_value
        )
        assert bound.codecs.codecs[1].configuration()["typesize"] == 2
        assert bound.order == "lexicographic"
        assert bound.inner_chain(spec.dtype, spec.fill_value).codecs == bound.codecs.codecs

    def test_binding_an_inner_chain_gives_what_zarr_gives(self) -> None:
        document = {
            "name": "sharding_indexed",
            "configuration": {
                "chunk_shape": [2, 3],
                "codecs": [
                    {"name": "cast_value", "configuration": {"data_type": "int32"}},
                    {"name": "bytes", "configuration": {"endian": "big"}},
                    {"name": "blosc", "configuration": {}},
                ],
                "index_codecs": [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "crc32c"}],
                "index_location": "start",
            },
        }
        theirs = get_codec_class("sharding_indexed").from_dict(document).evolve_from_array_spec(array_spec("int8"))
        spec = chunk_spec("int8")
        ours = made(document["name"], document["configuration"]).bind(spec.dtype, spec.fill_value)
        assert _listed(ours.to_json()) == _listed(theirs.to_dict())

    def test_the_grid_is_counted_in_inner_chunks(self) -> None:
        codec = ShardingIndexed(chunk_shape=(2, 3), codecs=self.INNER)
        assert codec.grid((4, 9)) == (2, 3)
        assert codec.encoded_spec(chunk_spec("int8", (4, 9))).shape == (4, 9)

    @pytest.mark.parametrize("shape", [(4,), (4, 8), (3, 9), (4, 9, 1)])
    def test_inner_chunks_must_tile_the_shard(self, shape: tuple[int, ...]) -> None:
        codec = ShardingIndexed(chunk_shape=(2, 3), codecs=self.INNER)
        with pytest.raises(ConfigurationError, match="sharding_indexed: chunk_shape does not divide"):
            codec.encoded_spec(chunk_spec("int8", shape))

    def test_an_index_of_unknown_size_is_refused(self) -> None:
        index = CodecChain.from_codecs([Bytes(endian="little"), Gzip()])
        with pytest.raises(
            ConfigurationError, match=r"configuration.index_codecs: the encoded index must have a fixed size"
        ):
            ShardingIndexed(chunk_shape=(2,), index_codecs=index)

    def test_an_index_chain_may_be_anything_of_fixed_size(self) -> None:
        index = CodecChain.from_codecs(
            [
                Transpose(order=(2, 1, 0)),
                Bytes(endian="big"),
                NumcodecsBytesBytes(codec_name="shuffle"),
                NumcodecsBytesBytes(codec_name="adler32"),
                Crc32c(),
            ]
        )
        codec = ShardingIndexed(chunk_shape=(2, 2), index_codecs=index)
        assert codec.index_chain().encoded_size((3, 4, 2)) == FixedSize(3 * 4 * 16 + 8)

    def test_an_index_chain_for_another_number_of_axes_is_refused(self) -> None:
        index = CodecChain.from_codecs([Transpose(order=(1, 0)), Bytes(endian="big")])
        with pytest.raises(ConfigurationError, match=r"configuration.index_codecs: transpose: order does not have"):
            ShardingIndexed(chunk_shape=(2, 2), index_codecs=index)

    def test_an_unknown_write_order_is_an_error(self) -> None:
        with pytest.raises(ConfigurationError, match="sharding_indexed: order must be one of"):
            ShardingIndexed(chunk_shape=(2,), order="hilbert")  # type: ignore[arg-type]


def _listed(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _listed(item) for key, item in value.items()}
    return [_listed(item) for item in value] if isinstance(value, list | tuple) else value


@pytest.mark.parametrize(
    ("codec", "given", "expected"),
    [
        (Bytes(endian="little"), FixedSize(8), FixedSize(8)),
        (Crc32c(), FixedSize(8), FixedSize(12)),
        (Crc32c(), BoundedSize(8), BoundedSize(12)),
        (Crc32c(), UnboundedSize(), UnboundedSize()),
        (Gzip(), FixedSize(8), UnboundedSize()),
        (Blosc(), FixedSize(8), UnboundedSize()),
        (VLenUTF8(), UnboundedSize(), UnboundedSize()),
        (NumcodecsBytesBytes(codec_name="fletcher32"), FixedSize(8), FixedSize(12)),
        (NumcodecsBytesBytes(codec_name="shuffle"), BoundedSize(8), BoundedSize(8)),
        (NumcodecsBytesBytes(codec_name="lzma"), FixedSize(8), UnboundedSize()),
        (CastValue(data_type="uint8"), FixedSize(48), FixedSize(24)),
        (Transpose(order=(1, 0)), FixedSize(48), FixedSize(48)),
    ],
)
def test_encoded_sizes_are_bounds_of_the_format(codec: Codec, given: Any, expected: Any) -> None:
    assert codec.encoded_size(given, chunk_spec("int16")) == expected
