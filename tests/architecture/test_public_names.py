"""``__all__`` is a literal tuple, names what exists, and leaves out nothing that looks public.

Modules whose name begins with an underscore are private as a whole and may do without.
"""

from __future__ import annotations

import ast
import importlib
from pathlib import Path

import pytest

from tests.architecture.repository import DISTRIBUTIONS, source_of

MODULES = [
    pytest.param(source_of(distribution), path, id=str(path.relative_to(source_of(distribution).parent)))
    for distribution in DISTRIBUTIONS
    for path in sorted(source_of(distribution).rglob("*.py"))
    if path.name == "__init__.py" or not path.name.startswith("_")
]
PACKAGES = [distribution.replace("-", "_") for distribution in DISTRIBUTIONS]


def declared(tree: ast.Module) -> list[ast.expr]:
    """Return the values that a module assigns to ``__all__``."""
    return [
        node.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        and any(isinstance(target, ast.Name) and target.id == "__all__" for target in node.targets)
    ]


def looks_public(tree: ast.Module) -> set[str]:
    """Return the classes and functions that a module defines under names without a leading underscore."""
    definitions = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    return {node.name for node in tree.body if isinstance(node, definitions) and not node.name.startswith("_")}


@pytest.mark.parametrize(("package", "path"), MODULES)
def test_all_is_a_literal_tuple_of_every_public_definition(package: Path, path: Path) -> None:
    tree = ast.parse(path.read_text("utf-8"))
    values = declared(tree)
    assert len(values) == 1, "a module assigns __all__ once"
    assert isinstance(values[0], ast.Tuple), "__all__ is a literal tuple"
    names = ast.literal_eval(values[0])
    assert len(set(names)) == len(names)
    assert looks_public(tree) - set(names) == set()


@pytest.mark.parametrize(("package", "path"), MODULES)
def test_every_name_in_all_exists(package: Path, path: Path) -> None:
    parts = path.relative_to(package.parent).with_suffix("").parts
    module = importlib.import_module(".".join(part for part in parts if part != "__init__"))
    assert [name for name in module.__all__ if not hasattr(module, name)] == []


@pytest.mark.parametrize("name", PACKAGES)
def test_a_package_exports_everything_it_imports_for_export(name: str) -> None:
    package = importlib.import_module(name)
    ours = {
        key
        for key, value in vars(package).items()
        if not key.startswith("_") and getattr(value, "__module__", "").startswith("chunkwright")
    }
    assert ours - set(package.__all__) == set()
