"""What is to be seen while the benchmarks run: one line for each cell, and what is being done now."""

from __future__ import annotations

import sys
import time

__all__ = ("Progress",)


class Progress:
    """Writes to standard error, so that standard output holds the report alone."""

    def __init__(self) -> None:
        self._started = time.monotonic()
        self._live = sys.stderr.isatty()

    def now(self, text: str) -> None:
        """Say what is being done, where a line can be overwritten."""
        if self._live:
            sys.stderr.write(f"\r\033[K{self._clock()} {text[:110]}")
            sys.stderr.flush()

    def done(self, text: str) -> None:
        """Say what has been done, on a line of its own."""
        sys.stderr.write(f"{'\r\033[K' if self._live else ''}{self._clock()} {text}\n")
        sys.stderr.flush()

    def _clock(self) -> str:
        seconds = int(time.monotonic() - self._started)
        return f"{seconds // 60:3d}:{seconds % 60:02d}"
