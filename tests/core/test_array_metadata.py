"""Array metadata of both versions; Zarr v2 chains compared with the bytes that zarr's own codec makes."""

from __future__ import annotations

import copy
import json
from typing import Any

import numcodecs
import numpy as np
import pytest
import zarr
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from zarr.codecs._v2 import V2Codec
from zarr.core.array_spec import ArrayConfig, ArraySpec
from zarr.core.buffer import default_buffer_prototype
from zarr.core.dtype import get_data_type_from_json

from chunkwright.array_metadata import from_array_metadata, v2_chain
from chunkwright.chain import CodecChain
from chunkwright.codecs import KNOWN, Bytes, NumcodecsBytesBytes, ShardingIndexed, Transpose
from chunkwright.dtype_json import dtype_from_json
from chunkwright.errors import ConfigurationError, UnknownCodecError
from chunkwright.spec import DataType, FillValue
from tests.core.chains import encode
from tests.core.host import Host

V3: dict[str, Any] = {
    "zarr_format": 3,
    "node_type": "array",
    "shape": [8, 8],
    "data_type": "float32",
    "fill_value": "NaN",
    "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [4, 8]}},
    "chunk_key_encoding": {"name": "default"},
    "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
}

V2: dict[str, Any] = {
    "zarr_format": 2,
    "shape": [8, 8],
    "chunks": [4, 8],
    "dtype": ">i4",
    "order": "C",
    "fill_value": None,
    "filters": None,
    "compressor": None,
}


def problems_of(document: dict[str, Any]) -> list[str]:
    """Return everything that is wrong with array metadata."""
    with pytest.raises(ConfigurationError) as caught:
        from_array_metadata(document)
    return [repr(problem) for problem in caught.value.problems]


def chain_for(dtype: str, *configs: dict[str, Any], order: str = "C", ndim: int = 2) -> CodecChain | None:
    """Return the chain of filters on an array of fixed-length elements."""
    return v2_chain(list(configs), None, order=order, ndim=ndim, dtype=DataType(np.dtype(dtype)))


class TestVersion3:
    def test_a_chain_and_a_shape_are_read(self) -> None:
        chain, shape = from_array_metadata(V3)
        assert shape == (4, 8)
        assert chain.codecs == (Bytes(endian="little"),)
        assert chain.fill_value == FillValue.of(chain.dtype, float("nan"))

    def test_what_zarr_writes_is_read(self) -> None:
        store = zarr.storage.MemoryStore()
        array = zarr.create_array(store, shape=(8, 8), shards=(4, 8), chunks=(2, 4), dtype="int16", fill_value=-1)
        document = json.loads(json.dumps(array.metadata.to_dict()))
        chain, shape = from_array_metadata(document)
        assert shape == (4, 8)
        assert isinstance(chain.array_bytes, ShardingIndexed)
        assert chain.array_bytes.chunk_shape == (2, 4)
        assert chain.fill_value.value == -1

    def test_chunks_of_several_shapes_have_none(self) -> None:
        grid = {"name": "rectilinear", "configuration": {"kind": "inline", "chunk_shapes": [[3, 5], 8]}}
        assert from_array_metadata({**V3, "chunk_grid": grid})[1] is None

    def test_codecs_of_the_host_are_made_by_it(self) -> None:
        codecs = [*V3["codecs"], "host"]
        chain, _ = from_array_metadata({**V3, "codecs": codecs}, foreign={"host": Host})
        assert chain.codecs[1].name == "host"

    def test_all_problems_are_reported_at_once(self) -> None:
        document = {
            **V3,
            "data_type": "int7",
            "codecs": [{"name": "zstd", "configuration": {"level": 99}}],
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [4, 0]}},
            "storage_transformers": [{"name": "cache"}],
        }
        del document["fill_value"]
        assert problems_of(document) == [
            "data_type: unknown data type 'int7'",
            "fill_value: is missing",
            "codecs[0].configuration.level: must be between -131072 and 22, not 99",
            "codecs: there is no array->bytes codec",
            "chunk_grid: must be at least 1, not 0",
            "storage_transformers: are not supported",
        ]

    @pytest.mark.parametrize(
        "grid",
        ["hexagonal", {"name": "regular"}, None, {"configuration": {}}, {"name": "regular", "configuration": {}}],
    )
    def test_other_grids_are_a_problem(self, grid: Any) -> None:
        assert problems_of({**V3, "chunk_grid": grid})[0].startswith("chunk_grid: must be a ")

    def test_a_fill_value_of_another_data_type_is_a_problem(self) -> None:
        assert problems_of({**V3, "fill_value": "x"}) == ["fill_value: 'x' is not a number as a fill value of float32"]

    @pytest.mark.parametrize("items", [5, "cache", [None], [{"name": "cache"}], ["cache"]])
    def test_transformers_are_a_problem(self, items: Any) -> None:
        assert problems_of({**V3, "storage_transformers": items})[0].startswith("storage_transformers: ")

    def test_transformers_that_need_not_be_understood_are_left_alone(self) -> None:
        from_array_metadata({**V3, "storage_transformers": [{"name": "cache", "must_understand": False}]})

    def test_unknown_codecs_are_a_problem(self) -> None:
        assert problems_of({**V3, "codecs": [*V3["codecs"], "strange"]}) == ["codecs[1]: unknown codec 'strange'"]

    @pytest.mark.parametrize("version", [1, None, "3"])
    def test_there_are_two_versions(self, version: Any) -> None:
        assert problems_of({"zarr_format": version}) == [f"zarr_format: must be 2 or 3, not {version!r}"]


class TestVersion2:
    def test_elements_are_stored_as_the_data_type_says(self) -> None:
        chain, shape = from_array_metadata(V2)
        assert shape == (4, 8)
        assert chain.codecs == (Bytes(declared=True),)
        assert chain.dtype.numpy == np.dtype(">i4")
        assert chain.fill_value.is_default

    def test_order_f_is_a_transpose(self) -> None:
        chain, _ = from_array_metadata({**V2, "order": "F"})
        assert chain.codecs == (Transpose(order=(1, 0)), Bytes(declared=True))
        assert chain_for("<i4", order="F", ndim=1) == CodecChain.from_codecs([Bytes(declared=True)])

    def test_strings_are_encoded_by_their_filter(self) -> None:
        document = {**V2, "dtype": "|O", "filters": [{"id": "vlen-utf8"}], "compressor": {"id": "zstd", "level": 1}}
        chain, _ = from_array_metadata({**document, "fill_value": ""})
        assert [codec.name for codec in chain.codecs] == ["vlen-utf8", "numcodecs.zstd"]
        assert chain.dtype.variable == "string"

    @pytest.mark.parametrize("codec_id", ["vlen-bytes", "json2", "msgpack2", "pickle"])
    def test_objects_are_encoded_by_their_filter(self, codec_id: str) -> None:
        chain, _ = from_array_metadata({**V2, "dtype": "|O", "filters": [{"id": codec_id}]})
        assert chain.array_bytes.name in (codec_id, f"numcodecs.{codec_id}")

    def test_all_problems_are_reported_at_once(self) -> None:
        document = {**V2, "dtype": "<i3", "chunks": [4, -1], "order": "K"}
        assert problems_of(document) == [
            "dtype: unknown data type '<i3'",
            "chunks: must be at least 1, not -1",
            "order: must be 'C' or 'F', not 'K'",
        ]

    def test_a_fill_value_of_another_data_type_is_a_problem(self) -> None:
        assert problems_of({**V2, "fill_value": "x"}) == ["fill_value: 'x' is not an integer as a fill value of >i4"]

    @pytest.mark.parametrize("filters", [5, "zlib", True, {"id": "zlib"}])
    def test_filters_that_are_no_list_are_a_problem(self, filters: Any) -> None:
        assert problems_of({**V2, "filters": filters})[0].startswith("filters: must be a list")

    def test_what_is_no_chain_is_a_problem(self) -> None:
        document = {**V2, "filters": [{"id": "zlib"}, {"id": "delta", "dtype": ">i4"}], "compressor": {"id": "bz2"}}
        assert problems_of(document) == ["filters: no codec chain does what ['zlib', 'delta', 'bz2'] do"]
        assert problems_of({**V2, "compressor": {"id": "strange"}}) == [
            "filters: no codec chain does what ['strange'] do"
        ]

    def test_objects_without_a_filter_are_a_problem(self) -> None:
        assert problems_of({**V2, "dtype": "|O"}) == ["dtype: no filter says what the objects are"]


class TestLayout:
    @pytest.mark.parametrize(
        ("dtype", "configs"),
        [
            ("<i4", [{"id": "zlib"}, {"id": "delta", "dtype": "<i4"}]),
            ("<i4", [{"id": "delta", "dtype": "<i8"}]),
            ("<i4", [{"id": "delta", "dtype": ">i4"}]),
            ("<i4", [{"id": "packbits"}]),
            ("<i4", [{"id": "bitround", "keepbits": 2}]),
            ("<i4", [{"id": "fixedscaleoffset", "offset": 0, "scale": 1}]),
            ("<i4", [{"id": "vlen-utf8"}]),
            ("<i4", [{"id": "vlen-array", "dtype": "<i4"}]),
            ("<i4", [{"id": "json2"}, {"id": "pickle"}]),
            ("<i4", [{"id": "strange"}]),
            ("<i4", [{"id": "zlib", "speed": 1}]),
            ("<i4", [{"id": "vlen-utf8", "a": 1}]),
            ("<i4", [{"id": 5}]),
            ("<i4", [{}]),
        ],
        ids=str,
    )
    def test_codecs_that_would_not_get_what_they_get_in_zarr_have_no_chain(
        self, dtype: str, configs: list[dict[str, Any]]
    ) -> None:
        assert chain_for(dtype, *configs) is None

    @pytest.mark.parametrize("config", [{"id": "json2"}, {"id": "msgpack2"}, {"id": "pickle"}, {"id": "zfpy"}], ids=str)
    def test_codecs_that_store_the_shape_want_it_as_it_is(self, config: dict[str, Any]) -> None:
        assert chain_for("<f4", config, order="C") is not None
        assert chain_for("<f4", config, order="F", ndim=1) is not None
        assert chain_for("<f4", config, order="F") is None
        assert chain_for("<f4", config, ndim=0) is None

    def test_bitround_has_no_chain_in_order_f(self) -> None:
        assert chain_for("<f4", {"id": "bitround", "keepbits": 3}, order="F") is None

    def test_objects_that_nothing_encodes_have_no_chain(self) -> None:
        objects = DataType(np.dtype(object), "object")
        assert v2_chain([{"id": "zlib"}], None, order="C", ndim=1, dtype=objects) is None
        assert v2_chain(None, None, order="C", ndim=1, dtype=objects) is None
        assert v2_chain([{"id": "vlen-utf8"}], None, order="C", ndim=1, dtype=objects) is None

    @pytest.mark.parametrize(
        ("configs", "expected"),
        [
            ([{"id": "blosc"}], {"typesize": 4, "shuffle": 1}),
            ([{"id": "blosc", "shuffle": -1}], {"typesize": 4, "shuffle": 1}),
            ([{"id": "blosc", "shuffle": 2, "typesize": 8}], {"typesize": 8, "shuffle": 2}),
            ([{"id": "crc32"}, {"id": "blosc", "shuffle": -1}], {"typesize": 1, "shuffle": 2}),
            (
                [{"id": "astype", "encode_dtype": "<i2", "decode_dtype": "<i4"}, {"id": "blosc"}],
                {"typesize": 2, "shuffle": 1},
            ),
        ],
        ids=str,
    )
    def test_blosc_is_told_the_elements_that_it_would_see(self, configs: list[Any], expected: dict[str, int]) -> None:
        chain = chain_for("<i4", *configs)
        assert chain is not None
        last = chain.codecs[-1]
        assert isinstance(last, NumcodecsBytesBytes)
        assert {**last.options, **expected} == dict(last.options)

    def test_shuffle_keeps_the_default_of_numcodecs(self) -> None:
        chain = chain_for("<f8", {"id": "shuffle"})
        assert chain is not None
        assert chain.codecs[-1].configuration() == {"elementsize": 4}


def configs_for(dtype: str) -> list[dict[str, Any]]:
    """Return configurations that can be tried on a data type; gzip, which stores the time, is not among them."""
    filters: list[dict[str, Any]] = [
        {"id": "delta", "dtype": dtype},
        {"id": "delta", "dtype": dtype, "astype": "<i8"},
        {"id": "delta", "dtype": "<i4"},
        {"id": "fixedscaleoffset", "scale": 2, "offset": 1, "dtype": dtype, "astype": "|u1"},
        {"id": "astype", "encode_dtype": "<f4", "decode_dtype": dtype},
        {"id": "packbits"},
        {"id": "bitround", "keepbits": 4},
        {"id": "shuffle"},
        {"id": "shuffle", "elementsize": 2},
        {"id": "blosc"},
        {"id": "blosc", "shuffle": -1, "cname": "zstd"},
        {"id": "blosc", "shuffle": 0},
        {"id": "zstd", "level": 3, "checksum": True},
        {"id": "json2"},
        {"id": "pickle"},
        {"id": "jenkins_lookup3"},
        *({"id": name} for name in ("zlib", "lz4", "lzma", "bz2", "crc32", "adler32", "fletcher32", "base64")),
    ]
    kind = np.dtype(dtype).kind
    if kind == "f":
        filters += [{"id": "quantize", "digits": 2, "dtype": dtype, "astype": astype} for astype in (dtype, "<f4")]
    if kind == "U":
        filters += [{"id": "categorize", "labels": ["a", "bb"], "dtype": dtype}]
    return filters


DTYPES = [
    "|b1",
    "|i1",
    "<i2",
    ">i4",
    "<u8",
    "<f2",
    ">f4",
    "<f8",
    "<c8",
    "<M8[ns]",
    "<m8[s]",
    "<U3",
    ">U2",
    "|S5",
    "|V6",
]


def values(dtype: np.dtype[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    """Return a chunk of various values."""
    numbers = np.arange(np.prod(shape, dtype=int)).reshape(shape) % 5
    if dtype.kind in "US":
        return np.asarray(np.array(["a", "bb", "zz", "", "a"])[numbers], dtype)
    if dtype.kind == "V":
        return numbers.astype("i2").repeat(3).view(dtype).reshape(shape)
    return np.asarray(numbers, "i8").astype(dtype)


def encoded_by_zarr(array: NDArray[Any], configs: list[dict[str, Any]], dtype: str, order: str) -> bytes | None:
    """Encode a chunk with zarr's codec for Zarr v2; None when it cannot."""
    zdtype = get_data_type_from_json({"name": dtype, "object_codec_id": None}, zarr_format=2)
    config = ArrayConfig(order=order, write_empty_chunks=True)  # type: ignore[arg-type]
    spec = ArraySpec(array.shape, zdtype, zdtype.default_scalar(), config, default_buffer_prototype())
    try:
        codec = V2Codec(tuple(numcodecs.get_codec(dict(config)) for config in configs), None)
        buffer = codec._encode_sync(spec.prototype.nd_buffer.from_numpy_array(array), spec)
    except (TypeError, ValueError, KeyError, RuntimeError):
        return None
    assert buffer is not None
    return buffer.to_bytes()


def encoded_by_us(array: NDArray[Any], chain: CodecChain, dtype: DataType) -> bytes | None:
    """Encode a chunk with a chain and numcodecs; None when it cannot."""
    try:
        return encode(chain.bind(dtype, None, ndim=array.ndim), array)
    except (TypeError, ValueError, KeyError, RuntimeError):
        return None


@st.composite
def v2_arrays(draw: st.DrawFn) -> tuple[str, list[dict[str, Any]], str, tuple[int, ...]]:
    """Draw a data type, filters, an order and a shape."""
    dtype = draw(st.sampled_from(DTYPES))
    configs = draw(st.lists(st.sampled_from(configs_for(dtype)), max_size=3))
    return dtype, configs, draw(st.sampled_from("CF")), draw(st.sampled_from([(4, 3), (6,), (), (2, 3, 2)]))


@pytest.mark.filterwarnings("ignore")  # of what NumPy thinks of such arithmetic
@settings(deadline=None, max_examples=400)
@given(v2_arrays())
def test_a_chain_makes_the_bytes_that_zarr_makes(case: tuple[str, list[dict[str, Any]], str, tuple[int, ...]]) -> None:
    dtype, configs, order, shape = case
    given_dtype = dtype_from_json(dtype, zarr_format=2)
    chain = v2_chain(configs, None, order=order, ndim=len(shape), dtype=given_dtype)
    if chain is not None:
        array = values(given_dtype.numpy, shape)
        assert encoded_by_us(array, chain, given_dtype) == encoded_by_zarr(array, configs, dtype, order)


RICH_V3: dict[str, Any] = {
    **V3,
    "storage_transformers": [],
    "codecs": [
        {"name": "transpose", "configuration": {"order": [1, 0]}},
        {
            "name": "sharding_indexed",
            "configuration": {
                "chunk_shape": [2, 2],
                "codecs": [*V3["codecs"], {"name": "zstd", "configuration": {"level": 3}}],
                "index_codecs": [*V3["codecs"], "crc32c"],
            },
        },
        {"name": "blosc", "configuration": {"typesize": 4}},
    ],
}

RICH_V2: dict[str, Any] = {
    **V2,
    "dtype": [["a", "<i4"], ["b", "|S3"]],
    "fill_value": "AAAAAAAAAA==",
    "filters": [{"id": "shuffle", "elementsize": 7}, {"id": "crc32"}],
    "compressor": {"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1},
}

JUNK: list[Any] = [
    *[None, True, 0, 1, -1, 2**70, 1.5, float("nan"), float("inf"), "", "x", "|O", "<i4", "float32", "r16", "string"],
    *[[], [1], ["bytes"], {}, {"name": "bytes"}, {"name": ["x"]}, {"id": "zlib"}, {"id": "delta", "dtype": "O"}],
    *[{"id": ["x"]}, {"id": "quantize", "digits": "x", "dtype": "<f4"}, {"id": "json2"}, [["a", "<i4"]], [[]]],
    {"name": "struct", "configuration": {"fields": [{"name": "a", "data_type": {}}]}},
]


def places(value: Any) -> list[tuple[Any, Any]]:
    """Return every container within JSON with each of its keys."""
    keys = list(value) if isinstance(value, dict) else list(range(len(value))) if isinstance(value, list) else []
    return [place for key in keys for place in ((value, key), *places(value[key]))]


@settings(deadline=None, max_examples=300)
@given(st.data())
def test_any_array_metadata_is_a_chain_or_a_configuration_error(data: st.DataObject) -> None:
    document = copy.deepcopy(data.draw(st.sampled_from([RICH_V2, RICH_V3])))
    for _ in range(data.draw(st.integers(0, 2))):
        container, key = data.draw(st.sampled_from(places(document)))
        container[key] = copy.deepcopy(data.draw(st.sampled_from(JUNK)))
    try:
        chain, shape = from_array_metadata(document)
        chain.encoded_size(shape or ())
    except ConfigurationError as error:
        assert str(error)  # noqa: PT017


def test_every_codec_of_numcodecs_is_known() -> None:
    registered = set(numcodecs.registry.codec_registry) | set(numcodecs.registry.entries)
    assert registered - {"n5_wrapper"} <= {*KNOWN, "vlen-utf8", "vlen-bytes"}


def test_unknown_codecs_alone_are_an_error_of_their_own_in_a_list() -> None:
    with pytest.raises(UnknownCodecError):
        CodecChain.from_json([*V3["codecs"], "strange"])
