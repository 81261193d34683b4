"""Files whose times are taken at their word, so that no test has to wait until they are old enough."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from chunkwright_rust import _native
from chunkwright_store import index_cache
from chunkwright_store.index_cache import INDEXES


class Hits:
    """How often an index was found since the last look, by either cache."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._in_python = 0
        find = INDEXES.find

        def counted(*args: object) -> bytes | None:
            found = find(*args)  # type: ignore[arg-type]
            self._in_python += found is not None
            return found

        monkeypatch.setattr(INDEXES, "find", counted)
        self._seen = self._now()

    def _now(self) -> int:
        return self._in_python + _native.index_cache()[0]

    def __call__(self) -> int:
        before, self._seen = self._seen, self._now()
        return self._seen - before


@pytest.fixture
def hits(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hits]:
    """Nothing is kept at the start, and times of files are taken to be exact."""
    INDEXES.clear()
    monkeypatch.setattr(index_cache, "COARSE", 0)
    before = _native.set_coarse_times(0)
    yield Hits(monkeypatch)
    _native.set_coarse_times(before)


def change(path: Path, how: Callable[[], object]) -> None:
    """Change a file, again and again until what the system says of it is different.

    That takes a tick of the clock at most, and is what files that had settled are sure of.
    """
    before = _said(path)
    how()
    while _said(path) == before:
        how()


def _said(path: Path) -> tuple[int, ...] | None:
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
