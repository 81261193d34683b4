"""An array of zarr's that is read and written on the calling thread.

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

import numpy as np
import zarr
from numpy.typing import NDArray
from zarr.core.array import AsyncArray
from zarr.core.buffer import cpu, default_buffer_prototype

from chunkwright_zarr.arrays import AnyArray, async_array_of
from chunkwright_zarr.counters import count
from chunkwright_zarr.known import chunks_of, pipeline_of
from chunkwright_zarr.pipeline import CodecPipeline
from chunkwright_zarr.ready import Ready
from chunkwright_zarr.region_writes import write_region
from chunkwright_zarr.regions import Plain, parts_of_region, plain_selection
from chunkwright_zarr.specs import copyable

__all__ = ("DirectArray",)


class DirectArray(zarr.Array[Any]):
    """A zarr array whose local files and memory are read and written on the calling thread, without zarr's event loop.

    Everything that :class:`zarr.Array` does, with the same results. Reads by integers, slices and orthogonal lists take
    the short way where the store is a local one, a memory store or a zip file of shards, and the codecs are run by a
    backend that reads regions (Rust). So do writes of an array, of this array's dtype, to integers and slices of local
    and memory stores. All other calls go through zarr and this package's pipeline.

    Parameters
    ----------
    array
        A zarr array, opened with any codec pipeline. If that is not this package's, the new array has metadata of its
        own: resizing one of them is not seen in the other.

    Raises
    ------
    TypeError
        When what is given is no zarr array.

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

    def __init__(self, array: AnyArray) -> None:
        super().__init__(_under_our_pipeline(async_array_of(array)))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.async_array,)

    def __getitem__(self, selection: Any) -> Any:
        plain = plain_selection(selection, self.shape, orthogonal=False)
        # Whether one element is a scalar or an array without axes is for zarr to say: it asks one of the methods below.
        found = self._read(plain if plain is not None and plain.shape else None)
        return super().__getitem__(selection) if found is None else found

    def get_basic_selection(self, selection: Any = Ellipsis, **options: Any) -> Any:
        """Read integers and slices; see :meth:`zarr.Array.get_basic_selection`.

        Parameters
        ----------
        selection
            Integers, slices, an ellipsis; or a tuple of these.
        **options
            Those of zarr's method; with any of them the call is zarr's.

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
        plain = None if _given(options) else plain_selection(selection, self.shape, orthogonal=False)
        found = self._read(plain)
        if found is None:
            return super().get_basic_selection(selection, **options)
        return found if found.ndim else found[()]

    def get_orthogonal_selection(self, selection: Any, **options: Any) -> Any:
        """Read integers, slices and arrays, each along its own axis; see :meth:`zarr.Array.get_orthogonal_selection`.

        Parameters
        ----------
        selection
            Integers, slices, one-dimensional integer or Boolean arrays; or a tuple of these.
        **options
            Those of zarr's method; with any of them the call is zarr's.

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
        plain = None if _given(options) else plain_selection(selection, self.shape, orthogonal=True)
        found = self._read(plain)
        return super().get_orthogonal_selection(selection, **options) if found is None else found

    def __setitem__(self, selection: Any, value: Any) -> None:
        if not self._write(self._to_be_written(selection, value), value):
            super().__setitem__(selection, value)

    def set_basic_selection(self, selection: Any, value: Any, **options: Any) -> None:
        """Write to integers and slices; see :meth:`zarr.Array.set_basic_selection`.

        Parameters
        ----------
        selection
            Integers, slices, an ellipsis; or a tuple of these.
        value
            What is written, of the selection's shape or one that NumPy broadcasts to it.
        **options
            Those of zarr's method; with any of them the call is zarr's.

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
        plain = None if _given(options) else self._to_be_written(selection, value)
        if not self._write(plain, value):
            super().set_basic_selection(selection, value, **options)

    def _read(self, plain: Plain | None) -> NDArray[Any] | None:
        """Read here; None when zarr has to."""
        opened = _opened(self.async_array) if plain is not None else None
        if plain is None or opened is None or not self.config.read_missing_chunks:
            return None
        ready, names = opened
        if ready.box_reader is None:
            return None
        out = np.empty(plain.shape, self.dtype, ready.spec.order)
        for part in parts_of_region(ready, self.store_path, plain, names, copyable(out)):
            if part is None:
                return None
            part.run()
        count("read", "sync")
        return out

    def _to_be_written(self, selection: Any, value: Any) -> Plain | None:
        """What is written to; None when zarr has something to convert or to broadcast."""
        if type(value) is not np.ndarray or value.dtype != self.dtype or value.dtype.hasobject:
            return None
        plain = plain_selection(selection, self.shape, orthogonal=False)
        return plain if plain is not None and plain.shape == value.shape else None

    def _write(self, plain: Plain | None, value: Any) -> bool:
        """Write here; False when zarr has to."""
        opened = _opened(self.async_array) if plain is not None else None
        if plain is None or opened is None:
            return False
        ready, names = opened
        return write_region(ready, self.store_path, self.shape, plain, names, value)


def _opened(array: AsyncArray[Any]) -> tuple[Ready, tuple[str, str]] | None:
    """The chain of an array's chunks and their names; None when they are not for this thread."""
    is_ours = asyncio._get_running_loop() is None and default_buffer_prototype().nd_buffer is cpu.NDBuffer
    chunks = chunks_of(array) if is_ours else None
    if chunks is None or chunks.names is None:
        return None
    pipeline: CodecPipeline = array.codec_pipeline  # type: ignore[assignment]  # seen to when the array was made
    return pipeline.ready_for(chunks.spec), chunks.names


def _under_our_pipeline(array: AsyncArray[Any]) -> AsyncArray[Any]:
    pipeline = pipeline_of(array, chunks_of(array).spec)
    if array.codec_pipeline is pipeline:
        return array
    ours = copy(array)
    object.__setattr__(ours, "codec_pipeline", pipeline)
    return ours


def _given(options: dict[str, Any]) -> bool:
    # zarr's own calls name no fields by an empty list.
    return any(option is not None and option != [] for option in options.values())
