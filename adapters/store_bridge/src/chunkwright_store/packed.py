"""Shards that are members of a zip archive, read where they lie in the file.

A zip store looks a member up, opens it and seeks in it for every range, one at a time. What is stored without
compression lies in the file in one piece, and is read from there.

Only archives that are open for reading qualify: nobody changes them. Members are checked as :mod:`zipfile` checks them
when it opens one; whatever is not as it should be is left to the store, which says what is wrong. The store reads a
member to its end, and looks at its checksum, each time when it is asked for the index of a shard; here that is done
once.
"""

from __future__ import annotations

import os
import struct
import weakref
import zipfile
import zlib
from collections.abc import Buffer, Sequence
from typing import Any, ClassVar

import attrs

from chunkwright_store._identity import is_exactly
from chunkwright_store.files import FileSource, read_at, span
from chunkwright_store.sources import ByteRange

__all__ = ("Packed", "PackedSource", "packed_in")

_HEADER = struct.Struct("<4s22xHH")
_SIGNATURE = b"PK\x03\x04"
_UTF8 = 0x800
# Encrypted, patched, strongly encrypted.
_UNREADABLE = 0x1 | 0x20 | 0x40

_PIECE = 1 << 20

type _Place = tuple[int, int]

_MISSING: _Place = (-1, 0)


class _Members:
    """What is known of the members of an archive that is open."""

    def __init__(self) -> None:
        self.places: dict[str, _Place] = {}
        self.sound: set[str] = set()


_KNOWN: weakref.WeakKeyDictionary[zipfile.ZipFile, _Members] = weakref.WeakKeyDictionary()


@attrs.frozen(eq=False)
class Packed:
    """Where chunks are in one file.

    Parameters
    ----------
    store
        The zip store.
    archive
        What it has open.
    keys
        The members.
    offset
        First byte of each chunk in the file; negative when it is missing.
    length
        Bytes of each chunk.
    """

    store: Any
    archive: zipfile.ZipFile
    keys: Sequence[str]
    offset: Sequence[int]
    length: Sequence[int]

    @property
    def path(self) -> str:
        """The name of the file, for errors."""
        return os.fspath(self.archive.filename or "")

    @property
    def is_sound(self) -> bool:
        """Whether the checksums of all members were looked at."""
        return not self._unchecked()

    def descriptor(self) -> int:
        """Make a descriptor of the file, which whoever asked for it closes.

        Returns
        -------
        int
            The descriptor.

        Raises
        ------
        BadZipFile
            When a member has another checksum than the archive says.
        ValueError
            When the archive was closed meanwhile.
        """
        with self.store._lock:
            if self.archive.fp is None:
                raise ValueError(f"the zip archive {self.path!r} was closed")
            descriptor = os.dup(self.archive.fp.fileno())
        try:
            for key, offset, length in self._unchecked():
                _check(self.archive.NameToInfo[key], descriptor, offset, length)
                _KNOWN[self.archive].sound.add(key)
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor

    def _unchecked(self) -> list[tuple[str, int, int]]:
        sound = _KNOWN[self.archive].sound
        rows = zip(self.keys, self.offset, self.length, strict=True)
        return [(key, offset, length) for key, offset, length in rows if key not in sound and offset >= 0]

    def sources(self) -> list[PackedSource]:
        """Make the sources of the chunks.

        Returns
        -------
        list of PackedSource
            One per chunk, with one descriptor of the file together.
        """
        file = _File(self.descriptor())
        return [PackedSource(file, *place) for place in zip(self.offset, self.length, strict=True)]


class _File:
    """A descriptor, closed when it is forgotten."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor

    def __del__(self) -> None:
        os.close(self.descriptor)


@attrs.frozen(eq=False)
class PackedSource:
    """One chunk that lies in a file with others.

    Parameters
    ----------
    file
        The file.
    offset
        First byte of the chunk; negative when it is missing.
    length
        Bytes of the chunk.
    """

    is_scratch: ClassVar[bool] = True
    """Nobody else needs the bytes that were read."""

    max_gap: ClassVar[int] = FileSource.max_gap

    file: _File
    offset: int
    length: int

    def get_ranges(self, ranges: Sequence[ByteRange], /) -> list[Buffer | None]:
        """Read ranges of the chunk.

        Parameters
        ----------
        ranges
            What to read.

        Returns
        -------
        list of Buffer or None
            One per range; all of them None when there is no such chunk.
        """
        return [self._read(wanted) for wanted in ranges]

    def size(self) -> int | None:
        """Say how many bytes the chunk has.

        Returns
        -------
        int or None
            None when it is missing.
        """
        return None if self.offset < 0 else self.length

    def close(self) -> None:
        """Do nothing: the file is closed when the last chunk in it is forgotten."""

    def _read(self, wanted: ByteRange) -> Buffer | None:
        if self.offset < 0:
            return None
        start, stop = span(wanted, self.length)
        return read_at(self.file.descriptor, stop - start, self.offset + start)


def packed_in(getters: Sequence[Any]) -> Packed | None:
    """Find chunks in the file of a zip store.

    Parameters
    ----------
    getters
        zarr's byte getters of one call.

    Returns
    -------
    Packed or None
        None when they are not all of one store of that kind, or are not stored as they are.

    Examples
    --------
    >>> import tempfile
    >>> from zarr.core.buffer import cpu
    >>> from zarr.storage import StorePath, ZipStore
    >>> path = tempfile.mkdtemp() + "/a.zip"
    >>> with zipfile.ZipFile(path, "w") as archive:
    ...     archive.writestr("c/0", b"abc")
    >>> store = ZipStore(path)
    >>> packed = packed_in([StorePath(store, "c/0"), StorePath(store, "c/1")])
    >>> packed.offset, packed.length
    ([33, -1], [3, 0])
    """
    store: Any = getattr(getters[0], "store", None)
    if not _is_plain(store) or any(getattr(getter, "store", None) is not store for getter in getters):
        return None
    with store._lock:
        archive = store._zipfile()
        if archive.mode != "r" or archive.fp is None or type(archive) is not zipfile.ZipFile:
            return None
        known = _KNOWN.setdefault(archive, _Members()).places
        keys = [getter.path for getter in getters]
        places = [known.get(key) or _find(archive, key, known) for key in keys]
    found = [place for place in places if place is not None]
    if len(found) != len(places):
        return None
    return Packed(store, archive, keys, [offset for offset, _ in found], [length for _, length in found])


def _is_plain(store: Any) -> bool:
    # Where positions in files are not given with each read, the store's own reads would be disturbed.
    if not is_exactly(store, "zarr.storage", "ZipStore") or store.path is None or not hasattr(os, "pread"):
        return False
    return not vars(store).keys() & {"get", "_get", "get_ranges", "_zipfile"}


def _find(archive: zipfile.ZipFile, key: str, known: dict[str, _Place]) -> _Place | None:
    """Find a member and remember its place; None when only the store can read it, or say what is wrong with it."""
    member = archive.NameToInfo.get(key)
    place = _MISSING if member is None else _place(archive, member)
    if place is not None:
        known[key] = place
    return place


def _place(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> _Place | None:
    is_stored = member.compress_type == zipfile.ZIP_STORED and member.file_size == member.compress_size
    if not is_stored or member.flag_bits & _UNREADABLE:
        return None
    assert archive.fp is not None
    name = member.orig_filename.encode("utf-8" if member.flag_bits & _UTF8 else "cp437")
    header = os.pread(archive.fp.fileno(), _HEADER.size + len(name), member.header_offset)
    if len(header) != _HEADER.size + len(name):
        return None
    signature, name_length, extra_length = _HEADER.unpack_from(header)
    if signature != _SIGNATURE or name_length != len(name) or header[_HEADER.size :] != name:
        return None
    start = member.header_offset + _HEADER.size + name_length + extra_length
    end = getattr(member, "_end_offset", None)  # Python 3.13
    return None if end is not None and start + member.file_size > end else (start, member.file_size)


def _check(member: zipfile.ZipInfo, descriptor: int, offset: int, length: int) -> None:
    """Look at the checksum of a member."""
    found = 0
    for start in range(offset, offset + length, _PIECE):
        found = zlib.crc32(read_at(descriptor, min(_PIECE, offset + length - start), start), found)
    if found != member.CRC:
        raise zipfile.BadZipFile(f"Bad CRC-32 for file {member.filename!r}")
