"""An array of zarr's that is read on the calling thread, and written without its event loop.

zarr's arrays have two sides: an asynchronous one that does the work, and a synchronous one that hands each call to an
event loop in another thread and waits. Where nothing has to be awaited, because chunks are in local files or in
memory, the hop there and back and zarr's Python for each chunk are most of what a small read takes. This array leaves
both out; whatever it cannot do like that, it does as zarr does, with the same result.

Calls from a thread with a running event loop are zarr's: they may not hold it up.
"""

from __future__ import annotations

import asyncio
from copy import copy
from typing import Any

import attrs
import numpy as np
import zarr
from numpy.typing import NDArray
from zarr.core.array import AsyncArray
from zarr.core.buffer import BufferPrototype, NDBuffer, cpu, default_buffer_prototype

from chunkwright_zarr.arrays import AnyArray, async_array_of
from chunkwright_zarr.config import setting
from chunkwright_zarr.counters import count
from chunkwright_zarr.grid_array import GridArray
from chunkwright_zarr.known import chunks_of, pipeline_of
from chunkwright_zarr.pipeline import CodecPipeline
from chunkwright_zarr.region_writes import write_region
from chunkwright_zarr.regions import PlainSelection, parts_of_region, plain_selection
from chunkwright_zarr.specs import copyable

__all__ = ("DirectArray",)


@attrs.frozen(eq=False)
class _Kept:
    """What is the same in every call, as long as the array and zarr's configuration have these objects."""

    metadata: Any
    config: Any
    buffers: tuple[Any, Any]
    grid: GridArray | None

    def is_for(self, array: AsyncArray[Any], buffers: tuple[Any, Any]) -> bool:
        is_same = self.metadata is array.metadata and self.config is array.config
        return is_same and self.buffers == buffers


class DirectArray(zarr.Array[Any]):
    """A zarr array whose local files and memory are read and written without zarr's event loop.

    Everything that :class:`zarr.Array` does, with the same results. Reads by integers, slices and orthogonal lists that
    ascend take the short way where the store is a local one, a memory store or a zip file of shards, and the codecs are
    run by a backend that reads regions (Rust). So do writes of an array, of this one's dtype, to integers and slices of
    local and memory stores. All other calls go through zarr and this package's pipeline.

    Parameters
    ----------
    array
        A zarr array, opened with any codec pipeline. If that is not this package's, the new array has metadata of its
        own: resizing one of them is not seen in the other.

    Raises
    ------
    TypeError
        When what is given is no zarr array.
    UnsupportedCodecError, BackendUnavailableError
        As when the array is opened with this package's pipeline.

    Examples
    --------
    >>> import numpy as np
    >>> array = DirectArray(zarr.create_array({}, shape=(4, 6), chunks=(2, 2), dtype="i2"))
    >>> array[:] = np.arange(24).reshape(4, 6)
    >>> array[1:3, -1].tolist()
    [11, 17]
    >>> isinstance(array, zarr.Array)
    True
    """

    _kept: _Kept | None = None

    def __init__(self, array: AnyArray) -> None:
        super().__init__(_under_our_pipeline(async_array_of(array)))

    def __reduce__(self) -> tuple[Any, ...]:
        # What is kept is made again where the array is used.
        return type(self), (self.async_array,)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, zarr.Array) and other.async_array == self.async_array

    __hash__ = None  # type: ignore[assignment]  # as of zarr's arrays

    def __getitem__(self, selection: Any) -> Any:
        plain = plain_selection(selection, self.shape, orthogonal=False)
        # Whether one element is a scalar or an array without axes is for zarr to say: it asks one of the methods below.
        found = self._read(plain if plain is not None and plain.shape else None)
        return super().__getitem__(selection) if found is None else found

    def __setitem__(self, selection: Any, value: Any) -> None:
        if not self._write(selection, value):
            super().__setitem__(selection, value)

    def get_basic_selection(
        self,
        selection: Any = Ellipsis,
        *,
        out: NDBuffer | None = None,
        prototype: BufferPrototype | None = None,
        fields: Any = None,
    ) -> Any:
        """Read integers and slices; see :meth:`zarr.Array.get_basic_selection`.

        Parameters
        ----------
        selection
            Integers, slices, an ellipsis; or a tuple of these.
        out, prototype, fields
            As zarr's; with any of them the call is zarr's.

        Returns
        -------
        NDArray or scalar
            What NumPy would return.

        Raises
        ------
        CorruptChunkError
            When stored bytes do not decode; it names the chunk's key.

        Examples
        --------
        >>> DirectArray(zarr.ones(store={}, shape=(4,), chunks=(2,))).get_basic_selection(slice(1, 3)).tolist()
        [1.0, 1.0]
        """
        is_plain = out is None and prototype is None and _is_none(fields)
        plain = plain_selection(selection, self.shape, orthogonal=False) if is_plain else None
        found = self._read(plain)
        if found is None:
            return super().get_basic_selection(selection, out=out, prototype=prototype, fields=fields)
        return found if found.ndim else found[()]

    def get_orthogonal_selection(
        self,
        selection: Any,
        *,
        out: NDBuffer | None = None,
        fields: Any = None,
        prototype: BufferPrototype | None = None,
    ) -> Any:
        """Read integers, slices and arrays, each along its own axis; see :meth:`zarr.Array.get_orthogonal_selection`.

        Parameters
        ----------
        selection
            Integers, slices, one-dimensional integer or Boolean arrays; or a tuple of these.
        out, fields, prototype
            As zarr's; with any of them the call is zarr's.

        Returns
        -------
        NDArray
            What the arrays select orthogonally.

        Raises
        ------
        CorruptChunkError
            When stored bytes do not decode; it names the chunk's key.

        Examples
        --------
        >>> array = DirectArray(zarr.ones(store={}, shape=(4, 4), chunks=(2, 2)))
        >>> array.oindex[[0, 3], 1:].shape
        (2, 3)
        """
        is_plain = out is None and prototype is None and _is_none(fields)
        found = self._read(plain_selection(selection, self.shape, orthogonal=True) if is_plain else None)
        if found is None:
            return super().get_orthogonal_selection(selection, out=out, fields=fields, prototype=prototype)
        return found

    def set_basic_selection(
        self, selection: Any, value: Any, *, fields: Any = None, prototype: BufferPrototype | None = None
    ) -> None:
        """Write to integers and slices; see :meth:`zarr.Array.set_basic_selection`.

        Parameters
        ----------
        selection
            Integers, slices, an ellipsis; or a tuple of these.
        value
            What is written, of the selection's shape or one that NumPy broadcasts to it.
        fields, prototype
            As zarr's; with any of them the call is zarr's.

        Raises
        ------
        CorruptChunkError
            When stored bytes of which something is kept do not decode; it names the chunk's key.

        Examples
        --------
        >>> array = DirectArray(zarr.zeros(store={}, shape=(4,), chunks=(2,)))
        >>> array.set_basic_selection(slice(1, 3), np.array([5.0, 6.0]))
        >>> array[:].tolist()
        [0.0, 5.0, 6.0, 0.0]
        """
        is_plain = prototype is None and _is_none(fields)
        if not is_plain or not self._write(selection, value):
            super().set_basic_selection(selection, value, fields=fields, prototype=prototype)

    def _read(self, plain: PlainSelection | None) -> NDArray[Any] | None:
        """Read here; None when zarr has to."""
        grid = None if plain is None or not self.config.read_missing_chunks else self._reached_here()
        if plain is None or grid is None or grid.ready.box_reader is None:
            return None
        out = np.empty(plain.shape, self.dtype, grid.ready.spec.order)
        for number, part in enumerate(parts_of_region(grid, plain, out=copyable(out))):
            if part is None:
                return None
            if number == 0:
                count("read", "sync")
            part.run()
        return out

    def _write(self, selection: Any, value: Any) -> bool:
        """Write here; False when zarr has to, because there is something to convert or to broadcast, for instance."""
        if type(value) is not np.ndarray or value.dtype != self.dtype or value.dtype.hasobject:
            return False
        plain = plain_selection(selection, self.shape, orthogonal=False)
        grid = self._reached_here() if plain is not None and plain.shape == value.shape else None
        return plain is not None and grid is not None and write_region(grid, plain, value=value)

    def _reached_here(self) -> GridArray | None:
        """The array's chunks; None when it is not for this thread to reach them, or not in main memory."""
        if asyncio._get_running_loop() is not None:
            return None
        array, kept = self.async_array, self._kept
        # Names of classes: to find the classes takes zarr as long as half of the rest that is done in Python here. Of
        # classes that are registered again under the same name, those of earlier calls count.
        buffers = setting("buffer"), setting("ndbuffer")
        if kept is None or not kept.is_for(array, buffers):
            is_here = default_buffer_prototype().nd_buffer is cpu.NDBuffer
            kept = _Kept(array.metadata, array.config, buffers, _grid_array(array) if is_here else None)
            self._kept = kept
        return kept.grid


def _is_none(fields: object) -> bool:
    """Whether no fields are named; zarr itself says so by an empty list."""
    return fields is None or (isinstance(fields, list) and not fields)


def _grid_array(array: AsyncArray[Any]) -> GridArray | None:
    chunks = chunks_of(array)
    if chunks.keys is None:
        return None
    ready = pipeline_of(array, chunks.spec).ready_for(chunks.spec)
    return GridArray(ready, array.store_path, chunks.keys, array.metadata.shape)


def _under_our_pipeline(array: AsyncArray[Any]) -> AsyncArray[Any]:
    if isinstance(array.codec_pipeline, CodecPipeline):
        return array
    pipeline = pipeline_of(array, chunks_of(array).spec)
    ours = copy(array)
    # zarr's arrays are frozen, and make their pipeline themselves, of what is configured.
    object.__setattr__(ours, "codec_pipeline", pipeline)
    return ours
