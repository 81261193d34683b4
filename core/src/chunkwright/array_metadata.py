"""Array metadata of both Zarr versions, turned into a bound chain and a chunk shape.

Zarr v3 says what the chain is. In Zarr v2 it is spread over ``order``, ``filters``, ``dtype`` and ``compressor``;
:func:`v2_chain` lays it out as a chain: a transpose for order F, then the filters and the compressor as numcodecs'
codecs, with ``bytes`` put in where arrays become bytes.

Attributes, dimension names and chunk keys are the business of whoever reads arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from chunkwright._v2_chain import config_id, v2_chain
from chunkwright.chain import BoundChain, CodecChain
from chunkwright.codecs._base import Foreign, below
from chunkwright.codecs._rules import positive_integers, sequence
from chunkwright.dtype_json import dtype_from_json, fill_value_from_json
from chunkwright.errors import ConfigurationError, Problem
from chunkwright.spec import DataType, FillValue

__all__ = ("from_array_metadata", "v2_chain")

_OBJECT_CODECS = ("vlen-utf8", "vlen-bytes", "vlen-array", "pickle", "json2", "msgpack2")


def from_array_metadata(
    document: Mapping[str, Any], *, foreign: Foreign | None = None
) -> tuple[BoundChain, tuple[int, ...] | None]:
    """Read what decoding needs from array metadata.

    Parameters
    ----------
    document
        Content of ``zarr.json`` or ``.zarray``.
    foreign
        Codecs of the host's own, as in :meth:`CodecChain.from_json`; Zarr v3 only.

    Returns
    -------
    tuple of BoundChain and tuple of int
        The chain and the chunk shape; None instead of a shape when chunks differ in shape.

    Raises
    ------
    ConfigurationError
        With every problem that was found.

    Examples
    --------
    >>> chain, shape = from_array_metadata({
    ...     "zarr_format": 2, "shape": [8, 8], "chunks": [4, 8], "dtype": "<i4", "order": "C", "fill_value": None,
    ...     "filters": [{"id": "delta", "dtype": "<i4"}], "compressor": {"id": "zlib", "level": 1},
    ... })
    >>> [codec.name for codec in chain.codecs], shape
    (['numcodecs.delta', 'bytes', 'numcodecs.zlib'], (4, 8))
    """
    match document.get("zarr_format"):
        case 3:
            return _from_v3(document, foreign)
        case 2:
            return _from_v2(document)
        case other:
            raise ConfigurationError(problems=(Problem(("zarr_format",), f"must be 2 or 3, not {other!r}"),))


class _Document:
    """Array metadata while it is read."""

    def __init__(self, members: Mapping[str, Any]) -> None:
        self.members = members
        self.problems: list[Problem] = []

    def read[T](self, member: str, reader: Callable[[Any], T]) -> T | None:
        """Read one member; a problem is kept and the answer is None."""
        if member not in self.members:
            self.problems.append(Problem((member,), "is missing"))
            return None
        return self.attempt((member,), lambda: reader(self.members[member]))

    def attempt[T](self, location: tuple[str, ...], reader: Callable[[], T]) -> T | None:
        try:
            return reader()
        except ConfigurationError as error:
            self.problems += below(location, error)
        except ValueError as error:
            self.problems.append(Problem(location, str(error)))
        return None

    def finish(self) -> None:
        if self.problems:
            raise ConfigurationError(problems=tuple(self.problems))


def _from_v3(members: Mapping[str, Any], foreign: Foreign | None) -> tuple[BoundChain, tuple[int, ...] | None]:
    document = _Document(members)
    dtype = document.read("data_type", dtype_from_json)
    fill = document.read("fill_value", lambda value: None if dtype is None else fill_value_from_json(value, dtype))
    chain = document.read("codecs", lambda value: CodecChain.from_json(value, foreign=foreign, location=()))
    shape = document.read("chunk_grid", _chunk_shape)
    document.attempt(("storage_transformers",), lambda: _refuse_transformers(members.get("storage_transformers")))
    document.finish()
    assert chain is not None
    assert dtype is not None
    return chain.bind(dtype, fill, ndim=None if shape is None else len(shape)), shape


def _refuse_transformers(items: Any) -> None:
    for item in [] if items is None else sequence(items):
        if not isinstance(item, Mapping) or item.get("must_understand", True) is not False:
            raise ValueError("are not supported")


def _chunk_shape(grid: Any) -> tuple[int, ...] | None:
    name = grid.get("name") if isinstance(grid, Mapping) else grid
    if name == "rectilinear":
        return None
    configuration = grid.get("configuration") if isinstance(grid, Mapping) else None
    if name != "regular" or not isinstance(configuration, Mapping):
        raise ValueError(f"must be a regular or rectilinear grid, not {grid!r}")
    return positive_integers(configuration.get("chunk_shape"), {})


def _from_v2(members: Mapping[str, Any]) -> tuple[BoundChain, tuple[int, ...]]:
    document = _Document(members)
    filters = document.attempt(("filters",), lambda: _filters(members.get("filters"))) or ()
    compressor = members.get("compressor")
    object_codec = next((item["id"] for item in (*filters, compressor) if config_id(item) in _OBJECT_CODECS), None)
    dtype = document.read("dtype", lambda value: dtype_from_json(value, zarr_format=2, object_codec=object_codec))
    shape = document.read("chunks", lambda value: positive_integers(value, {}))
    fill = document.attempt(("fill_value",), lambda: _v2_fill(members.get("fill_value"), dtype))
    order = members.get("order", "C")
    if order not in ("C", "F"):
        document.problems.append(Problem(("order",), f"must be 'C' or 'F', not {order!r}"))
    document.finish()
    assert dtype is not None
    assert shape is not None
    chain = v2_chain(filters, compressor, order=order, ndim=len(shape), dtype=dtype)
    if chain is None:
        names = [config_id(item) for item in (*filters, *([compressor] if compressor else []))]
        raise ConfigurationError(problems=(Problem(("filters",), f"no codec chain does what {names} do"),))
    return chain.bind(dtype, fill), shape


def _filters(value: Any) -> Sequence[Any]:
    return () if value is None else sequence(value)


def _v2_fill(value: Any, dtype: DataType | None) -> FillValue | None:
    return None if dtype is None else fill_value_from_json(value, dtype, zarr_format=2)
