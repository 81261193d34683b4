"""Code that must run in an interpreter of its own: forks, start-up, what a hang would block."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

from tests.support.pipelines import Pipeline

ROOT = Path(__file__).parents[2]


def run_python(code: str, pipeline: Pipeline, *, timeout: float = 120, **environment: str) -> str:
    """Run code in a new interpreter under a pipeline and return what it printed; it may import ``tests.support``.

    A hang of the interpreter or of a process that it forked is an AssertionError after ``timeout`` seconds.
    """
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    process = subprocess.Popen(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", textwrap.dedent(code)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), **pipeline.environment, **environment},
        start_new_session=True,
    )
    try:
        printed, complaints = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        raise AssertionError(f"no result after {timeout} s") from None
    assert process.returncode == 0, f"exit status {process.returncode}:\n{complaints}"
    return printed.strip()
