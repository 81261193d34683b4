"""What importing each package brings along, seen from a fresh interpreter.

import-linter (``make imports``) reads the import statements; this sees what is really imported, lazily or not.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

LOADED = """
import sys
{baseline}
before = set(sys.modules)
import {package}
print(*sorted({{name.partition(".")[0] for name in set(sys.modules) - before}}))
"""


def imported_by(package: str, *, baseline: str = "") -> set[str]:
    """Return the top-level names that importing a package adds to those of a baseline."""
    script = LOADED.format(package=package, baseline=baseline)
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(run.stdout.split())


@pytest.mark.parametrize("unwanted", ["asyncio", "concurrent", "numcodecs", "socket", "zarr"])
def test_the_core_does_not_bring_along(unwanted: str) -> None:
    assert unwanted not in imported_by("chunkwright", baseline="import attrs, numpy")


def test_the_core_is_seen_when_it_is_imported() -> None:
    assert "chunkwright" in imported_by("chunkwright")


@pytest.mark.parametrize("package", ["chunkwright_numcodecs", "chunkwright_rust", "chunkwright_store"])
def test_only_the_zarr_ring_brings_zarr_along(package: str) -> None:
    assert "zarr" not in imported_by(package)


@pytest.mark.parametrize("backend", ["chunkwright_numcodecs", "chunkwright_rust"])
def test_importing_the_zarr_pipeline_loads_no_backend(backend: str) -> None:
    assert backend not in imported_by("chunkwright_zarr")
