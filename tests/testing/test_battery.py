"""The backends that need no compiler pass the battery, and a backend that is wrong does not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from chunkwright import ReferenceBackend
from chunkwright.kernels import Kernel
from chunkwright.ports import Backend, Step
from chunkwright.testing import Check, checks, unsupported
from chunkwright_numcodecs import NumcodecsBackend

BACKENDS: list[Backend] = [ReferenceBackend(), NumcodecsBackend()]


@pytest.mark.parametrize("check", [pytest.param(c, id=f"{b.name}: {c}") for b in BACKENDS for c in checks(b)])
def test_battery(check: Check) -> None:
    check()


def test_numcodecs_has_every_codec() -> None:
    assert unsupported(NumcodecsBackend()) == {}


def test_names_are_unique() -> None:
    names = [str(check) for check in checks(NumcodecsBackend())]
    assert len(names) == len(set(names))


class Forgetful(ReferenceBackend):
    """Ignores checksums."""

    def kernel(self, step: Step) -> Kernel:
        kernel = super().kernel(step)
        if step.codec.name != "crc32c":
            return kernel
        return Kernel(codec="crc32c", decode=lambda item: memoryview(item)[:-4], encode=kernel.encode)


class Upside(ReferenceBackend):
    """Puts what it decodes upside down."""

    def decode_into(self, run: Any, buffers: Any, entries: Any, out: Any, *, max_workers: int | None = None) -> None:
        whole = np.empty_like(out)
        super().decode_into(run, buffers, entries, whole, max_workers=max_workers)
        out[...] = whole[::-1] if out.ndim else whole


@pytest.mark.parametrize("backend", [Forgetful(), Upside()], ids=["no checksum", "upside down"])
def test_a_wrong_backend_fails(backend: Backend) -> None:
    failed = 0
    for check in checks(backend):
        try:
            check()
        except AssertionError:
            failed += 1
    assert failed
