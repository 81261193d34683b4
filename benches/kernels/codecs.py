"""Every kernel of the Rust backend against zarrs and against the numcodecs backend, on one thread.

Prints, for each codec, megabytes of decoded data per second of our kernel both ways, and how many times as fast it is
as zarrs and as the numcodecs backend. A chunk has ``--edge`` cubed elements of uint16, photon counts (Poisson), so that
compressors have something to do; a batch has enough chunks for ``--megabytes``. The comparison with zarrs is a program
without Python (``kernels.rs``), that with numcodecs calls both backends as anybody does; in each both take turns, and
the best of several runs counts.

Run it with ``python benches/kernels/codecs.py``, after ``cargo build --release --example kernels``.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from chunkwright import CodecChain, Entries
from chunkwright.ports import Backend, Run
from chunkwright_numcodecs import NumcodecsBackend
from chunkwright_rust import RustBackend

PROGRAM = Path(__file__).parents[2] / "target" / "release" / "examples" / "kernels"
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


def best(calls: tuple[Callable[[], object], ...], repeat: int) -> list[float]:
    """Seconds of the fastest of some calls of each function, which take turns."""
    times = [float("inf")] * len(calls)
    for _ in range(repeat):
        for number, call in enumerate(calls):
            begin = time.perf_counter()
            call()
            times[number] = min(times[number], time.perf_counter() - begin)
    return times


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


def against_zarrs(array: Any) -> dict[tuple[str, str], tuple[float, float]]:
    """For each codec and way: seconds of our kernel for the batch, and those of zarrs."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "chunks"
        array.tofile(path)
        command = [str(PROGRAM), str(path), "2", str(array.shape[1]), "1", "zarrs"]
        lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    found = map(json.loads, lines)
    return {(one["name"], one["way"]): (one["ours"], one["zarrs"]) for one in found}


def main() -> None:
    """Measure every chain and print a table."""
    parser = argparse.ArgumentParser(description="kernels of the Rust backend against zarrs and numcodecs")
    parser.add_argument("--edge", type=int, default=64)
    parser.add_argument("--megabytes", type=int, default=8)
    parser.add_argument("--repeat", type=int, default=5)
    options = parser.parse_args()
    shape = (options.edge,) * 3
    count = max((options.megabytes << 20) // (2 * options.edge**3), 1)
    array = np.random.default_rng(0).poisson(120, (count, *shape)).astype("<u2")
    kernels = against_zarrs(array)
    print(f"{count} chunks of {shape} uint16, MB/s of our kernel on one thread, and how many times as fast it is\n")
    print(f"{'':24}" + f"{'':>8}{'zarrs':>8}{'numcodecs':>11}" * 2)
    for name, codecs in CHAINS.items():
        rust, numcodecs = (batch(codecs, backend, array) for backend in (RustBackend(), NumcodecsBackend()))
        row = f"{name:24}"
        for number, way in enumerate(("decode", "encode")):
            ours, theirs = best((rust[number], numcodecs[number]), options.repeat)
            kernel, zarrs = kernels.get((name, way), (ours, None))
            against = "none" if zarrs is None else f"{zarrs / kernel:.2f}x"
            row += f"{array.nbytes / 1e6 / kernel:8.0f}{against:>8}{theirs / ours:10.1f}x"
        print(row, flush=True)


if __name__ == "__main__":
    main()
