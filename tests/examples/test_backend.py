"""The example of a third-party backend: installed, it is found by its name, and proven as ours are."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
EXAMPLE = ROOT / "examples" / "backend"

type Python = Callable[..., str]


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Python:
    """Runs Python in an environment that has the example besides everything else."""
    folder = tmp_path_factory.mktemp("installed")

    def run(*arguments: str, **environment: str) -> str:
        variables = {**os.environ, "PYTHONPATH": str(folder), **environment}
        done = subprocess.run(
            [sys.executable, *arguments],
            cwd=ROOT,
            env=variables,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    options = ["--quiet", "--no-deps", "--no-build-isolation", "--target", str(folder)]
    run("-m", "pip", "install", *options, str(EXAMPLE))
    return run


def test_it_takes_less_than_150_lines() -> None:
    assert sum(len(path.read_text("utf-8").splitlines()) for path in EXAMPLE.rglob("src/**/*.py")) < 150


def test_it_passes_the_battery(python: Python) -> None:
    done = python("-m", "pytest", "-q", "-p", "no:cacheprovider", "--no-header", str(EXAMPLE / "tests"))
    assert " passed" in done


READ_AND_WRITE = """
import json
import numpy as np
import zarr
from chunkwright_zarr import explain

array = zarr.create_array(
    {}, shape=(100, 100), chunks=(10, 10), shards=(50, 50), dtype="int32", compressors=zarr.codecs.GzipCodec(level=5)
)
values = np.arange(10_000, dtype="int32").reshape(100, 100)
array[:] = values
array[3:20, ::7] = 5
values[3:20, ::7] = 5
assert (array[:] == values).all()
assert (array.oindex[[99, 3], 4:60] == values[[99, 3], 4:60]).all()
with zarr.config.set({"codec_pipeline.path": "zarr.core.codec_pipeline.BatchedCodecPipeline"}):
    theirs = zarr.open_array(array.store)
    assert (theirs[:] == values).all()
    theirs[60:] = 8
values[60:] = 8
assert (array[:] == values).all()
print(json.dumps(explain(array).to_json()["runs"]))
"""


def test_it_is_chosen_by_name_and_runs_what_it_can(python: Python) -> None:
    chosen = {
        "ZARR_CODEC_PIPELINE__PATH": "chunkwright_zarr.CodecPipeline",
        "ZARR_CODEC_PIPELINE__BACKEND": "isal",
    }
    runs = json.loads(python("-W", "error", "-c", READ_AND_WRITE, **chosen))
    assert [(run["codecs"], run["kernels"], run["backend"], run["reason"]) for run in runs] == [
        (["sharding_indexed"], ["plan"], "core", ""),
        (["bytes", "gzip"], ["numpy", "isal_zlib"], "isal", ""),
        (["bytes"], ["numpy"], "isal", ""),
        (["crc32c"], ["google-crc32c"], "numcodecs", "isal: ISA-L has no such codec"),
    ]
