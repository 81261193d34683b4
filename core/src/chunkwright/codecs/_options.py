"""Options of a codec whose configuration has no fixed members: an immutable mapping of JSON values.

Two are equal when their JSON text is, so that 1, 1.0 and true, which Python takes for equal, stay apart: numcodecs
computes differently with them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Self

import numpy as np

__all__ = ("Options",)


class Options(Mapping[str, Any]):
    """An immutable, hashable mapping of JSON values; lists in it are tuples.

    Parameters
    ----------
    values
        JSON values by name; NumPy scalars and dtypes are taken as JSON writes them.

    Examples
    --------
    >>> options = Options({"level": 1, "labels": ["a", "b"]})
    >>> options["labels"], options == Options({"level": 1.0, "labels": ["a", "b"]})
    (('a', 'b'), False)
    """

    __slots__ = ("_values",)

    def __init__(self, values: Mapping[str, Any] | None = None) -> None:
        self._values = {name: _frozen(value) for name, value in (values or {}).items()}

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Options) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.to_json()!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._values,)

    def _key(self) -> str:
        return repr(sorted(self._values.items(), key=lambda item: item[0]))

    def with_value(self, name: str, value: Any) -> Self:
        """Set one value.

        Parameters
        ----------
        name
            Its name.
        value
            Its value.

        Returns
        -------
        Self
            New options.
        """
        return type(self)({**self._values, name: value})

    def to_json(self) -> dict[str, Any]:
        """Return the options as JSON.

        Returns
        -------
        dict
            With lists for tuples.
        """
        return {name: _thawed(value) for name, value in self._values.items()}


def _frozen(value: Any) -> Any:
    if isinstance(value, np.dtype):
        return value.str
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return value.tobytes()
    if isinstance(value, list | tuple):
        return tuple(_frozen(item) for item in value)
    return Options(value) if isinstance(value, Mapping) else value


def _thawed(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_thawed(item) for item in value]
    return value.to_json() if isinstance(value, Options) else value
