"""The command line; see the package."""

from __future__ import annotations

import argparse
import difflib
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path

from tools.supported.page import filled
from tools.supported.samples import SampleError

PAGE = Path(__file__).resolve().parents[2] / "docs" / "supported.md"


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the page, or check it, and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tools.supported", description="Makes the tables of a page.")
    parser.add_argument("--check", action="store_true", help="change nothing; exit with 1 when the page would change")
    parser.add_argument("--page", type=Path, default=PAGE)
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")  # zarr's, of codecs and data types that have no specification
    before = options.page.read_text("utf-8")
    try:
        after = filled(before)
    except (SampleError, ValueError) as error:
        print(error)
        return 1
    if not options.check:
        options.page.write_text(after, "utf-8")
        return 0
    changes = difflib.unified_diff(before.splitlines(), after.splitlines(), "the page", "what is so", lineterm="", n=0)
    print("\n".join(changes) or "the page says what is so")
    return int(before != after)


if __name__ == "__main__":
    sys.exit(main())
