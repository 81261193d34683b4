"""The Rust backend passes the battery of all backends."""

from __future__ import annotations

import pytest

from chunkwright.testing import Check, checks, unsupported
from tests.rust.chains import RUST


@pytest.mark.parametrize("check", checks(RUST), ids=str)
def test_battery(check: Check) -> None:
    check()


def test_only_these_codecs_of_the_battery_have_no_kernel() -> None:
    assert sorted(unsupported(RUST)) == ["numcodecs.jenkins_lookup3", "numcodecs.lzma"]
