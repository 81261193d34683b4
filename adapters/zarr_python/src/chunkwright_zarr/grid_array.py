"""An array whose chunks lie on a regular grid, as much of it as a selection needs to be cut along them."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
from zarr.core.chunk_key_encodings import DefaultChunkKeyEncoding, V2ChunkKeyEncoding
from zarr.core.metadata import ArrayMetadata, ArrayV2Metadata
from zarr.storage import StorePath

from chunkwright_zarr.ready import Ready

__all__ = ("GridArray", "KeyFormat", "key_format_of")


@attrs.frozen
class KeyFormat:
    """How the keys of an array's chunks are made.

    Parameters
    ----------
    prefix
        What they begin with.
    separator
        What stands between the numbers of a chunk along each axis.

    Examples
    --------
    >>> KeyFormat("a/c/", "/").key([3, 10])
    'a/c/3/10'
    """

    prefix: str
    separator: str

    def key(self, cell: Sequence[int]) -> str:
        """Return the key of a chunk.

        Parameters
        ----------
        cell
            Its place in the grid.

        Returns
        -------
        str
            The key.
        """
        return self.prefix + self.separator.join(map(str, cell))


def key_format_of(metadata: ArrayMetadata, path: str) -> KeyFormat | None:
    """Return how the keys of an array's chunks are made.

    Parameters
    ----------
    metadata
        Of an array with axes.
    path
        Where it is in its store.

    Returns
    -------
    KeyFormat or None
        None for encodings that are not zarr's own: only they know how they make keys.

    Examples
    --------
    >>> import zarr
    >>> key_format_of(zarr.create_array({}, shape=(9,), chunks=(4,), dtype="i2").metadata, "a")
    KeyFormat(prefix='a/c/', separator='/')
    """
    folder = f"{path}/" if path else ""
    if isinstance(metadata, ArrayV2Metadata):
        return KeyFormat(folder, metadata.dimension_separator)
    encoding = metadata.chunk_key_encoding
    if type(encoding) is DefaultChunkKeyEncoding:
        return KeyFormat(f"{folder}c{encoding.separator}", encoding.separator)
    return KeyFormat(folder, encoding.separator) if type(encoding) is V2ChunkKeyEncoding else None


@attrs.frozen(eq=False)
class GridArray:
    """An array with axes whose chunks lie on a regular grid.

    Parameters
    ----------
    ready
        The chain of its chunks.
    at
        Where it is.
    keys
        How keys are made.
    extents
        Its shape.
    """

    ready: Ready
    at: StorePath
    keys: KeyFormat
    extents: tuple[int, ...]
