"""The tables of supported codecs say what is so."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from chunkwright import ChunkSpec, DataType, FillValue, ReferenceBackend
from chunkwright.codecs import CODECS, KNOWN, Codec, find_codec, numcodecs_codec
from chunkwright_numcodecs import NumcodecsBackend
from chunkwright_rust import RustBackend

PAGE = Path(__file__).resolve().parent.parent.parent / "docs" / "supported.md"
IMPLEMENTATIONS = (PAGE.parent.parent / "tests" / "interop" / "implementations.py").read_text("utf-8")


def cells(line: str) -> list[str]:
    """Return what stands between the bars of a table's row."""
    return [cell.strip(" `") for cell in line.strip("|").split("|")]


COLUMNS = ("codec", "kind", "rust", "numcodecs", "reference")
LINES = [cells(line) for line in PAGE.read_text("utf-8").splitlines() if line.startswith("| `")]
ROWS = [dict(zip(COLUMNS, line, strict=True)) for line in LINES if len(line) == len(COLUMNS)]

# An alias of `bytes` in old metadata.
ALIASES = {"endian"}

LITTLE = {"name": "bytes", "configuration": {"endian": "little"}}

CONFIGURATIONS: dict[str, dict[str, Any]] = {
    "cast_value": {"data_type": "int16"},
    "sharding_indexed": {"chunk_shape": [1], "codecs": [LITTLE], "index_codecs": [LITTLE]},
    "transpose": {"order": [0]},
    "numcodecs.astype": {"encode_dtype": "<f4", "decode_dtype": "<f8"},
    "numcodecs.bitround": {"keepbits": 3},
    "numcodecs.categorize": {"labels": ["a"], "dtype": "<U1"},
    "numcodecs.delta": {"dtype": "<f8"},
    "numcodecs.fixedscaleoffset": {"offset": 0, "scale": 1, "dtype": "<f8"},
    "numcodecs.quantize": {"digits": 2, "dtype": "<f8"},
    "numcodecs.vlen-array": {"dtype": "<f8"},
}


def codec(name: str) -> Codec:
    """Make a codec with the least configuration that it takes."""
    configuration = CONFIGURATIONS.get(name, {})
    found = find_codec(name)
    if found is not None:
        return found[1](configuration)
    return numcodecs_codec(name.removeprefix("numcodecs."), configuration)


def spec(name: str) -> ChunkSpec:
    """Describe a chunk that a codec can encode."""
    variable = {"vlen-utf8": "string", "vlen-bytes": "bytes"}.get(name)
    dtype = DataType(np.dtype(object), variable) if variable else DataType(np.dtype("<f8"))
    return ChunkSpec((4,), dtype, FillValue.of(dtype, None))


OTHERS = [cells(line) for line in PAGE.read_text("utf-8").splitlines() if line.endswith(".py` |")]


@pytest.mark.parametrize("row", OTHERS, ids=lambda row: row[0])
def test_another_implementation_is_tested_in_the_version_that_is_told(row: list[str]) -> None:
    package, told = row[1].split()
    assert version(package) == told
    assert package.replace("-", "_") in (PAGE.parent.parent / row[-1]).read_text("utf-8") + IMPLEMENTATIONS


def test_the_tables_list_every_codec_once() -> None:
    names = [row["codec"] for row in ROWS]
    assert sorted(names) == sorted(CODECS.keys() - ALIASES | {f"numcodecs.{name}" for name in KNOWN})


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["codec"])
def test_a_row_tells_the_kind_and_who_runs_the_codec(row: dict[str, str]) -> None:
    name = row["codec"]
    assert row["kind"] == codec(name).kind
    for backend in (RustBackend(), NumcodecsBackend(), ReferenceBackend()):
        told = row[backend.name]
        if told == "core":
            assert name == "sharding_indexed"
            continue
        answer = backend.supports(codec(name), spec(name))
        if told.startswith("with ") and not answer:
            assert told.removeprefix("with ") in answer.reason.casefold()
        else:
            assert bool(answer) is (told != "no"), answer
