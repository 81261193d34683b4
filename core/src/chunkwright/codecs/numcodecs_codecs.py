"""numcodecs' codecs: ``numcodecs.<id>`` in Zarr v3 metadata, ``{"id": <id>}`` in Zarr v2.

Documentation: https://numcodecs.readthedocs.io/. Configuration: the options of the codec's ``get_config()``, for
instance ``{"name": "numcodecs.delta", "configuration": {"dtype": "<i4"}}``.

There is one class a kind; :data:`KNOWN` has the ids, their kinds and their options. Nothing here imports numcodecs.
Options are passed on as they are written: what they mean is numcodecs' business, except for data types, which
later codecs see.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, Self

import attrs
import numpy as np

from chunkwright.codecs._base import ArrayArrayCodec, ArrayBytesCodec, BytesBytesCodec, Codec, Foreign
from chunkwright.codecs._numcodecs_table import KNOWN
from chunkwright.codecs._options import Options
from chunkwright.codecs._sizes import plus
from chunkwright.dtype_json import cast_fill_value
from chunkwright.errors import ConfigurationError, Problem
from chunkwright.spec import ChunkSpec, DataType, FillValue, Size

__all__ = ("KNOWN", "NumcodecsArrayArray", "NumcodecsArrayBytes", "NumcodecsBytesBytes", "numcodecs_codec")

PREFIX = "numcodecs."

_CHECKSUMS = ("adler32", "crc32", "crc32c", "fletcher32", "jenkins_lookup3")

_DTYPE_OPTIONS = ("astype", "decode_dtype", "dtype", "encode_dtype")

# The option that names the data type of the decoded array. Where it may be left out, zarr fills it in.
_DECODED_DTYPE = {
    "astype": "decode_dtype",
    "categorize": "dtype",
    "delta": "dtype",
    "fixedscaleoffset": "dtype",
    "quantize": "dtype",
}

# The option that names the data type of the encoded array.
_ENCODED_DTYPE = {
    "astype": "encode_dtype",
    "categorize": "astype",
    "delta": "astype",
    "fixedscaleoffset": "astype",
    "quantize": "astype",
}


# Kinds of NumPy data types that a codec is made for; no entry for those of a fixed number of bytes.
_KINDS = {"bitround": "f", "categorize": "UOT", "packbits": "b", "quantize": "f"}

_FIXED = "biufcmMSUV"

# Codecs whose options may name NumPy's data type of objects.
_OBJECTS = ("categorize", "vlen-array")


@attrs.frozen(kw_only=True)
class _Numcodecs(Codec):
    codec_name: str
    options: Options = attrs.field(factory=Options, converter=Options)

    @property
    def name(self) -> str:
        """Name in Zarr v3 metadata."""
        return PREFIX + self.codec_name

    def configuration(self) -> dict[str, Any]:
        """Return the configuration as JSON values.

        Returns
        -------
        dict
            The options that were given.
        """
        return self.options.to_json()

    def problems(self) -> Iterator[Problem]:
        """Yield what is wrong with the configuration as a whole.

        Yields
        ------
        Problem
            Located below ``configuration``.
        """
        known = KNOWN.get(self.codec_name)
        if known is None or known.kind != self.kind:
            yield Problem((), f"no {self.kind} codec of numcodecs has the id {self.codec_name!r}")
            return
        for option in self.options:
            if option not in (*known.required, *known.optional):
                yield Problem(("configuration", option), "unknown key")
        for option in known.required:
            if self.options.get(option) is None:
                yield Problem(("configuration", option), "is missing")
        yield from self._dtype_problems()

    def _dtype_problems(self) -> Iterator[Problem]:
        for option in _DTYPE_OPTIONS:
            value = self.options.get(option)
            if value is not None and not _is_dtype(value, objects=self.codec_name in _OBJECTS):
                yield Problem(("configuration", option), f"must be a NumPy data type, not {value!r}")


def _is_dtype(value: Any, *, objects: bool) -> bool:
    if not isinstance(value, str):
        return False
    try:
        dtype = np.dtype(value)
    except (TypeError, ValueError, SyntaxError):
        return False
    return objects or not dtype.hasobject


@attrs.frozen(kw_only=True)
class NumcodecsArrayArray(_Numcodecs, ArrayArrayCodec):
    """A codec of numcodecs that turns an array into an array.

    Parameters
    ----------
    codec_name
        numcodecs' id, without the prefix that Zarr v3 names have.
    options
        numcodecs' options, as JSON.

    Examples
    --------
    >>> codec = NumcodecsArrayArray(codec_name="delta", options={"dtype": "<i4", "astype": "<i2"})
    >>> dtype = DataType(np.dtype("<i4"))
    >>> codec.name, codec.encoded_spec(ChunkSpec((8,), dtype, FillValue.of(dtype, 0))).dtype.numpy
    ('numcodecs.delta', dtype('int16'))
    """

    @property
    def decoded_dtype(self) -> np.dtype[Any] | None:
        """What the options say of the data type of the decoded array, None when they say nothing."""
        value = self.options.get(_DECODED_DTYPE.get(self.codec_name, ""))
        return None if value is None else np.dtype(value)

    def bind(self, dtype: DataType, fill_value: FillValue) -> Self:
        """Fill in the data type of the decoded array where it may be left out.

        Parameters
        ----------
        dtype, fill_value
            What the codec is given to encode.

        Returns
        -------
        Self
            The codec.

        Raises
        ------
        ConfigurationError
            When the codec is not made for this data type.
        """
        kinds = _KINDS.get(self.codec_name, _FIXED)
        if dtype.numpy.kind not in kinds:
            raise ConfigurationError(f"cannot encode {dtype.variable or dtype.numpy}", codec=self.name)
        option = _DECODED_DTYPE.get(self.codec_name)
        if option is None or self.options.get(option) is not None:
            return self
        return attrs.evolve(self, options=self.options.with_value(option, str(dtype.numpy)))

    def encoded_spec(self, spec: ChunkSpec) -> ChunkSpec:
        """Return the spec that the next codec is given.

        Parameters
        ----------
        spec
            What this codec is given.

        Returns
        -------
        ChunkSpec
            With the data type that the options name; ``packbits`` has a shape of its own.
        """
        if self.codec_name == "packbits":
            return _recast(attrs.evolve(spec, shape=(1 + math.ceil(spec.elements / 8),)), np.dtype(np.uint8))
        option = _ENCODED_DTYPE.get(self.codec_name)
        value = self.options.get(option) if option else None
        if value is None and self.codec_name == "categorize":
            value = "u1"
        return spec if value is None else _recast(spec, np.dtype(value))


def _recast(spec: ChunkSpec, numpy: np.dtype[Any]) -> ChunkSpec:
    dtype = DataType(numpy)
    return attrs.evolve(spec, dtype=dtype, fill_value=cast_fill_value(spec.fill_value, dtype))


@attrs.frozen(kw_only=True)
class NumcodecsArrayBytes(_Numcodecs, ArrayBytesCodec):
    """A codec of numcodecs that turns an array into bytes.

    Parameters
    ----------
    codec_name
        numcodecs' id, without the prefix that Zarr v3 names have.
    options
        numcodecs' options, as JSON.

    Examples
    --------
    >>> NumcodecsArrayBytes(codec_name="pcodec", options={"level": 8}).to_json()
    {'name': 'numcodecs.pcodec', 'configuration': {'level': 8}}
    """


@attrs.frozen(kw_only=True)
class NumcodecsBytesBytes(_Numcodecs, BytesBytesCodec):
    """A codec of numcodecs that turns bytes into bytes.

    Parameters
    ----------
    codec_name
        numcodecs' id, without the prefix that Zarr v3 names have.
    options
        numcodecs' options, as JSON.

    Examples
    --------
    >>> dtype = DataType(np.dtype("<i4"))
    >>> NumcodecsBytesBytes(codec_name="shuffle").bind(dtype, FillValue.of(dtype, 0)).configuration()
    {'elementsize': 4}
    """

    def bind(self, dtype: DataType, fill_value: FillValue) -> Self:
        """Fill in the size of an element for ``shuffle``.

        Parameters
        ----------
        dtype, fill_value
            What the chain's array->bytes codec is given.

        Returns
        -------
        Self
            The codec.
        """
        if self.codec_name != "shuffle" or self.options.get("elementsize") is not None:
            return self
        return attrs.evolve(self, options=self.options.with_value("elementsize", dtype.numpy.itemsize))

    def encoded_size(self, size: Size, spec: ChunkSpec) -> Size:
        """Return how many bytes this codec makes.

        Parameters
        ----------
        size
            Bytes that it is given.
        spec
            Spec of the array.

        Returns
        -------
        Size
            Four more for checksums, the same for ``shuffle``.
        """
        if self.codec_name in _CHECKSUMS:
            return plus(size, 4)
        return size if self.codec_name == "shuffle" else ArrayBytesCodec.encoded_size(self, size, spec)


def numcodecs_codec(
    codec_name: str, options: Mapping[str, Any], *, foreign: Foreign | None = None
) -> NumcodecsArrayArray | NumcodecsArrayBytes | NumcodecsBytesBytes:
    """Make the codec of one of numcodecs' ids.

    Parameters
    ----------
    codec_name
        The id.
    options
        numcodecs' options, as JSON.
    foreign
        Not used.

    Returns
    -------
    NumcodecsArrayArray, NumcodecsArrayBytes or NumcodecsBytesBytes
        Of the class for the codec's kind.

    Raises
    ------
    ConfigurationError
        When the id or an option is unknown.
    """
    classes: dict[str, type[Any]] = {
        "array->array": NumcodecsArrayArray,
        "array->bytes": NumcodecsArrayBytes,
        "bytes->bytes": NumcodecsBytesBytes,
    }
    known = KNOWN.get(codec_name)
    if known is None:
        raise ConfigurationError(f"numcodecs has no codec of the id {codec_name!r}", codec=PREFIX + codec_name)
    made: NumcodecsArrayArray | NumcodecsArrayBytes | NumcodecsBytesBytes = classes[known.kind](
        codec_name=codec_name, options=options
    )
    return made
