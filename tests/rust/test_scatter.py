"""Entries of every form, scattered and gathered as NumPy does it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from chunkwright import CodecError
from chunkwright.buffers import Buffers
from chunkwright.entries import Entries, IndexList
from chunkwright.scatter import Copier
from tests.core.test_grid import batches
from tests.rust.chains import BYTES, LITTLE, RUST, only_run, prepare

DTYPES = [
    "|u1",
    "<i2",
    ">i2",
    "<f4",
    ">f8",
    "<c8",
    ">c16",
    "<M8[s]",
    "|S3",
    "<U2",
    ">U2",
    "|V5",
    [("a", "<i2"), ("b", "u1")],
]


def elements(shape: tuple[int, ...], dtype: Any, seed: int = 1) -> NDArray[Any]:
    """Elements that differ from one another in every byte."""
    dtype = np.dtype(dtype)
    size = int(np.prod(shape)) * dtype.itemsize
    raw = np.random.default_rng(seed).integers(32, 127, size, np.uint8)
    if dtype.kind == "U":
        raw.reshape(-1, 4)[:, slice(1, None) if dtype.byteorder != ">" else slice(0, 3)] = 0
    return np.frombuffer(raw.tobytes(), dtype).reshape(shape)


def places(entries: Entries, seed: int) -> tuple[Entries, tuple[int, ...]]:
    """Move entries apart along the first out axis, so that no two write the same place."""
    if not entries.out_ndim:
        return entries.take(np.arange(min(len(entries), 1))), ()
    start = entries.out_start.copy()
    start[:, 0] += 80 * np.arange(len(entries))
    moved = Entries(
        chunk=entries.chunk,
        start=entries.start,
        count=entries.count,
        step=entries.step,
        out_start=start,
        out_step=entries.out_step,
        axes=entries.axes,
        lists=entries.lists,
        out_lists=entries.out_lists,
        points=entries.points,
    )
    return moved, (80 * max(len(entries), 1), *(80,) * (entries.out_ndim - 1))


def strided(shape: tuple[int, ...], dtype: Any, how: str) -> NDArray[Any]:
    """An array of zeros with unusual strides."""
    if how == "reversed":
        return np.zeros(shape, dtype)[(*(slice(None, None, -1) for _ in shape), ...)]
    if how == "fortran":
        return np.zeros(shape, dtype, order="F")
    if how == "spread":
        return np.zeros(tuple(2 * extent for extent in shape), dtype)[(*(slice(1, None, 2) for _ in shape), ...)]
    return np.zeros(shape, dtype)


@settings(deadline=None)
@given(batches(), st.sampled_from(DTYPES), st.sampled_from(["plain", "reversed", "fortran", "spread"]), st.data())
def test_entries_are_scattered_as_numpy_does(batch: Any, dtype: Any, how: str, data: st.DataObject) -> None:
    inner, grid, chunks, entries = batch
    shape = tuple(a * b for a, b in zip(inner, grid, strict=True))
    entries, out_shape = places(entries, 0)
    order = tuple(data.draw(st.permutations(range(len(shape)))))
    codecs = [{"name": "transpose", "configuration": {"order": list(order)}}, LITTLE]
    chain = prepare(codecs, dtype, shape, fill_value=elements((), dtype, 5)[()])
    arrays = [elements(shape, dtype, number) for number in range(chunks)]
    missing = [data.draw(st.integers(0, 3)) == 0 for _ in range(chunks)]
    buffers = [
        None if gone else chain.encode(array, keep_empty=True) for gone, array in zip(missing, arrays, strict=True)
    ]
    want, got = strided(out_shape, dtype, how), strided(out_shape, dtype, how)
    copier = Copier(entries)
    for row, chunk in enumerate(entries.chunk.tolist()):
        if missing[chunk]:
            copier.fill(row, chain.spec.fill_value.value, want)
        else:
            copier.scatter(row, arrays[chunk], want)
    RUST.decode_into(only_run(chain), Buffers.of(buffers), entries, got)
    assert want.tobytes() == got.tobytes()


@settings(deadline=None)
@given(batches(), st.sampled_from(DTYPES), st.sampled_from(["plain", "reversed", "fortran", "spread"]), st.data())
def test_entries_are_gathered_as_numpy_does(batch: Any, dtype: Any, how: str, data: st.DataObject) -> None:
    inner, grid, chunks, entries = batch
    shape = tuple(a * b for a, b in zip(inner, grid, strict=True))
    entries, out_shape = places(entries, 0)
    order = tuple(data.draw(st.permutations(range(len(shape)))))
    codecs = [{"name": "transpose", "configuration": {"order": list(order)}}, LITTLE]
    chain = prepare(codecs, dtype, shape, fill_value=elements((), dtype, 5)[()])
    source = strided(out_shape, dtype, how)
    source[...] = elements(out_shape, dtype, 3)
    base = [elements(shape, dtype, number).copy() if data.draw(st.booleans()) else None for number in range(chunks)]
    want = [chain.spec.full() if array is None else array.copy() for array in base]
    copier = Copier(entries)
    for row, chunk in enumerate(entries.chunk.tolist()):
        copier.gather(row, source, want[chunk])
    encoded = RUST.encode_from(only_run(chain), source, entries, base=base, keep_empty=False)
    for array, buffer in zip(want, encoded, strict=True):
        assert (buffer is None) == chain.spec.fill_value.fills(array)
        if buffer is not None:
            assert chain.decode(buffer).tobytes() == array.tobytes()


@pytest.mark.parametrize("dtype", ["f8", "i8", ">i4"])
def test_numpy_converts_what_has_another_dtype(dtype: str) -> None:
    chain = prepare([LITTLE], "int16", (4, 5), fill_value=3)
    array = np.arange(20, dtype="i2").reshape(4, 5)
    out = np.zeros((4, 5), dtype)
    chain.decode_into(chain.encode(array), out)
    assert (out == array).all()
    chain.decode_into(None, out)
    assert (out == 3).all()
    source = array.astype(dtype)[None]
    (encoded,) = RUST.encode_from(only_run(chain), source, Entries.whole((4, 5), 1), base=[None], keep_empty=True)
    assert (chain.decode(encoded) == array).all()


def test_one_element_is_repeated_without_memory_of_its_own() -> None:
    chain = prepare([LITTLE], "int32", (64, 64))
    entries = Entries.boxes(
        chunk=np.array([0]), start=np.zeros((1, 2), int), count=np.array([[64, 64]]), out_start=np.zeros((1, 2), int)
    )
    for source in (np.broadcast_to(np.int32(7), (64, 64)), np.broadcast_to(7.0, (64, 64))):
        (encoded,) = RUST.encode_from(only_run(chain), source, entries, base=[None], keep_empty=False)
        assert (chain.decode(encoded) == 7).all()


def boxes(start: int, count: int, out_start: int = 0, step: int = 1, out_step: int = 1) -> Entries:
    """One entry of one axis."""
    entries = Entries.boxes(
        chunk=np.array([0]),
        start=np.array([[start]]),
        count=np.array([[count]]),
        out_start=np.array([[out_start]]),
        step=np.array([[step]]),
    )
    entries.out_step[...] = out_step
    return entries


@pytest.mark.parametrize(
    "entries",
    [
        boxes(-1, 2), boxes(8, 1), boxes(0, 9), boxes(0, 5, step=2), boxes(2**62, 2, step=2**62), boxes(0, 2, step=-1),
        boxes(0, 2, out_start=3), boxes(0, 2, out_start=-1), boxes(0, 3, out_start=1, out_step=-1), boxes(0, -1),
        boxes(1, 2, step=2**63 - 1), boxes(0, 2, out_step=-(2**63)),
    ],
)  # fmt: skip
@pytest.mark.parametrize("missing", [False, True])
def test_what_is_outside_of_an_array_is_refused(entries: Entries, missing: bool) -> None:
    chain = prepare([BYTES], "uint8", (8,))
    buffers = Buffers.of([None if missing else bytes(8)])
    with pytest.raises(CodecError):
        RUST.decode_into(only_run(chain), buffers, entries, np.zeros(4, "u1"))
    with pytest.raises(CodecError):
        RUST.encode_from(only_run(chain), np.zeros(4, "u1"), entries, base=[None], keep_empty=True)


@pytest.mark.parametrize("values", [[0, 8], [-1, 0], [2**62, 0]])
def test_lists_that_leave_an_array_are_refused(values: list[int]) -> None:
    chain = prepare([BYTES], "uint8", (8,))
    for side in ("lists", "out_lists"):
        form = {"lists": (None,), "out_lists": (None,)} | {side: (IndexList.of([np.array(values)]),)}
        ones = np.ones((1, 1), np.int64)
        entries = Entries(
            chunk=np.array([0]), start=0 * ones, count=2 * ones, step=ones, out_start=0 * ones, out_step=ones,
            axes=(0,), **form,
        )  # fmt: skip
        with pytest.raises(CodecError):
            RUST.decode_into(only_run(chain), Buffers.of([bytes(8)]), entries, np.zeros(4, "u1"))


def test_entries_out_of_order_are_refused() -> None:
    chain = prepare([BYTES], "uint8", (1,))
    entries = Entries.whole((1,), 2).take(np.array([1, 0]))
    with pytest.raises(CodecError):
        RUST.decode_into(only_run(chain), Buffers.of([b"a", b"b"]), entries, np.zeros((2, 1), "u1"))


def test_an_array_that_cannot_be_written_is_refused() -> None:
    chain = prepare([BYTES], "uint8", (2,))
    out = np.zeros(2, "u1")
    out.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        chain.decode_into(b"ab", out)
