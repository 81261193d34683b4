"""The Rust backend of chunkwright.

The compiled half is ``chunkwright_rust._native``; what it offers is declared in ``_native.pyi``.
"""

from __future__ import annotations

from chunkwright_rust._native import version
from chunkwright_rust.backend import RustBackend

__all__ = ("RustBackend", "version")
