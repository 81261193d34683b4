"""Data types in the Zarr v3 JSON that zarr writes, for comparisons with zarr."""

from __future__ import annotations

from typing import Any

INTEGERS = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
FLOATS = ["float16", "float32", "float64"]
COMPLEX = ["complex64", "complex128"]

TIMES: list[Any] = [
    {"name": f"numpy.{kind}64", "configuration": {"unit": unit, "scale_factor": scale}}
    for kind in ("datetime", "timedelta")
    for unit, scale in (("Y", 1), ("ns", 1), ("s", 10), ("μs", 1), ("generic", 1))
]

FIXED_LENGTH: list[Any] = [
    {"name": "fixed_length_utf32", "configuration": {"length_bytes": 12}},
    {"name": "null_terminated_bytes", "configuration": {"length_bytes": 5}},
    {"name": "raw_bytes", "configuration": {"length_bytes": 3}},
]


def struct(**fields: Any) -> Any:
    """Return the data type of records."""
    members = [{"name": name, "data_type": dtype} for name, dtype in fields.items()]
    return {"name": "struct", "configuration": {"fields": members}}


RECORDS: list[Any] = [
    struct(a="int16", b="float64"),
    struct(a="int8", c="bool"),
    struct(a=FIXED_LENGTH[1]),
    struct(a="int16", b=struct(t=TIMES[1], s=FIXED_LENGTH[1])),
    {"name": "structured", "configuration": {"fields": [["a", "float32"], ["b", "complex64"]]}},
]

VARIABLE = ["string", "bytes", "variable_length_bytes"]

FIXED: list[Any] = ["bool", *INTEGERS, *FLOATS, *COMPLEX, *TIMES, *FIXED_LENGTH, *RECORDS]
ALL: list[Any] = [*FIXED, *VARIABLE]
