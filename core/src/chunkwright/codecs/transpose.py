"""The ``transpose`` codec: permute the axes.

Specification: https://zarr-specs.readthedocs.io/en/latest/v3/codecs/transpose/. Name: ``transpose``.
Configuration: ``{"order": [1, 0, 2]}``; axis ``i`` of the encoded array is axis ``order[i]`` of the decoded one.
"""

from __future__ import annotations

from typing import Any

import attrs

from chunkwright.codecs._base import ArrayArrayCodec, Foreign, setting
from chunkwright.codecs._rules import integer, sequence
from chunkwright.errors import ConfigurationError
from chunkwright.spec import ChunkSpec

__all__ = ("Transpose",)


def _permutation(value: Any, foreign: Foreign) -> tuple[int, ...]:
    axis = integer(0)
    order = tuple(axis(item, foreign) for item in sequence(value))
    if sorted(order) != list(range(len(order))):
        raise ValueError(f"must be a permutation of the axes, not {list(order)}")
    return order


@attrs.frozen(kw_only=True)
class Transpose(ArrayArrayCodec):
    """Permute the axes of an array.

    Parameters
    ----------
    order
        Axis ``i`` of the encoded array is axis ``order[i]`` of the decoded one.

    Examples
    --------
    >>> Transpose(order=(1, 0)).to_json()
    {'name': 'transpose', 'configuration': {'order': [1, 0]}}
    """

    order: tuple[int, ...] = attrs.field(metadata=setting(_permutation))

    @property
    def name(self) -> str:
        """Name in Zarr v3 metadata."""
        return "transpose"

    def encoded_spec(self, spec: ChunkSpec) -> ChunkSpec:
        """Return the spec that the next codec is given.

        Parameters
        ----------
        spec
            What this codec is given.

        Returns
        -------
        ChunkSpec
            With permuted shape.

        Raises
        ------
        ConfigurationError
            When the chunk has another number of axes.
        """
        if len(self.order) != spec.ndim:
            raise ConfigurationError(
                "order does not have one entry per axis", codec=self.name, expected=spec.ndim, found=len(self.order)
            )
        return attrs.evolve(spec, shape=tuple(spec.shape[axis] for axis in self.order))
