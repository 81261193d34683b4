"""How much memory operations take: anonymous memory above what was there before, each in a process of its own.

The child opens the array, does something small so that libraries and thread pools are there, and waits; while it then
does what is measured, its ``RssAnon`` is read from outside about two thousand times a second. Peaks that
last less than that are not seen. Only Linux tells this number.
"""

from __future__ import annotations

import json
import re
import select
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benches.data import DataSet
from benches.layouts import SHARDED, SYNTHETIC, Layout
from benches.places import LocalPlace, new_folder, stored
from benches.results import Cell, Row
from benches.rivals import Contender
from benches.session import Session

__all__ = ("run_memory",)

ROOT = Path(__file__).parents[2]
INTERVAL = 0.0005
WRITERS = ("ours", "zarr fused", "tensorstore")


def run_memory(session: Session) -> None:
    """Whole reads of several layouts, and writes of an array much larger than what should be in memory."""
    data = session.data("photons")
    if data is None or not session.stores(["local"]) or not sys.platform.startswith("linux"):
        return
    quick = session.options.quick
    larger = DataSet(data.name, np.tile(data.values, (1 if quick else 4, 1, 1)), data.dtype)
    layouts = SHARDED[1:2] if quick else (SYNTHETIC[1], *SHARDED[1:])
    for layout in session.layouts(layouts):
        _run_reads(session, larger, layout)
    _run_writes(session, data, SHARDED[0].quick() if quick else SHARDED[0])


def _contenders(session: Session) -> list[Contender]:
    """Everyone; in a quick run our first backend, since each child takes its time to start."""
    everyone = session.contenders(("ours", "ours direct", "pipeline", "rival"))
    return everyone[:1] if session.options.quick else everyone


def _run_reads(session: Session, data: DataSet, layout: Layout) -> None:
    place = stored(layout, data)
    cell = session.cell("memory", data.name, "local", layout.name, "read all")
    try:
        for contender in _contenders(session):
            with session.guard(cell, contender):
                task = {"contender": contender.name, "folder": str(place.folder), "task": "read"}
                _keep(session, cell, contender.name, task, data.values.nbytes)
    finally:
        place.remove()


def _run_writes(session: Session, data: DataSet, layout: Layout) -> None:
    assert layout.shard is not None
    folder = new_folder()
    source = _source(session, data, folder / "source", layout.shard)
    shard_nbytes = layout.shard**3 * source.itemsize
    size = f"{source.nbytes / 2**30:.3g} GiB"
    for task, text in (("write", f"write {size} in one assignment"), ("write shards", f"write {size} by shards")):
        cell = session.cell("memory", data.name, "local", layout.name, text)
        for contender in _contenders(session):
            if not contender.name.startswith(WRITERS):
                continue
            place = LocalPlace(new_folder())
            empty = DataSet(data.name, np.broadcast_to(data.values[:1, :1, :1], source.shape), data.dtype)
            layout.create(place.store(), empty)
            with session.guard(cell, contender):
                names = {"contender": contender.name, "folder": str(place.folder), "source": str(folder / "source")}
                _keep(session, cell, contender.name, {**names, "task": task, "shard": layout.shard}, shard_nbytes)
            place.remove()
    LocalPlace(folder).remove()


def _source(session: Session, data: DataSet, path: Path, shard: int) -> NDArray[Any]:
    """Write photon counts to a file that is then mapped: layers of one shard's thickness."""
    width = 4 * shard if session.options.quick else 1024
    repeats = -(-width // data.edge)
    layer = np.tile(data.values[:shard], (1, repeats, repeats))[:, :width, :width]
    layers = 1 if session.options.quick else max(1, round(session.options.memory_gib * 2**30 / layer.nbytes))
    mapped = np.lib.format.open_memmap(path, "w+", data.values.dtype, (layers * shard, width, width))
    for number in range(layers):
        mapped[number * shard : (number + 1) * shard] = layer
    mapped.flush()
    return mapped


def _keep(session: Session, cell: Cell, contender: str, task: dict[str, Any], unit: int) -> None:
    """Measure one task and keep its peak; ``unit`` is what the report divides it by."""
    session.progress.now(f"{cell}: {contender}")
    peak, seconds = _peak(task)
    session.results.rows.append(Row(cell, contender, (seconds,), {"anon": peak, "unit": unit}))
    session.progress.done(
        f"{cell}: {contender}: {peak / 2**20:.1f} MiB, {peak / unit:.2f} times {unit / 2**20:.4g} MiB"
    )


def _peak(task: dict[str, Any]) -> tuple[int, float]:
    """Return the most anonymous memory above that before, and the seconds that the task took."""
    command = [sys.executable, "-W", "ignore", "-m", "benches.suites.memory_child", json.dumps(task)]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        try:
            _expect(child, b"ready")
            before = most = _anonymous(child.pid)
            started = time.perf_counter()
            child.stdin.write(b"go\n")
            while not select.select([child.stdout], [], [], INTERVAL)[0]:
                most = max(most, _anonymous(child.pid))
            seconds = time.perf_counter() - started
            _expect(child, b"done")
            most = max(most, _anonymous(child.pid))
        finally:
            child.stdin.close()
    return most - before, seconds


def _expect(child: subprocess.Popen[bytes], word: bytes) -> None:
    assert child.stdout is not None
    if child.stdout.readline().strip() != word:
        raise RuntimeError("the child process ended early; its traceback is above")


def _anonymous(process: int) -> int:
    """Return the anonymous resident memory of a process, in bytes; 0 when it is gone."""
    try:
        status = Path(f"/proc/{process}/status").read_text("ascii")
    except ProcessLookupError:
        return 0
    found = re.search(r"RssAnon:\s*(\d+) kB", status)
    return int(found[1]) * 1024 if found else 0
