"""Making, opening and comparing arrays on local disk, and getting at what was stored."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import zarr
from numpy.typing import NDArray


def stored(path: Path, data: Any, **options: Any) -> Any:
    """Create an array at ``path`` and write ``data`` to it in one assignment."""
    values = np.asarray(data)
    array = zarr.create_array(str(path), shape=values.shape, dtype=options.pop("dtype", values.dtype), **options)
    array[...] = values
    return array


def reopened(path: Path, mode: Any = "r") -> Any:
    """Open the array at ``path`` again, so that nothing is left of what the writer had in memory."""
    return zarr.open_array(str(path), mode=mode)


def assert_same(found: Any, expected: Any, what: object = "") -> None:
    """Equal shape and equal bits (equal values for objects); byte order does not count."""
    scalar_text = isinstance(found, np.bytes_ | np.str_) and isinstance(expected, np.generic | np.ndarray)
    found = np.asarray(found, expected.dtype if scalar_text else None)  # a scalar of text knows only its own length
    objects = found.dtype.kind in "OT" or np.asarray(expected).dtype.kind in "OT"
    if isinstance(expected, np.ndarray) and not objects:
        assert _native(found).dtype == _native(expected).dtype, what
    expected = np.asarray(expected)
    assert found.shape == expected.shape, f"{what}: shape {found.shape}, not {expected.shape}"
    if objects:
        assert found.tolist() == expected.tolist(), what
        return
    found = _native(found)
    same = found.tobytes() == expected.astype(found.dtype).tobytes()
    assert same, f"{what}: {found.ravel()[:8]!r}, not {expected.ravel()[:8]!r}"


def _native(array: NDArray[Any]) -> NDArray[Any]:
    return array.astype(array.dtype.newbyteorder("="))


def chunk_files(path: Path) -> list[Path]:
    """Files that hold chunks or shards of a v3 array, sorted."""
    return sorted(file for file in (path / "c").rglob("*") if file.is_file())


def inner_range(shard: bytes, inner_chunks: int, number: int) -> slice:
    """Where one inner chunk lies in a shard that has the default index (little endian, crc32c, at its end)."""
    index = struct.unpack(f"<{2 * inner_chunks}Q", shard[-4 - 16 * inner_chunks : -4])
    return slice(index[2 * number], index[2 * number] + index[2 * number + 1])


def flip(file: Path, at: int) -> None:
    """Damage one byte of a file."""
    content = bytearray(file.read_bytes())
    content[at] ^= 0xFF
    file.write_bytes(bytes(content))


def cut(file: Path, to: int) -> None:
    """Keep only the first bytes of a file."""
    file.write_bytes(file.read_bytes()[:to])


def read_and_write(array: Any, reference: Any, selection: Any, value: Any) -> None:
    """Compare a selection, assign to it on both sides, and compare everything."""
    assert_same(array[selection], reference[selection], selection)
    array[selection] = value
    reference[selection] = value
    assert_same(array[...], reference, selection)
