"""Every kernel of the Rust backend against the numcodecs backend, on one thread.

Prints, for each codec, megabytes of decoded data per second both ways and how much faster the Rust kernel is. A chunk
has ``--edge`` cubed elements of uint16, photon counts (Poisson), so that compressors have something to do; a batch has
enough chunks for ``--megabytes``. Each figure is the best of ``--repeat`` runs, of both backends in turn.

Run it with ``python benches/kernels/codecs.py``.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from chunkwright import CodecChain, Entries
from chunkwright.ports import Backend, Run
from chunkwright_numcodecs import NumcodecsBackend
from chunkwright_rust import RustBackend

LITTLE = {"name": "bytes", "configuration": {"endian": "little"}}
BIG = {"name": "bytes", "configuration": {"endian": "big"}}
TRANSPOSE = {"name": "transpose", "configuration": {"order": [2, 1, 0]}}


def named(name: str, **configuration: Any) -> list[Any]:
    """A chain of ``bytes`` and one codec."""
    return [LITTLE, {"name": name, "configuration": configuration}]


CHAINS: dict[str, list[Any]] = {
    "bytes": [LITTLE],
    "bytes, big endian": [BIG],
    "transpose": [TRANSPOSE, LITTLE],
    "zstd 3": named("zstd", level=3),
    "gzip 5": named("gzip", level=5),
    "blosc lz4 shuffle": named("blosc", cname="lz4", clevel=5, shuffle="shuffle", typesize=2, blocksize=0),
    "blosc zstd bitshuffle": named("blosc", cname="zstd", clevel=3, shuffle="bitshuffle", typesize=2, blocksize=0),
    "crc32c": named("crc32c"),
    **{
        name: named(f"numcodecs.{name}") for name in ("zlib", "bz2", "lz4", "adler32", "crc32", "fletcher32", "shuffle")
    },
    "pcodec": [{"name": "numcodecs.pcodec"}],
}


def best(call: Callable[[], object], repeat: int) -> float:
    """Seconds of the fastest of some calls."""
    times = []
    for _ in range(repeat):
        begin = time.perf_counter()
        call()
        times.append(time.perf_counter() - begin)
    return min(times)


def batch(codecs: list[Any], backend: Backend, array: Any) -> tuple[Callable[[], object], Callable[[], object]]:
    """What decodes a batch of chunks into one array, and what encodes it."""
    chain = CodecChain.from_json(codecs).bind(array.dtype, 0).prepare(array.shape[1:], backends=[backend])
    (run,) = chain.runs
    assert isinstance(run, Run)
    entries, base = Entries.whole(array.shape[1:], len(array)), [None] * len(array)
    encoded = chain.encode_many(list(array), keep_empty=True)
    out = np.empty_like(array)
    return (
        lambda: chain.decode_many_into(encoded, entries, out, max_workers=1),
        lambda: backend.encode_from(run, array, entries, base=base, keep_empty=True, max_workers=1),
    )


def main() -> None:
    """Measure every chain and print a table."""
    parser = argparse.ArgumentParser(description="kernels of the Rust backend against numcodecs")
    parser.add_argument("--edge", type=int, default=64)
    parser.add_argument("--megabytes", type=int, default=16)
    parser.add_argument("--repeat", type=int, default=5)
    options = parser.parse_args()
    shape = (options.edge,) * 3
    count = max((options.megabytes << 20) // (2 * options.edge**3), 1)
    array = np.random.default_rng(0).poisson(120, (count, *shape)).astype("<u2")
    print(f"{count} chunks of {shape} uint16, MB/s on one thread\n")
    print(f"{'':24}{'decode':>8}{'numcodecs':>11}{'':>7}{'encode':>10}{'numcodecs':>11}")
    for name, codecs in CHAINS.items():
        calls = [batch(codecs, backend, array) for backend in (RustBackend(), NumcodecsBackend())]
        speeds = [[array.nbytes / 1e6 / best(call, options.repeat) for call in both] for both in calls]
        (decode, encode), (decode_other, encode_other) = speeds
        row = f"{name:24}{decode:8.0f}{decode_other:11.0f}{decode / decode_other:6.1f}x"
        print(f"{row}{encode:10.0f}{encode_other:11.0f}{encode / encode_other:6.1f}x", flush=True)


if __name__ == "__main__":
    main()
