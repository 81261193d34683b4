"""The table of the reference backend's kernels."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any

import attrs
import numpy as np

from chunkwright.codecs import Codec
from chunkwright.errors import ChecksumError, ChunkLengthError
from chunkwright.inflate import gunzip, inflate
from chunkwright.kernel_backend import KernelBackend
from chunkwright.kernels import Kernel, decoded_limit
from chunkwright.ports import Step, Supported, Unsupported
from chunkwright.reference._crc32c import crc32c
from chunkwright.reference._vlen import vlen_decoder, vlen_encoder
from chunkwright.spec import ChunkSpec

__all__ = ("ReferenceBackend",)


def _crc32c_kernel(step: Step) -> Kernel:
    def decode(item: Any) -> memoryview:
        data = memoryview(item)
        if len(data) < 4:
            raise ChunkLengthError("too short for a checksum", codec="crc32c", expected="at least 4", found=len(data))
        stored, computed = int.from_bytes(data[-4:], "little"), crc32c(data[:-4])
        if stored != computed:
            raise ChecksumError("wrong checksum", codec="crc32c", expected=f"{stored:#010x}", found=f"{computed:#010x}")
        return data[:-4]

    def encode(item: Any) -> bytes:
        return bytes(item) + crc32c(item).to_bytes(4, "little")

    return Kernel(codec="crc32c", decode=decode, encode=encode)


def _gzip_kernel(step: Step) -> Kernel:
    _, most = decoded_limit(step)
    level = step.codec.configuration().get("level", 5)

    def encode(item: Any) -> bytes:
        stream = zlib.compressobj(level, zlib.DEFLATED, 31)
        return stream.compress(item) + stream.flush()

    return Kernel(codec=step.codec.name, decode=lambda item: gunzip(memoryview(item), most), encode=encode)


def _zlib_kernel(step: Step) -> Kernel:
    _, most = decoded_limit(step)
    level = step.codec.configuration().get("level", 1)
    return Kernel(
        codec=step.codec.name,
        decode=lambda item: inflate(memoryview(item), most),
        encode=lambda item: zlib.compress(item, level),
    )


def _shuffle_kernel(step: Step) -> Kernel:
    size = step.codec.configuration().get("elementsize", 4)

    def decode(item: Any) -> Any:
        return np.frombuffer(item, np.uint8).reshape(size, -1).T.tobytes()

    def encode(item: Any) -> bytes:
        return np.frombuffer(item, np.uint8).reshape(-1, size).T.tobytes()

    return Kernel(codec=step.codec.name, decode=decode, encode=encode)


def _vlen_kernel(step: Step) -> Kernel:
    return Kernel(codec=step.codec.name, decode=vlen_decoder(step), encode=vlen_encoder(step))


_KERNELS: dict[str, Callable[[Step], Kernel]] = {
    "crc32c": _crc32c_kernel,
    "gzip": _gzip_kernel,
    "numcodecs.shuffle": _shuffle_kernel,
    "numcodecs.zlib": _zlib_kernel,
    "vlen-bytes": _vlen_kernel,
    "vlen-utf8": _vlen_kernel,
}


@attrs.frozen
class ReferenceBackend(KernelBackend):
    """Computes with NumPy and the standard library, one chunk after the other.

    Examples
    --------
    >>> from chunkwright import CodecChain
    >>> bound = CodecChain.from_json([{"name": "bytes", "configuration": {"endian": "big"}}, "crc32c"]).bind("int16", 0)
    >>> chain = bound.prepare((2,), backends=[ReferenceBackend()])
    >>> bytes(chain.encode(np.array([1, 2], "i2")))[:4]
    b'\\x00\\x01\\x00\\x02'
    """

    name = "reference"
    version = "1"

    def offer(self, codec: Codec, spec: ChunkSpec) -> Supported | Unsupported:
        """Look a codec up in the table.

        Parameters
        ----------
        codec
            The bound codec.
        spec
            The array on its decoded side.

        Returns
        -------
        Supported or Unsupported
            Whether it is there.
        """
        if codec.name in _KERNELS:
            return Supported("python")
        return Unsupported("not among the reference kernels")

    def kernel(self, step: Step) -> Kernel:
        """Compile a step.

        Parameters
        ----------
        step
            Of a codec in the table.

        Returns
        -------
        Kernel
            Its kernel.
        """
        return _KERNELS[step.codec.name](step)
