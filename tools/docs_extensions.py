"""griffe extensions that let our sources read well in mkdocs.

Docstrings are written for Sphinx and for plain text: roles such as ``:class:`CodecError``` become code, and a
paragraph that ends in two colons ends in one. Constructors of attrs classes are generated when a class is made, which
a reader of source does not see; they are put together from the attributes, so that parameters get their types.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import griffe

__all__ = ("AttrsConstructors", "SphinxRoles")

ROLE = re.compile(r":(?:attr|class|exc|func|meth|mod|obj):`~?([^`]+)`")
LITERAL = re.compile(r"::$", flags=re.MULTILINE)


class SphinxRoles(griffe.Extension):
    """Rewrites docstrings as they are loaded."""

    def on_instance(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """Rewrite the docstring of a module, class, function or attribute."""
        if obj.docstring:
            obj.docstring.value = LITERAL.sub(":", ROLE.sub(r"`\1`", obj.docstring.value))


class AttrsConstructors(griffe.Extension):
    """Gives attrs classes the constructors that they will have."""

    def on_package(self, *, pkg: griffe.Module, **kwargs: Any) -> None:
        """Walk a package once all of it is loaded, so that base classes are known."""
        for cls in list(_classes(pkg)):
            if _is_attrs(cls) and "__init__" not in cls.members:
                cls.set_member("__init__", _constructor(cls))


def _classes(owner: griffe.Object) -> Iterator[griffe.Class]:
    for member in owner.members.values():
        if member.is_alias:
            continue
        if isinstance(member, griffe.Class):
            yield member
        if isinstance(member, griffe.Class | griffe.Module):
            yield from _classes(member)


def _decorators(cls: griffe.Class) -> Iterator[str]:
    for decorator in cls.decorators:
        if decorator.callable_path.partition(".")[0] == "attrs":
            yield str(decorator.value)


def _is_attrs(cls: griffe.Class) -> bool:
    return any(_decorators(cls))


def _fields(cls: griffe.Class) -> Iterator[griffe.Parameter]:
    keyword_only = any("kw_only=True" in decorator for decorator in _decorators(cls))
    kind = griffe.ParameterKind.keyword_only if keyword_only else griffe.ParameterKind.positional_or_keyword
    for attribute in cls.attributes.values():
        annotation = attribute.annotation
        if annotation is None or "ClassVar" in str(annotation) or attribute.has_labels("property"):
            continue
        name = attribute.name.lstrip("_")
        yield griffe.Parameter(name, annotation=annotation, kind=kind, default=_default(attribute))


def _default(attribute: griffe.Attribute) -> str | griffe.Expr | None:
    """The default value, or dots for one that attrs makes for each instance."""
    if attribute.value is None or "field(" not in str(attribute.value):
        return attribute.value
    return "..." if "default=" in str(attribute.value) or "factory=" in str(attribute.value) else None


def _constructor(cls: griffe.Class) -> griffe.Function:
    fields: dict[str, griffe.Parameter] = {}
    for owner in (*reversed(cls.mro()), cls):
        if _is_attrs(owner):
            fields |= {field.name: field for field in _fields(owner)}
    own = griffe.Parameter("self", kind=griffe.ParameterKind.positional_or_keyword)
    parameters = griffe.Parameters(own, *fields.values())
    return griffe.Function("__init__", lineno=cls.lineno, endlineno=cls.endlineno, parameters=parameters, parent=cls)
