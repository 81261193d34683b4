"""The command line; see the package."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from importlib.metadata import entry_points
from pathlib import Path

from tools.fuzz.watch import Fault, Found, clock, watch
from tools.fuzz.worker import Job

REFERENCE = "chunkwright:ReferenceBackend"
TELL_EVERY = 5.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Try inputs with each backend and return the exit status."""
    options = _parser().parse_args(arguments)
    backends = options.backend or [*sorted(entry_points(group="chunkwright.backends").names), REFERENCE]
    numbers = (options.first, options.first + options.inputs)
    failed = False
    for backend in backends:
        job = Job(backend, options.seed, numbers, options.only, options.seconds, "")
        began = time.monotonic()
        found = watch(job, _teller(backend, began))
        _print(job, found, time.monotonic() - began)
        _keep(Path(options.keep), job, found.faults)
        failed = failed or bool(found.faults)
    return int(failed)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tools.fuzz", description="Feeds damaged chunks to backends.")
    parser.add_argument("--backend", action="append", help="an installed backend, or module:attribute; all by default")
    parser.add_argument("--inputs", type=int, default=100_000, help="for each backend")
    parser.add_argument("--first", type=int, default=0, help="number of the first input")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="only chains with this in their name")
    parser.add_argument("--seconds", type=float, default=10, help="CPU time that an input may take")
    parser.add_argument("--keep", default=".work/fuzz", help="folder for what went wrong")
    return parser


def _teller(backend: str, began: float):  # type: ignore[no-untyped-def]
    last = began

    def tell(found: Found) -> None:
        nonlocal last
        if time.monotonic() - last > TELL_EVERY:
            last = time.monotonic()
            print(f"{backend}: {clock(found, began)}", file=sys.stderr, flush=True)

    return tell


def _print(job: Job, found: Found, seconds: float) -> None:
    print(f"{job.backend}: {found.tried} inputs for {found.targets} chains in {seconds:.0f} s, seed {job.seed}")
    for name, number in found.counts.most_common():
        print(f"  {number:8} {name}")
    print(f"  {len(found.faults):8} faults")
    for fault in found.faults[:10]:
        print(f"input {fault.number} {fault.target}\n  {fault.what}")
        print(f"  again: {_again(job, fault)}")


def _again(job: Job, fault: Fault) -> str:
    only = f" --only {job.only!r}" if job.only else ""
    return f"python -m tools.fuzz --backend {job.backend} --seed {job.seed} --first {fault.number} --inputs 1{only}"


def _keep(folder: Path, job: Job, faults: Sequence[Fault]) -> None:
    for fault in faults:
        folder.mkdir(parents=True, exist_ok=True)
        name = f"{job.backend.replace(':', '.')}-{job.seed}-{fault.number}"
        (folder / f"{name}.txt").write_text(f"{fault.target}\n{fault.what}\n{_again(job, fault)}\n", "utf-8")
        (folder / f"{name}.chunk").write_bytes(fault.data)


if __name__ == "__main__":
    sys.exit(main())
