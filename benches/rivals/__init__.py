"""Who competes; :func:`contenders` lists them, those with the shortest way to the goal last."""

from __future__ import annotations

from benches.rivals.base import CannotDoError, Contender, Opened, Role
from benches.rivals.limit import Limit
from benches.rivals.numcodecs_threads import NumcodecsThreads
from benches.rivals.tensorstore_ import Tensorstore
from benches.rivals.zarr_pipelines import NothingPipeline, ours, zarr_pipelines
from benches.rivals.zarrista_ import Zarrista

__all__ = ("CannotDoError", "Contender", "NothingPipeline", "Opened", "Role", "contenders")


def contenders() -> list[Contender]:
    """Return everyone who can be had here."""
    return [*ours(), *zarr_pipelines(), Tensorstore(), Zarrista(), NumcodecsThreads(), Limit()]
