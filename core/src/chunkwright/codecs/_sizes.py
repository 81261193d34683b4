"""Arithmetic with sizes of which not everything is known."""

from __future__ import annotations

from chunkwright.spec import Size, UnboundedSize

__all__ = ("plus",)


def plus(size: Size, nbytes: int) -> Size:
    """Add a fixed number of bytes.

    Parameters
    ----------
    size
        What is known.
    nbytes
        What is added.

    Returns
    -------
    Size
        Of the same kind.

    Examples
    --------
    >>> from chunkwright.spec import BoundedSize
    >>> plus(BoundedSize(8), 4)
    BoundedSize(nbytes=12)
    """
    return size if isinstance(size, UnboundedSize) else type(size)(size.nbytes + nbytes)
