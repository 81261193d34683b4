"""Where the objects of one array are, and how each contender gets at them.

An array is written once, to a local folder; every other place is made from the objects in it, so that all of them
hold the same bytes. Places that are written to are copied for each contender.
"""

from __future__ import annotations

import shutil
import struct
import tempfile
import zipfile
from pathlib import Path
from typing import Any, Self

import attrs
import numpy as np
import zarr
from fsspec.implementations.asyn_wrapper import AsyncFileSystemWrapper
from fsspec.implementations.local import LocalFileSystem
from obstore.store import LocalStore as ObstoreLocal
from zarr.core.buffer import default_buffer_prototype
from zarr.storage import FsspecStore, LocalStore, MemoryStore, ObjectStore, ZipStore

from benches.data import DataSet
from benches.latency import LatencyStore
from benches.layouts import Layout

__all__ = (
    "PLACES",
    "FsspecPlace",
    "LatencyPlace",
    "LocalPlace",
    "Located",
    "MemoryPlace",
    "ObstorePlace",
    "Place",
    "ZipPlace",
    "new_folder",
    "stored",
)

FILLER = "zarr.core.codec_pipeline.FusedCodecPipeline"


@attrs.frozen
class Located:
    """Part of a file."""

    path: Path
    start: int
    length: int


def new_folder() -> Path:
    """Make a folder that :meth:`Place.remove` removes."""
    return Path(tempfile.mkdtemp(prefix="chunkwright-bench-"))


class Place:
    """Objects of one array under keys such as ``c/0/1/2``, the array's metadata among them."""

    kind = ""
    read_only = False

    @classmethod
    def of(cls, folder: Path) -> Self:
        """Make a place from the objects in a folder, which stays as it is."""
        raise NotImplementedError

    def copy(self) -> Self:
        """Make another place with the same objects."""
        raise NotImplementedError

    def remove(self) -> None:
        """Give back disk or memory."""

    def store(self) -> Any:
        """Return a store of zarr's; each call returns one over the same objects."""
        raise NotImplementedError

    def locate(self, key: str) -> Located | memoryview:
        """Return where the bytes of an object are: part of a file, or memory."""
        raise NotImplementedError

    def read_back(self) -> Any:
        """Return what zarr's own pipeline reads from the place."""
        with zarr.config.set({"codec_pipeline.path": FILLER}):
            return zarr.open_array(self.store(), mode="r")[...]


def stored(layout: Layout, data: DataSet) -> LocalPlace:
    """Write a data set to a new folder with zarr's own pipeline."""
    place = LocalPlace(new_folder())
    with zarr.config.set({"codec_pipeline.path": FILLER}):
        layout.create(place.store(), data)[...] = data.values
    return place


class MemoryPlace(Place):
    """Objects in zarr's MemoryStore."""

    kind = "memory"

    def __init__(self, objects: dict[str, Any]) -> None:
        self.objects = objects

    @classmethod
    def of(cls, folder: Path) -> Self:
        make = default_buffer_prototype().buffer.from_bytes
        files = (path for path in folder.rglob("*") if path.is_file())
        return cls({path.relative_to(folder).as_posix(): make(path.read_bytes()) for path in files})

    def copy(self) -> Self:
        return type(self)(dict(self.objects))

    def remove(self) -> None:
        self.objects.clear()

    def store(self) -> Any:
        return MemoryStore(self.objects)

    def locate(self, key: str) -> memoryview:
        return memoryview(np.ascontiguousarray(self.objects[key].as_numpy_array())).cast("B")


class LatencyPlace(MemoryPlace):
    """Objects in a store that answers late; every contender has a store of its own."""

    kind = "latency"
    latency = 0.02

    def __init__(self, objects: dict[str, Any]) -> None:
        super().__init__(objects)
        self.latency_store = LatencyStore(objects, self.latency)

    def store(self) -> Any:
        return self.latency_store

    def read_back(self) -> Any:
        return MemoryPlace(self.objects).read_back()


class LocalPlace(Place):
    """Objects in files, read through zarr's LocalStore."""

    kind = "local"

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @classmethod
    def of(cls, folder: Path) -> Self:
        return cls(folder).copy()

    def copy(self) -> Self:
        folder = new_folder()
        shutil.copytree(self.folder, folder, dirs_exist_ok=True)
        return type(self)(folder)

    def remove(self) -> None:
        shutil.rmtree(self.folder)

    def store(self) -> Any:
        return LocalStore(self.folder)

    def locate(self, key: str) -> Located:
        path = self.folder / key
        return Located(path, 0, path.stat().st_size)


class ObstorePlace(LocalPlace):
    """The same files through obstore."""

    kind = "obstore"

    def store(self) -> Any:
        return ObjectStore(ObstoreLocal(self.folder))


class FsspecPlace(LocalPlace):
    """The same files through fsspec."""

    kind = "fsspec"

    def store(self) -> Any:
        files = AsyncFileSystemWrapper(LocalFileSystem(auto_mkdir=True), asynchronous=True)
        return FsspecStore(files, path=str(self.folder))


class ZipPlace(Place):
    """Objects in one zip file, stored without compression."""

    kind = "zip"
    read_only = True

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def of(cls, folder: Path) -> Self:
        path = new_folder() / "array.zip"
        with zipfile.ZipFile(path, "w") as archive:
            for file in sorted(folder.rglob("*")):
                if file.is_file():
                    archive.write(file, file.relative_to(folder).as_posix())
        return cls(path)

    def copy(self) -> Self:
        path = new_folder() / self.path.name
        shutil.copy(self.path, path)
        return type(self)(path)

    def remove(self) -> None:
        shutil.rmtree(self.path.parent)

    def store(self) -> Any:
        return ZipStore(self.path, mode="r", read_only=True)

    def locate(self, key: str) -> Located:
        with zipfile.ZipFile(self.path) as archive, self.path.open("rb") as file:
            found = archive.getinfo(key)
            file.seek(found.header_offset + 26)  # the lengths of name and extra field; data follow them
            start = found.header_offset + 30 + sum(struct.unpack("<HH", file.read(4)))
        return Located(self.path, start, found.file_size)


PLACES: dict[str, type[Place]] = {
    place.kind: place for place in (LocalPlace, MemoryPlace, ObstorePlace, FsspecPlace, ZipPlace, LatencyPlace)
}
