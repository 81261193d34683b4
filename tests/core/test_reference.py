"""The reference backend: right results from NumPy and the standard library alone."""

from __future__ import annotations

import gzip
import pickle
import struct
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chunkwright import (
    Backend,
    ChecksumError,
    ChunkLengthError,
    CodecChain,
    CorruptChunkError,
    ReferenceBackend,
    UnsupportedCodecError,
)
from chunkwright.inflate import gunzip, inflate
from chunkwright.reference import crc32c

LITTLE = {"name": "bytes", "configuration": {"endian": "little"}}


def prepared(codecs, dtype="int16", shape=(2, 3), **options):
    fill = "" if dtype in ("string", "variable_length_bytes") else 0
    return CodecChain.from_json(codecs).bind(dtype, fill).prepare(shape, backends=[ReferenceBackend()], **options)


class TestCrc32c:
    # RFC 3720, B.4, and the check value of the catalogue of checksums.
    @pytest.mark.parametrize(
        ("data", "expected"),
        [
            (b"", 0),
            (bytes(32), 0x8A9136AA),
            (b"\xff" * 32, 0x62A8AB43),
            (bytes(range(32)), 0x46DD794E),
            (bytes(range(31, -1, -1)), 0x113FDB5C),
            (b"123456789", 0xE3069283),
        ],
    )
    def test_known_checksums(self, data, expected):
        assert crc32c(data) == expected

    @pytest.mark.parametrize("length", [4095, 4096, 4097, 5000, 8191, 65536, 65537, 100_003])
    def test_many_bytes_are_summed_like_few(self, length):
        data = np.random.default_rng(length).bytes(length)
        half = length // 3
        # The sum over both parts, from the sum over the first: one table look-up a byte.
        total = crc32c(data[:half]) ^ 0xFFFFFFFF
        for byte in data[half:]:
            total ^= byte
            for _ in range(8):
                total = total >> 1 ^ (0x82F63B78 if total & 1 else 0)
        assert crc32c(data) == total ^ 0xFFFFFFFF

    @given(st.binary(max_size=200))
    def test_any_buffer_will_do(self, data):
        assert crc32c(data) == crc32c(memoryview(bytearray(data))) == crc32c(np.frombuffer(data, np.uint8))


class TestInflate:
    def test_a_stream_of_exactly_the_limit_is_accepted(self):
        assert inflate(memoryview(zlib.compress(b"12345")), 5) == b"12345"
        assert gunzip(memoryview(gzip.compress(b"12345")), 5) == b"12345"

    @pytest.mark.parametrize(("decode", "encode"), [(inflate, zlib.compress), (gunzip, gzip.compress)])
    def test_one_byte_more_is_an_error(self, decode, encode):
        with pytest.raises(ChunkLengthError):
            decode(memoryview(encode(b"123456")), 5)

    @pytest.mark.parametrize(("decode", "encode"), [(inflate, zlib.compress), (gunzip, gzip.compress)])
    def test_nothing_is_a_chunk_too(self, decode, encode):
        assert decode(memoryview(encode(b"")), 0) == b""

    def test_no_gzip_member_is_nothing(self):
        assert gunzip(memoryview(b""), 0) == b""

    @pytest.mark.parametrize(("decode", "encode"), [(inflate, zlib.compress), (gunzip, gzip.compress)])
    def test_no_part_of_a_stream_is_a_stream(self, decode, encode):
        data = encode(b"some text that is long enough")
        for length in range(1, len(data)):
            with pytest.raises(CorruptChunkError):
                decode(memoryview(data[:length]), 100)

    @pytest.mark.parametrize(("decode", "encode"), [(inflate, zlib.compress), (gunzip, gzip.compress)])
    def test_a_changed_checksum_is_an_error(self, decode, encode):
        data = bytearray(encode(b"text"))
        data[-4 if decode is inflate else -8] ^= 1
        with pytest.raises(CorruptChunkError):
            decode(memoryview(data), 100)

    def test_members_and_zeros_may_follow_a_gzip_member(self):
        parts = [b"a" * 70_000, b"", np.random.default_rng(0).bytes(50_000), b"c"]
        data = b"".join(gzip.compress(part) + bytes(20_000 * number) for number, part in enumerate(parts))
        assert gunzip(memoryview(data), 200_000) == b"".join(parts)

    def test_members_share_the_limit(self):
        data = gzip.compress(b"12345") + gzip.compress(b"6")
        with pytest.raises(ChunkLengthError):
            gunzip(memoryview(data), 5)

    @pytest.mark.parametrize("trailing", [b"text", b"\0\0text", b"\x1f", gzip.compress(b"6", mtime=0)[:-1]])
    def test_nothing_else_may_follow_a_gzip_member(self, trailing):
        with pytest.raises(CorruptChunkError):
            gunzip(memoryview(gzip.compress(b"12345") + trailing), 100)


class TestBackend:
    def test_is_a_backend_that_is_equal_to_its_copies(self):
        backend = ReferenceBackend()
        assert isinstance(backend, Backend)
        assert pickle.loads(pickle.dumps(backend)) == backend == ReferenceBackend()
        assert (backend.name, backend.version) == ("reference", "1")

    @pytest.mark.parametrize(
        "codecs",
        [
            [LITTLE],
            [{"name": "bytes", "configuration": {"endian": "big"}}],
            [{"name": "transpose", "configuration": {"order": [1, 0]}}, LITTLE, "crc32c"],
            [LITTLE, {"name": "gzip", "configuration": {"level": 1}}],
            [LITTLE, {"name": "numcodecs.zlib", "configuration": {"level": 9}}, "crc32c"],
            [LITTLE, {"name": "numcodecs.shuffle", "configuration": {"elementsize": 2}}],
            [LITTLE, {"name": "numcodecs.shuffle", "configuration": {}}, "crc32c", "crc32c"],
        ],
    )
    def test_decodes_what_it_encodes(self, codecs):
        array = np.array([[1, -2, 3], [4, 5, 1000]], "i2")
        chain = prepared(codecs)
        np.testing.assert_array_equal(chain.decode(chain.encode(array)), array)

    def test_shuffle_puts_the_bytes_of_each_place_together(self):
        chain = prepared([LITTLE, {"name": "numcodecs.shuffle", "configuration": {"elementsize": 2}}])
        assert bytes(chain.encode(np.array([[0x0102, 0x0304, 0], [0, 0, 0]], "i2"))) == bytes(
            [2, 4, 0, 0, 0, 0, 1, 3, 0, 0, 0, 0]
        )

    def test_a_wrong_checksum_is_told_with_both_values(self):
        chain = prepared([LITTLE, "crc32c"])
        encoded = bytearray(chain.encode(np.ones((2, 3), "i2")))
        encoded[0] ^= 1
        with pytest.raises(ChecksumError, match=r"crc32c: wrong checksum: expected 0x\w{8}, found 0x\w{8}"):
            chain.decode(encoded)

    @pytest.mark.parametrize("length", [0, 1, 3])
    def test_no_room_for_a_checksum_is_a_wrong_length(self, length):
        with pytest.raises(ChunkLengthError):
            prepared([LITTLE, "crc32c"]).decode(bytes(length))

    def test_codecs_outside_its_table_are_unsupported(self):
        with pytest.raises(UnsupportedCodecError, match="not among the reference kernels"):
            prepared([LITTLE, {"name": "zstd", "configuration": {}}])


class TestVariableLength:
    @pytest.mark.parametrize(
        ("name", "dtype", "elements"),
        [
            ("vlen-utf8", "string", ["", "a", "żółw", "漢字", "x" * 300, "0"]),
            ("vlen-bytes", "variable_length_bytes", [b"", b"a", b"\xff\0", b"xyz", b"0", b"1"]),
        ],
    )
    def test_decodes_what_it_encodes(self, name, dtype, elements):
        chain = prepared([name, "crc32c"], dtype)
        array = np.array(elements, object).reshape(2, 3)
        assert chain.decode(chain.encode(array)).ravel().tolist() == elements

    def test_no_element_is_stored_as_no_characters(self):
        chain = prepared(["vlen-bytes"], "variable_length_bytes", shape=(3,))
        encoded = chain.encode(np.array([None, 0, b"a"], object))
        assert bytes(encoded) == struct.pack("<IIII", 3, 0, 0, 1) + b"a"

    @pytest.mark.parametrize(
        ("data", "error"),
        [
            (b"", CorruptChunkError),
            (struct.pack("<I", 2), ChunkLengthError),
            (struct.pack("<I", 0xFFFFFFFF), ChunkLengthError),
            (struct.pack("<II", 1, 4) + b"abc", CorruptChunkError),
            (struct.pack("<II", 1, 0xFFFFFFFF), CorruptChunkError),
            (struct.pack("<I", 1) + b"\0\0", CorruptChunkError),
            (struct.pack("<II", 1, 1) + b"\xff", CorruptChunkError),
        ],
    )
    def test_broken_chunks_are_errors(self, data, error):
        with pytest.raises(error) as caught:
            prepared(["vlen-utf8"], "string", shape=(1,)).decode(data)
        assert caught.value.codec == "vlen-utf8"

    def test_what_follows_the_last_element_is_ignored(self):
        chain = prepared(["vlen-utf8"], "string", shape=(1,))
        assert chain.decode(struct.pack("<II", 1, 1) + b"abc").tolist() == ["a"]
