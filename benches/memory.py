"""How much anonymous memory a whole read takes above its result: ``python -m benches.memory``.

For each backend, kind of store and layout, a process of its own opens an array of photon counts, reads one corner so
that libraries and threads are there, and says so; while it then does ``a[:]``, its ``RssAnon`` is read from outside,
about two thousand times a second. What counts is the most that it was above its value just before, divided by the
size of the result; memory stores hold the encoded chunks before that. Exit status 1 when a ratio is above the limit.
Only Linux tells this number.

``make bench`` compares memory with other readers, on smaller arrays; this is the check of one number.
"""

from __future__ import annotations

import argparse
import gc
import json
import select
import subprocess
import sys
import tempfile
import time
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import zarr
from zarr.core.buffer import cpu
from zarr.storage import LocalStore, MemoryStore

import chunkwright_zarr

__all__ = ("main",)

ROOT = Path(__file__).resolve().parent.parent
INTERVAL = 0.0005
LIMIT = 1.15
STORES = ("local", "memory")


@attrs.frozen
class Layout:
    """Edges of chunks, and of shards if there are any; an array has three axes."""

    chunk: int
    shard: int | None = None

    def __str__(self) -> str:
        return f"{self.shard}/{self.chunk}" if self.shard else f"{self.chunk}"


LAYOUTS = (Layout(16), Layout(32), Layout(64), Layout(16, 128), Layout(8, 64), Layout(64, 128))


def main() -> int:
    """Measure everything that was asked for and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m benches.memory", description=__doc__.partition("\n")[0])
    parser.add_argument("--backend", action="append", help="all that are installed by default")
    parser.add_argument("--mib", type=int, default=512, help="size of the array")
    options = parser.parse_args()
    backends = options.backend or sorted(entry_points(group="chunkwright.backends").names)
    failed = False
    for layout in LAYOUTS:
        with tempfile.TemporaryDirectory(prefix="chunkwright-memory-") as folder:
            nbytes = _write(folder, layout, options.mib)
            for backend in backends:
                for store in STORES:
                    grown, seconds = _measure({"backend": backend, "store": store, "folder": folder})
                    failed = failed or grown > LIMIT * nbytes
                    line = (
                        f"{grown / 2**20:7.1f} MiB for {nbytes / 2**20:.0f}, {grown / nbytes:.3f}, in {seconds:.2f} s"
                    )
                    print(f"{layout!s:8} zstd  {store:6}  {backend:12} {line}", flush=True)
    return int(failed)


def _write(folder: str, layout: Layout, mib: int) -> int:
    edge = 256
    rng = np.random.default_rng(0)
    slab = rng.poisson(100, (128, edge, edge)).astype("u2")
    slabs = max(1, mib * 2**20 // slab.nbytes)
    zarr.create_array(
        LocalStore(folder),
        shape=(slabs * len(slab), edge, edge),
        dtype="u2",
        chunks=(layout.chunk,) * 3,
        shards=(layout.shard,) * 3 if layout.shard else None,
        compressors=zarr.codecs.ZstdCodec(level=1),
    )
    with chunkwright_zarr.use():
        array = zarr.open_array(LocalStore(folder))
    for number in range(slabs):
        array[number * len(slab) : (number + 1) * len(slab)] = slab
    return slabs * slab.nbytes


def _measure(task: dict[str, Any]) -> tuple[int, float]:
    """Return by how much anonymous memory grew at most, and the seconds that it took."""
    command = [sys.executable, "-m", "benches.memory", "--child", json.dumps(task)]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        if child.stdout.readline() != b"ready\n":
            raise SystemExit("the process that is measured ended early")
        before = most = _anonymous(child.pid)
        child.stdin.write(b"go\n")
        began = time.perf_counter()
        while not select.select([child.stdout], [], [], INTERVAL)[0]:
            most = max(most, _anonymous(child.pid))
        seconds = time.perf_counter() - began
        if child.stdout.readline() != b"done\n":
            raise SystemExit("the process that is measured ended early")
        most = max(most, _anonymous(child.pid))
    return most - before, seconds


def _anonymous(process: int) -> int:
    status = Path(f"/proc/{process}/status").read_bytes()
    begin = status.index(b"RssAnon:") + 8
    return int(status[begin : status.index(b"kB", begin)]) << 10


def _child(task: dict[str, Any]) -> None:
    """Read an array when told to, and hold the result until the other side closes."""
    store: Any = LocalStore(task["folder"], read_only=True)
    if task["store"] == "memory":
        files = (path for path in Path(task["folder"]).rglob("*") if path.is_file())
        names = ((str(path.relative_to(task["folder"])), path.read_bytes()) for path in files)
        store = MemoryStore({name: cpu.Buffer.from_bytes(content) for name, content in names})
    with chunkwright_zarr.use(backend=task["backend"], strict=True):
        array = zarr.open_array(store, mode="r")
    # Several chunks, so that whatever works side by side is there.
    array[:64, :64, :64]
    gc.collect()
    print("ready", flush=True)
    sys.stdin.readline()
    result = array[:]
    print("done", flush=True)
    sys.stdin.readline()
    del result


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        _child(json.loads(sys.argv[2]))
    else:
        sys.exit(main())
