"""The Python in the README and in the documentation runs as it is printed."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import zarr

from tests.docs.snippets import run, snippets

ROOT = Path(__file__).resolve().parent.parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
PAGES_WITH_CODE = [page for page in PAGES if next(snippets(page), None)]


@pytest.fixture
def zarr_as_it_was() -> Iterator[None]:
    """Undo what a page does to zarr's configuration."""
    before = deepcopy(zarr.config.config)
    yield
    zarr.config.config.clear()
    zarr.config.config.update(before)


@pytest.mark.parametrize("page", PAGES_WITH_CODE, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_runs_from_top_to_bottom(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, zarr_as_it_was: None
) -> None:
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, Any] = {"__name__": "__main__"}
    for snippet in snippets(page):
        run(snippet, namespace)


def test_the_readme_shows_all_three_ways_in() -> None:
    code = "".join(snippet.code for snippet in snippets(ROOT / "README.md"))
    for way in ("CodecChain.from_json", "codec_pipeline.path", "chunkwright_zarr.use"):
        assert way in code


def test_a_snippet_that_prints_something_else_fails(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```python\na = 1\n```\n\n```pycon\n>>> a + 1\n3\n```\n")
    assigned, printed = snippets(page)
    namespace: dict[str, Any] = {}
    run(assigned, namespace)
    with pytest.raises(AssertionError, match="Expected"):
        run(printed, namespace)
