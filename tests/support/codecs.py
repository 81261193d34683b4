"""Codecs as a user of zarr would write them: no native library can know them."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import zarr
from zarr.abc.codec import ArrayArrayCodec, ArrayBytesCodec, ArrayBytesCodecPartialDecodeMixin, BytesBytesCodec
from zarr.registry import register_codec


class _Plain:
    """What the codecs below have in common: no configuration, and as many bytes out as in."""

    is_fixed_size = True
    codec_name = ""

    def to_dict(self) -> dict[str, Any]:
        return {"name": self.codec_name, "configuration": {}}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        return cls()

    def compute_encoded_size(self, input_byte_length: int, chunk_spec: Any) -> int:
        return input_byte_length


class Invert(_Plain, BytesBytesCodec):
    """Bytes to bytes, async methods only, as zarr's documentation shows it."""

    codec_name = "tests.invert"

    async def _decode_single(self, chunk_data: Any, chunk_spec: Any) -> Any:
        return self._inverted(chunk_data)

    async def _encode_single(self, chunk_data: Any, chunk_spec: Any) -> Any:
        return self._inverted(chunk_data)

    @staticmethod
    def _inverted(data: Any) -> Any:
        return type(data).from_array_like(~data.as_numpy_array().view(np.uint8))


class AddOne(_Plain, ArrayArrayCodec):
    """Array to array."""

    codec_name = "tests.add_one"

    async def _decode_single(self, chunk_data: Any, chunk_spec: Any) -> Any:
        array = chunk_data.as_numpy_array()
        return type(chunk_data).from_numpy_array(array - np.ones((), array.dtype))

    async def _encode_single(self, chunk_data: Any, chunk_spec: Any) -> Any:
        array = chunk_data.as_numpy_array()
        return type(chunk_data).from_numpy_array(array + np.ones((), array.dtype))


class RawPartial(_Plain, ArrayBytesCodec, ArrayBytesCodecPartialDecodeMixin):
    """Array to bytes with zarr's mixin for partial decoding, in its async form alone."""

    codec_name = "tests.raw_partial"

    async def _decode_single(self, chunk_data: Any, chunk_spec: Any) -> Any:
        flat = np.frombuffer(chunk_data.to_bytes(), chunk_spec.dtype.to_native_dtype())
        return chunk_spec.prototype.nd_buffer.from_numpy_array(flat.reshape(chunk_spec.shape))

    async def _encode_single(self, chunk_data: Any, chunk_spec: Any) -> Any:
        return chunk_spec.prototype.buffer.from_bytes(chunk_data.as_numpy_array().tobytes())

    async def _decode_partial_single(self, byte_getter: Any, selection: Any, chunk_spec: Any) -> Any:
        stored = await byte_getter.get(prototype=chunk_spec.prototype)
        return None if stored is None else (await self._decode_single(stored, chunk_spec))[selection]


def registered() -> Any:
    """Context manager: zarr finds the codecs of this module by name."""
    classes = (Invert, AddOne, RawPartial)
    for cls in classes:
        register_codec(cls.codec_name, cls)
    return zarr.config.set({f"codecs.{cls.codec_name}": f"{cls.__module__}.{cls.__qualname__}" for cls in classes})
