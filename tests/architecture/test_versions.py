"""There is one version, and it is everywhere."""

from __future__ import annotations

import importlib.metadata
import re
import tomllib

import pytest

import chunkwright_rust
from tests.architecture.repository import DISTRIBUTIONS, ROOT, project_table

VERSION = project_table("chunkwright")["version"]


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_every_distribution_has_the_version_of_the_core(distribution: str) -> None:
    assert project_table(distribution)["version"] == VERSION


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_what_is_installed_is_what_is_checked_out(distribution: str) -> None:
    assert importlib.metadata.version(distribution) == VERSION


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_distributions_ask_for_each_other_at_exactly_this_version(distribution: str) -> None:
    project = project_table(distribution)
    extras = [item for items in project.get("optional-dependencies", {}).values() for item in items]
    ours = [item for item in [*project.get("dependencies", []), *extras] if item.startswith("chunkwright")]
    assert [item for item in ours if not item.endswith(f"=={VERSION}")] == []


def test_the_crate_has_the_version_of_the_core() -> None:
    workspace = tomllib.loads((ROOT / "Cargo.toml").read_text("utf-8"))
    locked = tomllib.loads((ROOT / "Cargo.lock").read_text("utf-8"))["package"]
    assert workspace["workspace"]["package"]["version"] == VERSION
    assert {package["version"] for package in locked if package["name"] == "chunkwright-rust"} == {VERSION}


def test_the_compiled_module_has_the_version_of_the_core() -> None:
    assert chunkwright_rust.version() == VERSION


def test_the_changelog_begins_with_this_version() -> None:
    headings = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text("utf-8"), flags=re.MULTILINE)
    assert headings[0] == VERSION
