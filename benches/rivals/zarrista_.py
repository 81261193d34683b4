"""zarrista: an array library on the zarrs crate, without zarr-python."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from itertools import product
from typing import Any

import zarrista
from numpy.typing import NDArray
from obstore.store import LocalStore as ObstoreLocal
from zarrista.store import FilesystemStore, MemoryStore, ZipStore

from benches.operations import Call
from benches.places import LocalPlace, MemoryPlace, ObstorePlace, Place, ZipPlace
from benches.rivals.base import CannotDoError, Contender, Opened

__all__ = ("Zarrista",)


def _kept_axes(selection: tuple[Any, ...]) -> tuple[Any, ...]:
    """An index that drops the axes which an integer selected and which zarrista keeps."""
    return tuple(0 if isinstance(item, int) else slice(None) for item in selection)


class ZarristaArray(Opened):
    """A synchronous array."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def read(self, call: Call) -> NDArray[Any]:
        self._check(call)
        tensor = self._finished(self.array.retrieve_array_subset, call.selection)
        found: NDArray[Any] = tensor.to_numpy()[_kept_axes(call.selection)]
        return found

    def write(self, call: Call, values: NDArray[Any]) -> None:
        if values.dtype.kind not in "biufc":
            raise CannotDoError("zarrista writes numbers alone")
        shape = tuple(
            1 if isinstance(item, int) else len(range(extent)[item])
            for item, extent in zip(call.selection, self.array.shape, strict=True)
        )
        self._finished(self.array.store_array_subset, call.selection, values.reshape(shape))

    def read_boxes(self, calls: Sequence[Call]) -> Sequence[NDArray[Any]]:
        """As many calls at a time as there are CPUs."""
        with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
            return list(pool.map(self.read, calls))

    def _check(self, call: Call) -> None:
        if call.has_lists:
            raise CannotDoError("zarrista selects by slices alone")

    def _finished(self, method: Callable[..., Any], *arguments: Any) -> Any:
        return method(*arguments)


class ZarristaInMemory(ZarristaArray):
    """A synchronous array whose objects were copied to zarrista's own memory store."""

    in_place = False


class ZarristaAsync(ZarristaArray):
    """An asynchronous array on an event loop of its own."""

    def __init__(self, array: Any, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(array)
        self.loop = loop

    def close(self) -> None:
        self.loop.close()

    def read_boxes(self, calls: Sequence[Call]) -> Sequence[NDArray[Any]]:
        async def gathered() -> list[Any]:
            return await asyncio.gather(*(self.array.retrieve_array_subset(call.selection) for call in calls))

        return [tensor.to_numpy() for tensor in self.loop.run_until_complete(gathered())]

    def _finished(self, method: Callable[..., Any], *arguments: Any) -> Any:
        async def awaited() -> Any:
            return await method(*arguments)

        return self.loop.run_until_complete(awaited())


class Zarrista(Contender):
    """zarrista on the store of its own that fits a place."""

    name = "zarrista"
    role = "rival"
    atomic = False

    def version(self) -> str:
        return version("zarrista")

    def open(self, place: Place) -> Opened:
        if type(place) is LocalPlace:
            return ZarristaArray(zarrista.Array.open(FilesystemStore(place.folder)))
        if type(place) is MemoryPlace:
            return ZarristaInMemory(_in_memory(place))
        if type(place) is ZipPlace:
            store = ZipStore(FilesystemStore(place.path.parent), place.path.name)
            return ZarristaArray(zarrista.Array.open(store))
        if type(place) is ObstorePlace:
            loop = asyncio.new_event_loop()
            return ZarristaAsync(loop.run_until_complete(_opened(place)), loop)
        raise CannotDoError(f"zarrista has no access to zarr's stores ({place.kind})")


async def _opened(place: ObstorePlace) -> Any:
    return await zarrista.AsyncArray.open(ObstoreLocal(place.folder))


def _in_memory(place: MemoryPlace) -> Any:
    metadata = json.loads(place.objects["zarr.json"].to_bytes())
    array = zarrista.Array.from_metadata(metadata, MemoryStore())
    for chunk in product(*map(range, array.chunk_grid_shape)):
        array.store_encoded_chunk(list(chunk), place.objects["/".join(map(str, ("c", *chunk)))].to_bytes())
    return array
