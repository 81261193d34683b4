"""Broken and hostile bytes: a value or an error that names the codec, and no memory that only a header asks for."""

from __future__ import annotations

import bz2
import gzip
import importlib.util
import json
import lzma
import struct
import tracemalloc
import zlib
from typing import Any

import msgpack
import numcodecs
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chunkwright import ChecksumError, ChunkLengthError, CodecChain, CodecError, CorruptChunkError, from_array_metadata
from chunkwright_numcodecs import NumcodecsBackend
from chunkwright_numcodecs._library import panics_as_errors

SHAPE = (6, 7)
ARRAY = (np.arange(42, dtype="<i4") % 11).reshape(SHAPE) * 6
LITTLE = {"name": "bytes", "configuration": {"endian": "little"}}
MEGABYTES = 1 << 20
HAS_PCODEC = importlib.util.find_spec("pcodec") is not None


def named(name: str, **configuration: Any) -> dict[str, Any]:
    return {"name": name, "configuration": configuration}


BYTES_CODECS = {
    "gzip": named("gzip", level=5),
    "zstd": named("zstd", level=3, checksum=True),
    "blosc": named("blosc", cname="lz4", clevel=5, shuffle="shuffle", blocksize=0),
    "crc32c": named("crc32c"),
    **{
        f"numcodecs.{name}": named(f"numcodecs.{name}")
        for name in ("zlib", "bz2", "lzma", "lz4", "crc32", "adler32", "fletcher32", "jenkins_lookup3", "shuffle")
    },
}
CHAINS = {
    **{name: [LITTLE, codec] for name, codec in BYTES_CODECS.items()},
    "bytes": [LITTLE],
    **({"numcodecs.pcodec": [named("numcodecs.pcodec")]} if HAS_PCODEC else {}),
    "numcodecs.delta": [named("numcodecs.delta", dtype="<i4"), LITTLE],
    "scale_offset": [named("scale_offset", scale=3, offset=2**28), LITTLE],
    "cast_value": [named("cast_value", data_type="float64"), LITTLE],
}
STRING_CHAINS = {
    "vlen-utf8": ["vlen-utf8"],
    "vlen-bytes": ["vlen-bytes"],
    **{f"vlen-utf8, {name}": ["vlen-utf8", codec] for name, codec in BYTES_CODECS.items() if "shuffle" not in name},
}


def chain(codecs: list[Any], dtype: str = "int32", **options: Any) -> Any:
    fill = {"int32": 0, "string": "", "variable_length_bytes": ""}[dtype]
    return CodecChain.from_json(codecs).bind(dtype, fill).prepare(SHAPE, backends=[NumcodecsBackend()], **options)


def strings(codecs: list[Any], **options: Any) -> Any:
    return chain(codecs, "variable_length_bytes" if codecs[0] == "vlen-bytes" else "string", **options)


def objects(codec: dict[str, Any]) -> Any:
    metadata = {
        "zarr_format": 2, "shape": SHAPE, "chunks": SHAPE, "dtype": "|O", "order": "C", "fill_value": None,
        "filters": [codec], "compressor": None,
    }  # fmt: skip
    return from_array_metadata(metadata)[0].prepare(SHAPE, backends=[NumcodecsBackend()])


def refused(prepared: Any, data: bytes, codec: str, error: type[CodecError] = CorruptChunkError) -> None:
    """Refused by this codec, with little memory."""
    tracemalloc.start()
    try:
        with pytest.raises(error) as caught:
            prepared.decode(data)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert caught.value.codec == codec
    assert caught.value.position == 0
    # lzma's default preset has a dictionary of 8 MiB.
    assert peak < 12 * MEGABYTES


class TestSizesThatHeadersClaim:
    """Headers that claim other sizes than the chain has are refused before anything is allocated."""

    @pytest.mark.parametrize("size", [0, 167, 169, 1 << 20, (1 << 31) - 1, 1 << 31, (1 << 32) - 1])
    def test_blosc(self, size):
        prepared = chain(CHAINS["blosc"])
        encoded = bytearray(prepared.encode(ARRAY))
        encoded[4:8] = struct.pack("<I", size)
        refused(prepared, bytes(encoded), "blosc", ChunkLengthError)

    @pytest.mark.parametrize("size", [0, 15, 1 << 20, (1 << 32) - 1])
    def test_blosc_that_is_longer_than_the_chunk(self, size):
        prepared = chain(CHAINS["blosc"])
        encoded = bytearray(prepared.encode(ARRAY))
        encoded[12:16] = struct.pack("<I", size)
        refused(prepared, bytes(encoded), "blosc", ChunkLengthError)

    @pytest.mark.parametrize("size", [0, 1, 167, 169, (1 << 31) - 1, 1 << 31, (1 << 32) - 1])
    def test_lz4(self, size):
        prepared = chain(CHAINS["numcodecs.lz4"])
        encoded = struct.pack("<I", size) + bytes(prepared.encode(ARRAY))[4:]
        refused(prepared, encoded, "numcodecs.lz4", ChunkLengthError)

    @pytest.mark.parametrize("size", [0, 1, 167, 169, 1 << 40, (1 << 64) - 1])
    def test_zstd(self, size):
        prepared = chain(CHAINS["zstd"])
        frame = struct.pack("<IBQ", 0xFD2FB528, 0xE0, size) + b"\x01\x00\x00"
        refused(prepared, frame, "zstd", ChunkLengthError)

    def test_zstd_in_many_frames(self):
        prepared = chain(CHAINS["zstd"])
        refused(prepared, bytes(prepared.encode(ARRAY)) * 1000, "zstd", ChunkLengthError)

    def test_zstd_of_strings_is_limited_by_max_chunk_bytes(self):
        prepared = strings(STRING_CHAINS["vlen-utf8, zstd"], max_chunk_bytes=1000)
        refused(prepared, numcodecs.Zstd().encode(bytes(1001)), "zstd", ChunkLengthError)

    @pytest.mark.parametrize("count", [0, 41, 43, (1 << 32) - 1])
    @pytest.mark.parametrize("name", ["vlen-utf8", "vlen-bytes"])
    def test_number_of_elements(self, name, count):
        data = struct.pack("<I", count) + bytes(4 * 42)
        refused(strings([name]), data, name, ChunkLengthError)

    @pytest.mark.parametrize("length", [1, 1000, (1 << 31) - 1, (1 << 32) - 1])
    @pytest.mark.parametrize("name", ["vlen-utf8", "vlen-bytes"])
    def test_length_of_an_element(self, name, length):
        data = struct.pack("<I", 42) + bytes(4 * 41) + struct.pack("<I", length)
        refused(strings([name]), data, name)

    @pytest.mark.parametrize("shape", [[10**12], [6, 8], [-1, -42], [1.5], "ab", 42, [10**6] * 10])
    @pytest.mark.parametrize("dtype", ["|O", "|V1000000000"])
    def test_shape_of_objects(self, shape, dtype):
        refused(objects({"id": "json2"}), json.dumps([1, dtype, shape]).encode(), "numcodecs.json2")
        refused(objects({"id": "msgpack2"}), msgpack.packb([1, dtype, shape]), "numcodecs.msgpack2")

    @pytest.mark.parametrize("dtype", ["|V1000000000", "<U4", "no type", "O,O", 5])
    def test_data_type_of_objects(self, dtype):
        elements = [*[[0] * 7] * 6, dtype, [6, 7]]
        refused(objects({"id": "json2"}), json.dumps(elements).encode(), "numcodecs.json2")
        refused(objects({"id": "msgpack2"}), msgpack.packb(elements), "numcodecs.msgpack2")

    @pytest.mark.skipif(not HAS_PCODEC, reason="pcodec is not installed")
    def test_a_pcodec_chunk_of_other_length(self):
        prepared = chain(CHAINS["numcodecs.pcodec"])
        encode = numcodecs.pcodec.PCodec().encode
        for count in (1, 41, 43, 100_000):
            refused(prepared, encode(np.zeros(count, "<i4")), "numcodecs.pcodec", ChunkLengthError)
        refused(prepared, encode(np.zeros(42, "<f4")), "numcodecs.pcodec")


class TestBombs:
    """A few bytes that decompress to very many are given up at the chain's size."""

    ZEROS = bytes(64 * MEGABYTES)

    @pytest.mark.parametrize(
        ("name", "encode"),
        [
            ("gzip", gzip.compress),
            ("numcodecs.zlib", zlib.compress),
            ("numcodecs.bz2", bz2.compress),
            ("numcodecs.lzma", lzma.compress),
            ("numcodecs.lz4", numcodecs.LZ4().encode),
            ("blosc", numcodecs.Blosc().encode),
            ("zstd", numcodecs.Zstd().encode),
        ],
    )
    def test_of_one_stream(self, name, encode):
        refused(chain(CHAINS[name]), encode(self.ZEROS), name, ChunkLengthError)

    @pytest.mark.parametrize(
        ("name", "encode"),
        [("gzip", gzip.compress), ("numcodecs.bz2", bz2.compress), ("numcodecs.lzma", lzma.compress)],
    )
    def test_after_a_stream_of_the_right_size(self, name, encode):
        data = encode(ARRAY.tobytes()) + encode(self.ZEROS)
        refused(chain(CHAINS[name]), data, name, ChunkLengthError)

    @pytest.mark.parametrize(
        "name", [name for name in STRING_CHAINS if "gzip" in name or "zlib" in name or "bz2" in name]
    )
    def test_of_strings_are_limited_by_max_chunk_bytes(self, name):
        codec = name.split(", ")[1]
        encode = {"gzip": gzip.compress, "numcodecs.zlib": zlib.compress, "numcodecs.bz2": bz2.compress}[codec]
        prepared = strings(STRING_CHAINS[name], max_chunk_bytes=1000)
        refused(prepared, encode(self.ZEROS), codec, ChunkLengthError)

    def test_of_zstd_frames_that_do_not_say_their_size(self):
        # 512 blocks, each of one byte that is repeated 128 KiB times.
        blocks = b"".join(
            ((1 << 17) << 3 | 1 << 1 | (last == 511)).to_bytes(3, "little") + b"\0" for last in range(512)
        )
        frame = struct.pack("<IBB", 0xFD2FB528, 0, 0x58) + blocks
        assert len(numcodecs.Zstd().decode(frame)) == 64 * MEGABYTES
        refused(chain(CHAINS["zstd"]), frame, "zstd")
        refused(strings(STRING_CHAINS["vlen-utf8, zstd"], max_chunk_bytes=1000), frame, "zstd", ChunkLengthError)

    def test_of_tiny_gzip_members_take_little_time(self):
        # Were the rest copied for each of them, this would take minutes.
        data = gzip.compress(ARRAY.tobytes()) + gzip.compress(b"") * 50_000
        np.testing.assert_array_equal(chain(CHAINS["gzip"]).decode(data), ARRAY)

    def test_an_lzma_dictionary_of_gigabytes_is_refused(self):
        data = bytearray(lzma.compress(ARRAY.tobytes(), format=lzma.FORMAT_ALONE))
        data[1:5] = struct.pack("<I", 3 << 30)
        prepared = chain([LITTLE, named("numcodecs.lzma", format=lzma.FORMAT_ALONE)])
        refused(prepared, bytes(data), "numcodecs.lzma")


class TestDamage:
    """What is cut short or changed is an error of the right class."""

    @pytest.mark.parametrize("name", CHAINS)
    def test_no_shorter_chunk_is_accepted(self, name):
        prepared = chain(CHAINS[name])
        encoded = bytes(prepared.encode(ARRAY))
        for length in range(len(encoded)):
            with pytest.raises(CorruptChunkError) as caught:
                prepared.decode(encoded[:length])
            assert caught.value.codec in (name, "bytes")

    @pytest.mark.parametrize(
        "name", ["crc32c", *(f"numcodecs.{n}" for n in ("crc32", "adler32", "fletcher32", "jenkins_lookup3"))]
    )
    def test_a_changed_byte_is_a_wrong_checksum(self, name):
        prepared = chain(CHAINS[name])
        encoded = bytes(prepared.encode(ARRAY))
        for at in range(0, len(encoded), 7):
            changed = bytearray(encoded)
            changed[at] ^= 0x10
            with pytest.raises(ChecksumError) as caught:
                prepared.decode(bytes(changed))
            assert caught.value.codec == name

    @pytest.mark.parametrize("data", [b"\xff", b"\xc3\x28", b"\xed\xa0\x80", b"\xf8\x88\x80\x80\x80"])
    def test_text_that_is_no_utf_8(self, data):
        encoded = struct.pack("<II", 42, len(data)) + data + bytes(4 * 41)
        refused(strings(["vlen-utf8"]), encoded, "vlen-utf8")

    def test_scaled_integers_that_do_not_divide(self):
        prepared = chain([named("scale_offset", scale=3), LITTLE])
        refused(prepared, (ARRAY + 1).tobytes(), "scale_offset")

    def test_scaled_integers_that_leave_the_range(self):
        prepared = chain([named("scale_offset", offset=5), LITTLE])
        refused(prepared, np.full(42, 2**31 - 1, "<i4").tobytes(), "scale_offset")

    def test_values_that_do_not_cast(self):
        prepared = chain([named("cast_value", data_type="float64"), LITTLE])
        for value in (np.nan, np.inf, 1e300):
            refused(prepared, np.full(42, value, "<f8").tobytes(), "cast_value")

    def test_json_of_great_depth(self):
        refused(objects({"id": "json2"}), b"[" * 100_000, "numcodecs.json2")

    def test_pickles_are_left_to_numcodecs(self):
        with pytest.raises(numcodecs.errors.UnsafeDecodeError):
            objects({"id": "pickle"}).decode(b"\x80\x04N.")

    def test_pickles_of_something_else_are_refused_where_pickles_are_allowed(self, monkeypatch):
        monkeypatch.setattr("numcodecs.pickles.ALLOW_UNSAFE_PICKLE_DECODE", True)
        refused(objects({"id": "pickle"}), b"\x80\x04N.", "numcodecs.pickle")
        refused(objects({"id": "pickle"}), b"nonsense", "numcodecs.pickle")


def streamed(data: bytes, size: int = 1000) -> bytes:
    """A zstd frame that does not say its size, as streaming writers make it, of blocks that are stored as they are."""
    parts = [data[begin : begin + size] for begin in range(0, len(data), size)]
    blocks = [
        (len(part) << 3 | (number == len(parts) - 1)).to_bytes(3, "little") + part for number, part in enumerate(parts)
    ]
    return struct.pack("<IBB", 0xFD2FB528, 0, 0x58) + b"".join(blocks)


class TestZstdFramesThatDoNotSayTheirSize:
    def test_are_decoded_where_the_chain_does(self):
        prepared = chain(CHAINS["zstd"])
        for size in (1, 50, 1000):
            encoded = streamed(ARRAY.tobytes(), size)
            np.testing.assert_array_equal(prepared.decode(encoded), ARRAY)
            straight = np.empty(SHAPE, "<i4")
            prepared.decode_into(encoded, straight)
            np.testing.assert_array_equal(straight, ARRAY)
            checked = chain([LITTLE, "crc32c", BYTES_CODECS["zstd"]])
            inner = bytes(chain(CHAINS["crc32c"]).encode(ARRAY))
            np.testing.assert_array_equal(checked.decode(streamed(inner, size)), ARRAY)

    @pytest.mark.parametrize("length", [0, 1, 167, 169, 1000])
    def test_are_refused_when_they_are_of_another_size(self, length):
        prepared = chain(CHAINS["zstd"])
        for target in (None, np.empty(SHAPE, "<i4")):
            with pytest.raises(CorruptChunkError):
                prepared.decode(streamed(bytes(length))) if target is None else prepared.decode_into(
                    streamed(bytes(length)), target
                )

    def test_are_decoded_where_nothing_but_a_limit_is_known(self):
        text = struct.pack("<I", 42) + struct.pack("<I", 300) + b"x" * 300 + bytes(4 * 41)
        found = strings(STRING_CHAINS["vlen-utf8, zstd"], max_chunk_bytes=1000).decode(streamed(text))
        assert found[0, 0] == "x" * 300

    def test_are_refused_when_they_are_cut_short(self):
        encoded = streamed(ARRAY.tobytes(), 50)
        for length in range(len(encoded)):
            with pytest.raises(CorruptChunkError):
                chain(CHAINS["zstd"]).decode(encoded[:length])


@pytest.mark.parametrize("name", [name for name in BYTES_CODECS if name != "numcodecs.fletcher32"])
def test_a_chunk_of_no_elements_is_a_chunk(name):
    # numcodecs calls some of them an error, and has no fletcher32 of nothing.
    prepared = CodecChain.from_json(CHAINS[name]).bind("int32", 0).prepare((0, 3), backends=[NumcodecsBackend()])
    encoded = prepared.encode(np.empty((0, 3), "i4"), keep_empty=True)
    assert prepared.decode(encoded).shape == (0, 3)
    prepared.decode_into(encoded, np.empty((0, 3), "<i4"))


class TestPanics:
    """What libraries that are written in Rust raise when they fail within: no ``Exception``."""

    class PanicException(BaseException):
        pass

    def test_are_corrupt_chunks(self):
        with pytest.raises(CorruptChunkError, match="pcodec: cannot be decoded") as caught, panics_as_errors("pcodec"):
            raise self.PanicException("index out of bounds")
        assert isinstance(caught.value.__cause__, self.PanicException)

    @pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
    def test_whatever_else_is_raised_passes(self, error):
        with pytest.raises(error), panics_as_errors("pcodec"):
            raise error


TRAILING = {
    "a zero": b"\0",
    "many zeros": bytes(100_000),
    "text": b"trailing",
    "a zstd magic": b"\x28\xb5\x2f\xfd",
    "a gzip magic": b"\x1f\x8b",
    "a bz2 magic": b"BZh9",
    "an xz magic": b"\xfd7zXZ\x00",
    "an empty zstd frame": b"\x28\xb5\x2f\xfd\x20\x00\x01\x00\x00",
    "a skippable zstd frame": b"\x50\x2a\x4d\x18\x03\x00\x00\x00abc",
    "an empty gzip member": gzip.compress(b""),
    "an empty bz2 stream": bz2.compress(b""),
    "an empty xz stream": lzma.compress(b""),
    "zeros and a gzip member": bytes(20_000) + gzip.compress(b""),
}


@pytest.mark.parametrize("trailing", TRAILING.values(), ids=TRAILING)
@pytest.mark.parametrize("name", [name for name in BYTES_CODECS if name != "crc32c"])
def test_what_follows_a_chunk_is_accepted_exactly_where_numcodecs_accepts_it(name, trailing):
    prepared = chain(CHAINS[name])
    encoded = bytes(prepared.encode(ARRAY)) + trailing
    library = numcodecs.get_codec({"id": name.removeprefix("numcodecs.")})
    try:
        accepted = bytes(library.decode(encoded)) == ARRAY.tobytes()
    except Exception:
        accepted = False
    if accepted:
        np.testing.assert_array_equal(prepared.decode(encoded), ARRAY)
        straight = np.empty(SHAPE, "<i4")
        prepared.decode_into(encoded, straight)
        np.testing.assert_array_equal(straight, ARRAY)
    else:
        with pytest.raises(CorruptChunkError):
            prepared.decode(encoded)


@pytest.mark.parametrize("name", ["vlen-utf8", "vlen-bytes"])
def test_what_follows_the_last_element_is_ignored_as_numcodecs_does(name):
    found = strings([name]).decode(struct.pack("<I", 42) + bytes(4 * 42) + b"trailing")
    assert not any(found.ravel())


@pytest.mark.parametrize("name", [*CHAINS, *STRING_CHAINS])
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_any_bytes_are_a_chunk_or_a_codec_error(name, data):
    prepared = chain(CHAINS[name]) if name in CHAINS else strings(STRING_CHAINS[name], max_chunk_bytes=1 << 16)
    text = np.array(["chunk"] * 42, object).reshape(SHAPE)
    array = ARRAY if name in CHAINS else np.vectorize(str.encode, [object])(text) if name == "vlen-bytes" else text
    good = bytearray(prepared.encode(array))
    changes = st.lists(st.tuples(st.integers(0, len(good) - 1), st.integers(0, 255)), max_size=6)
    for at, value in data.draw(changes):
        good[at] = value
    encoded = data.draw(st.one_of(st.just(bytes(good)), st.binary(max_size=100), st.binary().map(bytes(good).__add__)))
    try:
        found = prepared.decode(encoded)
    except CodecError:
        return
    assert found.shape == SHAPE
    assert found.dtype == prepared.spec.dtype.numpy
