"""Backends that treat damaged gzip chunks in ways that a fuzzer has to notice, a few of them at least."""

from __future__ import annotations

import os
import time
import zlib
from collections.abc import Callable
from typing import Any

import attrs
import numpy as np

from chunkwright import CodecError, ReferenceBackend, Step
from chunkwright.kernels import Kernel

__all__ = ("Aborting", "Forgetful", "Greedy", "Looping", "Misnamed", "Sleeping", "Trusting")


def _unlucky(item: Any) -> bool:
    """Whether it is one of a few chunks."""
    return zlib.crc32(item) % 16 == 3


class _Bad(ReferenceBackend):
    def kernel(self, step: Step) -> Kernel:
        kernel = super().kernel(step)
        return attrs.evolve(kernel, decode=self._decoder(kernel.decode)) if step.codec.name == "gzip" else kernel

    def _decoder(self, decode: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def decoded(item: Any) -> Any:
            try:
                return decode(item)
            except CodecError:
                if _unlucky(item):
                    self.go_wrong(item)
                raise

        return decoded

    def go_wrong(self, item: Any) -> None:
        """Do something that no backend may do."""
        raise NotImplementedError


class Aborting(_Bad):
    """Ends the process."""

    def go_wrong(self, item: Any) -> None:
        os.abort()


class Looping(_Bad):
    """Never comes back, and is busy."""

    def go_wrong(self, item: Any) -> None:
        while True:
            pass


class Sleeping(_Bad):
    """Never comes back, and does nothing."""

    def go_wrong(self, item: Any) -> None:
        time.sleep(1_000_000)


class Greedy(_Bad):
    """Takes 32 MiB."""

    def go_wrong(self, item: Any) -> None:
        np.ones(32 << 20, np.uint8)


class Trusting(_Bad):
    """Asks for 4 GiB, and does not touch them."""

    def go_wrong(self, item: Any) -> None:
        np.empty(4 << 30, np.uint8)


class Misnamed(ReferenceBackend):
    """Raises something that callers do not expect."""

    def decode_arrays(self, run: Any, items: Any, *, max_workers: int | None = None) -> Any:
        try:
            return super().decode_arrays(run, items, max_workers=max_workers)
        except CodecError as error:
            raise KeyError("oops") from error


class Forgetful(_Bad):
    """Decodes everything to zeros once something went wrong."""

    def _decoder(self, decode: Callable[[Any], Any]) -> Callable[[Any], Any]:
        broken = False

        def decoded(item: Any) -> Any:
            nonlocal broken
            try:
                found = decode(item)
            except CodecError:
                broken = True
                raise
            return bytes(len(found)) if broken else found

        return decoded
