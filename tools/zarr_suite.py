"""Runs zarr's own tests with chunkwright's codec pipeline in place of zarr's.

The tests come from zarr's source distribution, fetched by pip once into ``.work/``; its ``src/`` is removed
so that the installed zarr is what is tested. zarr's pytest settings apply. Tests that cannot pass under
another pipeline are listed, with reasons, in ``tests/zarr_suite/expected.txt``.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tarfile
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WORK = ROOT / ".work"

# What has to do with codecs, pipelines and selections.
CORE_TESTS = ("test_indexing.py", "test_codecs", "test_codec_pipeline*.py", "test_v2.py", "test_config.py")

# Not about this repository: old releases, documentation, build scripts; or timings.
LEFT_OUT = ("test_regression", "test_docs.py", "test_examples.py", "benchmarks", "test_version_derivation.py")


def fetch(release: str) -> Path:
    """Unpack zarr's source distribution, unless it is there already, and return its folder."""
    folder = WORK / f"zarr-{release}"
    if folder.exists():
        return folder
    downloads = WORK / "downloads"
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", "zarr"]
    subprocess.run([*command, "--dest", str(downloads), f"zarr=={release}"], check=True)
    unpacked = WORK / "unpacking"
    shutil.rmtree(unpacked, ignore_errors=True)
    with tarfile.open(downloads / f"zarr-{release}.tar.gz") as archive:
        archive.extractall(unpacked, filter="data")
    shutil.rmtree(unpacked / folder.name / "src")
    (unpacked / folder.name).rename(folder)
    return folder


def selection(folder: Path, everything: bool) -> list[str]:
    """Return pytest's arguments that choose the tests."""
    if everything:
        return ["tests", *(f"--ignore=tests/{name}" for name in LEFT_OUT)]
    found = sorted(path for pattern in CORE_TESTS for path in folder.glob(f"tests/{pattern}"))
    return [str(path.relative_to(folder)) for path in found]


def environment(pipeline: str, backend: str) -> dict[str, str]:
    """Return the environment that puts our pipeline into zarr's configuration and the plugin on the path."""
    plugins = str(ROOT / "tests" / "zarr_suite")
    chosen = {"ZARR_CODEC_PIPELINE__PATH": pipeline, "ZARR_CODEC_PIPELINE__BACKEND": backend}
    return {**os.environ, **chosen, "PYTHONPATH": plugins}


def main() -> int:
    """Run the tests and return pytest's exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--all", action="store_true", help="run all of zarr's tests instead of those near codecs")
    parser.add_argument("--workers", default="2", help="number of test processes")
    parser.add_argument("--backend", default="auto", help="value of codec_pipeline.backend")
    parser.add_argument("--pipeline", default="chunkwright_zarr.CodecPipeline", help="value of codec_pipeline.path")
    arguments, extra = parser.parse_known_args()
    folder = fetch(version("zarr"))
    command = [sys.executable, "-m", "pytest", "-p", "expectations", "-p", "no:cacheprovider", "-n", arguments.workers]
    tests = selection(folder, arguments.all)
    variables = environment(arguments.pipeline, arguments.backend)
    return subprocess.run([*command, *tests, *extra], cwd=folder, env=variables, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
