"""Tries inputs one after the other, in a process that may be ended by any of them.

The number of the input at work is kept in a file that is mapped, so that it is known after a crash. What is found is
printed as lines of JSON.
"""

from __future__ import annotations

import collections
import faulthandler
import json
import mmap
import os
import resource
import signal
import struct
import sys
import traceback
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from random import Random
from typing import Any

import attrs

from chunkwright import Backend, CodecError
from tools.fuzz.targets import Target, targets
from tools.fuzz.uses import same, use

__all__ = ("Job", "load")

MIB = 1 << 20
ADDRESS_SPACE = 64 * MIB
REPORT_EVERY = 500


@attrs.frozen
class Job:
    """What a worker is to do, as it is handed over."""

    backend: str
    seed: int
    numbers: tuple[int, int]
    only: str
    seconds: float
    progress: str


def load(name: str) -> Backend:
    """Make a backend: an entry point's name, or ``module:attribute``."""
    if ":" in name:
        module, _, attribute = name.partition(":")
        made = getattr(import_module(module), attribute)
    else:
        (point,) = entry_points(group="chunkwright.backends", name=name)
        made = point.load()
    backend: Backend = made() if isinstance(made, type) else made
    return backend


class Memory:
    """Resident memory and address space of this process, in bytes."""

    def __init__(self) -> None:
        self.now = self.peak = self.space = 0
        self._hard = resource.getrlimit(resource.RLIMIT_AS)[1]

    def begin(self, allowance: int) -> None:
        """Forget the peak, and let address space grow by no more than a little and the allowance."""
        Path("/proc/self/clear_refs").write_bytes(b"5")
        self.read()
        resource.setrlimit(resource.RLIMIT_AS, (self.space + ADDRESS_SPACE + allowance, self._hard))

    def read(self) -> None:
        """Read what there is, and what the peak was."""
        status = Path("/proc/self/status").read_bytes()
        self.now, self.peak, self.space = (_kilobytes(status, key) for key in (b"VmRSS:", b"VmHWM:", b"VmSize:"))

    def end(self) -> None:
        """Lift the limit."""
        resource.setrlimit(resource.RLIMIT_AS, (self._hard, self._hard))


def _kilobytes(status: bytes, key: bytes) -> int:
    begin = status.index(key) + len(key)
    return int(status[begin : status.index(b"kB", begin)]) << 10


def say(**what: Any) -> None:
    """Tell the watching process."""
    print(json.dumps(what), flush=True)


class Worker:
    """Tries inputs with the targets of one backend."""

    def __init__(self, job: Job) -> None:
        self._job = job
        found = targets(load(job.backend))
        self._targets = [target for target in found if job.only in target.name]
        if not self._targets:
            raise SystemExit(f"{job.backend} runs no chain with {job.only!r} in its name")
        self._memory = Memory()
        self._counts: collections.Counter[str] = collections.Counter()

    def run(self) -> None:
        """Try all numbers."""
        for target in self._targets:
            # Threads, contexts and lazily loaded modules are there from now on.
            target.prepared.decode_many([target.encoded] * 4, max_workers=2)
        say(targets=len(self._targets))
        faulthandler.enable()
        for kind in (signal.SIGPROF, signal.SIGALRM):
            faulthandler.register(kind, chain=True)
        with open(self._job.progress, "r+b") as file, mmap.mmap(file.fileno(), 8) as progress:
            for number in range(*self._job.numbers):
                struct.pack_into("<q", progress, 0, number)
                self._one(number)
                if number % REPORT_EVERY == REPORT_EVERY - 1:
                    self._report()
            self._report()

    def _report(self) -> None:
        say(counts=dict(self._counts))
        self._counts.clear()

    def _one(self, number: int) -> None:
        random = Random(f"{self._job.seed}:{number}")
        target = random.choice(self._targets)
        data = target.form.damaged(random)
        fault = self._outcome(random, target, data)
        if fault is not None:
            say(number=number, target=target.name, fault=fault, data=data[: 1 << 16].hex())

    def _outcome(self, random: Random, target: Target, data: bytes) -> str | None:
        memory, job = self._memory, self._job
        memory.begin(target.allowance)
        before = memory.now
        signal.setitimer(signal.ITIMER_PROF, job.seconds)
        signal.setitimer(signal.ITIMER_REAL, 10 * job.seconds)
        fault = self._attempt(random, target, data)
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        memory.read()
        memory.end()
        grown, most = memory.peak - before, target.allowance + 8 * (target.array.nbytes + len(data))
        if fault is None and grown > most:
            fault = f"memory: {grown >> 10} KiB more at its peak, {most >> 10} KiB are allowed"
        if fault is None and not random.randrange(4) and not same(target.prepared.decode(target.encoded), target.array):
            fault = "state: a good chunk does not decode to what it was any more"
        return fault

    def _attempt(self, random: Random, target: Target, data: bytes) -> str | None:
        try:
            use(random, target, data)
        except CodecError as error:
            self._counts[type(error).__name__] += 1
            if "the decoder failed" in str(error) or type(error.__cause__).__name__ == "PanicException":
                self._counts["of these, panics of a library"] += 1
                return f"panic: {error}"
            return None if error.codec is not None else f"error: names no codec: {error!r}"
        except BaseException:
            return f"error: {traceback.format_exc()}"
        self._counts["accepted"] += 1
        return None


if __name__ == "__main__":
    fields = json.loads(sys.argv[1])
    os.environ.setdefault("PYTHONHASHSEED", "0")
    Worker(Job(**{**fields, "numbers": tuple(fields["numbers"])})).run()
