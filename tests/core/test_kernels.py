"""Backends made of kernels: batches of entries, whole chunks, errors and their positions, and whose memory is whose."""

from __future__ import annotations

import attrs
import numpy as np
import pytest

from chunkwright import Buffers, ChunkLengthError, CodecChain, CodecError, CorruptChunkError, Entries, ReferenceBackend
from chunkwright.entries import IndexList
from chunkwright.kernel_backend import KernelBackend
from chunkwright.kernels import Kernel
from chunkwright.program import Program
from chunkwright_numcodecs import NumcodecsBackend

LITTLE = {"name": "bytes", "configuration": {"endian": "little"}}
BIG = {"name": "bytes", "configuration": {"endian": "big"}}
SWAP = {"name": "transpose", "configuration": {"order": [1, 0]}}
GZIP = {"name": "gzip", "configuration": {"level": 1}}
ZSTD = {"name": "zstd", "configuration": {}}
SHAPE = (4, 3)


@attrs.frozen
class Piecemeal(ReferenceBackend):
    """The reference backend, chunk by chunk and last chunk first."""

    def _map(self, work, count, *, cost, max_workers):
        for number in reversed(range(count)):
            work(number, number + 1)


BACKENDS = [ReferenceBackend(), Piecemeal(), NumcodecsBackend()]
CHAINS = {
    "raw": [LITTLE],
    "raw, swapped bytes": [BIG],
    "transposed": [SWAP, LITTLE],
    "compressed": [LITTLE, GZIP],
    "transposed, swapped and compressed": [SWAP, BIG, GZIP],
    "with a checksum": [LITTLE, GZIP, {"name": "crc32c"}],
}


def prepared(codecs, backend=None, dtype="int32", shape=SHAPE, fill=7):
    return CodecChain.from_json(codecs).bind(dtype, fill).prepare(shape, backends=[backend or ReferenceBackend()])


def chunk(number, dtype="i4"):
    return (np.arange(12, dtype=dtype) + 100 * number).reshape(SHAPE)


def tiled(rows, columns):
    """Entries for a grid of whole chunks, and the array that they make up."""
    places = np.stack(np.meshgrid(np.arange(rows), np.arange(columns), indexing="ij"), -1).reshape(-1, 2)
    count = len(places)
    entries = Entries.boxes(
        chunk=np.arange(count),
        start=np.zeros((count, 2), int),
        count=np.tile(SHAPE, (count, 1)),
        out_start=places * SHAPE,
    )
    array = np.block([[chunk(row * columns + column) for column in range(columns)] for row in range(rows)])
    return entries, array


def outs(shape):
    """Arrays of all kinds that a caller may bring."""
    yield np.zeros(shape, "i4")
    yield np.zeros(shape, "i4", order="F")
    yield np.zeros((*shape, 2), "i4")[..., 1]
    yield np.zeros(shape, "i4")[::-1]
    yield np.zeros(shape, ">i4")
    yield np.zeros(shape, "f8")
    yield np.zeros(shape, "i2")


@pytest.mark.parametrize("backend", BACKENDS, ids=lambda backend: type(backend).__name__)
@pytest.mark.parametrize("codecs", CHAINS.values(), ids=CHAINS)
class TestReading:
    def test_whole_chunks_go_to_their_places(self, codecs, backend):
        run = prepared(codecs, backend).runs[0]
        entries, array = tiled(3, 2)
        buffers = Buffers.of(backend.encode_arrays(run, [chunk(i) for i in range(6)]))
        for out in outs(array.shape):
            backend.decode_into(run, buffers, entries, out)
            np.testing.assert_array_equal(out, array)

    def test_missing_chunks_are_filled(self, codecs, backend):
        run = prepared(codecs, backend).runs[0]
        entries, array = tiled(2, 2)
        encoded = backend.encode_arrays(run, [chunk(i) for i in range(4)])
        encoded[2] = None
        array[4:, :3] = 7
        for out in outs(array.shape):
            backend.decode_into(run, Buffers.of(encoded), entries, out)
            np.testing.assert_array_equal(out, array)

    def test_a_chunk_may_have_many_entries_or_none(self, codecs, backend):
        run = prepared(codecs, backend).runs[0]
        encoded = backend.encode_arrays(run, [chunk(i) for i in range(4)])
        entries = Entries.boxes(
            chunk=np.array([1, 1, 3]),
            start=np.array([[0, 0], [3, 1], [1, 2]]),
            count=np.array([[2, 3], [1, 2], [2, 1]]),
            out_start=np.array([[0, 0], [2, 0], [3, 0]]),
            step=np.array([[2, 1], [1, 1], [2, 1]]),
        )
        out = np.full((5, 3), -1)
        backend.decode_into(run, Buffers.of(encoded), entries, out)
        expected = np.full((5, 3), -1)
        expected[:2], expected[2, :2], expected[3:, 0] = chunk(1)[::2], chunk(1)[3, 1:], chunk(3)[1::2, 2]
        np.testing.assert_array_equal(out, expected)

    def test_lists_of_indexes_are_followed(self, codecs, backend):
        run = prepared(codecs, backend).runs[0]
        encoded = backend.encode_arrays(run, [chunk(i) for i in range(2)])
        rows = IndexList.of([np.array([3, 0]), np.array([1])])
        entries = attrs.evolve(
            Entries.boxes(
                chunk=np.array([0, 1]),
                start=np.zeros((2, 2), int),
                count=np.array([[2, 3], [1, 3]]),
                out_start=np.zeros((2, 2), int),
            ),
            lists=(rows, None),
            out_lists=(IndexList.of([np.array([2, 1]), np.array([0])]), None),
        )
        out = np.zeros((3, 3), "i4")
        backend.decode_into(run, Buffers.of(encoded), entries, out)
        np.testing.assert_array_equal(out, [chunk(1)[1], chunk(0)[0], chunk(0)[3]])

    def test_whole_arrays_are_the_callers_to_change(self, codecs, backend):
        run = prepared(codecs, backend).runs[0]
        encoded = [bytearray(item) for item in backend.encode_arrays(run, [chunk(0), chunk(1)])]
        kept = [bytes(item) for item in encoded]
        first, none, second = backend.decode_arrays(run, [encoded[0], None, encoded[1]])
        assert none is None
        for number, array in ((0, first), (1, second)):
            np.testing.assert_array_equal(array, chunk(number))
            assert array.dtype == np.dtype("i4")
            array[...] = -1
        assert [bytes(item) for item in encoded] == kept

    def test_an_error_has_the_position_of_its_chunk(self, codecs, backend):
        run = prepared(codecs, backend).runs[0]
        entries, array = tiled(3, 2)
        encoded = backend.encode_arrays(run, [chunk(i) for i in range(6)])
        encoded[4] = b"broken"
        with pytest.raises(CorruptChunkError) as caught:
            backend.decode_into(run, Buffers.of(encoded), entries, np.zeros_like(array))
        assert caught.value.position == 4
        with pytest.raises(CorruptChunkError) as caught:
            backend.decode_arrays(run, encoded)
        assert caught.value.position == 4

    def test_many_chunks_are_done_in_blocks(self, codecs, backend, monkeypatch):
        monkeypatch.setattr("chunkwright._batches._BLOCK", 2)
        run = prepared(codecs, backend).runs[0]
        entries, array = tiled(3, 3)
        encoded = backend.encode_from(run, array, entries, base=[None] * 9, keep_empty=False)
        for out in outs(array.shape):
            backend.decode_into(run, Buffers.of(encoded), entries, out)
            np.testing.assert_array_equal(out, array)
        encoded[7] = b"broken"
        with pytest.raises(CorruptChunkError) as caught:
            backend.decode_into(run, Buffers.of(encoded), entries, np.zeros_like(array))
        assert caught.value.position == 7


@pytest.mark.parametrize("backend", BACKENDS, ids=lambda backend: type(backend).__name__)
@pytest.mark.parametrize("codecs", CHAINS.values(), ids=CHAINS)
class TestWriting:
    def write(self, backend, codecs, source, entries, **options):
        chain = prepared(codecs, backend)
        base = options.pop("base", [None] * (int(entries.chunk.max()) + 1))
        encoded = backend.encode_from(chain.runs[0], source, entries, base=base, keep_empty=False, **options)
        return [None if item is None else chain.decode(bytes(item)) for item in encoded]

    def test_chunks_are_taken_from_any_array(self, codecs, backend):
        entries, array = tiled(3, 2)
        for source in outs(array.shape):
            source[...] = array
            for number, found in enumerate(self.write(backend, codecs, source, entries)):
                np.testing.assert_array_equal(found, chunk(number))

    def test_one_value_may_stand_for_all(self, codecs, backend):
        entries, array = tiled(2, 1)
        for found in self.write(backend, codecs, np.broadcast_to(np.int64(5), array.shape), entries):
            np.testing.assert_array_equal(found, np.full(SHAPE, 5))

    def test_what_entries_leave_out_is_fill_or_what_was_there(self, codecs, backend):
        entries = Entries.boxes(
            chunk=np.array([0, 1, 1]),
            start=np.array([[1, 0], [0, 0], [3, 2]]),
            count=np.array([[2, 3], [1, 3], [1, 1]]),
            out_start=np.array([[0, 0], [2, 0], [3, 2]]),
        )
        source = np.arange(12).reshape(4, 3)
        filled, kept = self.write(backend, codecs, source, entries, base=[None, chunk(9)])
        expected = np.full(SHAPE, 7)
        expected[1:3] = source[:2]
        np.testing.assert_array_equal(filled, expected)
        expected = chunk(9)
        expected[0], expected[3, 2] = source[2], source[3, 2]
        np.testing.assert_array_equal(kept, expected)

    def test_chunks_of_nothing_but_fill_are_left_out_unless_kept(self, codecs, backend):
        entries, array = tiled(2, 1)
        array[:4] = 7
        run = prepared(codecs, backend).runs[0]
        encoded = backend.encode_from(run, array, entries, base=[None] * 2, keep_empty=False)
        assert [item is None for item in encoded] == [True, False]
        encoded = backend.encode_from(run, array, entries, base=[None] * 2, keep_empty=True)
        assert not any(item is None for item in encoded)

    def test_a_chunk_without_entries_is_what_it_was(self, codecs, backend):
        entries = tiled(1, 1)[0].with_chunk(np.array([1]))
        found = self.write(backend, codecs, chunk(3), entries, base=[chunk(5), None, None])
        np.testing.assert_array_equal(found[0], chunk(5))
        np.testing.assert_array_equal(found[1], chunk(3))
        assert found[2] is None

    def test_encoded_bytes_are_read_only_and_no_longer_the_callers(self, codecs, backend):
        chain = prepared(codecs, backend)
        for source in (chunk(1), np.asfortranarray(chunk(1)), chunk(1).astype(">i4")):
            entries = tiled(1, 1)[0]
            written = backend.encode_from(chain.runs[0], source, entries, base=[None], keep_empty=False)
            (whole,) = backend.encode_arrays(chain.runs[0], [source.astype("i4", copy=False)])
            source[...] = -1
            for encoded in (*written, whole):
                assert memoryview(encoded).readonly
                np.testing.assert_array_equal(chain.decode(encoded), chunk(1))


class TestStraight:
    """Chunks whose place is contiguous memory of the stored layout are decoded into it, with no copy."""

    @pytest.fixture
    def straight(self, monkeypatch):
        calls = []
        decode_to = Program.decode_to

        def counted(program, item, target):
            calls.append(len(target))
            decode_to(program, item, target)

        monkeypatch.setattr(Program, "decode_to", counted)
        return calls

    @pytest.mark.parametrize(
        ("codecs", "out", "expected"),
        [
            ([LITTLE, ZSTD], np.zeros((8, 3), "<i4"), [48, 48]),
            ([LITTLE, ZSTD, {"name": "crc32c"}], np.zeros((8, 3), "<i4"), [48, 48]),
            ([BIG, ZSTD], np.zeros((8, 3), ">i4"), [48, 48]),
            ([BIG, ZSTD], np.zeros((8, 3), "<i4"), []),
            ([LITTLE, ZSTD], np.zeros((8, 3), "<f4"), []),
            ([LITTLE, ZSTD], np.zeros((8, 4), "<i4")[:, :3], []),
            ([SWAP, LITTLE, ZSTD], np.zeros((8, 3), "<i4"), []),
            ([LITTLE, GZIP], np.zeros((8, 3), "<i4"), []),
            ([LITTLE], np.zeros((8, 3), "<i4"), []),
        ],
    )
    def test_into_an_array(self, straight, codecs, out, expected):
        backend = NumcodecsBackend()
        run = prepared(codecs, backend).runs[0]
        entries, array = tiled(2, 1)
        encoded = backend.encode_from(run, array, entries, base=[None] * 2, keep_empty=False)
        backend.decode_into(run, Buffers.of(encoded), entries, out)
        np.testing.assert_array_equal(out, array)
        assert straight == expected

    def test_into_a_transposed_array(self, straight):
        backend = NumcodecsBackend()
        run = prepared([SWAP, LITTLE, ZSTD], backend).runs[0]
        encoded = backend.encode_arrays(run, [chunk(1)])
        out = np.zeros(SHAPE, "<i4", order="F")
        backend.decode_into(run, Buffers.of(encoded), tiled(1, 1)[0], out)
        np.testing.assert_array_equal(out, chunk(1))
        assert straight == [48]

    def test_only_chunks_with_one_entry(self, straight):
        backend = NumcodecsBackend()
        run = prepared([LITTLE, ZSTD], backend).runs[0]
        encoded = backend.encode_arrays(run, [chunk(1), chunk(2)])
        entries = Entries.boxes(
            chunk=np.array([0, 0, 1]),
            start=np.zeros((3, 2), int),
            count=np.tile(SHAPE, (3, 1)),
            out_start=np.array([[0, 0], [4, 0], [8, 0]]),
        )
        out = np.zeros((12, 3), "<i4")
        backend.decode_into(run, Buffers.of(encoded), entries, out)
        np.testing.assert_array_equal(out, np.concatenate([chunk(1), chunk(1), chunk(2)]))
        assert straight == [48]

    def test_never_backwards(self, straight):
        backend = NumcodecsBackend()
        run = prepared([LITTLE, ZSTD], backend, shape=(4, 1)).runs[0]
        encoded = backend.encode_arrays(run, [np.arange(4, dtype="i4").reshape(4, 1)])
        entries = Entries.boxes(
            chunk=np.array([0]), start=np.zeros((1, 2), int), count=np.array([[4, 1]]), out_start=np.array([[3, 0]])
        )
        entries = attrs.evolve(entries, out_step=np.array([[-1, 1]]))
        out = np.zeros((4, 1), "<i4")
        backend.decode_into(run, Buffers.of(encoded), entries, out)
        assert out.ravel().tolist() == [3, 2, 1, 0]
        assert straight == []

    def test_dropped_axes_are_no_hindrance(self, straight):
        backend = NumcodecsBackend()
        run = prepared([LITTLE, ZSTD], backend, shape=(1, 3)).runs[0]
        encoded = backend.encode_arrays(run, [np.array([[i, i, i]], "i4") for i in range(2)])
        entries = Entries.boxes(
            chunk=np.arange(2), start=np.zeros((2, 2), int), count=np.array([[1, 3]] * 2),
            out_start=np.array([[0, 0], [1, 0]]), axes=(-1, 1),
        )  # fmt: skip
        out = np.full((2, 3), -1, "<i4")
        backend.decode_into(run, Buffers.of(encoded), entries, out)
        assert out.tolist() == [[0] * 3, [1] * 3]
        assert straight == [12, 12]

    def test_not_where_there_are_lists_of_indexes(self, straight):
        backend = NumcodecsBackend()
        run = prepared([LITTLE, ZSTD], backend).runs[0]
        entries = attrs.evolve(tiled(1, 1)[0], lists=(IndexList.of([np.arange(4)]), None))
        out = np.zeros(SHAPE, "<i4")
        backend.decode_into(run, Buffers.of(backend.encode_arrays(run, [chunk(1)])), entries, out)
        np.testing.assert_array_equal(out, chunk(1))
        assert straight == []

    @pytest.mark.parametrize(
        ("codecs", "expected"),
        [
            ([LITTLE, ZSTD], [48]),
            ([SWAP, LITTLE, ZSTD], [48]),
            ([SWAP, SWAP, LITTLE, ZSTD], [48]),
            ([BIG, ZSTD], []),
            ([{"name": "numcodecs.delta", "configuration": {"dtype": "<i4"}}, LITTLE, ZSTD], []),
        ],
    )
    def test_into_arrays_of_their_own(self, straight, codecs, expected):
        chain = prepared(codecs, NumcodecsBackend())
        found = chain.decode(chain.encode(chunk(1)))
        np.testing.assert_array_equal(found, chunk(1))
        assert found.flags.writeable
        assert straight == expected

    def test_an_error_names_the_codec_and_the_chunk(self, straight):
        backend = NumcodecsBackend()
        run = prepared([LITTLE, ZSTD], backend).runs[0]
        entries, array = tiled(2, 1)
        encoded = backend.encode_from(run, array, entries, base=[None] * 2, keep_empty=False)
        damaged = bytearray(encoded[1])
        damaged[-3] ^= 0xFF
        for broken in (b"broken", bytes(damaged[:-1])):
            with pytest.raises(CorruptChunkError) as caught:
                backend.decode_into(run, Buffers.of([encoded[0], broken]), entries, np.zeros((8, 3), "<i4"))
            assert (caught.value.codec, caught.value.position) == ("zstd", 1)
        assert len(straight) == 4


@attrs.frozen(eq=False)
class Made(KernelBackend):
    """A backend whose one kernel a test brings along."""

    made: Kernel
    name = "made"
    version = "0"

    def offer(self, codec, spec):
        return ReferenceBackend().offer(codec, spec)

    def kernel(self, step):
        return self.made


def fails(error):
    def decode(item):
        raise error

    return decode


class TestKernels:
    def decoding(self, error, **options):
        backend = Made(Kernel(codec="crc32c", decode=fails(error), encode=bytes, **options))
        return prepared([LITTLE, "crc32c"], backend)

    def test_whatever_a_library_raises_is_a_corrupt_chunk_with_its_cause(self):
        error = RuntimeError("out of cheese")
        with pytest.raises(CorruptChunkError, match=r"^crc32c: cannot be decoded \(out of cheese\)$") as caught:
            self.decoding(error).decode(b"")
        assert caught.value.__cause__ is error

    def test_an_exception_without_text_is_told_by_its_class(self):
        with pytest.raises(CorruptChunkError, match=r"\(KeyError\)$"):
            self.decoding(KeyError()).decode(b"")

    def test_errors_that_are_not_about_the_bytes_pass(self):
        with pytest.raises(PermissionError):
            self.decoding(PermissionError(), passes=(PermissionError,)).decode(b"")

    def test_no_memory_is_the_bytes_fault_only_where_they_are_not_bounded(self):
        with pytest.raises(MemoryError):
            self.decoding(MemoryError()).decode(b"")
        with pytest.raises(CorruptChunkError):
            self.decoding(MemoryError(), bounded=False).decode(b"")

    def test_errors_of_ours_get_the_name_of_the_codec_unless_they_have_one(self):
        with pytest.raises(CodecError) as caught:
            self.decoding(ChunkLengthError("odd")).decode(b"")
        assert caught.value.codec == "crc32c"
        with pytest.raises(CodecError) as caught:
            self.decoding(ChunkLengthError("odd", codec="inner")).decode(b"")
        assert caught.value.codec == "inner"

    @pytest.mark.parametrize("length", [0, 47, 49])
    def test_a_wrong_size_is_an_error(self, length):
        backend = Made(Kernel(codec="crc32c", decode=lambda item: bytes(length), encode=bytes))
        with pytest.raises(ChunkLengthError, match=f"^crc32c: wrong decoded size: expected 48, found {length}$"):
            prepared([LITTLE, "crc32c"], backend).decode(b"")

    def test_more_than_the_chain_allows_is_an_error(self):
        backend = Made(Kernel(codec="vlen-utf8", decode=lambda item: bytes(101), encode=bytes))
        chain = CodecChain.from_json(["vlen-utf8", "crc32c"]).bind("string", "")
        made = chain.prepare((1,), backends=[backend], max_chunk_bytes=100)
        with pytest.raises(ChunkLengthError, match="expected at most 100, found 101"):
            made.decode(b"")

    def test_flat_arrays_get_the_shape_of_the_chunk(self):
        backend = Made(Kernel(codec="vlen-utf8", decode=lambda item: np.full(12, "a", object), encode=bytes))
        assert prepared(["vlen-utf8"], backend, "string", fill="").decode(b"").shape == SHAPE

    def test_other_numbers_of_elements_are_an_error(self):
        backend = Made(Kernel(codec="vlen-utf8", decode=lambda item: np.full(11, "a", object), encode=bytes))
        with pytest.raises(ChunkLengthError, match="wrong number of elements: expected 12, found 11"):
            prepared(["vlen-utf8"], backend, "string", fill="").decode(b"")

    def test_what_is_no_array_is_a_corrupt_chunk(self):
        backend = Made(Kernel(codec="vlen-utf8", decode=lambda item: 5, encode=bytes))
        with pytest.raises(CorruptChunkError):
            prepared(["vlen-utf8"], backend, "string", fill="").decode(b"")

    def test_missing_strings_are_the_fill_value(self):
        out = np.zeros(3, object)
        backend = ReferenceBackend()
        run = prepared(["vlen-utf8"], backend, "string", shape=(3,), fill="ab").runs[0]
        backend.decode_into(run, Buffers.of([None]), Entries.whole((3,), 1), out.reshape(1, 3))
        assert out.tolist() == ["ab"] * 3

    def test_bytes_have_no_elements_of_variable_length(self):
        chain = prepared([LITTLE]).runs[0].steps[0]
        string = attrs.evolve(chain.spec.dtype, variable="string")
        answer = ReferenceBackend().supports(chain.codec, attrs.evolve(chain.spec, dtype=string))
        assert not answer
        assert "variable length" in answer.reason


def test_a_run_in_the_middle_of_a_chain_works_on_bytes_or_on_arrays():
    reference, numcodecs = ReferenceBackend(), NumcodecsBackend()
    codecs = [SWAP, LITTLE, ZSTD, {"name": "crc32c"}]
    chain = CodecChain.from_json(codecs).bind("int32", 0).prepare(SHAPE, backends=[reference, numcodecs])
    names = [[step.codec.name for step in run.steps] for run in chain.runs]
    assert names == [["transpose", "bytes"], ["zstd"], ["crc32c"]]
    encoded = chain.encode(chunk(1))
    np.testing.assert_array_equal(chain.decode(encoded), chunk(1))
    (nothing,) = chain.runs[1].backend.decode_bytes(chain.runs[1], Buffers.of([None]))
    assert nothing is None
    assert chain.runs[1].backend.encode_bytes(chain.runs[1], [None]) == [None]
    with pytest.raises(CorruptChunkError) as caught:
        chain.runs[1].backend.decode_bytes(chain.runs[1], Buffers.of([None, b"broken"]))
    assert caught.value.position == 1
