"""Prepared chains check once what can be checked once, and work in memory on whole chunks and parts."""

from __future__ import annotations

import pickle
import tracemalloc
from typing import Any

import attrs
import numpy as np
import pytest

from chunkwright import (
    Buffers,
    CodecChain,
    ConfigurationError,
    CorruptChunkError,
    Entries,
    PreparedChain,
    ReferenceBackend,
    SelectionError,
    Supported,
    Unsupported,
    UnsupportedCodecError,
)
from chunkwright.spec import FixedSize, UnboundedSize
from chunkwright_numcodecs import NumcodecsBackend
from tests.support.backends import backends
from tests.support.plans import CRC, DATA, GZIP, LITTLE, prepared, sharding

ZSTD = {"name": "zstd", "configuration": {"level": 1, "checksum": False}}


@attrs.frozen(eq=False, init=False)
class Picky(ReferenceBackend):
    """A backend of another name that runs only some codecs."""

    names: tuple[str, ...]

    def __init__(self, *names: str) -> None:
        self.__attrs_init__(names)

    @property
    def name(self) -> str:
        return "picky"

    def supports(self, codec: Any, spec: Any) -> Supported | Unsupported:
        return super().supports(codec, spec) if codec.name in self.names else Unsupported("not one of mine")


def on(backends: list[Any], codecs: list[Any]) -> PreparedChain:
    return CodecChain.from_json(codecs).bind("uint16", 0).prepare(DATA.shape, backends=backends)


@pytest.mark.parametrize("names", [("bytes",), ("crc32c",), ("gzip",), ("transpose",), ("bytes", "crc32c", "gzip"), ()])
@pytest.mark.parametrize("inside", [False, True])
def test_a_chain_is_divided_among_backends_and_gives_the_same_bytes(names: tuple[str, ...], inside: bool) -> None:
    codecs: list[Any] = [{"name": "transpose", "configuration": {"order": [1, 0]}}, LITTLE, CRC, GZIP]
    if inside:
        codecs = [sharding((3, 4), codecs)]
    mixed, plain = on([Picky(*names), ReferenceBackend()], codecs), on([ReferenceBackend()], codecs)
    assert bytes(mixed.encode(DATA) or b"")[10:] == bytes(plain.encode(DATA) or b"")[10:]
    assert np.array_equal(mixed.decode(plain.encode(DATA) or b""), DATA)
    out = np.zeros((2, 3), "u2")
    mixed.decode_into(plain.encode(DATA), out, selection=(slice(1, 3), slice(0, 9, 3)))
    assert np.array_equal(out, DATA[1:3, 0:9:3])
    work = mixed.plan_write((slice(0, 2), 1))
    work.feed([0], [plain.encode(DATA)])
    changed = mixed.decode(work.take().run(np.array([7, 8], "u2"))[0][1])  # type: ignore[union-attr, arg-type]
    assert changed[:2, 1].tolist() == [7, 8]


def test_neighbours_of_one_backend_form_one_run() -> None:
    chain = on([Picky("crc32c"), ReferenceBackend()], [LITTLE, CRC, CRC, GZIP])
    assert [(run.backend.name, len(run.steps)) for run in chain.runs] == [
        ("reference", 1),
        ("picky", 2),
        ("reference", 1),
    ]  # type: ignore[union-attr]
    assert [run.reason for run in chain.explain().runs] == ["picky: not one of mine", "", "picky: not one of mine"]


def test_a_codec_that_no_backend_runs_is_refused_with_all_reasons() -> None:
    with pytest.raises(UnsupportedCodecError, match="picky: not one of mine"):
        on([Picky()], [LITTLE])
    with pytest.raises(UnsupportedCodecError, match="no backend was given"):
        on([], [LITTLE])


def test_a_chunk_equal_to_the_fill_value_may_be_left_out() -> None:
    for codecs in ([LITTLE], [sharding((3, 4))], [sharding((3, 4)), CRC]):
        chain = prepared(codecs, DATA.shape, fill=3)
        assert chain.encode(np.full_like(DATA, 3)) is None
        kept = chain.encode(np.full_like(DATA, 3), keep_empty=True)
        assert kept is not None
        assert (chain.decode(kept) == 3).all()
        assert memoryview(kept).readonly


def test_keep_empty_reaches_inner_chunks() -> None:
    chain = prepared([sharding((3, 4), [LITTLE])], DATA.shape)
    assert len(memoryview(chain.encode(np.zeros_like(DATA), keep_empty=True) or b"")) == DATA.nbytes + 16 * 16 + 4


def test_decoded_arrays_own_their_memory() -> None:
    for codecs in ([LITTLE], [sharding((3, 4), [LITTLE])]):
        chain = prepared(codecs, DATA.shape)
        data = bytearray(chain.encode(DATA) or b"")
        got = chain.decode(data)
        got[0, 0] = 99
        assert np.array_equal(chain.decode(data), DATA)
        assert got.flags.writeable


def test_arrays_of_any_layout_are_encoded_alike() -> None:
    chain = prepared([LITTLE, CRC], DATA.shape)
    want = bytes(chain.encode(DATA) or b"")
    for array in (np.asfortranarray(DATA), DATA.astype(">u2"), np.repeat(DATA, 2, 1)[:, ::2], DATA.astype("i8")):
        assert bytes(chain.encode(array) or b"") == want


def test_a_chunk_of_another_shape_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="shape"):
        prepared([LITTLE], DATA.shape).encode(DATA[1:])


def test_out_of_another_shape_is_refused() -> None:
    chain = prepared([LITTLE], DATA.shape)
    with pytest.raises(SelectionError, match="shape"):
        chain.decode_into(chain.encode(DATA), np.zeros(3, "u2"), selection=0)


@pytest.mark.parametrize("selection", [..., (slice(2), slice(2))])
@pytest.mark.parametrize("backend", backends(), ids=lambda backend: backend.name)
@pytest.mark.parametrize("codecs", [[LITTLE], [LITTLE, CRC], [LITTLE, ZSTD], [sharding(DATA.shape, [LITTLE, ZSTD])]])
def test_out_that_is_read_only_is_refused_and_left_alone(codecs: list[Any], backend: Any, selection: Any) -> None:
    chain = on([backend, NumcodecsBackend()], codecs)
    out = np.zeros_like(DATA[selection])
    out.flags.writeable = False
    for stored in (chain.encode(DATA + 1), None):
        before = out.copy()
        with pytest.raises(ValueError, match="read-only"):
            chain.decode_into(stored, out, selection=selection)
        assert np.array_equal(out, before)


def test_batches_decode_into_one_array() -> None:
    chain = prepared([sharding((3, 4))], DATA.shape)
    buffers = [chain.encode(DATA), None, chain.encode(DATA + 1)]
    for rows in (buffers, Buffers.of(buffers)):
        out = np.ones((3, *DATA.shape), "u2")
        chain.decode_many_into(rows, Entries.whole(DATA.shape, 3), out)
        assert np.array_equal(out, [DATA, np.zeros_like(DATA), DATA + 1])
    assert [array is None for array in chain.decode_many(buffers)] == [False, True, False]


def test_errors_of_a_batch_tell_the_position() -> None:
    for codecs in ([LITTLE, CRC], [sharding((3, 4), [LITTLE, CRC])], [sharding((3, 4)), CRC]):
        chain = prepared(codecs, DATA.shape)
        good = bytes(chain.encode(DATA) or b"")
        bad = good[:7] + bytes([good[7] ^ 255]) + good[8:]
        with pytest.raises(CorruptChunkError) as caught:
            chain.decode_many([good, None, bad, good])
        assert caught.value.position == 2
        with pytest.raises(CorruptChunkError) as caught:
            chain.decode_many_into(
                [good, None, bad, good], Entries.whole(DATA.shape, 4), np.zeros((4, *DATA.shape), "u2")
            )
        assert caught.value.position == 2


def test_sizes_are_known_as_far_as_the_codecs_fix_them() -> None:
    assert prepared([LITTLE, CRC], DATA.shape).encoded_size == FixedSize(DATA.nbytes + 4)
    # Other writers may leave gaps in a shard.
    assert isinstance(prepared([sharding((3, 4), [LITTLE])], DATA.shape).encoded_size, UnboundedSize)
    assert isinstance(prepared(["vlen-utf8"], (3,), "string", "").encoded_size, UnboundedSize)


@pytest.mark.parametrize(
    ("codecs", "shape"),
    [
        ([LITTLE], (-1, 2)),
        ([LITTLE], (2**40, 2**40)),
        ([sharding((5, 4))], (12, 16)),
        ([sharding((3,))], (12, 16)),
        ([sharding((1, 1))], (2**16, 2**16)),
        ([{"name": "transpose", "configuration": {"order": [1, 0]}}, LITTLE], (3, 4, 5)),
    ],
)
def test_shapes_that_do_not_fit_are_refused(codecs: list[Any], shape: tuple[int, ...]) -> None:
    with pytest.raises(ConfigurationError):
        prepared(codecs, shape)


def test_a_prepared_chain_pickles_and_works_as_before() -> None:
    chain = prepared([sharding((3, 4))], DATA.shape)
    again = pickle.loads(pickle.dumps(chain))
    assert again.spec == chain.spec
    assert bytes(again.encode(DATA))[10:] == bytes(chain.encode(DATA) or b"")[10:]


def test_a_prepared_chain_cannot_be_changed() -> None:
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        prepared([LITTLE], DATA.shape).spec = None  # type: ignore[misc]


@pytest.mark.parametrize("backend", backends())
def test_a_limit_of_threads_is_a_positive_number(backend: Any) -> None:
    chain = CodecChain.from_json([{"name": "bytes"}]).bind("uint8", 0).prepare((2,), backends=[backend])
    array = np.array([1, 2], "u1")
    for huge in (2**31, 2**63, 2**100):
        encoded = chain.encode_many([array], max_workers=huge)
        [decoded] = chain.decode_many(encoded, max_workers=huge)
        assert decoded is not None
        assert decoded.tolist() == [1, 2]
        work = chain.plan_write(...).take()
        assert work is not None
        assert work.run(array, max_workers=huge)[0][0] == 0
    for bad in (0, -1, -(2**70)):
        with pytest.raises(ConfigurationError, match="max_workers must be at least 1"):
            chain.encode_many([array], max_workers=bad)
        with pytest.raises(ConfigurationError, match="max_workers must be at least 1"):
            chain.decode_many_into(encoded, Entries.whole((2,), 1), array[None], max_workers=bad)
        with pytest.raises(ConfigurationError, match="max_workers must be at least 1"):
            chain.plan_write(...).take().run(array, max_workers=bad)  # type: ignore[union-attr]


@pytest.mark.parametrize("backend", backends())
def test_metadata_that_claims_many_inner_chunks_costs_no_memory_until_they_are_written(backend: Any) -> None:
    """A few hundred bytes from anywhere make a process prepare such a chain when it opens an array."""
    chain = CodecChain.from_json([sharding((1, 1), [LITTLE])]).bind("uint16", 0)
    tracemalloc.start()
    try:
        plan = chain.prepare((4096, 4096), backends=[backend]).plan_read((slice(3, 4), slice(5, 6)))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert plan.needs["stop"].item() >= 16 * 4096**2
    assert peak < 2**20


@pytest.mark.parametrize("backend", backends())
def test_shards_that_are_read_whole_are_cut_by_who_can_do_so(backend: Any) -> None:
    chain = on([backend], [sharding((3, 4))])
    stored = chain.encode(DATA)
    plan, out = chain.plan_read((slice(None), slice(None))), np.zeros_like(DATA)
    plan.feed(plan.needs["id"], [stored])
    work = plan.take()
    assert work is not None
    assert chain.shard is not None
    assert work.chain is (chain.shard.inner if chain.shard.reader is None else chain)
    work.run(out)
    assert (out == DATA).all()
    assert plan.statuses.tolist() == [True]


@pytest.mark.parametrize("backend", backends())
@pytest.mark.parametrize("columns", [slice(0, 4), slice(0, 1)])
def test_a_nested_shard_of_no_bytes_is_refused_in_the_same_words_by_all(backend: Any, columns: slice) -> None:
    codecs = [sharding((2, 4), [sharding((2, 2), [LITTLE])], index_codecs=[LITTLE])]
    chain = CodecChain.from_json(codecs).bind("uint16", 0).prepare((4, 4), backends=[backend])
    plan = chain.plan_read((slice(0, 2), columns))
    index = np.array([[0, 0], [2**64 - 1, 2**64 - 1]], "<u8").tobytes()
    with pytest.raises(CorruptChunkError, match="a nested shard has no bytes"):
        plan.feed(plan.needs["id"], [index])
