"""What every codec of a chain is: a frozen value with a name, a kind, and pure functions over specs.

A codec here is metadata, not compute: it knows its configuration, checks it, fills in what a data type
decides (:meth:`Codec.bind`), says what the next codec will see (:meth:`Codec.encoded_spec`) and how many
bytes it can make (:meth:`Codec.encoded_size`). Backends do the work.

The configuration is declared, not coded: an attribute with ``metadata=setting(rule)`` is a member of the
configuration, and the rule (:mod:`chunkwright.codecs._rules`) reads and checks it, whether it comes from JSON or
from a caller. That gives every codec the same three things: ``from_json`` that reports every problem with its
location, checks when an object is made, and ``to_json``.

Each codec has a module of its own; :mod:`chunkwright.codecs` has the table of names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, Literal, Self

import attrs

from chunkwright.errors import ConfigurationError, Problem
from chunkwright.spec import ChunkSpec, DataType, FillValue, Size, UnboundedSize

__all__ = ("ArrayArrayCodec", "ArrayBytesCodec", "BytesBytesCodec", "Codec", "Kind", "setting")

type Kind = Literal["array->array", "array->bytes", "bytes->bytes"]
type JSON = Mapping[str, Any] | list[Any] | str | int | float | bool | None
type Foreign = Mapping[str, Callable[[Mapping[str, Any]], Any]]
"""Factories of the host's own codecs by name; each is given the configuration."""
type Rule = Callable[[Any, Foreign], Any]
"""Reads one value of a configuration, from JSON or as it is kept already; raises ValueError."""


def setting(rule: Rule) -> dict[str, Any]:
    """Make an attribute a member of the configuration.

    Parameters
    ----------
    rule
        Reads and checks its value.

    Returns
    -------
    dict
        For the ``metadata`` of ``attrs.field``.
    """
    return {"rule": rule}


@attrs.frozen(kw_only=True)
class Codec:
    """A codec's metadata. Only its three subclasses by kind are used."""

    kind: ClassVar[Kind]
    omits_defaults: ClassVar[bool] = False

    def __attrs_post_init__(self) -> None:
        values, problems = read_settings(type(self), self._settings(), {})
        for name, value in values.items():
            object.__setattr__(self, name, value)
        problems = problems or list(self.problems())
        if problems:
            raise ConfigurationError(problems=tuple(problems), codec=self.name)

    @property
    def name(self) -> str:
        """Name in Zarr v3 metadata."""
        raise NotImplementedError

    def problems(self) -> Iterator[Problem]:
        """Yield what is wrong with the configuration as a whole.

        Yields
        ------
        Problem
            Located below ``configuration``.
        """
        yield from ()

    def _settings(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in settings_of(type(self))}

    def configuration(self) -> dict[str, Any]:
        """Return the configuration as JSON values, only what is set.

        Returns
        -------
        dict
            May be empty.
        """
        result: dict[str, Any] = {}
        for field in settings_of(type(self)):
            value = getattr(self, field.name)
            if value is not None and not (self.omits_defaults and value == field.default):
                result[field.name] = plain(value)
        return result

    def to_json(self) -> dict[str, Any]:
        """Return the codec as Zarr v3 metadata.

        Returns
        -------
        dict
            ``{"name": ..., "configuration": {...}}``, without an empty configuration.
        """
        configuration = self.configuration()
        return {"name": self.name, "configuration": configuration} if configuration else {"name": self.name}

    @classmethod
    def from_configuration(cls, configuration: Mapping[str, Any], *, foreign: Foreign | None = None) -> Self:
        """Make the codec of the configuration in its metadata.

        Parameters
        ----------
        configuration
            JSON values by name.
        foreign
            Factories of the host's own codecs, for codecs that hold chains.

        Returns
        -------
        Self
            The codec.

        Raises
        ------
        ConfigurationError
            With every problem, each located below ``configuration``.
        """
        known = {field.name: field for field in settings_of(cls)}
        values, problems = read_settings(cls, configuration, foreign or {})
        problems += [Problem(("configuration", name), "unknown key") for name in configuration if name not in known]
        problems += [
            Problem(("configuration", name), "is missing")
            for name, field in known.items()
            if field.default is attrs.NOTHING and name not in configuration
        ]
        if problems:
            raise ConfigurationError(problems=tuple(problems))
        return cls(**values)

    def bind(self, dtype: DataType, fill_value: FillValue) -> Self:
        """Fill in what the data type decides, and check the configuration against it.

        Parameters
        ----------
        dtype, fill_value
            What the codec is given to encode.

        Returns
        -------
        Self
            A codec with nothing left open; binding it again changes nothing.

        Raises
        ------
        ConfigurationError
            When the codec cannot encode this data type.
        """
        return self

    def encoded_spec(self, spec: ChunkSpec) -> ChunkSpec:
        """Return the spec that the next codec is given.

        The fill value is what the *metadata* says it becomes. For codecs whose arithmetic decides it
        (``encodes_fill_value``) it is only a placeholder; ``prepare`` lets the backend encode it.

        Parameters
        ----------
        spec
            What this codec is given.

        Returns
        -------
        ChunkSpec
            Unchanged for all but array->array codecs.

        Raises
        ------
        ConfigurationError
            When the codec cannot encode a chunk of this shape.
        """
        return spec

    def encoded_size(self, size: Size, spec: ChunkSpec) -> Size:
        """Return how many bytes this codec makes.

        Encoded chunks may come from any writer, so a bound is given only where the format itself sets
        one; what a compressor of ours would need at worst is none.

        Parameters
        ----------
        size
            Bytes that it is given.
        spec
            Spec of the array that the array->bytes codec is given.

        Returns
        -------
        Size
            Unbounded unless a codec says otherwise.
        """
        return UnboundedSize()


@attrs.frozen(kw_only=True)
class ArrayArrayCodec(Codec):
    """A codec that turns an array into an array."""

    kind: ClassVar[Kind] = "array->array"
    encodes_fill_value: ClassVar[bool] = False

    def encoded_size(self, size: Size, spec: ChunkSpec) -> Size:
        """Return how many bytes the encoded array has, C-contiguous.

        Parameters
        ----------
        size
            Bytes of the array that it is given.
        spec
            Spec of that array.

        Returns
        -------
        Size
            Fixed for elements of a fixed number of bytes.
        """
        return self.encoded_spec(spec).nbytes


@attrs.frozen(kw_only=True)
class ArrayBytesCodec(Codec):
    """A codec that turns an array into bytes."""

    kind: ClassVar[Kind] = "array->bytes"


@attrs.frozen(kw_only=True)
class BytesBytesCodec(Codec):
    """A codec that turns bytes into bytes."""

    kind: ClassVar[Kind] = "bytes->bytes"


def settings_of(cls: type[Codec]) -> tuple[attrs.Attribute[Any], ...]:
    """Return the attributes of a codec class that are members of its configuration.

    Parameters
    ----------
    cls
        The class.

    Returns
    -------
    tuple of attrs.Attribute
        In order of definition.
    """
    return tuple(field for field in attrs.fields(cls) if "rule" in field.metadata)


def read_settings(
    cls: type[Codec], values: Mapping[str, Any], foreign: Foreign
) -> tuple[dict[str, Any], list[Problem]]:
    """Read every value that a codec class knows, collecting problems.

    Parameters
    ----------
    cls
        The codec class.
    values
        Values by name; others are left alone.
    foreign
        Factories of the host's own codecs.

    Returns
    -------
    tuple of dict and list of Problem
        What was read, and what was wrong.
    """
    result: dict[str, Any] = {}
    problems: list[Problem] = []
    for field in settings_of(cls):
        if field.name not in values:
            continue
        location = ("configuration", field.name)
        value = values[field.name]
        if value is None and field.default is None:
            continue
        try:
            result[field.name] = field.metadata["rule"](value, foreign)
        except ConfigurationError as error:
            problems += below(location, error)
        except ValueError as error:
            problems.append(Problem(location, str(error)))
    return result, problems


def below(location: tuple[str | int, ...], error: ConfigurationError) -> list[Problem]:
    """Return the problems of an error with a longer location.

    Parameters
    ----------
    location
        What to put before each location.
    error
        A ConfigurationError; one without problems counts as one.

    Returns
    -------
    list of Problem
        At least one.
    """
    text = str(ConfigurationError(error.message, expected=error.expected, found=error.found))
    found = error.problems or (Problem((), text),)
    return [Problem((*location, *problem.location), problem.message) for problem in found]


def plain(value: Any) -> Any:
    """Turn a kept value into JSON.

    Parameters
    ----------
    value
        A scalar, a tuple, or an object with ``to_json``.

    Returns
    -------
    Any
        JSON.
    """
    if isinstance(value, tuple):
        return [plain(item) for item in value]
    return value.to_json() if hasattr(value, "to_json") else value
