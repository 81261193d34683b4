"""Checks the docstrings of public names: numpydoc's rules, and an example for what a distribution exports.

Public is what a module lists in ``__all__``, and of classes what has no leading underscore. The rules are
those of ``[tool.numpydoc_validation]``. What the top of a package exports must show an example as well, in
its own docstring or in that of one of its methods; protocols, which cannot be called, and exceptions, which
are met and not made, need none.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from numpydoc.validate import validate

ROOT = Path(__file__).resolve().parent.parent


def modules(package: str) -> Iterator[ModuleType]:
    """Import a package and all of its public modules."""
    top = importlib.import_module(package)
    yield top
    for found in pkgutil.walk_packages(top.__path__, f"{package}."):
        if not any(part.startswith("_") for part in found.name.split(".")):
            yield importlib.import_module(found.name)


def members(owner: type) -> Iterator[str]:
    """Yield the public methods and properties that a class defines itself."""
    for name, value in vars(owner).items():
        documented = inspect.isfunction(value) or isinstance(value, property | classmethod | staticmethod)
        if documented and not name.startswith("_"):
            yield name


def public(module: ModuleType) -> Iterator[tuple[str, Any]]:
    """Yield path and value of the classes and functions that a module defines and lists in ``__all__``."""
    for name in getattr(module, "__all__", ()):
        value = getattr(module, name)
        if (inspect.isclass(value) or inspect.isfunction(value)) and value.__module__ == module.__name__:
            yield f"{module.__name__}.{name}", value


def broken_rules(path: str, checks: frozenset[str]) -> Iterator[str]:
    """Yield what numpydoc finds wrong with one object."""
    for code, message in validate(path)["errors"]:
        if code in checks:
            yield f"{path}: {code} {message}"


def constructs(value: Any) -> bool:
    """Whether the parameters of a function, or of a class's own constructor, are to be documented."""
    return not inspect.isclass(value) or ("__init__" in vars(value) and not getattr(value, "_is_protocol", False))


def needs_example(value: Any) -> bool:
    """Whether an exported object has to show an example and does not."""
    if inspect.isclass(value):
        if issubclass(value, BaseException) or getattr(value, "_is_protocol", False):
            return False
        texts = [value.__doc__, *(inspect.getdoc(getattr(value, name)) for name in members(value))]
    elif inspect.isfunction(value):
        texts = [value.__doc__]
    else:
        return False
    return not any(">>>" in (text or "") for text in texts)


def problems(package: str, checks: frozenset[str]) -> Iterator[str]:
    """Yield everything that is wrong in a package."""
    for module in modules(package):
        if not module.__doc__:
            yield f"{module.__name__}: no docstring"
        for path, value in public(module):
            yield from broken_rules(path, checks if constructs(value) else checks - {"PR01"})
            if inspect.isclass(value):
                for name in members(value):
                    yield from broken_rules(f"{path}.{name}", checks)
    top = importlib.import_module(package)
    for name in top.__all__:
        if needs_example(getattr(top, name)):
            yield f"{package}.{name}: no example"


def main(packages: list[str]) -> int:
    """Print what is wrong in the packages, and return 1 when anything is."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["numpydoc_validation"]
    found = [line for package in packages for line in problems(package, frozenset(settings["checks"]))]
    for line in found:
        print(line)
    print(f"docstrings: {len(found)} problems in {len(packages)} packages")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
