"""Why we are behind where we are, as profiles say.

How to see it: stamps of time where a call enters zarr-python, its event loop and our pipeline, and where it leaves
them (two CPUs, 64 boxes of 24³, medians): 30 microseconds before zarr-python's loop, 35 to 55 until the loop has the
call, 20 to 35 there before the pipeline is asked, 40 to 105 in the pipeline, of which 13 to 55 in native code, and 30
to 40 until the caller has the result. A pipeline can change its own part only.
"""

from __future__ import annotations

from benches.report.ratios import DIRECT
from benches.results import Cell

__all__ = ("cause_of",)

BOXES = (
    "zarr-python takes about 130 microseconds for each call, with the two changes of threads that belong to it, and "
    "tensorstore 180 for a whole box; the pipeline takes 40 to 105"
)
MANY = "zarr-python selects in Python, 12 microseconds for each chunk, before it asks the pipeline"
BRIEF = "zarr-python takes 0.2 to 0.3 ms for a call on 16 chunks that reads nothing, zarrista 0.2 for all of it"
IN_PLACE = (
    "zarrista writes over what is in a file, while ours, which is never half written, is a new one: to create it takes "
    "25 microseconds on ext4 without a journal, and 265 while thousands of inodes of removed files are passed over"
)
REPLACED = (
    "the file system replaces thousands of files, and creating one takes 25 to 265 microseconds, depending on how many "
    "were removed shortly before"
)
DIRECT_BRIEF = (
    "of 90 to 120 microseconds for 16 files, 45 go into opening and reading them, 25 into Python before and after, and "
    "the rest into new memory for the result; zarrista takes 98 in the same loop"
)
EQUAL = "both decode the same chunks with the same libraries; what is left is the call itself"


def cause_of(cell: Cell, who: str) -> str:
    """Say why others are ahead of one of ours in a cell; nothing where that is not known."""
    edge, _, compressor = cell.layout.partition(" ")
    operation = cell.operation
    if who == DIRECT and operation.startswith("read"):
        return DIRECT_BRIEF if compressor == "raw" and operation.startswith("read plane") else EQUAL
    if operation == "read boxes":
        return BOXES
    if "/" in edge:
        return BRIEF if compressor == "raw" and operation.startswith("read plane") else ""
    if operation.startswith("write"):
        cause = REPLACED if operation == "write all" and edge == "16" else IN_PLACE
        return cause if cell.store == "local" else ""
    if operation == "read lists" or edge == "16":
        return MANY
    return BRIEF if compressor == "raw" else EQUAL
