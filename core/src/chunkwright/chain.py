"""Codec chains: the ``codecs`` of an array as a value, and bound to a data type.

``CodecChain.from_json`` reads metadata and reports everything that is wrong with it at once, each problem with its
location. ``bind`` gives each codec the data type and the fill value that the codec before it makes, so that nothing
is left open; ``BoundChain.prepare`` chooses backends for chunks of one shape (:mod:`chunkwright.prepared`).

A chain that was read writes the very JSON that it was read from, with its short forms and with codecs that nobody
here knows and that need not be understood. That JSON takes no part in comparisons.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import attrs
import numpy as np

from chunkwright._read_chain import order_problems, read_chain
from chunkwright.codecs import Codec, VLenBytes, VLenUTF8
from chunkwright.codecs._base import Foreign, Kind, below
from chunkwright.dtype_json import dtype_from_json, fill_value_from_json
from chunkwright.errors import ConfigurationError, Problem, UnknownCodecError
from chunkwright.spec import ChunkSpec, DataType, FillValue, Size

if TYPE_CHECKING:
    from chunkwright.ports import Backend
    from chunkwright.prepared import PreparedChain

__all__ = ("BoundChain", "CodecChain")

MAX_CHUNK_BYTES = 2**31
"""Most bytes of a decoded chunk whose chain sets no bound (strings, mostly)."""


def _as_tuple(codecs: Iterable[Codec]) -> tuple[Codec, ...]:
    return tuple(codecs)


@attrs.frozen
class CodecChain:
    """Codecs in order of encoding, not bound to a data type.

    Parameters
    ----------
    codecs
        Any number of array->array codecs, one array->bytes codec, any number of bytes->bytes codecs.
    document
        The JSON that they were read from, when there is one.

    Examples
    --------
    >>> chain = CodecChain.from_json([{"name": "bytes", "configuration": {"endian": "little"}}, "crc32c"])
    >>> chain.bind("int16", 0).encoded_size((2, 3))
    FixedSize(nbytes=16)
    >>> CodecChain.from_json([{"name": "gzip", "configuration": {"level": 99}}])
    Traceback (most recent call last):
    chunkwright.errors.ConfigurationError: codecs[0].configuration.level: must be between 0 and 9, not 99;
    codecs: there is no array->bytes codec
    """

    codecs: tuple[Codec, ...] = attrs.field(converter=_as_tuple)
    _document: Any = attrs.field(default=None, eq=False, repr=False, kw_only=True)

    def __attrs_post_init__(self) -> None:
        problems = order_problems([(at, codec.kind) for at, codec in enumerate(self.codecs)])
        if problems:
            raise ConfigurationError(problems=tuple(_relocated(("codecs",), problems)))

    @classmethod
    def from_codecs(cls, codecs: Iterable[Codec]) -> Self:
        """Make a chain of codecs.

        Parameters
        ----------
        codecs
            In order of encoding.

        Returns
        -------
        Self
            The chain.

        Raises
        ------
        ConfigurationError
            When their kinds do not make a chain.
        """
        return cls(codecs)

    @classmethod
    def from_json(
        cls,
        document: Sequence[Any],
        *,
        foreign: Foreign | None = None,
        location: tuple[str | int, ...] = ("codecs",),
    ) -> Self:
        """Read a chain from Zarr v3 metadata.

        Parameters
        ----------
        document
            The list of codecs: names, or objects with ``name``, ``configuration`` and ``must_understand``.
        foreign
            Codecs of the host's own, for this chain and those within: by name a callable that is given the
            configuration and returns a :class:`chunkwright.ports.ForeignCodec`. They come before ours.
        location
            Where the list stands in the metadata, for problems.

        Returns
        -------
        Self
            The chain.

        Raises
        ------
        UnknownCodecError
            When nothing is wrong but that some codecs are unknown.
        ConfigurationError
            With every problem that was found.
        """
        try:
            read = read_chain(document, foreign or {})
            kept = copy.deepcopy(document)
        except RecursionError:
            raise ConfigurationError(problems=(Problem(location, "are nested too deeply"),)) from None
        problems = [*read.problems, *order_problems(read.kinds)]
        if problems:
            only_unknown = len(read.unknown) == len(problems)
            error = UnknownCodecError if only_unknown else ConfigurationError
            codec = read.unknown[0] if only_unknown else None
            raise error(problems=tuple(_relocated(location, problems)), codec=codec)
        return cls(read.codecs, document=list(kept))

    def to_json(self) -> list[Any]:
        """Return the chain as Zarr v3 metadata.

        Returns
        -------
        list
            What the chain was read from, or else the codecs in their canonical form.
        """
        if self._document is not None:
            return list(copy.deepcopy(self._document))
        return [codec.to_json() for codec in self.codecs]

    def bind(
        self,
        dtype: DataType | np.dtype[Any] | str | Mapping[str, Any],
        fill_value: Any = None,
        *,
        ndim: int | None = None,
    ) -> BoundChain:
        """Fix the data type and the fill value.

        Parameters
        ----------
        dtype
            Data type of decoded chunks: a value, a NumPy dtype, or Zarr v3 JSON.
        fill_value
            Fill value: a value, a Python or NumPy scalar, or Zarr v3 JSON; None for the data type's zero.
        ndim
            Axes of a chunk, when known. Only foreign array->array codecs may want it.

        Returns
        -------
        BoundChain
            With nothing left open.

        Raises
        ------
        ConfigurationError
            When a codec cannot encode what it is given; its problems have their place in the chain.
        """
        given = self._dtype(dtype)
        fill = _fill_value(fill_value, given)
        spec = ChunkSpec((1,) * (1 if ndim is None else ndim), given, fill)
        bound: list[Codec] = []
        for at, codec in enumerate(self.codecs):
            try:
                bound.append(codec.bind(spec.dtype, spec.fill_value))
            except ConfigurationError as error:
                raise ConfigurationError(problems=tuple(below(("codecs", at), error)), codec=error.codec) from None
            if codec.kind == "array->array":
                # Only the data type counts here, so each codec gets a chunk of the shape that it wants.
                spec = attrs.evolve(bound[-1].encoded_spec(_fitting(bound[-1], spec)), shape=spec.shape)
        return BoundChain(tuple(bound), given, fill)

    def _dtype(self, dtype: DataType | np.dtype[Any] | str | Mapping[str, Any]) -> DataType:
        if isinstance(dtype, DataType):
            return dtype
        if not isinstance(dtype, np.dtype):
            return dtype_from_json(dtype)
        if isinstance(dtype, np.dtypes.StringDType):
            return DataType(dtype, "string")
        if dtype != np.dtype(object):
            return DataType(dtype)
        return DataType(dtype, self._holds())

    def _holds(self) -> Any:
        """What objects are is not in NumPy's dtype; the codecs that store only one thing tell."""
        names = {codec.name for codec in self.codecs}
        if VLenUTF8().name in names:
            return VLenUTF8.holds
        return VLenBytes.holds if VLenBytes().name in names else "object"


@attrs.frozen
class BoundChain:
    """Codecs bound to a data type and a fill value.

    Made by :meth:`CodecChain.bind`. Immutable, hashable; pickles.

    Parameters
    ----------
    codecs
        In order of encoding, each with nothing left open.
    dtype
        Data type of decoded chunks.
    fill_value
        Fill value of decoded chunks.

    Examples
    --------
    >>> bound = CodecChain.from_json(["bytes", {"name": "gzip", "configuration": {"level": 1}}]).bind("uint8", 7)
    >>> bound.array_bytes, bound.bytes_bytes
    (Bytes(endian=None, declared=False), (Gzip(level=1),))
    """

    codecs: tuple[Codec, ...]
    dtype: DataType
    fill_value: FillValue

    @property
    def array_array(self) -> tuple[Codec, ...]:
        """The array->array codecs."""
        return self._of("array->array")

    @property
    def array_bytes(self) -> Codec:
        """The array->bytes codec."""
        return self._of("array->bytes")[0]

    @property
    def bytes_bytes(self) -> tuple[Codec, ...]:
        """The bytes->bytes codecs."""
        return self._of("bytes->bytes")

    def _of(self, kind: Kind) -> tuple[Codec, ...]:
        return tuple(codec for codec in self.codecs if codec.kind == kind)

    def unbound(self) -> CodecChain:
        """Return the bound codecs as a chain that may be bound again.

        Returns
        -------
        CodecChain
            The same codecs.
        """
        return CodecChain.from_codecs(self.codecs)

    def encoded_size(self, chunk_shape: Sequence[int]) -> Size:
        """Return what is known of the size of an encoded chunk.

        Parameters
        ----------
        chunk_shape
            Elements along each axis.

        Returns
        -------
        Size
            Fixed, bounded or unbounded.

        Raises
        ------
        ConfigurationError
            When the shape does not fit the codecs.
        """
        spec = ChunkSpec(tuple(chunk_shape), self.dtype, self.fill_value)
        size = spec.nbytes
        for codec in self.codecs:
            size, spec = codec.encoded_size(size, spec), codec.encoded_spec(spec)
        return size

    def prepare(
        self, chunk_shape: Sequence[int], *, backends: Sequence[Backend], max_chunk_bytes: int = MAX_CHUNK_BYTES
    ) -> PreparedChain:
        """Make the chain ready for chunks of one shape.

        Parameters
        ----------
        chunk_shape
            Elements along each axis.
        backends
            In order of preference: the first that supports a codec takes it.
        max_chunk_bytes
            Most bytes of a decoded chunk whose chain sets no bound.

        Returns
        -------
        PreparedChain
            Immutable, safe to share between threads.

        Raises
        ------
        UnsupportedCodecError
            When no backend supports a codec.
        ConfigurationError
            When the shape does not fit the codecs.
        """
        from chunkwright.prepared import prepare  # prepared chains hold chains

        return prepare(self, chunk_shape, backends, max_chunk_bytes)


def _relocated(location: tuple[str | int, ...], problems: Iterable[Problem]) -> Iterator[Problem]:
    for problem in problems:
        yield Problem((*location, *problem.location), problem.message)


def _fitting(codec: Codec, spec: ChunkSpec) -> ChunkSpec:
    order = getattr(codec, "order", None)
    return spec if order is None else attrs.evolve(spec, shape=(1,) * len(order))


def _fill_value(value: Any, dtype: DataType) -> FillValue:
    """Take a fill value as it comes: only JSON has texts, lists and objects for other data types."""
    if isinstance(value, FillValue):
        return value
    if isinstance(value, str | list | Mapping) or (type(value) is int and dtype.numpy.kind in "mM"):
        return fill_value_from_json(value, dtype)
    try:
        return FillValue.of(dtype, value)
    except (TypeError, ValueError, OverflowError) as error:
        raise ConfigurationError(f"{value!r} does not fit as a fill value of {dtype.numpy} ({error})") from None
