"""The process whose memory is measured: ``python -m benches.suites.memory_child TASK``.

It says ``ready`` when only the task itself is left to do and waits for a line; it then does the task, says ``done``,
and holds the result until its input is closed.
"""

from __future__ import annotations

import gc
import json
import sys
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from benches.operations import Call
from benches.places import LocalPlace
from benches.rivals import contenders

__all__ = ()


def main() -> None:
    """Do the task that the command line describes."""
    task = json.loads(sys.argv[1])
    contender = next(one for one in contenders() if one.name == task["contender"])
    opened = contender.open(LocalPlace(Path(task["folder"])))
    source = np.load(task["source"], mmap_mode="r") if "source" in task else None
    _warm_up(opened, source)
    gc.collect()
    _say("ready")
    sys.stdin.readline()
    result = _do(opened, task, source)
    _say("done")
    sys.stdin.readline()
    del result


def _warm_up(opened: Any, source: Any) -> None:
    corner = Call((slice(0, 1),) * 3)
    if source is not None:
        opened.write(corner, np.array(source[corner.selection]))
    opened.read(corner)


def _do(opened: Any, task: dict[str, Any], source: Any) -> Any:
    if source is None:
        return opened.read(Call.of_everything(3))
    if task["task"] == "write":
        return opened.write(Call.of_everything(3), source)
    shard = task["shard"]
    for start in product(*(range(0, extent, shard) for extent in source.shape)):
        box = tuple(slice(first, first + shard) for first in start)
        opened.write(Call(box), source[box])
    return None


def _say(word: str) -> None:
    sys.stdout.write(f"{word}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
