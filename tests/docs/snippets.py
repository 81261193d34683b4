"""Finds and runs the Python in Markdown pages.

A fence ``python`` is run as it stands; a fence ``pycon`` is a doctest. All fences of a page share one
namespace, in order, so a page reads as one session.
"""

from __future__ import annotations

import doctest
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs

FENCE = re.compile(r"^```(?P<language>python|pycon)\n(?P<code>.*?)^```$", flags=re.MULTILINE | re.DOTALL)
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


@attrs.frozen
class Snippet:
    """One fence of a page."""

    page: Path
    line: int
    language: str
    code: str


def snippets(page: Path) -> Iterator[Snippet]:
    """Yield the fences of a page, in order."""
    text = page.read_text("utf-8")
    for match in FENCE.finditer(text):
        line = text.count("\n", 0, match.start("code"))
        yield Snippet(page, line, match["language"], match["code"])


def run(snippet: Snippet, namespace: dict[str, Any]) -> None:
    """Run a fence in the namespace of its page.

    Raises
    ------
    AssertionError
        When a doctest prints something else.
    """
    if snippet.language == "python":
        # Blank lines in front make tracebacks show the line of the page.
        exec(compile("\n" * snippet.line + snippet.code, str(snippet.page), "exec"), namespace)
        return
    test = doctest.DocTestParser().get_doctest(snippet.code, namespace, "snippet", str(snippet.page), snippet.line)
    said: list[str] = []
    results = doctest.DocTestRunner(optionflags=FLAGS).run(test, out=said.append, clear_globs=False)
    namespace.update(test.globs)
    assert results.failed == 0, "".join(said)
