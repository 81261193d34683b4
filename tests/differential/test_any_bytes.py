"""Any bytes fed to any chain give a value or a ``CodecError``: whole, in part, and as what a write finds.

Bytes without structure seldom get past a header, so most examples are encoded chunks with a few changes.
"""

from __future__ import annotations

import contextlib
import io
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from chunkwright import RANGE, SUFFIX, Backend, CodecError
from tests.differential.chains import Chain, chains, v2_chains
from tests.differential.effort import effort
from tests.support.backends import backends

pytestmark = pytest.mark.usefixtures("stopped_clock")

INTERESTING = [0, 1, 2**7, 2**15, 2**31 - 1, 2**31, 2**32 - 1, 2**40, 2**62, 2**63 - 1, 2**63, 2**64 - 2, 2**64 - 1]


@st.composite
def damaged(draw: st.DrawFn, encoded: bytes) -> bytes:
    """Flip, cut, repeat, insert, or write a number that somebody might trust."""
    content = bytearray(encoded)
    for _ in range(draw(st.integers(1, 3))):
        place = draw(st.integers(0, len(content)))
        kind = draw(st.sampled_from(["flip", "cut", "insert", "repeat", "number", "behead"]))
        if kind == "flip" and place < len(content):
            content[place] ^= draw(st.integers(1, 255))
        elif kind == "cut":
            del content[place:]
        elif kind == "behead":
            del content[:place]
        elif kind == "insert":
            content[place:place] = draw(st.binary(min_size=1, max_size=9))
        elif kind == "repeat":
            content += content[place:]
        elif kind == "number":
            width = draw(st.sampled_from([1, 2, 4, 8]))
            number = draw(st.sampled_from(INTERESTING)) % 2 ** (8 * width)
            content[place : place + width] = number.to_bytes(width, draw(st.sampled_from(["little", "big"])))
    return bytes(content)


@st.composite
def stored(draw: st.DrawFn, chain: Chain) -> bytes:
    """Bytes that a store might hold for a chunk."""
    if draw(st.integers(0, 4)) == 0:
        return draw(st.binary(max_size=200))
    chunk = chain.chunk(np.random.default_rng(draw(st.integers(0, 2**32))))
    return draw(damaged(bytes(chain.prepared.encode(chunk, keep_empty=True))))


def _answer(content: bytes, need: Any) -> bytes:
    """What a store answers: possibly less than was asked for."""
    if need["kind"] == RANGE:
        return content[need["start"] : need["stop"]]
    return content[-need["stop"] :] if need["kind"] == SUFFIX else content


def _decode(chain: Chain, content: bytes) -> None:
    array = chain.prepared.decode(content)
    assert (array.shape, array.dtype) == (chain.prepared.spec.shape, chain.dtype.numpy)


def _read_part(chain: Chain, content: bytes) -> None:
    selection = tuple(slice(extent // 2, None) for extent in chain.prepared.spec.shape)
    plan = chain.prepared.plan_read(selection)
    out = np.empty([extent - extent // 2 for extent in chain.prepared.spec.shape], chain.dtype.numpy)
    while plan.needs.size:
        for need in plan.needs:
            plan.feed([need["id"]], [_answer(content, need)])
        while work := plan.take():
            work.run(out)


def _write_part(chain: Chain, content: bytes) -> None:
    selection = tuple(slice(extent // 2, None) for extent in chain.prepared.spec.shape)
    plan = chain.prepared.plan_write(selection)
    plan.feed(plan.needs["id"], [content for _ in plan.needs])
    values = chain.dtype.values(
        np.random.default_rng(0), tuple(extent - extent // 2 for extent in chain.prepared.spec.shape)
    )
    while work := plan.take():
        for _, buffer in work.run(values):
            assert buffer is None or io.BytesIO(buffer)


@pytest.mark.parametrize("metadata", [chains, v2_chains], ids=["v3", "v2"])
@pytest.mark.parametrize("backend", backends(), ids=lambda backend: backend.name)
@given(data=st.data())
@effort(300)
def test_any_bytes_give_a_value_or_a_codec_error(backend: Backend, metadata: Any, data: st.DataObject) -> None:
    chain = data.draw(metadata(backend))
    content = data.draw(stored(chain))
    for use in (_decode, _read_part, _write_part):
        with contextlib.suppress(CodecError):
            use(chain, content)


@pytest.mark.parametrize("backend", backends(), ids=lambda backend: backend.name)
@given(data=st.data())
@effort(150)
def test_what_was_encoded_decodes_to_the_same_bits(backend: Backend, data: st.DataObject) -> None:
    chain = data.draw(chains(backend))
    chunk = chain.chunk(np.random.default_rng(data.draw(st.integers(0, 2**32))))
    chunk.flags.writeable = False
    encoded = chain.prepared.encode(chunk, keep_empty=True)
    assert encoded is not None
    found = chain.prepared.decode(encoded)
    assert (found.tolist() if chain.dtype.variable else found.tobytes()) == (
        chunk.tolist() if chain.dtype.variable else chunk.tobytes()
    )
