"""Read the ``codecs`` list of Zarr v3 metadata, collecting problems instead of stopping at the first."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import attrs

from chunkwright.codecs import Codec, find_codec, foreign_codec
from chunkwright.codecs._base import Foreign, Kind, below
from chunkwright.errors import ConfigurationError, Problem

__all__ = ("ReadChain", "order_problems", "read_chain")

_MEMBERS = ("name", "configuration", "must_understand")


@attrs.define
class ReadChain:
    """What was found in a list of codecs.

    Parameters
    ----------
    codecs
        Those that could be made.
    kinds
        Position and kind of each that counts, None for an unknown kind.
    unknown
        Names that nobody knows and that must be understood.
    problems
        Located by position in the list.
    """

    codecs: list[Codec] = attrs.field(factory=list)
    kinds: list[tuple[int, Kind | None]] = attrs.field(factory=list)
    unknown: list[str] = attrs.field(factory=list)
    problems: list[Problem] = attrs.field(factory=list)


def read_chain(document: Any, foreign: Foreign) -> ReadChain:
    """Read a list of codecs.

    Parameters
    ----------
    document
        JSON.
    foreign
        Factories of the host's own codecs.

    Returns
    -------
    ReadChain
        What was found.
    """
    read = ReadChain()
    if not isinstance(document, list | tuple):
        read.problems.append(Problem((), f"must be a list of codecs, not {document!r}"))
        read.kinds.append((0, None))
        return read
    for at, item in enumerate(document):
        _read_item(read, at, {"name": item} if isinstance(item, str) else item, foreign)
    return read


def _read_item(read: ReadChain, at: int, item: Any, foreign: Foreign) -> None:
    problems = _item_problems(at, item)
    if problems:
        read.problems += problems
        read.kinds.append((at, None))
        return
    name, configuration = item["name"], item.get("configuration", {})
    if name in foreign:
        _make(read, at, None, lambda: foreign_codec(foreign[name](configuration), configuration))
        return
    found = find_codec(name)
    if found is not None:
        kind, make = found
        _make(read, at, kind, lambda: make(configuration, foreign=foreign))
    elif item.get("must_understand", True):
        read.problems.append(Problem((at,), f"unknown codec {name!r}"))
        read.unknown.append(name)
        read.kinds.append((at, None))


def _item_problems(at: int, item: Any) -> list[Problem]:
    if not isinstance(item, Mapping):
        return [Problem((at,), f"must be a name or an object, not {item!r}")]
    problems = [Problem((at, member), "unknown key") for member in item if member not in _MEMBERS]
    if not isinstance(item.get("name"), str):
        problems.append(Problem((at, "name"), "must be a string"))
    if not isinstance(item.get("configuration", {}), Mapping):
        problems.append(Problem((at, "configuration"), "must be an object"))
    if not isinstance(item.get("must_understand", True), bool):
        problems.append(Problem((at, "must_understand"), "must be true or false"))
    return problems


def _make(read: ReadChain, at: int, kind: Kind | None, make: Callable[[], Codec]) -> None:
    try:
        codec = make()
    except ConfigurationError as error:
        read.problems += below((at,), error)
        read.kinds.append((at, kind))
    else:
        read.codecs.append(codec)
        read.kinds.append((at, codec.kind))


def order_problems(kinds: Sequence[tuple[int, Kind | None]]) -> list[Problem]:
    """Say what is wrong with the order of kinds in a chain.

    Parameters
    ----------
    kinds
        Position and kind of each codec, None for a kind that is not known.

    Returns
    -------
    list of Problem
        Located by position.
    """
    return list(_order_problems(kinds))


def _order_problems(kinds: Sequence[tuple[int, Kind | None]]) -> Iterator[Problem]:
    made_bytes = False
    for at, kind in kinds:
        if kind == "array->array" and made_bytes:
            yield Problem((at,), "an array->array codec comes before the array->bytes codec")
        if kind == "array->bytes":
            if made_bytes:
                yield Problem((at,), "there is an array->bytes codec already")
            made_bytes = True
        if kind == "bytes->bytes" and not made_bytes and _comes_later(kinds, at):
            yield Problem((at,), "a bytes->bytes codec comes after the array->bytes codec")
    # A codec of unknown kind may be the one that is missing.
    if not made_bytes and all(kind for _, kind in kinds):
        yield Problem((), "there is no array->bytes codec")


def _comes_later(kinds: Sequence[tuple[int, Kind | None]], at: int) -> bool:
    return any(position > at and kind == "array->bytes" for position, kind in kinds)
