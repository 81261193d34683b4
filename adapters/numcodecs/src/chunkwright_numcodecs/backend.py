"""The numcodecs backend: which codec is run by which kernel, and by how many threads.

What decoding allocates is bounded by the chain (or, where a chain sets no bound, by its ``max_chunk_bytes``), except
for these, whose ``kernel`` in ``explain()`` says so:

- ``msgpack2`` and ``pickle``: the parsers allocate as the bytes say (:mod:`chunkwright_numcodecs.objects`);
- ``numcodecs.pcodec`` and ``numcodecs.zfpy``: results are bounded, what their decoders need besides is not known;
- ``numcodecs.lzma`` allocates a dictionary as its header says, up to 256 MiB;
- ``zstd`` frames that do not say their size, in chains that do not fix it either, get a window of up to 128 MiB.

Threads share a batch when that pays (:func:`workers_for`): chunks have to be large enough that the time in the
codec library, which lets other threads run, outweighs the time in Python, which does not.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import version

import attrs

from chunkwright.codecs import Codec
from chunkwright.kernel_backend import KernelBackend
from chunkwright.kernels import Kernel
from chunkwright.ports import Step, Supported, Unsupported
from chunkwright.spec import ChunkSpec
from chunkwright_numcodecs import (
    blosc,
    cast_value,
    checksums,
    deflate,
    filters,
    lz4,
    numeric,
    objects,
    scale_offset,
    streams,
    vlen,
    zstd,
)
from chunkwright_numcodecs._library import PREFIX, library_class, library_object
from chunkwright_numcodecs.pool import shared_pool

__all__ = ("NumcodecsBackend", "workers_for")

_KERNELS: dict[str, tuple[Callable[[Step], Kernel], str]] = {
    "blosc": (blosc.blosc_kernel, "numcodecs, header checked"),
    "cast_value": (cast_value.cast_value_kernel, "cast-value-rs"),
    "crc32c": (checksums.crc32c_kernel, "google-crc32c"),
    "gzip": (deflate.gzip_kernel, "zlib, limited"),
    "scale_offset": (scale_offset.scale_offset_kernel, "numpy"),
    "vlen-bytes": (vlen.vlen_kernel, "numcodecs, header checked"),
    "vlen-utf8": (vlen.vlen_kernel, "numcodecs, header checked"),
    "zstd": (zstd.zstd_kernel, "numcodecs, headers checked"),
    "numcodecs.adler32": (checksums.checksum_kernel, "numcodecs"),
    "numcodecs.astype": (filters.filter_kernel, "numcodecs"),
    "numcodecs.base64": (filters.base64_kernel, "numcodecs"),
    "numcodecs.bitround": (filters.filter_kernel, "numcodecs"),
    "numcodecs.blosc": (blosc.blosc_kernel, "numcodecs, header checked"),
    "numcodecs.bz2": (streams.bz2_kernel, "bz2, limited"),
    "numcodecs.categorize": (filters.filter_kernel, "numcodecs"),
    "numcodecs.crc32": (checksums.checksum_kernel, "numcodecs"),
    "numcodecs.crc32c": (checksums.checksum_kernel, "numcodecs"),
    "numcodecs.delta": (filters.filter_kernel, "numcodecs"),
    "numcodecs.fixedscaleoffset": (filters.filter_kernel, "numcodecs"),
    "numcodecs.fletcher32": (checksums.checksum_kernel, "numcodecs"),
    "numcodecs.gzip": (deflate.gzip_kernel, "zlib, limited"),
    "numcodecs.jenkins_lookup3": (checksums.checksum_kernel, "numcodecs"),
    "numcodecs.json2": (objects.json_kernel, "numcodecs, shape checked"),
    "numcodecs.lz4": (lz4.lz4_kernel, "numcodecs, header checked"),
    "numcodecs.lzma": (streams.lzma_kernel, "lzma, limited (dictionary up to 256 MiB)"),
    "numcodecs.msgpack2": (objects.msgpack_kernel, "msgpack, memory not bounded"),
    "numcodecs.packbits": (filters.filter_kernel, "numcodecs"),
    "numcodecs.pcodec": (numeric.pcodec_kernel, "pcodec, memory not bounded"),
    "numcodecs.pickle": (objects.pickle_kernel, "pickle, memory not bounded"),
    "numcodecs.quantize": (filters.filter_kernel, "numcodecs"),
    "numcodecs.shuffle": (filters.shuffle_kernel, "numcodecs"),
    "numcodecs.vlen-array": (vlen.vlen_kernel, "numcodecs, header checked"),
    "numcodecs.zfpy": (numeric.zfpy_kernel, "zfpy, memory not bounded"),
    "numcodecs.zlib": (deflate.zlib_kernel, "zlib, limited"),
    "numcodecs.zstd": (zstd.zstd_kernel, "numcodecs, headers checked"),
}

# In bytes that pass a compressor, of which it takes at least 1 ns each. Below these, handing work to other threads
# costs more than they save: 10 microseconds for a batch, 5 a range; and a chunk has as much of work in Python.
_SMALLEST_CHUNK = 16 << 10
_SMALLEST_BATCH = 512 << 10
_SMALLEST_RANGE = 64 << 10


def workers_for(count: int, cost: int, max_workers: int | None) -> int:
    """Choose how many threads work on a batch.

    Parameters
    ----------
    count
        Chunks of the batch.
    cost
        How much work each is, in bytes that pass a compressor.
    max_workers
        Limit of threads, or None.

    Returns
    -------
    int
        1 when the calling thread does it alone.

    Examples
    --------
    >>> workers_for(1, 1 << 20, None), workers_for(1000, 1024, None), workers_for(64, 1 << 20, 1)
    (1, 1, 1)
    """
    if count < 2 or cost < _SMALLEST_CHUNK or count * cost < _SMALLEST_BATCH:
        return 1
    size = shared_pool().size
    return min(size, count, size if max_workers is None else max(max_workers, 1))


@attrs.frozen
class NumcodecsBackend(KernelBackend):
    """Computes with numcodecs, on a pool of threads of its own.

    Backends of this class are all equal, hold nothing and can be pickled.

    Examples
    --------
    >>> import numpy as np
    >>> from chunkwright import CodecChain
    >>> codecs = [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "zstd", "configuration": {}}]
    >>> chain = CodecChain.from_json(codecs).bind("int16", 0).prepare((2, 2), backends=[NumcodecsBackend()])
    >>> chain.decode(chain.encode(np.array([[1, 2], [3, 4]], "i2"))).tolist()
    [[1, 2], [3, 4]]
    """

    name = "numcodecs"
    version = version("chunkwright-numcodecs")

    def offer(self, codec: Codec, spec: ChunkSpec) -> Supported | Unsupported:
        """Say whether numcodecs has a codec, and the library that it needs.

        Parameters
        ----------
        codec
            The bound codec.
        spec
            The array on its decoded side.

        Returns
        -------
        Supported or Unsupported
            With the library, or with the reason.
        """
        if codec.name not in _KERNELS:
            return Unsupported("numcodecs has no such codec")
        reason = _missing(codec)
        return Supported(_KERNELS[codec.name][1]) if reason is None else Unsupported(reason)

    def kernel(self, step: Step) -> Kernel:
        """Compile a step.

        Parameters
        ----------
        step
            Of a codec that is supported.

        Returns
        -------
        Kernel
            Its kernel.
        """
        return _KERNELS[step.codec.name][0](step)

    def _map(self, work: Callable[[int, int], None], count: int, *, cost: int, max_workers: int | None) -> None:
        workers = workers_for(count, cost, max_workers)
        if workers < 2:
            work(0, count)
        else:
            shared_pool().run(work, count, max_workers=workers, at_least=-(-_SMALLEST_RANGE // max(cost, 1)))


def _missing(codec: Codec) -> str | None:
    """Why a codec of the table cannot be run here."""
    if codec.name == "cast_value":
        return cast_value.missing_library()
    if not codec.name.startswith(PREFIX):
        return None
    try:
        library_class(codec.name.removeprefix(PREFIX))
    except ImportError as error:
        return str(error)
    try:
        library_object(codec)
    except (TypeError, ValueError) as error:
        return f"numcodecs refuses the configuration: {error}"
    return None
