"""Runs codec chains in the plainest way, with numcodecs' own objects: an oracle for what a chain means."""

from __future__ import annotations

from typing import Any

import numcodecs
import numpy as np
from numcodecs.compat import ensure_bytes
from numpy.typing import NDArray

from chunkwright.chain import BoundChain
from chunkwright.codecs import Bytes, Codec, NumcodecsArrayArray, Transpose, VLenBytes, VLenUTF8


def encode(chain: BoundChain, array: NDArray[Any]) -> bytes:
    """Encode a chunk with a chain of transpose, bytes, vlen and numcodecs codecs."""
    value: Any = array.astype(chain.dtype.numpy, copy=False)
    for codec in chain.codecs:
        value = _encode(codec, value)
    assert isinstance(value, bytes)
    return value


def _encode(codec: Codec, value: Any) -> Any:
    if isinstance(codec, Transpose):
        return value.transpose(codec.order)
    if isinstance(codec, Bytes):
        assert codec.declared
        return np.ascontiguousarray(value).tobytes()
    if isinstance(codec, VLenUTF8):
        return numcodecs.VLenUTF8().encode(np.ascontiguousarray(value).astype(object))
    if isinstance(codec, VLenBytes):
        return numcodecs.VLenBytes().encode(np.ascontiguousarray(value))
    given = np.ascontiguousarray(value) if isinstance(value, np.ndarray) and value.ndim else value
    made = numcodecs.get_codec({"id": codec.codec_name, **codec.options.to_json()}).encode(given)
    return made if isinstance(codec, NumcodecsArrayArray) else ensure_bytes(made)
