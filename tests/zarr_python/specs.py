"""Array specs as zarr makes them."""

from __future__ import annotations

from typing import Any

import numpy as np
import zarr
from zarr.core.array_spec import ArrayConfig, ArraySpec
from zarr.core.buffer import BufferPrototype, default_buffer_prototype
from zarr.dtype import parse_dtype


def spec_of(
    shape: tuple[int, ...],
    dtype: Any = "int16",
    fill_value: Any = 0,
    *,
    order: Any = "C",
    write_empty_chunks: bool = False,
    prototype: BufferPrototype | None = None,
) -> ArraySpec:
    """A spec for a NumPy dtype or one of zarr's."""
    zdtype = dtype if isinstance(dtype, zarr.dtype.ZDType) else parse_dtype(np.dtype(dtype), zarr_format=3)
    fill = None if fill_value is None else zdtype.cast_scalar(fill_value)
    config = ArrayConfig(order, write_empty_chunks)
    return ArraySpec(shape, zdtype, fill, config, prototype or default_buffer_prototype())
