"""The Rust backend of chunkwright.

The compiled half is :mod:`chunkwright_rust._native`; what it offers is declared in ``_native.pyi``.
So far the distribution registers no backend, so ``auto`` never chooses it.
"""

from __future__ import annotations

from chunkwright_rust._native import version

__all__ = ("version",)
