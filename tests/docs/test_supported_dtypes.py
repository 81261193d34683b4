"""The table of data types lists each that zarr-python registers, and says what is so."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import zarr
from zarr.core.dtype import VariableLengthBytes, data_type_registry
from zarr.storage import MemoryStore

from chunkwright_zarr import explain
from tests.docs.test_supported import PAGE, cells
from tests.support.arrays import assert_same
from tests.support.pipelines import DEFAULT, Pipeline, pipeline

__all__ = ("pipeline",)

LINES = [cells(line) for line in PAGE.read_text("utf-8").splitlines() if line.startswith("| `")]
ROWS = [line for line in LINES if len(line) == 3]

# Where the name of Zarr v3 is not NumPy's.
DTYPES: dict[str, Any] = {
    "fixed_length_utf32": "<U5",
    "null_terminated_bytes": "S5",
    "numpy.datetime64": "<M8[10ms]",
    "numpy.timedelta64": "<m8[D]",
    "raw_bytes": "V3",
    "string": str,
    "struct": np.dtype([("x", "<f4"), ("z", [("w", "?")])]),
    "variable_length_bytes": VariableLengthBytes(),
}


def values_of(name: str, dtype: Any) -> Any:
    """Six values, not all of them alike."""
    if name in ("string", "variable_length_bytes"):
        texts = ["", "a", "äöü", "𝄞" * 9, "b", "long " * 50]
        return np.array(texts if name == "string" else [text.encode() for text in texts], object).reshape(2, 3)
    native = np.dtype(dtype)
    if name == "bool":
        return np.array([[True, False, True], [True, True, False]])
    if native.kind in "biufcmMUS":
        return np.arange(6).astype(native).reshape(2, 3)
    return np.arange(6 * native.itemsize, dtype="u1").view(native).reshape(2, 3)


def test_the_table_lists_every_data_type_that_zarr_registers() -> None:
    zarr.zeros((1,), store={})  # registers them
    assert sorted(row[0] for row in ROWS) == sorted(data_type_registry.contents)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_a_row_tells_what_an_array_does(pipeline: Pipeline, row: list[str]) -> None:
    name, *told = row
    dtype = DTYPES.get(name, name)
    for zarr_format, supported in zip((2, 3), told, strict=True):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            store = MemoryStore()
            array = zarr.create_array(store, shape=(2, 3), chunks=(2, 2), dtype=dtype, zarr_format=zarr_format)  # type: ignore[arg-type]
            values = values_of(name, dtype)
            array[...] = values
            assert (explain(array).read.path != "default") is (supported == "yes")
            with Pipeline(DEFAULT).use():
                assert_same(zarr.open_array(store)[...], array[...])
            assert_same(np.asarray(array[...], values.dtype), values)
