"""Put a new file in the place of an old one, at once.

A rename does that on every system. But file systems take a rename over a file for the end of a transaction: ext4 sends
the new bytes to the device first, which takes longer than to write them to the page cache. So where the system can
exchange the names of two files, this is done, and the old file is then removed. Readers see no difference.
"""

from __future__ import annotations

import ctypes
import errno
import os
import sys
from collections.abc import Callable

__all__ = ("put_in_place",)

HERE = -100
"""Paths are relative to the working directory (``AT_FDCWD``)."""

EXCHANGE = 2
"""Exchange two names (``RENAME_EXCHANGE``)."""


def _find_rename() -> Callable[[int, bytes, int, bytes, int], int] | None:
    if not sys.platform.startswith("linux"):
        return None
    try:
        found = ctypes.CDLL(None).renameat2
    except (OSError, AttributeError, TypeError):
        return None
    found.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint)
    return found


_RENAME = _find_rename()


def put_in_place(temporary: str, path: str) -> None:
    """Let a file take the name of another, which may exist.

    Parameters
    ----------
    temporary
        A file in the same folder.
    path
        Its name from now on.

    Raises
    ------
    OSError
        When the file that is there cannot be replaced; it stays, and ``temporary`` too.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> old = pathlib.Path(tempfile.mkdtemp(), "0")
    >>> new = old.with_name("new")
    >>> old.write_text("a"), new.write_text("b")
    (1, 1)
    >>> put_in_place(str(new), str(old))
    >>> old.read_text(), new.exists()
    ('b', False)
    """
    if not _exchange(temporary, path):
        # There is no old file, or the file system cannot exchange names.
        os.replace(temporary, path)
        return
    try:
        os.unlink(temporary)
    except OSError as error:
        # What was there cannot be removed, for instance because it is a directory: it stays.
        _exchange(temporary, path)
        # Some systems say "not permitted" for a directory.
        if not os.path.isdir(path):
            raise
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path) from error


def _exchange(one: str, other: str) -> bool:
    return _RENAME is not None and not _RENAME(HERE, os.fsencode(one), HERE, os.fsencode(other), EXCHANGE)
