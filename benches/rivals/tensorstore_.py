"""tensorstore: an array library in C++ of its own, with its own file IO.

Files are not flushed to disk, since zarr-python does not flush them either, and replaced by renaming, as by zarr.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from importlib.metadata import version
from textwrap import shorten
from typing import Any

import numpy as np
import tensorstore
from numpy.typing import NDArray

from benches.operations import Call
from benches.places import LocalPlace, MemoryPlace, Place, ZipPlace
from benches.rivals.base import CannotDoError, Contender, Opened

__all__ = ("Tensorstore",)


class TensorstoreArray(Opened):
    """An array of tensorstore's on files."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def read(self, call: Call) -> NDArray[Any]:
        return np.asarray(self._selected(call).read().result())

    def write(self, call: Call, values: NDArray[Any]) -> None:
        self._selected(call).write(values).result()

    def read_boxes(self, calls: Sequence[Call]) -> Sequence[NDArray[Any]]:
        """All futures at once."""
        futures = [self._selected(call).read() for call in calls]
        return [np.asarray(future.result()) for future in futures]

    def _selected(self, call: Call) -> Any:
        return self.array.oindex[call.selection] if call.has_lists else self.array[call.selection]


class TensorstoreInMemory(TensorstoreArray):
    """An array whose objects were copied to tensorstore's own memory store."""

    in_place = False


class Tensorstore(Contender):
    """tensorstore, one thread for each CPU that this process may use."""

    name = "tensorstore"
    role = "rival"

    def version(self) -> str:
        return version("tensorstore")

    def open(self, place: Place) -> Opened:
        cpus = len(os.sched_getaffinity(0))
        context = tensorstore.Context({"file_io_sync": False, "data_copy_concurrency": {"limit": cpus}})
        if type(place) is MemoryPlace:
            return TensorstoreInMemory(self._array(_memory(place, context), context))
        return TensorstoreArray(self._array(_files(place), context))

    def _array(self, kvstore: Any, context: Any) -> Any:
        try:
            return tensorstore.open({"driver": "zarr3", "kvstore": kvstore}, context=context).result()
        except ValueError as error:  # for instance a data type that it does not have
            raise CannotDoError(shorten(str(error), 240)) from None


def _files(place: Place) -> Any:
    if type(place) is LocalPlace:
        return {"driver": "file", "path": f"{place.folder}/"}
    if type(place) is ZipPlace:
        # Reading a plane of shards with thousands of inner chunks from a zip file never comes to an end (0.1.86).
        raise CannotDoError("tensorstore hangs on parts of shards in zip files")
    raise CannotDoError(f"tensorstore has no access to zarr's stores ({place.kind})")


def _memory(place: MemoryPlace, context: Any) -> Any:
    store = tensorstore.KvStore.open({"driver": "memory"}, context=context).result()
    for key, buffer in place.objects.items():
        store.write(key, buffer.to_bytes()).result()
    return {"driver": "memory"}
