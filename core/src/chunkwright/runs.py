"""Divide a chain's codecs among backends: who runs what, and why.

For each codec the backends are asked in order of preference, and the first that supports it takes it.
Consecutive codecs of one backend form a run, so that a batch crosses into it once. Every refusal is kept,
because ``explain()`` and strict mode have to say why a codec is not run by the first backend.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

import attrs
import numpy as np

from chunkwright.codecs import ArrayArrayCodec, Codec, Foreign
from chunkwright.errors import UnsupportedCodecError
from chunkwright.ports import Backend, ForeignRun, Run, Step, Supported, Unsupported
from chunkwright.spec import ChunkSpec, FillValue, Size

__all__ = ("Choice", "form_runs", "make_steps")


@attrs.frozen
class Choice:
    """Who runs one codec, and why nobody before.

    Parameters
    ----------
    codec
        Name of the codec.
    backend
        Name of the backend, or ``"foreign"``.
    kernel
        What will run it there.
    refused
        The backends that were asked before: name and reason.
    """

    codec: str
    backend: str
    kernel: str
    refused: tuple[tuple[str, str], ...]


def make_steps(
    codecs: Sequence[Codec],
    spec: ChunkSpec,
    size: Size,
    max_bytes: int,
    *,
    encode_fill: Sequence[Backend] = (),
) -> list[Step]:
    """Thread specs and sizes through consecutive codecs.

    Parameters
    ----------
    codecs
        Bound codecs, in order of encoding.
    spec
        The array that the first of them is given (bytes->bytes: that of the array->bytes codec).
    size
        Bytes that the first of them is given.
    max_bytes
        Most bytes that decoding may make where the chain sets no bound.
    encode_fill
        Backends that encode the fill value for codecs whose arithmetic decides it. Only a sharding codec
        further down looks at that fill value, so by default nobody computes it.

    Returns
    -------
    list of Step
        One per codec.
    """
    steps: list[Step] = []
    for codec in codecs:
        encoded_spec = codec.encoded_spec(spec)
        if encode_fill and isinstance(codec, ArrayArrayCodec) and codec.encodes_fill_value:
            encoded_spec = attrs.evolve(encoded_spec, fill_value=_encoded_fill(codec, spec, encode_fill))
        encoded_size = encoded_spec.nbytes if codec.kind == "array->array" else codec.encoded_size(size, spec)
        steps.append(Step(codec, spec, encoded_spec, size, encoded_size, max_bytes=max_bytes))
        spec, size = encoded_spec, encoded_size
    return steps


def _encoded_fill(codec: Codec, spec: ChunkSpec, backends: Sequence[Backend]) -> FillValue:
    """Encode an array of one element that holds the fill value."""
    small = attrs.evolve(spec, shape=(1,) * spec.ndim)
    runs, _ = form_runs(make_steps([codec], small, small.nbytes, 1 << 20), backends)
    run = runs[0]
    assert isinstance(run, Run)
    encoded = run.backend.encode_arrays(run, [small.full()])[0]
    return FillValue.of(codec.encoded_spec(small).dtype, np.asarray(encoded).reshape(())[()])


def form_runs(
    steps: Sequence[Step], backends: Sequence[Backend]
) -> tuple[tuple[Run | ForeignRun, ...], tuple[Choice, ...]]:
    """Give each step to a backend and join neighbours.

    Parameters
    ----------
    steps
        In order of encoding.
    backends
        In order of preference.

    Returns
    -------
    tuple
        The runs in order of encoding, and a choice per step.

    Raises
    ------
    UnsupportedCodecError
        When no backend supports a codec.
    """
    chosen = [_choose(step, backends) for step in steps]
    runs: list[Run | ForeignRun] = []
    for backend, group in groupby(chosen, key=lambda item: item[0]):
        members = tuple(step for _, step, _ in group)
        if backend is None:
            runs.extend(ForeignRun(_foreign(step.codec).foreign, step) for step in members)
        else:
            runs.append(Run(backend, members, backend.compile(members)))
    return tuple(runs), tuple(choice for _, _, choice in chosen)


def _foreign(codec: Codec) -> Foreign:
    assert isinstance(codec, Foreign)
    return codec


def _choose(step: Step, backends: Sequence[Backend]) -> tuple[Backend | None, Step, Choice]:
    codec = step.codec
    if isinstance(codec, Foreign):
        kernel = "awaited" if codec.foreign.is_async else "python"
        # A host may stand in for a codec that a backend could have run, and say why.
        reason = getattr(codec.foreign, "reason", "a codec of the host's own")
        refused = tuple((backend.name, reason) for backend in backends)
        return None, step, Choice(codec.name, "foreign", kernel, refused)
    refusals: list[tuple[str, str]] = []
    for backend in backends:
        answer: Supported | Unsupported = backend.supports(codec, step.spec)
        if isinstance(answer, Supported):
            choice = Choice(codec.name, backend.name, answer.kernel, tuple(refusals))
            return backend, attrs.evolve(step, kernel=answer.kernel), choice
        refusals.append((backend.name, answer.reason))
    reasons = "; ".join(f"{name}: {reason}" for name, reason in refusals) or "no backend was given"
    raise UnsupportedCodecError(f"no backend runs it ({reasons})", codec=codec.name)
