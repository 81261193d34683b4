"""What issue 4 demands of decoding, encoding and transposing in memory: ``python benches/kernels/limits.py``.

Photon counts, 256 cubed uint16, zstd level 3, in chunks of 64 and of 8 cubed, both ways, with every CPU: our calls,
from the caller's array and into it, against a plain loop over libzstd with as many threads, whose chunks lie in one
array one after the other, and which keeps nothing of what it encodes. For chunks of 64 cubed our time is at most 1.15
times that of the loop, for chunks of 8 cubed it is at most 2 microseconds a chunk and CPU longer; both sides take
turns. And each order of three axes is decoded and encoded on one thread at no less than half the speed of NumPy's copy
in that order. The best of several runs counts. Exit status 1 when a limit is missed.

Build the loop first: ``cargo build --release --example kernels``.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chunkwright import CodecChain, Entries
from chunkwright.buffers import Buffers
from chunkwright.ports import Run
from chunkwright_rust import RustBackend

ROOT = Path(__file__).parents[2]
PROGRAM = ROOT / "target" / "release" / "examples" / "kernels"
EDGE = 256
LIMIT, MICROSECONDS, SPEED = 1.15, 2.0, 0.5
LITTLE = {"name": "bytes", "configuration": {"endian": "little"}}
ZSTD = {"name": "zstd", "configuration": {"level": 3}}
# Edges of transposed arrays, so that all have 6 to 8 MB.
EDGES = {"u1": 192, "u2": 160, "f4": 120, "f8": 96, "c16": 80}

type Call = Callable[[], object]


def photons() -> NDArray[np.uint16]:
    """The volume."""
    z, y, x = np.ogrid[:EDGE, :EDGE, :EDGE]
    mean = 40 * (3.2 + np.sin(x / 17) + np.cos(y / 23) + np.sin(z / 31))
    return np.random.default_rng(0).poisson(mean).astype("<u2")


def best(calls: list[Call], repeat: int) -> list[float]:
    """Seconds of the fastest of some calls of each function, which take turns."""
    times = [float("inf")] * len(calls)
    for _ in range(repeat):
        for number, call in enumerate(calls):
            begin = time.perf_counter()
            call()
            times[number] = min(times[number], time.perf_counter() - begin)
    return times


def zstd_calls(volume: NDArray[Any], edge: int) -> tuple[Call, Call]:
    """What decodes all chunks into one array, and what encodes them from one."""
    backend = RustBackend()
    chain = CodecChain.from_json([LITTLE, ZSTD]).bind(volume.dtype, 0).prepare((edge,) * 3, backends=[backend])
    (run,) = chain.runs
    assert isinstance(run, Run)
    starts = np.stack(np.meshgrid(*[np.arange(0, EDGE, edge)] * 3, indexing="ij"), axis=-1).reshape(-1, 3)
    zeros = np.zeros_like(starts)
    entries = Entries.boxes(chunk=np.arange(len(starts)), start=zeros, count=zeros + edge, out_start=starts)
    base = [None] * len(starts)
    encoded = backend.encode_from(run, volume, entries, base=base, keep_empty=True)
    joined = b"".join(bytes(memoryview(data)) for data in encoded if data is not None)
    length = np.array([len(memoryview(data)) for data in encoded if data is not None])
    buffers, out = Buffers.within(joined, np.cumsum(length) - length, length), np.empty_like(volume)
    return (
        lambda: chain.decode_many_into(buffers, entries, out),
        lambda: backend.encode_from(run, volume, entries, base=base, keep_empty=True),
    )


def against_the_loop(volume: NDArray[Any], edge: int, cpus: int, rounds: int) -> bool:
    """Compare, print, and say whether the limits hold."""
    count = EDGE // edge
    decode, encode = zstd_calls(volume, edge)
    ours, loop = [float("inf")] * 2, [float("inf")] * 2
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "volume"
        parts = volume.reshape(count, edge, count, edge, count, edge).transpose(0, 2, 4, 1, 3, 5)
        np.ascontiguousarray(parts).tofile(path)
        command = [str(PROGRAM), str(path), "2", str(edge), str(cpus), "loop"]
        for _ in range(rounds):
            found = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
            loop = [min(loop[0], found["decode"]), min(loop[1], found["encode"])]
            ours = [min(pair) for pair in zip(ours, best([decode, encode], 3), strict=True)]
    holds = True
    for way, mine, theirs in zip(("decode", "encode"), ours, loop, strict=True):
        more = (mine - theirs) * 1e6 * cpus / count**3
        met = mine <= LIMIT * theirs if edge == 64 else more <= MICROSECONDS
        holds = holds and met
        text = (
            f"{mine * 1e3:7.1f} ms, the loop {theirs * 1e3:7.1f}, {mine / theirs:5.2f}, {more:6.2f} us a chunk and CPU"
        )
        print(f"zstd {way} {edge:2}^3  {text}  {'ok' if met else 'MISSED'}", flush=True)
    return holds


def transposes(repeat: int) -> bool:
    """Every order of axes of several data types, both ways, against NumPy's copy in the same order."""
    slowest = {"decode": (float("inf"), ""), "encode": (float("inf"), "")}
    for dtype, edge in EDGES.items():
        array = np.ones((edge,) * 3, dtype)
        for order in itertools.permutations(range(3)):
            for way, (ours, numpys) in _transposing(array, order).items():
                speed = best([numpys], repeat)[0] / best([ours], repeat)[0]
                slowest[way] = min(slowest[way], (speed, f"{dtype} {order}"))
    for way, (speed, name) in slowest.items():
        verdict = "ok" if speed >= SPEED else "MISSED"
        print(f"transpose {way}: at least {speed:.2f} of NumPy's speed ({name})  {verdict}", flush=True)
    return all(speed >= SPEED for speed, _ in slowest.values())


def _transposing(array: NDArray[Any], order: tuple[int, ...]) -> dict[str, tuple[Call, Call]]:
    """Our call and NumPy's, for each way."""
    backend = RustBackend()
    codecs = [{"name": "transpose", "configuration": {"order": list(order)}}, LITTLE]
    chain = CodecChain.from_json(codecs).bind(array.dtype, 0).prepare(array.shape, backends=[backend])
    (run,) = chain.runs
    assert isinstance(run, Run)
    entries, out, copied = Entries.whole(array.shape, 1), np.empty((1, *array.shape), array.dtype), np.empty_like(array)
    encoded = [chain.encode(array, keep_empty=True)]
    back = array.transpose(tuple(np.argsort(order).tolist()))
    decode = partial(chain.decode_many_into, encoded, entries, out, max_workers=1)
    encode = partial(backend.encode_from, run, array[None], entries, base=[None], keep_empty=True, max_workers=1)
    return {
        "decode": (decode, partial(np.copyto, copied, back)),
        "encode": (encode, partial(array.transpose(order).copy, order="C")),
    }


def main() -> int:
    """Measure everything and return the exit status."""
    parser = argparse.ArgumentParser(description="what issue 4 demands of the Rust backend in memory")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    cpus = len(os.sched_getaffinity(0))
    volume = photons()
    holds = [against_the_loop(volume, edge, cpus, options.rounds) for edge in (64, 8)]
    return int(not all([*holds, transposes(options.rounds * 3)]))


if __name__ == "__main__":
    sys.exit(main())
