"""A codec that a host brings along, which does nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import numpy as np

from chunkwright.codecs._base import Kind
from chunkwright.spec import ChunkSpec, DataType, Size, UnboundedSize


@attrs.frozen(eq=False)
class Host:
    """A codec of a host's own."""

    configuration: Mapping[str, Any] = attrs.field(factory=dict)
    name: str = "host"
    kind: Kind = "bytes->bytes"
    is_async: bool = False
    to: str | None = None

    def resolve(self, spec: ChunkSpec) -> ChunkSpec:
        return spec if self.to is None else attrs.evolve(spec, dtype=DataType(np.dtype(self.to)))

    def encoded_size(self, size: Size, spec: ChunkSpec) -> Size:
        return UnboundedSize()

    def decode_batch(self, items: Sequence[Any], spec: ChunkSpec) -> Sequence[Any]:
        return items

    def encode_batch(self, items: Sequence[Any], spec: ChunkSpec) -> Sequence[Any]:
        return items
