"""Encoded chunks are written over: with and without a backend that does it by itself."""

from __future__ import annotations

from collections.abc import Buffer, Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from chunkwright import Buffers, CodecChain, CorruptChunkError, Entries, PreparedChain, ReferenceBackend
from chunkwright.rewriting import Rewrites
from chunkwright_numcodecs import NumcodecsBackend
from chunkwright_rust import RustBackend

SHAPE = (4, 6)
LITTLE: dict[str, Any] = {"name": "bytes", "configuration": {"endian": "little"}}
BIG: dict[str, Any] = {"name": "bytes", "configuration": {"endian": "big"}}
CHAINS: dict[str, list[Any]] = {
    "bytes": [LITTLE],
    "bytes in the other order": [BIG],
    "turned": [{"name": "transpose", "configuration": {"order": [1, 0]}}, LITTLE],
    "checked": [LITTLE, "crc32c"],
    "compressed": [LITTLE, {"name": "zstd", "configuration": {"level": 1, "checksum": False}}],
    "compressed and checked": [BIG, {"name": "gzip", "configuration": {"level": 1}}, "crc32c"],
}


class Plain(NumcodecsBackend):
    """The same codecs, without the shorter way."""

    rewrite_from: Any = None


class Unwilling(NumcodecsBackend):
    """Leaves it to the core every time."""

    def rewrite_from(self, *arguments: Any, **options: Any) -> Any:
        return None


BACKENDS = [NumcodecsBackend(), RustBackend()]


def chunk(number: int) -> NDArray[Any]:
    return np.arange(24, dtype="i4").reshape(SHAPE) + 100 * number


def prepare(codecs: list[Any], *backends: Any) -> PreparedChain:
    return CodecChain.from_json(codecs).bind("int32", 7).prepare(SHAPE, backends=backends)


def run(chain: PreparedChain) -> Any:
    return chain.runs[0]


def corners(chunks: int) -> Entries:
    """A part of each chunk, from rows of one array that lie below each other."""
    column = np.arange(chunks)[:, None]
    return Entries.boxes(
        chunk=np.arange(chunks),
        start=np.tile([1, 2], (chunks, 1)),
        count=np.tile([2, 3], (chunks, 1)),
        out_start=np.hstack([2 * column, 0 * column]),
    )


def rewritten(chain: PreparedChain, old: Sequence[Buffer | None], source: NDArray[Any], **options: Any) -> list[Any]:
    plan = chain.plan_write(corners(len(old)), complete=np.zeros(len(old), bool), **options)
    plan.feed(plan.needs["id"], old)
    work = plan.take()
    assert work is not None
    return [None if data is None else bytes(data) for _, data in work.run(source)]


def expected(old: Sequence[NDArray[Any]], source: NDArray[Any]) -> list[NDArray[Any]]:
    arrays = [array.copy() for array in old]
    for number, array in enumerate(arrays):
        array[1:3, 2:5] = source[2 * number : 2 * number + 2]
    return arrays


@pytest.mark.parametrize("codecs", CHAINS.values(), ids=CHAINS)
@pytest.mark.parametrize("backend", BACKENDS, ids=lambda backend: backend.name)
@pytest.mark.parametrize("dtype", ["i4", ">i4", "i2", "f8"])
def test_the_result_is_that_of_decoding_and_encoding(codecs: list[Any], backend: Any, dtype: str) -> None:
    chain, plain = prepare(codecs, backend), prepare(codecs, Plain())
    old = [chain.encode(chunk(1)), None, chain.encode(chunk(3))]
    source = np.arange(18).reshape(6, 3).astype(dtype)
    kept = [None if data is None else bytes(data) for data in old]
    found = rewritten(chain, old, source)
    for array, data in zip(expected([chunk(1), np.full(SHAPE, 7, "i4"), chunk(3)], source), found, strict=True):
        np.testing.assert_array_equal(chain.decode(data), array)
    assert [bytes(chain.decode(data)) for data in found] == [
        bytes(plain.decode(data)) for data in rewritten(plain, old, source)
    ]
    assert [None if data is None else bytes(data) for data in old] == kept


@pytest.mark.parametrize("backend", BACKENDS, ids=lambda backend: backend.name)
def test_chunks_that_become_the_fill_value_are_left_out_unless_kept(backend: Any) -> None:
    chain = prepare([LITTLE], backend)
    old = np.full(SHAPE, 7, "i4")
    old[1:3, 2:5] = 9
    source = np.full((2, 3), 7, "i4")
    encoded = chain.encode(old)
    assert rewritten(chain, [encoded], source) == [None]
    assert rewritten(chain, [encoded], source, keep_empty=True) == [np.full(SHAPE, 7, "<i4").tobytes()]


@pytest.mark.parametrize("backend", [*BACKENDS, Plain()], ids=lambda backend: type(backend).__name__)
@pytest.mark.parametrize("codecs", CHAINS.values(), ids=CHAINS)
def test_old_bytes_that_do_not_decode_are_an_error_with_their_position(codecs: list[Any], backend: Any) -> None:
    chain = prepare(codecs, backend)
    good = chain.encode(chunk(1))
    with pytest.raises(CorruptChunkError) as caught:
        rewritten(chain, [good, good, b"bad"], np.zeros((6, 3), "i4"))
    assert caught.value.position == 2


@pytest.mark.parametrize("backend", BACKENDS, ids=lambda backend: backend.name)
@pytest.mark.parametrize("codecs", CHAINS.values(), ids=CHAINS)
def test_bytes_are_changed_only_where_nobody_needs_them(codecs: list[Any], backend: Any) -> None:
    chain, source = prepare(codecs, backend), np.arange(6, dtype="i4").reshape(2, 3)
    for is_scratch in (False, True):
        old = bytearray(chain.encode(chunk(1)) or b"")
        kept = bytes(old)
        existing = Buffers.of([old], is_scratch=is_scratch)
        (made,) = run(chain).backend.rewrite_from(run(chain), source, corners(1), existing=existing, keep_empty=True)
        np.testing.assert_array_equal(chain.decode(made), expected([chunk(1)], source)[0])
        assert is_scratch or old == kept


def test_bytes_that_nobody_needs_become_the_new_chunk() -> None:
    chain, old = prepare([LITTLE], NumcodecsBackend()), bytearray(chunk(1).tobytes())
    existing = Buffers.of([old], is_scratch=True)
    backend = NumcodecsBackend()
    (made,) = backend.rewrite_from(run(chain), chunk(2)[:2, :3], corners(1), existing=existing, keep_empty=True)
    assert made is not None
    assert np.shares_memory(np.frombuffer(made, "u1"), np.frombuffer(old, "u1"))


def test_a_backend_may_leave_it_to_the_core() -> None:
    assert isinstance(Unwilling(), Rewrites)
    chain = prepare([LITTLE], Unwilling())
    (made,) = rewritten(chain, [chain.encode(chunk(1))], chunk(2)[:2, :3])
    np.testing.assert_array_equal(chain.decode(made), expected([chunk(1)], chunk(2)[:2, :3])[0])


def test_codecs_of_several_backends_are_written_over_as_well() -> None:
    class Half(NumcodecsBackend):
        def offer(self, codec: Any, spec: Any) -> Any:
            return super().offer(codec, spec) if codec.name == "zstd" else ReferenceBackend().supports(codec, spec)

    codecs = [LITTLE, "crc32c", {"name": "zstd", "configuration": {"level": 1, "checksum": False}}]
    chain = CodecChain.from_json(codecs).bind("int32", 7).prepare(SHAPE, backends=[ReferenceBackend(), Half()])
    assert len(chain.runs) == 2
    found = rewritten(chain, [chain.encode(chunk(1)), None], chunk(2)[:, :3])
    for array, data in zip(expected([chunk(1), np.full(SHAPE, 7, "i4")], chunk(2)[:, :3]), found, strict=True):
        np.testing.assert_array_equal(chain.decode(data), array)


def test_strings_are_written_over_through_arrays() -> None:
    texts = np.array(["a", "bc", "äöü", ""], object)
    chain = CodecChain.from_json(["vlen-utf8"]).bind(texts.dtype, "").prepare((4,), backends=[RustBackend()])
    plan = chain.plan_write(slice(1, 3))
    plan.feed(plan.needs["id"], [chain.encode(texts)])
    work = plan.take()
    assert work is not None
    ((_, made),) = work.run(np.array(["x", "yz"], object))
    assert made is not None
    assert chain.decode(made).tolist() == ["a", "x", "yz", ""]
