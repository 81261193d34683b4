"""``gzip`` and ``zlib``: encoded by numcodecs, decoded by the core within the chain's limit.

numcodecs' own decoders make whatever a stream says. gzip members carry the time at which they were written, so the
same chunk encodes to different bytes in another second; zarr's do as well.
"""

from __future__ import annotations

from typing import Any

from numcodecs.gzip import GZip
from numcodecs.zlib import Zlib

from chunkwright.inflate import gunzip, inflate
from chunkwright.kernels import Kernel, decoded_limit
from chunkwright.ports import Step

__all__ = ("gzip_kernel", "zlib_kernel")


def gzip_kernel(step: Step) -> Kernel:
    """Compile ``gzip`` or ``numcodecs.gzip``.

    Parameters
    ----------
    step
        The step.

    Returns
    -------
    Kernel
        The kernel.
    """
    _, most = decoded_limit(step)

    def decode(item: Any) -> bytes:
        return gunzip(memoryview(item), most)

    return Kernel(codec=step.codec.name, decode=decode, encode=GZip(**step.codec.configuration()).encode)


def zlib_kernel(step: Step) -> Kernel:
    """Compile ``numcodecs.zlib``.

    Parameters
    ----------
    step
        The step.

    Returns
    -------
    Kernel
        The kernel.
    """
    _, most = decoded_limit(step)

    def decode(item: Any) -> bytes:
        return inflate(memoryview(item), most)

    return Kernel(codec=step.codec.name, decode=decode, encode=Zlib(**step.codec.configuration()).encode)
