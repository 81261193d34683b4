"""The ``cast_value`` codec: convert values to another data type.

Specification: https://github.com/zarr-developers/zarr-extensions/tree/main/codecs/cast_value. Name:
``cast_value``. Configuration: ``{"data_type": "uint8", "rounding": "nearest-even", "out_of_range": "clamp",
"scalar_map": {"encode": [["NaN", 0]], "decode": [[0, "NaN"]]}}``; all but ``data_type`` may be left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Literal, Self

import attrs
import numpy as np

from chunkwright.codecs._base import ArrayArrayCodec, Foreign, setting
from chunkwright.codecs._rules import choice, number, sequence
from chunkwright.dtype_json import cast_fill_value, fill_value_from_json
from chunkwright.errors import ConfigurationError, Problem
from chunkwright.spec import ChunkSpec, DataType, FillValue

__all__ = ("CastValue", "ScalarMap")

type Number = int | float | str
type Pairs = tuple[tuple[Number, Number], ...]
type Rounding = Literal["nearest-even", "towards-zero", "towards-positive", "towards-negative", "nearest-away"]

_INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
_FLOATS = ("float16", "float32", "float64")


def _pairs(value: Any) -> Pairs:
    items = list(value.items()) if isinstance(value, Mapping) else sequence(value)
    pairs = []
    for item in items:
        pair = sequence(item)
        if len(pair) != 2:
            raise ValueError(f"must be a list of pairs, not {value!r}")
        pairs.append((number(pair[0], {}), number(pair[1], {})))
    return tuple(pairs)


@attrs.frozen(kw_only=True)
class ScalarMap:
    """Values that are converted by a table instead of by value.

    Parameters
    ----------
    encode, decode
        Pairs of a value and what it becomes, as in JSON; None when the direction has no table.

    Examples
    --------
    >>> ScalarMap(encode=[["NaN", 0]]).to_json()
    {'encode': [['NaN', 0]]}
    """

    encode: Pairs | None = attrs.field(default=None, converter=attrs.converters.optional(_pairs), eq=repr)
    decode: Pairs | None = attrs.field(default=None, converter=attrs.converters.optional(_pairs), eq=repr)

    def to_json(self) -> dict[str, Any]:
        """Return the tables as JSON.

        Returns
        -------
        dict
            Only the directions that have one.
        """
        tables = {"encode": self.encode, "decode": self.decode}
        return {name: [list(pair) for pair in pairs] for name, pairs in tables.items() if pairs is not None}


def _scalar_map(value: Any, foreign: Foreign) -> ScalarMap:
    if isinstance(value, ScalarMap):
        return value
    if not isinstance(value, Mapping) or not value.keys() <= {"encode", "decode"}:
        raise ValueError(f"must be an object with 'encode' and 'decode', not {value!r}")
    return ScalarMap(**value)


@attrs.frozen(kw_only=True)
class CastValue(ArrayArrayCodec):
    """Convert values to another data type, and back.

    Parameters
    ----------
    data_type
        Name of the encoded data type: an integer or floating-point type.
    rounding
        How values between two encoded values are rounded.
    out_of_range
        What becomes of values that the encoded data type has not: None is an error.
    scalar_map
        Values that are converted by a table.

    Examples
    --------
    >>> CastValue(data_type="uint8", out_of_range="clamp").to_json()
    {'name': 'cast_value', 'configuration': {'data_type': 'uint8', 'out_of_range': 'clamp'}}
    """

    encodes_fill_value: ClassVar[bool] = True
    omits_defaults: ClassVar[bool] = True

    data_type: str = attrs.field(metadata=setting(choice(*_INTEGERS, *_FLOATS)))
    rounding: Rounding = attrs.field(
        default="nearest-even",
        metadata=setting(
            choice("nearest-even", "towards-zero", "towards-positive", "towards-negative", "nearest-away")
        ),
    )
    out_of_range: Literal["clamp", "wrap"] | None = attrs.field(default=None, metadata=setting(choice("clamp", "wrap")))
    scalar_map: ScalarMap | None = attrs.field(default=None, metadata=setting(_scalar_map))

    @property
    def name(self) -> str:
        """Name in Zarr v3 metadata."""
        return "cast_value"

    @property
    def encoded_dtype(self) -> DataType:
        """The data type of the encoded array, in the machine's byte order."""
        return DataType(np.dtype(self.data_type))

    def problems(self) -> Iterator[Problem]:
        """Yield what is wrong with the configuration as a whole.

        Yields
        ------
        Problem
            Located below ``configuration``.
        """
        if self.out_of_range == "wrap" and self.data_type not in _INTEGERS:
            yield Problem(("configuration", "out_of_range"), "'wrap' needs an integer data type")

    def bind(self, dtype: DataType, fill_value: FillValue) -> Self:
        """Check the data type and the tables against it.

        Parameters
        ----------
        dtype, fill_value
            What the codec is given to encode.

        Returns
        -------
        Self
            The codec itself.

        Raises
        ------
        ConfigurationError
            When it is neither integer nor floating point, or has no such values.
        """
        if dtype.variable or dtype.numpy.kind not in "iuf":
            found = dtype.variable or dtype.numpy
            raise ConfigurationError("wrong data type", codec=self.name, expected="integers or floats", found=found)
        problems = list(self._table_problems(dtype))
        if problems:
            raise ConfigurationError(problems=tuple(problems), codec=self.name)
        return self

    def _table_problems(self, dtype: DataType) -> Iterator[Problem]:
        tables = self.scalar_map or ScalarMap()
        encoded = self.encoded_dtype
        directions = (("encode", tables.encode, (dtype, encoded)), ("decode", tables.decode, (encoded, dtype)))
        for direction, pairs, types in directions:
            for row, pair in enumerate(pairs or ()):
                for column, value in enumerate(pair):
                    try:
                        fill_value_from_json(value, types[column])
                    except ConfigurationError as error:
                        yield Problem(("configuration", "scalar_map", direction, row, column), error.message)

    def encoded_spec(self, spec: ChunkSpec) -> ChunkSpec:
        """Return the spec that the next codec is given.

        Parameters
        ----------
        spec
            What this codec is given.

        Returns
        -------
        ChunkSpec
            With the encoded data type; the fill value is a placeholder.
        """
        dtype = self.encoded_dtype
        return attrs.evolve(spec, dtype=dtype, fill_value=cast_fill_value(spec.fill_value, dtype))
