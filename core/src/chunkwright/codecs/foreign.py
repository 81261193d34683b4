"""Codecs that the host brings along: they stand for a :class:`chunkwright.ports.ForeignCodec` in a chain.

They are made by the factories given to ``CodecChain.from_json(..., foreign=...)`` or by an adapter. Nothing is
known of them but what the port says, so two of them are equal only when they hold the same object.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import attrs

from chunkwright.codecs._base import ArrayArrayCodec, ArrayBytesCodec, BytesBytesCodec, Codec
from chunkwright.spec import ChunkSpec, Size

if TYPE_CHECKING:
    from chunkwright.ports import ForeignCodec

__all__ = ("Foreign", "ForeignArrayArray", "ForeignArrayBytes", "ForeignBytesBytes", "foreign_codec")


@attrs.frozen(kw_only=True)
class Foreign(Codec):
    """A codec of the host's own. Only its three subclasses by kind are used.

    Parameters
    ----------
    foreign
        The codec.
    options
        Its configuration, for the metadata.
    """

    foreign: ForeignCodec = attrs.field(eq=id)
    options: Mapping[str, Any] = attrs.field(factory=dict, eq=False)

    @property
    def name(self) -> str:
        """Name in Zarr v3 metadata."""
        return self.foreign.name

    def configuration(self) -> dict[str, Any]:
        """Return the configuration as JSON values.

        Returns
        -------
        dict
            As it was read.
        """
        return dict(self.options)

    def encoded_size(self, size: Size, spec: ChunkSpec) -> Size:
        """Return how many bytes this codec makes, as far as it can tell.

        Parameters
        ----------
        size
            Bytes that it is given.
        spec
            Spec of the array.

        Returns
        -------
        Size
            The codec's own answer.
        """
        return self.foreign.encoded_size(size, spec)


@attrs.frozen(kw_only=True)
class ForeignArrayArray(Foreign, ArrayArrayCodec):
    """A codec of the host's own that turns an array into an array.

    Parameters
    ----------
    foreign
        The codec.
    options
        Its configuration, for the metadata.
    """

    def encoded_spec(self, spec: ChunkSpec) -> ChunkSpec:
        """Return the spec that the next codec is given.

        Parameters
        ----------
        spec
            What this codec is given.

        Returns
        -------
        ChunkSpec
            The codec's own answer.
        """
        return self.foreign.resolve(spec)

    def encoded_size(self, size: Size, spec: ChunkSpec) -> Size:
        """Return how many bytes the encoded array has.

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
        return ArrayArrayCodec.encoded_size(self, size, spec)


@attrs.frozen(kw_only=True)
class ForeignArrayBytes(Foreign, ArrayBytesCodec):
    """A codec of the host's own that turns an array into bytes.

    Parameters
    ----------
    foreign
        The codec.
    options
        Its configuration, for the metadata.
    """


@attrs.frozen(kw_only=True)
class ForeignBytesBytes(Foreign, BytesBytesCodec):
    """A codec of the host's own that turns bytes into bytes.

    Parameters
    ----------
    foreign
        The codec.
    options
        Its configuration, for the metadata.
    """


def foreign_codec(foreign: ForeignCodec, options: Mapping[str, Any] | None = None) -> Foreign:
    """Make a codec of one that the host brings along.

    Parameters
    ----------
    foreign
        The host's codec.
    options
        Its configuration, for the metadata.

    Returns
    -------
    Foreign
        Of the class for its kind.
    """
    by_kind: dict[str, type[Foreign]] = {
        "array->array": ForeignArrayArray,
        "array->bytes": ForeignArrayBytes,
        "bytes->bytes": ForeignBytesBytes,
    }
    return by_kind[foreign.kind](foreign=foreign, options=options or {})
