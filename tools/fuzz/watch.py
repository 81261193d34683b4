"""Runs workers, goes on after what ended one, and collects what they found."""

from __future__ import annotations

import collections
import json
import os
import signal
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import attrs

from tools.fuzz.worker import Job

__all__ = ("Found", "Fault", "watch")

ROOT = Path(__file__).resolve().parent.parent.parent

# After so many inputs that ended the process, it is known that something is wrong.
MOST_CRASHES = 20

FROM_OUTSIDE = (-signal.SIGTERM, -signal.SIGINT, -signal.SIGHUP)


@attrs.frozen
class Fault:
    """An input with which something went wrong."""

    number: int
    target: str
    what: str
    data: bytes


@attrs.define
class Found:
    """What trying inputs has shown so far."""

    tried: int = 0
    counts: collections.Counter[str] = attrs.field(factory=collections.Counter)
    faults: list[Fault] = attrs.field(factory=list)
    targets: int = 0


def watch(job: Job, tell: Callable[[Found], None] = lambda found: None) -> Found:
    """Try all inputs of a job; ``tell`` is called now and then."""
    found = Found()
    first, last = job.numbers
    crashes = 0
    with tempfile.TemporaryDirectory() as folder:
        progress = Path(folder) / "progress"
        while first < last:
            progress.write_bytes(struct.pack("<q", -1))
            status, complaints = _work(attrs.evolve(job, numbers=(first, last), progress=str(progress)), found, tell)
            if status == 0:
                found.tried += last - first
                break
            (at,) = struct.unpack("<q", progress.read_bytes())
            if at < 0 or status in FROM_OUTSIDE:
                raise RuntimeError(f"the worker ended with status {status}, and not by an input:\n{complaints}")
            found.faults.append(Fault(at, "", _ending(status, complaints), b""))
            found.tried += at + 1 - first
            first, crashes = at + 1, crashes + 1
            if crashes == MOST_CRASHES:
                break
    return found


def _work(job: Job, found: Found, tell: Callable[[Found], None]) -> tuple[int, str]:
    """Run one worker until it ends; return its status and the end of what it complained about."""
    with tempfile.TemporaryFile() as complaints, _started(job, complaints) as process:
        assert process.stdout is not None
        for line in process.stdout:
            _take(json.loads(line), found)
            tell(found)
        status = process.wait()
        complaints.seek(0)
        text = complaints.read().decode("utf-8", "replace")
    return status, text[-3000:]


@contextmanager
def _started(job: Job, complaints: Any) -> Iterator[subprocess.Popen[bytes]]:
    # One arena: a new one for each thread would take address space that no chunk asked for.
    environment = {**os.environ, "MALLOC_ARENA_MAX": "1", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-m", "tools.fuzz.worker", json.dumps(attrs.asdict(job))]
    process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=complaints)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        assert process.stdout is not None
        process.stdout.close()


def _take(message: dict[str, Any], found: Found) -> None:
    if "counts" in message:
        found.counts.update(message["counts"])
    elif "targets" in message:
        found.targets = message["targets"]
    else:
        data = bytes.fromhex(message["data"])
        found.faults.append(Fault(message["number"], message["target"], message["fault"], data))


def _ending(status: int, complaints: str) -> str:
    name = signal.Signals(-status).name if status < 0 else f"exit status {status}"
    kind = {"SIGPROF": "hang: too much CPU time", "SIGALRM": "hang: too long"}.get(name, f"crash: {name}")
    return f"{kind}\n{complaints}"


def clock(found: Found, began: float) -> str:
    """How far it is, in one line."""
    tried = sum(number for name, number in found.counts.items() if not name.startswith("of these"))
    return f"{tried} inputs, {tried / max(time.monotonic() - began, 1e-9):.0f} a second, {len(found.faults)} faults"
