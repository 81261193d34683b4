"""Plants faults, one at a time, in a copy of the sources, and sees whether the tests that are named for them fail.

The list is ``tests/planted_faults/faults.toml``. A fault replaces one piece of text, which must be there exactly once.
Each worker has a copy of what is checked out, in front of everything else on Python's path, so that neither the
working tree nor the virtual environment is touched. The named tests are first run without any fault: a test that
fails anyway catches nothing. A fault is caught when each of its tests fails, by itself or by hanging.

Faults in Rust need the native module compiled anew, a minute each after the first: ``--rust`` includes them.
``--against tests/core`` runs other tests instead of the named ones, to find out which of them catch a fault.
``--page`` writes ``docs/design/004-planted-faults.md``, the list for people.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from queue import SimpleQueue

import attrs

ROOT = Path(__file__).resolve().parent.parent
LIST = ROOT / "tests" / "planted_faults" / "faults.toml"
PAGE = ROOT / "docs" / "design" / "004-planted-faults.md"
SOURCES = (
    "core/src",
    "adapters/numcodecs/src",
    "adapters/rust/python",
    "adapters/store_bridge/src",
    "adapters/zarr_python/src",
)
NATIVE = "adapters/rust/python/chunkwright_rust/_native.abi3.so"
TIMEOUT = 120


@attrs.frozen
class Fault:
    """A fault that could have been made.

    Parameters
    ----------
    kind
        What goes wrong for a user.
    name
        What exactly is wrong.
    file
        Where, relative to the repository.
    old, new
        What is replaced, and by what.
    tests
        The tests that have to fail, as pytest names them, without parameters.
    """

    kind: str
    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...] = attrs.field(converter=tuple)

    @property
    def is_rust(self) -> bool:
        """Whether the native module has to be compiled."""
        return self.file.endswith(".rs")

    def plant(self, folder: Path) -> None:
        """Change a copy of the sources."""
        path = folder / self.file
        text = path.read_text("utf-8")
        if text.count(self.old) != 1:
            raise ValueError(f"{self.name}: the text to replace is {text.count(self.old)} times in {self.file}")
        path.write_text(text.replace(self.old, self.new), "utf-8")


def read_faults() -> list[Fault]:
    """Read the list."""
    return [Fault(**item) for item in tomllib.loads(LIST.read_text("utf-8"))["fault"]]


HEAD = """# 4: Planted faults

What would go wrong for a user, planted in a copy of the sources one at a time, and the tests that fail then. `make
planted-faults` does it; `tests/planted_faults` checks that the faults can still be planted and that this page, which
`tools/planted_faults.py --page` writes, is the list.

| kind | fault | in | caught by |
| --- | --- | --- | --- |
"""


def page() -> str:
    """The list as a page of the documentation."""
    rows = [
        f"| {fault.kind} | {fault.name} | `{fault.file}` | {', '.join(f'`{test}`' for test in fault.tests)} |\n"
        for fault in read_faults()
    ]
    return HEAD + "".join(rows)


def copied(folder: Path) -> Path:
    """Copy what is checked out, and the native module."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for name in [*filter(None, listed.split("\0")), NATIVE]:
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
    return folder


def compiled(folder: Path) -> str:
    """Compile the native module of a copy; return what went wrong."""
    target = ROOT / ".work" / "faults-target"
    environment = {**os.environ, "CARGO_TARGET_DIR": str(target), "PYO3_PYTHON": sys.executable}
    command = ["cargo", "build", "--release", "--locked", "--lib", "--quiet"]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        shutil.copy(target / "release" / "lib_native.so", folder / NATIVE)
    return done.stderr if done.returncode else ""


def failing(folder: Path, tests: Sequence[str]) -> tuple[set[str], str]:
    """Run tests in a copy; return the names of those that fail, without parameters, and the output."""
    paths = [str(folder / source) for source in SOURCES]
    # No byte code: files change more often than their times tell. With CI, hypothesis draws the same examples again.
    variables = {"PYTHONPATH": os.pathsep.join(paths), "PYTHONDONTWRITEBYTECODE": "1", "CI": "true"}
    environment = {**os.environ, **variables}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-rfE", "--tb=no"]
    try:
        done = subprocess.run(
            [*command, f"--basetemp={folder / '.tmp'}", *tests],
            cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=TIMEOUT,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return set(tests), "hangs"
    output = done.stdout + done.stderr
    return set(re.findall(r"^(?:FAILED|ERROR) ([\w/.]+(?:::\w+)*)", output, flags=re.MULTILINE)), output


@contextmanager
def planted(fault: Fault, folder: Path) -> Iterator[str]:
    """A copy with a fault for a while; the value is what keeps it from being compiled."""
    before = (folder / fault.file).read_text("utf-8")
    native = (folder / NATIVE).read_bytes() if fault.is_rust else b""
    fault.plant(folder)
    try:
        yield compiled(folder) if fault.is_rust else ""
    finally:
        (folder / fault.file).write_text(before, "utf-8")
        if fault.is_rust:
            (folder / NATIVE).write_bytes(native)


def verdict(fault: Fault, folder: Path, against: Sequence[str]) -> tuple[bool, str]:
    """Whether a fault is caught, and by which tests, or why not."""
    with planted(fault, folder) as broken:
        if broken:
            return False, f"does not compile:\n{broken}"
        found, output = failing(folder, against or fault.tests)
    wanted = set(found if against else fault.tests)
    if wanted and wanted <= found:
        return True, ", ".join(sorted(found))
    return False, f"passing: {', '.join(sorted(wanted - found))}\n{output[-400:]}"


def main() -> int:
    """Plant the faults and say which are caught; 1 when one is not."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--only", default="", help="faults whose kind or name has this in it")
    parser.add_argument("--rust", action="store_true", help="also faults in Rust, which take a minute each")
    parser.add_argument("--against", nargs="*", default=[], help="run these tests instead of the named ones")
    parser.add_argument("--workers", type=int, default=2, help="faults that are planted at a time")
    parser.add_argument("--page", action="store_true", help="only write the page of the documentation")
    options = parser.parse_args()
    if options.page:
        PAGE.write_text(page(), "utf-8")
        return 0
    chosen = [fault for fault in read_faults() if options.only in f"{fault.kind}: {fault.name}"]
    python = [fault for fault in chosen if not fault.is_rust]
    rust = [fault for fault in chosen if fault.is_rust and options.rust]
    with tempfile.TemporaryDirectory() as place:
        folders = [copied(Path(place, str(number))) for number in range(options.workers)]
        tests = options.against or sorted({test for fault in python + rust for test in fault.tests})
        ill, output = failing(folders[0], tests)
        if ill or "passed" not in output:
            print(f"without any fault:\n{output[-2000:]}")
            return 1
        return plant_all(python, folders, options.against) | plant_all(rust, folders[:1], options.against)


def plant_all(faults: Sequence[Fault], folders: Sequence[Path], against: Sequence[str]) -> int:
    """Plant faults, as many at a time as there are copies, and print a line for each."""
    free: SimpleQueue[Path] = SimpleQueue()
    for folder in folders:
        free.put(folder)

    def judged(fault: Fault) -> tuple[bool, str]:
        folder = free.get()
        try:
            return verdict(fault, folder, against)
        finally:
            free.put(folder)

    missed = 0
    with ThreadPoolExecutor(len(folders)) as pool:
        for fault, (caught, text) in zip(faults, pool.map(judged, faults), strict=True):
            print(f"{'caught' if caught else 'MISSED'}  {fault.kind}: {fault.name}: {text}", flush=True)
            missed += not caught
    return min(missed, 1)


if __name__ == "__main__":
    sys.exit(main())
