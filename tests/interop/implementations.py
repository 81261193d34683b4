"""Other implementations of Zarr: each reads and writes an array on local disk that zarr has created."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import tensorstore
import zarr
from numpy.typing import NDArray

from tests.support.pipelines import DEFAULT, ZARRS, Pipeline


class Implementation(Protocol):
    """Reads and writes with code that is not ours."""

    name: str

    def read(self, path: Path, zarr_format: int) -> NDArray[Any]: ...

    def write(self, path: Path, zarr_format: int, values: NDArray[Any]) -> None: ...


class Zarr:
    """zarr-python's default pipeline."""

    name = "zarr"
    config: Mapping[str, Any] = Pipeline(DEFAULT).config

    def read(self, path: Path, zarr_format: int) -> NDArray[Any]:
        with zarr.config.set(self.config):
            return np.asarray(zarr.open_array(str(path), mode="r")[...])

    def write(self, path: Path, zarr_format: int, values: NDArray[Any]) -> None:
        with zarr.config.set(self.config):
            zarr.open_array(str(path), mode="r+")[...] = values


class Zarrs(Zarr):
    """The zarrs crate, through its own pipeline for zarr-python; never through that pipeline's Python fallback."""

    name = "zarrs"
    config: Mapping[str, Any] = {**Pipeline(ZARRS).config, "codec_pipeline.strict": True}


class Tensorstore:
    """tensorstore's drivers ``zarr3`` and ``zarr``."""

    name = "tensorstore"

    def _open(self, path: Path, zarr_format: int) -> Any:
        kvstore = {"driver": "file", "path": str(path)}
        driver = {2: "zarr", 3: "zarr3"}[zarr_format]
        return tensorstore.open({"driver": driver, "kvstore": kvstore}, open=True).result()

    def read(self, path: Path, zarr_format: int) -> NDArray[Any]:
        values: NDArray[Any] = self._open(path, zarr_format).read().result()
        return values

    def write(self, path: Path, zarr_format: int, values: NDArray[Any]) -> None:
        self._open(path, zarr_format).write(values).result()


IMPLEMENTATIONS: list[Implementation] = [Zarr(), Zarrs(), Tensorstore()]
