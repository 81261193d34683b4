"""Texts reach NumPy without becoming Python objects, whatever is in them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from chunkwright import Buffers, CodecChain, CorruptChunkError, PreparedChain
from chunkwright.selection import entries_of
from chunkwright_rust import RustBackend
from chunkwright_rust._runs import TEXT

VLEN = {"name": "vlen-utf8"}
ZSTD = {"name": "zstd", "configuration": {"level": 1, "checksum": False}}
TRANSPOSE = {"name": "transpose", "configuration": {"order": [1, 0]}}

TEXTS: dict[str, list[str]] = {
    "words": ["axon", "", "Überzug", "日本語", "🎉", "x" * 40],
    "zeros inside": ["a\0b", "\0c", "d", "", "e", "f"],
    "zeros at the end": ["a\0", "\0", "b", "", "c\0\0", "d"],
    "nothing": [""] * 6,
    "one that is long": ["y" * 10_000, "", "a", "b", "c", "d"],
}


def chain(codecs: list[Any]) -> PreparedChain:
    return CodecChain.from_json(codecs).bind("string", "never").prepare((2, 3), backends=[RustBackend()])


def values(texts: list[str]) -> np.ndarray:
    array = np.empty((2, 3), np.dtypes.StringDType())
    array[...] = np.array(texts, object).reshape(2, 3)
    return array


def test_numpy_takes_bytes_of_one_length_for_text() -> None:
    assert TEXT is not None


@pytest.mark.parametrize("codecs", [[VLEN], [VLEN, ZSTD], [TRANSPOSE, VLEN, ZSTD]], ids=["plain", "zstd", "transposed"])
@pytest.mark.parametrize("out_dtype", [np.dtypes.StringDType(), object], ids=["text", "objects"])
@pytest.mark.parametrize("texts", TEXTS.values(), ids=list(TEXTS))
def test_texts_come_back_as_they_were(texts: list[str], out_dtype: Any, codecs: list[Any]) -> None:
    prepared, array = chain(codecs), values(texts)
    stored = prepared.encode(array)
    decoded = prepared.decode(stored)
    assert decoded.dtype == np.dtypes.StringDType()
    assert decoded.tolist() == array.tolist()
    for selection in (slice(None), (1, slice(None, None, 2)), (slice(None), np.array([2, 0]))):
        entries, shape = entries_of(selection, (2, 3))
        out = np.empty(shape, out_dtype)
        prepared.decode_many_into(Buffers.of([stored]), entries, out)
        assert out.tolist() == array[selection].tolist()


@pytest.mark.parametrize("damage", [b"\xff", b"\xed\xa0\x80", b"\xc0\x80"])
def test_what_is_not_utf8_is_refused(damage: bytes) -> None:
    stored = (6).to_bytes(4, "little")
    for text in (b"a", b"b", b"", damage, b"c", b"d"):
        stored += len(text).to_bytes(4, "little") + text
    with pytest.raises(CorruptChunkError, match="UTF-8"):
        chain([VLEN]).decode(stored)
