"""Rules that read one value of a codec's configuration.

A rule is given a value as it stands in JSON, or as it is kept already, and returns what is kept: immutable and
hashable. It raises ``ValueError`` with what is wrong; the caller knows the place.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from chunkwright.codecs._base import Foreign, Rule

__all__ = ("boolean", "choice", "integer", "number", "positive_integers")


def integer(minimum: int, maximum: int | None = None) -> Rule:
    """Make a rule for integers of a range.

    Parameters
    ----------
    minimum, maximum
        The range, both ends included; no upper end by default.

    Returns
    -------
    Rule
        The rule.
    """

    def rule(value: Any, foreign: Foreign) -> int:
        if not isinstance(value, int) or isinstance(value, bool):
            raise ValueError(f"must be an integer, not {value!r}")
        if value < minimum or (maximum is not None and value > maximum):
            text = f"at least {minimum}" if maximum is None else f"between {minimum} and {maximum}"
            raise ValueError(f"must be {text}, not {value}")
        return value

    return rule


def choice(*allowed: str) -> Rule:
    """Make a rule for one of a few strings.

    Parameters
    ----------
    *allowed
        The strings.

    Returns
    -------
    Rule
        The rule.
    """

    def rule(value: Any, foreign: Foreign) -> str:
        if not isinstance(value, str) or value not in allowed:
            raise ValueError(f"must be one of {', '.join(map(repr, allowed))}, not {value!r}")
        return value

    return rule


def boolean(value: Any, foreign: Foreign) -> bool:
    """Read a Boolean.

    Parameters
    ----------
    value
        What was found.
    foreign
        Not used.

    Returns
    -------
    bool
        The value.

    Raises
    ------
    ValueError
        When it is none.
    """
    if not isinstance(value, bool):
        raise ValueError(f"must be true or false, not {value!r}")
    return value


def number(value: Any, foreign: Foreign) -> int | float | str:
    """Read a number, which may be written as a string so that it keeps its exact form.

    Parameters
    ----------
    value
        What was found.
    foreign
        Not used.

    Returns
    -------
    int, float or str
        The value.

    Raises
    ------
    ValueError
        When it is none.
    """
    if not isinstance(value, int | float | str) or isinstance(value, bool):
        raise ValueError(f"must be a number, not {value!r}")
    return value


def positive_integers(value: Any, foreign: Foreign) -> tuple[int, ...]:
    """Read a shape without zeros.

    Parameters
    ----------
    value
        What was found.
    foreign
        Not used.

    Returns
    -------
    tuple of int
        The shape.

    Raises
    ------
    ValueError
        When it is none.
    """
    one = integer(1)
    return tuple(one(item, foreign) for item in sequence(value))


def sequence(value: Any) -> Sequence[Any]:
    """Read a JSON array or a tuple.

    Parameters
    ----------
    value
        What was found.

    Returns
    -------
    Sequence
        The value.

    Raises
    ------
    ValueError
        When it is none.
    """
    if not isinstance(value, list | tuple):
        raise ValueError(f"must be a list, not {value!r}")
    return value
