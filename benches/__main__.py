"""``python -m benches``: run suites, keep the results, make the report.

``--cpus`` is obeyed before anything is imported, because thread pools are sized when libraries are loaded. The cells
on one CPU are run by a process of its own, whose results are added to those of this one.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from benches.results import Results
    from benches.session import Options

FOLDER = Path(__file__).parent / "results"
ONE_CPU = "one-cpu"
NAMES = ("grid", "volumes", "latency", "crops", "sweep", "memory", ONE_CPU)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benches",
        description="Compare chunkwright with everything else that reads and writes zarr from Python.",
        epilog="A TEXT chooses whatever has it in its name; without one, everything is run.",
    )
    parser.add_argument("--quick", action="store_true", help="every cell once, on small arrays: a smoke test")
    parser.add_argument("--suite", nargs="+", default=[], choices=NAMES, metavar="NAME", help=", ".join(NAMES))
    for name, what in (
        ("data", "photons, brain, float32, strings"),
        ("layout", "such as '128/32 zstd'"),
        ("store", "local, memory, obstore, fsspec, zip, latency"),
        ("operation", "such as 'read plane'"),
        ("rival", "such as tensorstore; ours, the limit and zarr's own cost always take part"),
    ):
        parser.add_argument(f"--{name}", nargs="+", default=[], metavar="TEXT", help=what)
    parser.add_argument("--cpus", type=int, help="use this many CPUs")
    parser.add_argument("--seconds", type=float, default=4.0, help="time to spend on one cell (4)")
    parser.add_argument("--memory-gib", type=float, default=4.0, help="size of what the memory suite writes (4)")
    parser.add_argument("--folder", type=Path, help="where local files are made (the system's temporary folder)")
    parser.add_argument("--out", type=Path, default=FOLDER, help="where results and report go (benches/results)")
    parser.add_argument("--compare", type=Path, metavar="JSON", help="earlier results to compare with")
    parser.add_argument("--from", type=Path, metavar="JSON", dest="kept", help="run nothing, report kept results")
    return parser


def _options(chosen: argparse.Namespace) -> Options:
    from benches.session import Options

    return Options(
        quick=chosen.quick,
        seconds=chosen.seconds,
        memory_gib=chosen.memory_gib,
        data=tuple(chosen.data),
        layouts=tuple(chosen.layout),
        stores=tuple(chosen.store),
        operations=tuple(chosen.operation),
        rivals=tuple(chosen.rival),
    )


def _run(chosen: argparse.Namespace) -> Results:
    """Run the chosen suites."""
    from benches.session import Session
    from benches.suites import SUITES

    session = Session(_options(chosen))
    for name in chosen.suite or NAMES:
        if name == ONE_CPU:
            session.results.absorb(_run_on_one_cpu(chosen))
        else:
            SUITES[name](session)
    return session.results


def _run_on_one_cpu(chosen: argparse.Namespace) -> Results:
    """Let another process run the grid on local files and in memory."""
    from benches.results import Results

    command = [sys.executable, "-m", "benches", "--cpus", "1", "--suite", "grid", "--seconds", str(chosen.seconds)]
    command += ["--quick"] if chosen.quick else []
    command += ["--folder", str(chosen.folder)] if chosen.folder else []
    stores, layouts = chosen.store or ["local", "memory"], chosen.layout or (["/8 zstd"] if chosen.quick else [])
    for name, texts in (("data", chosen.data), ("operation", chosen.operation), ("rival", chosen.rival)):
        command += [f"--{name}", *texts] if texts else []
    command += ["--layout", *layouts] if layouts else []
    with tempfile.TemporaryDirectory() as folder:
        command += ["--store", *stores, "--out", folder]
        subprocess.run(command, cwd=Path(__file__).parents[1], stdout=subprocess.DEVNULL, check=False)
        return Results.load(Path(folder) / "results.json")


def main() -> int:
    """Return the exit status: 1 when anything of ours was wrong."""
    chosen = _parser().parse_args()
    if chosen.cpus:
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: chosen.cpus])
    if chosen.folder:
        tempfile.tempdir = str(chosen.folder)
    from benches.report import write_report
    from benches.results import Results

    results = Results.load(chosen.kept) if chosen.kept else _run(chosen)
    if not chosen.kept:
        for name in ("results", f"history/{results.meta['time'].replace(':', '')}-{results.meta['commit']}"):
            results.save(chosen.out / f"{name}.json")
    write_report(results, chosen.out, Results.load(chosen.compare) if chosen.compare else None)
    return 1 if results.ours_failed() else 0


if __name__ == "__main__":
    sys.exit(main())
