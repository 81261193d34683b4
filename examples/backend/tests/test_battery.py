"""The backend passes the battery that every backend of chunkwright passes."""

from __future__ import annotations

import pytest

from chunkwright.testing import Check, checks, unsupported
from chunkwright_isal import IsalBackend

BACKEND = IsalBackend()


@pytest.mark.parametrize("check", checks(BACKEND), ids=str)
def test_battery(check: Check) -> None:
    check()


def test_the_codecs_that_it_has_are_not_missing() -> None:
    missing = unsupported(BACKEND)
    assert not missing.keys() & {"gzip", "numcodecs.gzip", "numcodecs.zlib", "numcodecs.crc32", "numcodecs.adler32"}
    assert "ISA-L has no such codec" in missing["zstd"]
