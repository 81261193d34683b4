"""Where the distributions of this repository are."""

from __future__ import annotations

import subprocess
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent

DISTRIBUTIONS = {
    "chunkwright": ROOT / "core",
    "chunkwright-numcodecs": ROOT / "adapters" / "numcodecs",
    "chunkwright-rust": ROOT / "adapters" / "rust",
    "chunkwright-store": ROOT / "adapters" / "store_bridge",
    "chunkwright-zarr": ROOT / "adapters" / "zarr_python",
}


def source_of(distribution: str) -> Path:
    """Return the folder of a distribution's package."""
    folder = DISTRIBUTIONS[distribution]
    package = distribution.replace("-", "_")
    return next(path for path in (folder / "src" / package, folder / "python" / package) if path.is_dir())


def project_table(distribution: str) -> dict[str, Any]:
    """Return the ``[project]`` table of a distribution."""
    document = tomllib.loads((DISTRIBUTIONS[distribution] / "pyproject.toml").read_text("utf-8"))
    table: dict[str, Any] = document["project"]
    return table


def tracked_files() -> list[Path]:
    """Return the files that git tracks and that still exist."""
    listing = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [path for name in listing.split("\0") if name and (path := ROOT / name).is_file()]
