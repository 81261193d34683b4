"""What the native module offers. Columns are contiguous int64 arrays; arrays are views of opaque elements."""

from collections.abc import Buffer, Sequence
from os import PathLike
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "BoxReader",
    "Boxes",
    "Encoded",
    "Files",
    "Program",
    "Shards",
    "descriptors",
    "encode_files",
    "encode_shard_files",
    "index_cache",
    "set_coarse_times",
    "threads",
    "version",
]

type _Column = NDArray[np.int64]
type _Runs = tuple[_Column, _Column] | None
type _Rows = tuple[Sequence[Buffer], _Column, _Column, _Column]
type _Entries = tuple[tuple[_Column, ...], Sequence[int], Sequence[_Runs], Sequence[_Runs]]
type _Ranges = tuple[_Column, _Column, _Column]
type _Stage = tuple[str, str, dict[str, int], str, int | None, int]

def version() -> str:
    """Return the version of the native code."""

def threads() -> int:
    """Return how many threads a batch is shared among when nothing limits it."""

def index_cache() -> tuple[int, int]:
    """Return how often the index of a shard was found among those that are kept, and how many bytes these take."""

def set_coarse_times(seconds: int) -> int:
    """Say how many seconds times of files may be apart and look the same, and return what held before; for tests."""

def descriptors() -> int:
    """Return how many files this process may have open at a time."""

@final
class Encoded:
    """Encoded bytes of exactly their size, read-only."""

    def __buffer__(self, flags: int, /) -> memoryview: ...
    def __len__(self) -> int: ...
    def __reduce__(self) -> tuple[Any, ...]: ...

@final
class Program:
    """A run of codecs, compiled.

    ``shape`` is that of decoded chunks; axis ``i`` of stored chunks is axis ``order[i]``; ``fill`` is one element
    as it is stored, and ``mask`` marks its bits that count. A stage is a codec between bytes: its name, its kernel, the
    kernel's options and text, and how many bytes decoding must make (None: not fixed), and may make at most.
    """

    def __new__(
        cls, shape: Sequence[int], order: Sequence[int], fill: bytes, mask: bytes | None, steps: Sequence[_Stage]
    ) -> Program: ...
    def decode_into(
        self,
        buffers: _Rows,
        entries: _Entries,
        out: NDArray[np.void],
        unit: int,
        fill: bytes,
        max_workers: int | None,
    ) -> None:
        """Decode chunks and put the entries' elements into an array."""

    def decode_each(
        self, buffers: _Rows, outs: Sequence[NDArray[np.void] | None], unit: int, max_workers: int | None
    ) -> None:
        """Decode whole chunks, each into an array of its own."""

    def decode_bytes(self, buffers: _Rows, max_workers: int | None) -> list[Buffer | None]:
        """Decode the bytes of each chunk."""

    def encode_from(
        self,
        source: NDArray[np.void],
        entries: _Entries,
        base: Sequence[NDArray[np.void] | None],
        units: tuple[int, int],
        keep_empty: bool,
        max_workers: int | None,
    ) -> list[Buffer | None]:
        """Gather chunks from an array and encode them."""

    def rewrite_from(
        self,
        source: NDArray[np.void],
        entries: _Entries,
        buffers: _Rows,
        unit: int,
        keep_empty: bool,
        max_workers: int | None,
    ) -> list[Buffer | None]:
        """Gather chunks from an array and encode them, on top of what they held before."""

    def encode_each(
        self, arrays: Sequence[NDArray[np.void] | None], unit: int, max_workers: int | None
    ) -> list[Buffer | None]:
        """Encode whole chunks, each from an array of its own."""

    def encode_bytes(self, buffers: _Rows, max_workers: int | None) -> list[Buffer | None]:
        """Encode the bytes of each row."""

    def decode_items(
        self, buffers: _Rows, count: int, codec: str, form: tuple[bool, bool], max_workers: int | None
    ) -> list[list[Any] | tuple[int, Buffer] | None]:
        """Decode chunks of texts or bytes of variable length, as ``form`` says, to lists.

        As it also says, texts are laid out evenly where they can be: how many bytes each has, and all of them.
        """

    def encode_items(
        self, chunks: Sequence[list[Any] | None], is_text: bool, max_workers: int | None
    ) -> list[Buffer | None]:
        """Encode chunks of texts or bytes of variable length."""

@final
class Shards:
    """A sharding codec: the programs of inner chunks and of the index, where they lie, and what an index may say.

    ``unit`` bytes of the index's numbers are reversed together. ``grid`` has the inner chunks along each axis,
    ``order`` their flat positions in the order in which they are written, none for reading alone. ``inner_size`` are
    the bytes of an encoded inner chunk, exactly and at most, None where that is not known.
    """

    def __new__(
        cls,
        inner: Program,
        index: Program,
        unit: int,
        index_size: int,
        at_start: bool,
        grid: Sequence[int],
        order: _Column,
        inner_size: tuple[int | None, int | None],
    ) -> Shards: ...
    def decode_into(
        self,
        buffers: _Rows,
        entries: _Entries,
        out: NDArray[np.void],
        unit: int,
        fill: bytes,
        max_workers: int | None,
    ) -> None:
        """Decode parts of shards, boxes only, and put the entries' elements into an array."""

    def encode_from(
        self,
        source: NDArray[np.void],
        entries: _Entries,
        buffers: _Rows,
        unit: int,
        keep_empty: bool,
        max_workers: int | None,
    ) -> list[Buffer | None]:
        """Gather inner chunks from an array, boxes only, encode them, and put them into shards."""

@final
class BoxReader:
    """What reads boxes of chunks of one form, sharded or not.

    ``program`` is that of chunks or of inner chunks, ``shape`` that of chunks; axis ``i`` of the array that the
    sharding codec is given is axis ``order[i]`` of the chunk.
    """

    def __new__(
        cls, program: Program, shards: Shards | None, shape: Sequence[int], order: Sequence[int]
    ) -> BoxReader: ...
    def boxes(
        self,
        rows: list[tuple[Any, ...]],
        store: Any,
        dropped: Sequence[int],
        out: tuple[NDArray[Any], int, int, bytes],
    ) -> Boxes | None:
        """Read the selections of a batch: where a chunk is, what else is said of it, what is taken, where that goes.

        None when they are of other forms, or not within the chunks and the array, when not the same is said of all
        chunks, or when they are not all in the store. The array has so many axes; those of chunks that it has not are
        dropped. Its elements have units of so many bytes, and it is filled with an element.
        """
    def region(
        self,
        selection: tuple[Any, ...],
        key_format: tuple[str, str],
        max_chunks: int,
        out: tuple[NDArray[Any], int, int, bytes],
    ) -> Boxes | None:
        """Read one selection of an array on a regular grid: an integer, a slice or ascending indices along each axis.

        Keys are what comes before and between the numbers of a chunk. None for other forms, and for more chunks than
        so many.
        """

@final
class Boxes:
    """Boxes of chunks, and the places in one array where they go."""

    @property
    def keys(self) -> list[str]:
        """Where the chunks are."""

    @property
    def chunks(self) -> int:
        """Chunks, or inner chunks, that have to be decoded."""

    @property
    def nbytes(self) -> int:
        """Their decoded bytes."""

    def read_files(self, root: str | PathLike[str], max_workers: int | None, index_cache: int = 0) -> list[bool]:
        """Read and decode files, one for each selection, and tell which were there; keep indexes of so many bytes."""

    def read_packed(
        self,
        descriptor: int,
        path: str | PathLike[str],
        rows: tuple[Sequence[int], Sequence[int]],
        max_workers: int | None,
        index_cache: int = 0,
    ) -> None:
        """Read and decode chunks in one file, whose descriptor is taken over: first bytes, or -1, and lengths."""

    def decode(self, buffers: Sequence[Buffer | None], max_workers: int | None) -> None:
        """Decode chunks that are in memory, one for each selection."""

@final
class Files:
    """Files below a root, named by keys that do not lead out of it. Ranges are columns: file, offset, length.

    ``index_cache`` is how many bytes of indexes of shards are kept between calls.
    """

    def __new__(cls, root: str | PathLike[str], keys: Sequence[str], index_cache: int = 0) -> Files: ...
    @staticmethod
    def packed(descriptor: int, path: str | PathLike[str], index_cache: int = 0) -> Files:
        """Take over the descriptor of one file that has chunks in it, and is open."""

    def __len__(self) -> int: ...
    def open(self) -> list[int]:
        """Open all files, and return their sizes, -1 for those that are missing."""

    def missing(self) -> list[bool]:
        """Tell which files were found to be missing."""

    def close(self) -> None:
        """Close what is open."""

    def load(self, source: _Column, offset: _Column, length: _Column) -> list[Buffer | None]:
        """Read ranges; None for those of missing files."""

    def decode_into(
        self,
        program: Program,
        ranges: _Ranges,
        entries: _Entries,
        out: NDArray[np.void],
        unit: int,
        fill: bytes,
        max_workers: int | None,
    ) -> None:
        """Read and decode chunks, and put the entries' elements into an array."""

    def decode_shards_into(
        self,
        shards: Shards,
        ranges: _Ranges,
        entries: _Entries,
        out: NDArray[np.void],
        unit: int,
        fill: bytes,
        max_workers: int | None,
    ) -> None:
        """Read and decode parts of shards, boxes only, and put the entries' elements into an array."""

    def write(self, contents: Sequence[Buffer | None], max_workers: int | None) -> None:
        """Replace files, each entirely or not at all; None removes one."""

def encode_files(
    files: Files,
    program: Program,
    source: NDArray[np.void],
    entries: _Entries,
    kept: NDArray[np.int64],
    unit: int,
    keep_empty: bool,
    max_workers: int | None,
) -> None:
    """Gather chunks from an array, encode them, on top of what files hold, and replace the files."""

def encode_shard_files(
    files: Files,
    shards: Shards,
    source: NDArray[np.void],
    entries: _Entries,
    kept: NDArray[np.int64],
    unit: int,
    keep_empty: bool,
    max_workers: int | None,
) -> None:
    """Gather inner chunks from an array, encode them, and put them into shards in files."""
