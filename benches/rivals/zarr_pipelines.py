"""Codec pipelines of zarr-python: its own two, zarrs-python's, ours with each backend, and one that does nothing."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from importlib.metadata import entry_points, version
from typing import Any

import numpy as np
import zarr
from numpy.typing import NDArray
from zarr.core.codec_pipeline import BatchedCodecPipeline
from zarr.registry import register_pipeline

from benches.operations import Call
from benches.places import Place
from benches.rivals.base import CannotDoError, Contender, Opened, Role

__all__ = ("NothingPipeline", "ZarrArray", "ZarrPipeline", "ours", "zarr_pipelines")


class NothingPipeline(BatchedCodecPipeline):
    """Claims to have read or written whatever it is asked to."""

    async def read(self, batch_info: Iterable[Any], out: Any, drop_axes: tuple[int, ...] = ()) -> Any:
        return tuple({"status": "present"} for _ in batch_info)

    async def write(self, batch_info: Iterable[Any], value: Any, drop_axes: tuple[int, ...] = ()) -> None:
        for _ in batch_info:
            pass


NothingPipeline.__module__ = "benches.rivals"
register_pipeline(NothingPipeline)


class ZarrArray(Opened):
    """An array of zarr-python's."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def read(self, call: Call) -> NDArray[Any]:
        if call.has_lists:
            return np.asarray(self.array.oindex[call.selection])
        return np.asarray(self.array[call.selection])

    def write(self, call: Call, values: NDArray[Any]) -> None:
        self.array[call.selection] = values


class OurArray(ZarrArray):
    """An array of zarr-python's under our pipeline, which reads many boxes as one plan."""

    def __init__(self, array: Any) -> None:
        super().__init__(array)
        self._kept: NDArray[Any] | None = None

    def read_boxes(self, calls: Sequence[Call]) -> Sequence[NDArray[Any]]:
        """Read boxes into the array that the last boxes were read into, as loaders do."""
        self._kept = self._read_boxes(calls, self._kept)
        return list(self._kept)

    def read_new_boxes(self, calls: Sequence[Call]) -> Sequence[NDArray[Any]]:
        """Read boxes into a new array, whose memory the system has to provide first."""
        return list(self._read_boxes(calls, None))

    def _read_boxes(self, calls: Sequence[Call], out: NDArray[Any] | None) -> NDArray[Any]:
        import chunkwright_zarr

        starts = np.array([[item.start for item in call.selection] for call in calls])
        shape = tuple(item.stop - item.start for item in calls[0].selection)
        return chunkwright_zarr.read_boxes(self.array, starts, shape, out=out)


class ZarrPipeline(Contender):
    """One pipeline, and the backend if it is ours."""

    def __init__(self, name: str, path: str, role: Role, *, library: str = "zarr", backend: str | None = None) -> None:
        self.name, self.path, self.role, self.library, self.backend = name, path, role, library, backend
        self.atomic = library != "zarrs"

    def version(self) -> str:
        return version(self.library)

    def open(self, place: Place) -> Opened:
        chosen = {"codec_pipeline.path": self.path, "codec_pipeline.backend": self.backend or "auto"}
        with zarr.config.set(chosen), warnings.catch_warnings():
            warnings.simplefilter("error", UserWarning)
            warnings.simplefilter("ignore", RuntimeWarning)  # zarrs-python makes an obstore store of its own
            try:
                array = zarr.open_array(place.store(), mode="r" if place.read_only else "r+")
            except UserWarning as warning:  # zarrs-python says that zarr's own pipeline will run instead
                raise CannotDoError(str(warning)) from None
        if self.library == "zarrs" and type(array.async_array.codec_pipeline) is BatchedCodecPipeline:
            raise CannotDoError("zarrs-python leaves this store to zarr's own pipeline")
        return self._opened(array)

    def _opened(self, array: Any) -> Opened:
        return OurArray(array) if self.role == "ours" else ZarrArray(array)


class DirectArray(ZarrPipeline):
    """Our array instead of zarr-python's."""

    def _opened(self, array: Any) -> Opened:
        import chunkwright_zarr

        return OurArray(chunkwright_zarr.DirectArray(array))


def ours() -> list[Contender]:
    """Return our pipeline with each installed backend that loads, Rust first, and our array with Rust."""
    points = sorted(entry_points(group="chunkwright.backends"), key=lambda point: point.name, reverse=True)
    path, library = "chunkwright_zarr.CodecPipeline", "chunkwright-zarr"
    names = [point.name for point in points]
    pipelines = [ZarrPipeline(f"ours, {name}", path, "ours", library=library, backend=name) for name in names]
    if "rust" in names:  # no other backend reads without zarr-python
        pipelines.append(DirectArray("ours, direct", path, "ours direct", library=library, backend="rust"))
    return [*pipelines]


def zarr_pipelines() -> list[Contender]:
    """Return the other pipelines, zarr's default first."""
    own = "zarr.core.codec_pipeline"
    return [
        ZarrPipeline("zarr batched", f"{own}.BatchedCodecPipeline", "pipeline"),
        ZarrPipeline("zarr fused", f"{own}.FusedCodecPipeline", "pipeline"),
        ZarrPipeline("zarrs-python", "zarrs.ZarrsCodecPipeline", "pipeline", library="zarrs"),
        ZarrPipeline("nothing", "benches.rivals.NothingPipeline", "nothing"),
    ]
