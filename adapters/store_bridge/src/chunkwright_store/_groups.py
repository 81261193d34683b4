"""Exception groups of stores that read several ranges at once."""

from __future__ import annotations

__all__ = ("raise_unless_missing",)


def raise_unless_missing(errors: BaseExceptionGroup[BaseException]) -> None:
    """Return when all that failed is a missing key; a single other error is raised as itself, several as a group."""
    rest = errors.split(FileNotFoundError)[1]
    if rest is None:
        return
    leaves = _leaves(rest)
    raise leaves[0] if len(leaves) == 1 else rest


def _leaves(group: BaseExceptionGroup[BaseException]) -> list[BaseException]:
    leaves: list[BaseException] = []
    for error in group.exceptions:
        leaves += _leaves(error) if isinstance(error, BaseExceptionGroup) else [error]
    return leaves
