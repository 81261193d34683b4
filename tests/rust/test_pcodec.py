"""Large pcodec chunks, whose pages are decoded by loops of ours: the numbers and the refusals of the library's own."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest
from numcodecs.pcodec import PCodec

from chunkwright import CodecError, PreparedChain
from chunkwright_numcodecs import NumcodecsBackend
from tests.rust.chains import prepare
from tools.fuzz.mutations import damage

DTYPES = [f"{kind}{size}" for kind in "uif" for size in (2, 4, 8)]
PCODEC = [{"name": "numcodecs.pcodec"}]

# Neither a multiple of the 256 numbers that are decoded together, nor of the four streams.
COUNT = 9_003


def numbers(kind: str, dtype: str) -> Any:
    """Numbers whose bits, or differences, are of some kind."""
    rng = np.random.default_rng(3)
    width = np.dtype(dtype).itemsize
    if kind == "noise":
        return np.frombuffer(rng.bytes(COUNT * width), dtype)
    if kind == "counts":
        return rng.poisson(120, COUNT).astype(dtype)
    if kind == "signs":
        return (rng.poisson(9, COUNT).astype("i8") - 9).astype(dtype)
    if kind == "walk":
        return np.cumsum(rng.integers(-3, 4, COUNT)).astype(dtype)
    if kind == "curve":
        return (np.cumsum(np.cumsum(rng.integers(-2, 3, COUNT))) % 60_000).astype(dtype)
    if kind == "outliers":
        most = np.where(rng.random(COUNT) < 0.01, 2**15, 4)
        return rng.integers(0, most).astype(dtype)
    if kind == "wide":
        top = np.iinfo(dtype).max if np.dtype(dtype).kind in "ui" else 6e4
        return (rng.random(COUNT) ** 4 * top * 0.99).astype(dtype)
    return np.full(COUNT, 7, dtype)


KINDS = ["noise", "counts", "signs", "walk", "curve", "outliers", "wide", "constant"]


def rust(dtype: str, count: int = COUNT) -> PreparedChain:
    """A chain that the Rust backend runs."""
    return prepare(PCODEC, dtype, (count,))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", KINDS)
def test_all_bits_of_large_chunks_come_back(kind: str, dtype: str) -> None:
    array = numbers(kind, dtype)
    for order in (0, 1, 2, 7):
        delta = {"delta_spec": "try_consecutive", "delta_encoding_order": order} if order else {"delta_spec": "no_op"}
        for mode in ("classic", "auto"):
            encoded = PCodec(mode_spec=mode, **delta).encode(array)
            assert rust(dtype).decode(encoded).tobytes() == array.tobytes()


@pytest.mark.parametrize("spec", ["auto", "try_lookback"])
def test_what_the_loops_do_not_know_is_left_to_the_library(spec: Any) -> None:
    array = np.tile(numbers("noise", "u4")[:97], 100)[:COUNT]
    encoded = PCodec(delta_spec=spec).encode(array)
    assert rust("u4").decode(encoded).tobytes() == array.tobytes()


@pytest.mark.parametrize("count", [2048, 2049, 2050, 2051, 2303, 2304, 2305])
@pytest.mark.parametrize("order", [0, 1, 7])
def test_chunks_end_anywhere_in_a_batch(count: int, order: int) -> None:
    array = numbers("walk", "i4")[:count]
    encoded = PCodec(delta_spec="try_consecutive", delta_encoding_order=order).encode(array)
    assert rust("i4", count).decode(encoded).tobytes() == array.tobytes()


@pytest.mark.parametrize("most", [1, 300, 4096])
def test_chunks_of_several_pages_are_decoded(most: int) -> None:
    array = numbers("counts", "u2")
    encoded = PCodec(equal_pages_up_to=most).encode(array)
    assert rust("u2").decode(encoded).tobytes() == array.tobytes()


def test_numbers_that_lie_anywhere_in_memory_are_decoded() -> None:
    array = numbers("counts", "u4")
    memory = np.zeros(4 * COUNT + 1, "u1")
    out = memory[1:].view("<u4")
    rust("u4").decode_into(PCodec().encode(array), out)
    assert out.tobytes() == array.tobytes()


def outcome(chain: PreparedChain, data: bytes) -> bytes | type[CodecError]:
    """What comes out, or the class of the error."""
    try:
        return chain.decode(data).tobytes()
    except CodecError as error:
        return type(error)


@pytest.mark.parametrize("dtype", ["u2", "i4", "f8"])
@pytest.mark.parametrize("kind", ["counts", "walk", "outliers"])
def test_damaged_chunks_decode_as_the_library_decodes_them(kind: str, dtype: str) -> None:
    chains = rust(dtype), prepare(PCODEC, dtype, (COUNT,), backends=[NumcodecsBackend()])
    random = Random(f"{kind} {dtype}")
    array = numbers(kind, dtype)
    good = [bytes(PCodec(delta_encoding_order=order).encode(array)) for order in (0, 1)]
    found = [damage(random, random.choice(good), good, [COUNT]) for _ in range(300)]
    outcomes = [(outcome(chains[0], data), outcome(chains[1], data)) for data in found]
    assert [ours for ours, _ in outcomes] == [theirs for _, theirs in outcomes]
    assert {isinstance(ours, bytes) for ours, _ in outcomes} == {True, False}
