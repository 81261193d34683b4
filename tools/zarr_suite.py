"""Runs all of zarr's own tests with chunkwright's codec pipeline in place of zarr's.

The tests come from zarr's source distribution, fetched by pip once into ``.work/``; its ``src/`` is removed
so that the installed zarr is what is tested. zarr's pytest settings apply. Tests that cannot pass under
another pipeline are listed, with reasons, in ``tests/zarr_suite/expected.txt``; the pytest plugin next to that list
checks it, and that the pipeline and the backend were used at all.

Another release of zarr (``--release newest`` or ``--release 3.4.0``) is installed into a virtual environment of
its own under ``.work/``, with our distributions as they are checked out.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tarfile
import tomllib
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WORK = ROOT / ".work"
MEMBERS = ("core", "adapters/numcodecs", "adapters/store_bridge", "adapters/zarr_python")

# Not about this repository: old releases, documentation, build scripts; or timings.
LEFT_OUT = ("test_regression", "test_docs.py", "test_examples.py", "benchmarks", "test_version_derivation.py")


def fetch(release: str) -> Path:
    """Unpack zarr's source distribution, unless it is there already, and return its folder."""
    folder = WORK / f"zarr-{release}"
    if folder.exists():
        return folder
    downloads = WORK / "downloads"
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", "zarr"]
    run([*command, "--dest", str(downloads), f"zarr=={release}"])
    unpacked = WORK / "unpacking"
    shutil.rmtree(unpacked, ignore_errors=True)
    with tarfile.open(downloads / f"zarr-{release}.tar.gz") as archive:
        archive.extractall(unpacked, filter="data")
    shutil.rmtree(unpacked / folder.name / "src")
    (unpacked / folder.name).rename(folder)
    return folder


def run(command: Sequence[str], **variables: str) -> str:
    """Run a command that has to succeed and return what it prints."""
    environment = {**os.environ, **variables}
    return subprocess.run(command, check=True, env=environment, stdout=subprocess.PIPE, text=True).stdout


def python_with(release: str) -> str:
    """Make a virtual environment with a release of zarr, or bring it up to date, and return its interpreter."""
    venv = WORK / f"venv-zarr-{release}"
    python = venv / "bin" / "python"
    if not python.exists():
        run([sys.executable, "-m", "venv", str(venv)])
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["dependency-groups"]
    wanted = "zarr>=3.4,<4" if release == "newest" else f"zarr=={release}"
    others = [name for name in groups["zarr-suite"] if not name.startswith("zarr==")]
    members = [item for member in MEMBERS for item in ("-e", str(ROOT / member))]
    run([str(python), "-m", "pip", "install", "--quiet", "--upgrade", wanted, *others, *groups["rust"], *members])
    # Compiled before for the main environment: cargo finds nothing to do.
    variables = {"CARGO_TARGET_DIR": str(ROOT / "target"), "PYO3_PYTHON": sys.executable, "VIRTUAL_ENV": str(venv)}
    manifest = str(ROOT / "adapters" / "rust" / "Cargo.toml")
    develop = ["develop", "--release", "--locked", "--quiet", "--manifest-path", manifest]
    run([str(venv / "bin" / "maturin"), *develop], **variables)
    return str(python)


def zarr_of(python: str) -> str:
    """Return the version of zarr that an interpreter has."""
    return run([python, "-c", "import importlib.metadata as m; print(m.version('zarr'))"]).strip()


def environment(pipeline: str, backend: str) -> dict[str, str]:
    """Return the environment that puts our pipeline into zarr's configuration and the plugin on the path."""
    plugins = str(ROOT / "tests" / "zarr_suite")
    chosen = {"ZARR_CODEC_PIPELINE__PATH": pipeline, "ZARR_CODEC_PIPELINE__BACKEND": backend}
    return {**os.environ, **chosen, "PYTHONPATH": plugins}


def main() -> int:
    """Run the tests and return pytest's exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0] if __doc__ else None, epilog="Other options go to pytest."
    )
    parser.add_argument("--backend", default="auto", help="value of codec_pipeline.backend")
    parser.add_argument("--pipeline", default="chunkwright_zarr.CodecPipeline", help="value of codec_pipeline.path")
    parser.add_argument("--release", help="a release of zarr, or 'newest' (3.x on PyPI), instead of the installed one")
    parser.add_argument("--tests", action="append", help="a part of the tests, such as tests/test_codecs; repeatable")
    parser.add_argument("--workers", default="2", help="number of test processes")
    arguments, extra = parser.parse_known_args()
    python = sys.executable if arguments.release is None else python_with(arguments.release)
    release = zarr_of(python)
    folder, pinned = fetch(release), version("zarr")
    note = "as pinned" if release == pinned else f"pinned is {pinned}"
    print(f"tests of zarr {release} ({note}) with backend {arguments.backend}", flush=True)
    command = [python, "-m", "pytest", "-p", "expectations", "-p", "no:cacheprovider"]
    command += ["-n", arguments.workers, "--dist", "worksteal"]
    # A folder of its own: pytest fails when runs that share one clean up at the same time.
    command.append(f"--basetemp={WORK / f'tmp-{release}-{arguments.backend}'}")
    tests = arguments.tests or ["tests", *(f"--ignore=tests/{name}" for name in LEFT_OUT)]
    variables = environment(arguments.pipeline, arguments.backend)
    return subprocess.run([*command, *tests, *extra], cwd=folder, env=variables, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
