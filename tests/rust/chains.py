"""Chains prepared for one backend, and batches of whole chunks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from chunkwright import CodecChain, PreparedChain
from chunkwright.ports import Backend, Run
from chunkwright_rust import RustBackend

LITTLE: dict[str, Any] = {"name": "bytes", "configuration": {"endian": "little"}}
BIG: dict[str, Any] = {"name": "bytes", "configuration": {"endian": "big"}}
BYTES: dict[str, Any] = {"name": "bytes"}
ZSTD: dict[str, Any] = {"name": "zstd", "configuration": {"level": 1}}
RUST = RustBackend()


def prepare(
    codecs: Sequence[Any],
    dtype: Any,
    shape: Sequence[int],
    *,
    fill_value: Any = 0,
    backends: Sequence[Backend] = (RUST,),
    **options: Any,
) -> PreparedChain:
    """Prepare a chain given as JSON."""
    return (
        CodecChain.from_json(list(codecs))
        .bind(np.dtype(dtype), fill_value)
        .prepare(shape, backends=backends, **options)
    )


def only_run(chain: PreparedChain) -> Run:
    """The one run of a chain that one backend can do."""
    (run,) = chain.runs
    assert isinstance(run, Run)
    return run


def poisson(shape: Sequence[int], dtype: Any) -> Any:
    """Compressible values of any fixed-length dtype, few of them 0."""
    numbers = np.random.default_rng(7).poisson(40, tuple(shape))
    return numbers.astype(dtype)
