"""The numcodecs backend of chunkwright: portable, and bounded by what a chain says about sizes.

Importing it starts no thread and changes nothing outside; the pool is made when a batch first needs it.
"""

from __future__ import annotations

from chunkwright_numcodecs.backend import NumcodecsBackend

__all__ = ("NumcodecsBackend",)
