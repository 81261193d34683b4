"""``cast_value``: conversion of values to another data type, by the library that zarr uses (``cast-value-rs``).

The codec is not run without it: rounding and ranges are the codec's whole point, and a second implementation would
differ somewhere. Versions before 0.4.2 transpose arrays that are not in C order.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chunkwright.codecs import CastValue, ScalarMap
from chunkwright.kernels import Kernel
from chunkwright.ports import Step
from chunkwright_numcodecs._library import panics_as_errors

__all__ = ("cast_value_kernel", "missing_library")

_OLDEST = (0, 4, 2)


def missing_library() -> str | None:
    """Say why the codec cannot be run.

    Returns
    -------
    str or None
        The reason; None when it can.
    """
    try:
        import cast_value_rs  # noqa: F401
    except ImportError:
        return "needs the library cast-value-rs"
    try:
        found = version("cast-value-rs")
    except PackageNotFoundError:
        return None
    numbers = tuple(int(part) for part in found.split(".")[:3] if part.isdigit())
    return None if numbers >= _OLDEST else f"needs cast-value-rs 0.4.2, found {found}"


def cast_value_kernel(step: Step) -> Kernel:
    """Compile ``cast_value``.

    Parameters
    ----------
    step
        The step.

    Returns
    -------
    Kernel
        Encoding raises what the library raises when a value cannot be converted.
    """
    codec = step.codec
    assert isinstance(codec, CastValue)
    decoded, encoded = step.spec.dtype.numpy, step.encoded_spec.dtype.numpy
    tables = codec.scalar_map or ScalarMap()
    forward = _cast(codec, decoded, encoded, tables.encode)
    backward = _cast(codec, encoded, decoded, tables.decode)

    def decode(array: NDArray[Any]) -> NDArray[Any]:
        with panics_as_errors("cast_value"):
            return backward(array)

    return Kernel(codec="cast_value", decode=decode, encode=forward)


def _cast(
    codec: CastValue, source: np.dtype[Any], target: np.dtype[Any], pairs: Any
) -> Callable[[NDArray[Any]], NDArray[Any]]:
    from cast_value_rs import cast_array

    # The library takes arrays in the machine's byte order only, and panics over arrays that are not aligned.
    source, native = source.newbyteorder("="), target.newbyteorder("=")
    read = int if source.kind in "iu" else float
    write = int if target.kind in "iu" else float
    table = None if pairs is None else {read(key): write(value) for key, value in pairs}

    def cast(array: NDArray[Any]) -> NDArray[Any]:
        result: NDArray[Any] = cast_array(
            np.require(array, source, "A"),
            target_dtype=native,
            rounding_mode=codec.rounding,
            out_of_range_mode=codec.out_of_range,
            scalar_map_entries=table,
        )
        return result

    return cast
