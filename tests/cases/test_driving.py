"""How calls reach the store and the codecs: through what a wrapper overrides, and never waiting for oneself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from zarr.storage import LocalStore, MemoryStore

from tests.support.pipelines import Pipeline
from tests.support.processes import run_python
from tests.support.stores import Inverting


@pytest.mark.parametrize("shards", [None, (16,)], ids=str)
@pytest.mark.parametrize("inside", ["local", "memory"])
def test_a_wrapper_that_overrides_only_get_and_set_is_honoured(
    pipeline: Pipeline, tmp_path: Path, inside: str, shards: Any
) -> None:
    """It inherits synchronous methods that go past it; zarr's Fused pipeline returns wrong data."""
    inner = MemoryStore() if inside == "memory" else LocalStore(tmp_path / "a")
    array = zarr.create_array(
        Inverting(inner), shape=(32,), chunks=(4,), shards=shards, dtype="u1", compressors=None, fill_value=255
    )
    array[...] = np.arange(32)
    array[5:7] = 200
    reference = np.arange(32)
    reference[5:7] = 200
    assert array[...].tolist() == reference.tolist()
    assert array[6:19].tolist() == reference[6:19].tolist()
    if shards is None:
        raw = zarr.open_array(inner, mode="r")[...]
        assert raw.tolist() == (255 - reference).tolist(), "what is stored went through the wrapper too"


@pytest.mark.parametrize("where", ["memory", "local"])
@pytest.mark.parametrize("caller", ["loop", "threads"])
def test_many_reads_through_an_asynchronous_codec_finish_with_one_worker(
    pipeline: Pipeline, tmp_path: Path, where: str, caller: str
) -> None:
    """A worker of the loop's executor that waits for the loop blocks all others."""
    printed = run_python(
        f"""
        import asyncio
        from concurrent.futures import ThreadPoolExecutor
        import numpy as np, zarr
        from zarr.storage import LocalStore, MemoryStore
        from tests.support import codecs

        codecs.registered()
        store = MemoryStore() if {where!r} == "memory" else LocalStore({str(tmp_path / "a")!r})
        array = zarr.create_array(
            store, shape=(32, 8), chunks=(1, 2), shards=(1, 8), dtype="i4", compressors=[codecs.Invert()]
        )
        array[...] = np.arange(256).reshape(32, 8)

        async def on_a_loop():
            asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
            return await asyncio.gather(*(array.async_array.getitem((row, slice(1, 7))) for row in range(32)))

        if {caller!r} == "loop":
            rows = asyncio.run(on_a_loop())
        else:
            with ThreadPoolExecutor(32) as pool:
                rows = list(pool.map(lambda row: array[row, 1:7], range(32)))
        print((np.stack(rows) == np.arange(256).reshape(32, 8)[:, 1:7]).all())
        """,
        pipeline,
        ZARR_THREADING__MAX_WORKERS="1",
    )
    assert printed == "True"
