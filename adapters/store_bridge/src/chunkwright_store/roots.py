"""The folders behind stores of plain files.

Some of zarr's stores reach files of this machine through another library, which takes longer than to read them. Such
libraries are known by their classes and never imported: a store of theirs can only be there when somebody else has done
so. What is not exactly as it comes from them decides for itself how it is read.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from chunkwright_store._identity import is_exactly

__all__ = ("local_root", "path_below", "plain_root", "root_of")

# What fsspec has to be told is missing, as zarr tells it unless it is told otherwise.
_MISSING = (FileNotFoundError, IsADirectoryError, NotADirectoryError)

_READERS = {"cat_file", "_cat_file", "open", "_open"}


def local_root(getters: Iterable[Any], *, writable: bool = False) -> str | None:
    """Return the folder that the keys of a call are relative to, after the store's own checks.

    Parameters
    ----------
    getters
        zarr's byte getters or setters of one call, of kind ``local``.
    writable
        Whether they are written to.

    Returns
    -------
    str or None
        None when they are not all of one store.

    Raises
    ------
    ValueError
        When the store is read-only and must not be.

    Examples
    --------
    >>> import tempfile
    >>> from zarr.storage import LocalStore, StorePath
    >>> folder = tempfile.mkdtemp()
    >>> local_root([StorePath(LocalStore(folder), "c/0")]) == folder
    True
    """
    store: Any = None
    for getter in getters:
        if store is not None and getter.store is not store:
            return None
        store = getter.store
    return None if store is None else root_of(store, writable=writable)


def path_below(root: str | os.PathLike[str], key: str) -> str:
    """Return the path of a chunk, whatever metadata its key was made from.

    Parameters
    ----------
    root
        The folder that the key is relative to.
    key
        Where the chunk is.

    Returns
    -------
    str
        The path.

    Raises
    ------
    ValueError
        When the key leads out of the root.

    Examples
    --------
    >>> path_below("data", "c/0")
    'data/c/0'
    """
    if ".." in key.split("/"):
        raise ValueError(f"key {key!r} leads out of the store")
    return os.path.join(root, key)


def root_of(store: Any, *, writable: bool = False) -> str:
    """Return the folder that the keys of a store are relative to, after the store's own checks.

    Parameters
    ----------
    store
        A store of kind ``local``.
    writable
        Whether it is written to.

    Returns
    -------
    str
        The folder.

    Raises
    ------
    ValueError
        When the store is read-only and must not be.

    Examples
    --------
    >>> import tempfile
    >>> from zarr.storage import LocalStore
    >>> folder = tempfile.mkdtemp()
    >>> root_of(LocalStore(folder)) == folder
    True
    """
    root = plain_root(store)
    if root is not None:
        return root
    _open(store)
    if writable:
        store._check_writable()
    return str(store.root)


def plain_root(store: Any) -> str | None:
    """Return the folder that the keys of a store are relative to.

    Parameters
    ----------
    store
        Any store.

    Returns
    -------
    str or None
        None when its objects are no files, or not known to be.

    Examples
    --------
    >>> import tempfile
    >>> import obstore.store
    >>> from zarr.storage import MemoryStore, ObjectStore
    >>> folder = os.path.realpath(tempfile.mkdtemp())
    >>> plain_root(ObjectStore(obstore.store.LocalStore(folder))) == folder
    True
    >>> plain_root(MemoryStore()) is None
    True
    """
    if is_exactly(store, "zarr.storage", "ObjectStore"):
        return _of_obstore(store.store)
    if is_exactly(store, "zarr.storage", "FsspecStore") and tuple(store.allowed_exceptions) == _MISSING:
        return _of_fsspec(store.fs, store.path)
    return None


def _of_obstore(files: Any) -> str | None:
    if not is_exactly(files, "obstore.store", "LocalStore") or files.prefix is None:
        return None
    # A relative one was meant when the store was made, whatever the current directory is by now.
    return str(files.prefix) if os.path.isabs(files.prefix) else None


def _of_fsspec(files: Any, path: str) -> str | None:
    if not is_exactly(files, "fsspec.implementations.asyn_wrapper", "AsyncFileSystemWrapper"):
        return None
    local = files.sync_fs
    if not is_exactly(local, "fsspec.implementations.local", "LocalFileSystem") or _READERS & vars(local).keys():
        return None
    # The wrapper makes its methods for each object, which anybody may have replaced.
    if getattr(files._cat_file, "__wrapped__", None) != local.cat_file:
        return None
    # Below nothing, keys are paths of their own, relative ones or with a protocol.
    return str(local._strip_protocol(path)) if path.rstrip("/") else None


def _open(store: Any) -> None:
    """Open a local store of zarr's by its own rules, which make or require the root.

    Parameters
    ----------
    store
        The store.
    """
    if not getattr(store, "_is_open", False):
        # The root itself is no chunk.
        store.get_sync("")
