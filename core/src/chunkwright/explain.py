"""Tell who runs each codec of a prepared chain, with which kernel, and why nobody else does.

An explanation is a value: it prints as a table and turns into JSON. It is made from what ``prepare`` wrote
down, so it never guesses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import attrs

if TYPE_CHECKING:
    from chunkwright.prepared import PreparedChain

__all__ = ("ExplainedRun", "Explanation")


@attrs.frozen
class ExplainedRun:
    """Consecutive codecs that one backend runs.

    Parameters
    ----------
    level
        Where in the chain: ``chunk``, ``inner chunk``, ``index``, and so on for nested shards.
    codecs
        Their names, in order of encoding.
    backend
        Name of the backend; ``foreign`` for a codec of the host's own, ``core`` for the shard itself.
    kernels
        What runs each codec there.
    reason
        Why the backends before it do not; empty when it was the first choice.

    Examples
    --------
    >>> from chunkwright import CodecChain, ReferenceBackend
    >>> chain = CodecChain.from_json([{"name": "bytes", "configuration": {"endian": "little"}}])
    >>> explanation = chain.bind("int16", 0).prepare((2,), backends=[ReferenceBackend()]).explain()
    >>> explanation.runs[0].codecs, explanation.runs[0].backend
    (('bytes',), 'reference')
    """

    level: str
    codecs: tuple[str, ...]
    backend: str
    kernels: tuple[str, ...]
    reason: str


@attrs.frozen
class Explanation:
    """Who runs each codec of a chain.

    Parameters
    ----------
    runs
        In order of encoding, level by level.
    versions
        Name and version of each backend.

    Examples
    --------
    >>> from chunkwright import CodecChain, ReferenceBackend
    >>> chain = CodecChain.from_json([{"name": "bytes", "configuration": {"endian": "little"}}, "crc32c"])
    >>> explanation = chain.bind("int16", 0).prepare((2, 2), backends=[ReferenceBackend()]).explain()
    >>> [(run.codecs, run.backend) for run in explanation.runs]
    [(('bytes', 'crc32c'), 'reference')]
    """

    runs: tuple[ExplainedRun, ...]
    versions: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, chain: PreparedChain) -> Self:
        """Explain a prepared chain.

        Parameters
        ----------
        chain
            The prepared chain.

        Returns
        -------
        Self
            The explanation.
        """
        versions = tuple((backend.name, backend.version) for backend in chain.backends)
        return cls(tuple(_explain(chain, "")), versions)

    def to_json(self) -> dict[str, Any]:
        """Return the explanation as JSON values.

        Returns
        -------
        dict
            ``runs`` and ``versions``.
        """
        return {"runs": [attrs.asdict(run) for run in self.runs], "versions": dict(self.versions)}

    def __str__(self) -> str:
        rows = [("level", "codecs", "backend", "kernels", "reason")]
        rows += [
            (run.level, " ".join(run.codecs), run.backend, " ".join(filter(None, run.kernels)), run.reason)
            for run in self.runs
        ]
        widths = [max(len(row[column]) for row in rows) for column in range(5)]
        return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)


def _explain(chain: PreparedChain, prefix: str) -> list[ExplainedRun]:
    level = prefix + ("inner chunk" if prefix else "chunk")
    runs: list[ExplainedRun] = []
    for choice in chain.choices:
        reason = "; ".join(f"{name}: {why}" for name, why in choice.refused)
        last = runs[-1] if runs else None
        if last is not None and (last.backend, last.reason) == (choice.backend, reason):
            codecs, kernels = (*last.codecs, choice.codec), (*last.kernels, choice.kernel)
            runs[-1] = attrs.evolve(last, codecs=codecs, kernels=kernels)
        else:
            runs.append(ExplainedRun(level, (choice.codec,), choice.backend, (choice.kernel,), reason))
    if chain.shard is not None:
        deeper = f"{prefix}shard: "
        index = [attrs.evolve(run, level=f"{deeper}index") for run in _explain(chain.shard.index, "")]
        runs += [*_explain(chain.shard.inner, deeper), *index]
    return runs
