"""A reader of sharded Zarr arrays on the core alone: ``python examples/embed.py [ARRAY]``."""

import asyncio
import json
import sys
from pathlib import Path

import numpy as np

import chunkwright as cw


class Reader:
    def __init__(self, root):
        self.root, self.fetched = Path(root), 0
        metadata = json.loads((self.root / "zarr.json").read_text())
        bound, self.chunk_shape = cw.from_array_metadata(metadata)
        self.shape = tuple(metadata["shape"])
        self.grid = tuple(-(-extent // chunk) for extent, chunk in zip(self.shape, self.chunk_shape, strict=True))
        self.chain = bound.prepare(self.chunk_shape, backends=[cw.ReferenceBackend()])

    def plan(self, selection):
        entries, shape = cw.entries_of(selection, self.shape)
        parts = cw.split(entries, self.chunk_shape, self.grid)  # the chunks of an array are a grid, too
        return self.chain.plan_read(parts.entries), parts.cell, np.empty(shape, self.chain.spec.dtype.numpy)

    def fetch(self, cell, kind, start, stop):
        path = self.root.joinpath("c", *map(str, np.unravel_index(cell, self.grid)))
        if not path.exists():
            return None
        size = path.stat().st_size
        start, stop = {cw.RANGE: (start, stop), cw.SUFFIX: (size - stop, size), cw.WHOLE: (0, size)}[kind]
        self.fetched += stop - start
        with path.open("rb") as file:
            file.seek(start)
            return file.read(stop - start)

    def read(self, selection):
        plan, cells, out = self.plan(selection)
        while plan.needs.size:
            fetches = cw.coalesce(plan.needs)
            for number, (chunk, *request) in enumerate(fetches.requests()):
                plan.feed(*fetches.buffers(number, self.fetch(cells[chunk], *request)))
        while work := plan.take():
            work.run(out)
        return out

    async def read_async(self, selection):
        plan, cells, out = self.plan(selection)
        while plan.needs.size:
            fetches = cw.coalesce(plan.needs)
            calls = [asyncio.to_thread(self.fetch, cells[chunk], *request) for chunk, *request in fetches.requests()]
            for number, data in enumerate(await asyncio.gather(*calls)):
                plan.feed(*fetches.buffers(number, data))
        while work := plan.take():
            work.run(out)
        return out


if __name__ == "__main__":
    from sample_array import sample_array

    reader = Reader(sys.argv[1] if len(sys.argv) > 1 else sample_array())
    corner = tuple(slice(0, 5) for _ in reader.shape)
    assert (reader.read(corner) == asyncio.run(reader.read_async(corner))).all()
    print(f"fetched {reader.fetched} bytes for {reader.read(corner).nbytes}")
