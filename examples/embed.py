"""A reader of sharded Zarr arrays on the core alone: this file fetches every byte itself.

``python examples/embed.py`` makes a small array and reads parts of it, synchronously and asynchronously.
"""

import asyncio
import json
import tempfile
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

    def path(self, cell):
        return self.root.joinpath("c", *map(str, np.unravel_index(cell, self.grid)))

    def fetch(self, cell, kind, start, stop):
        if not self.path(cell).exists():
            return None
        size = self.path(cell).stat().st_size
        start, stop = {cw.RANGE: (start, stop), cw.SUFFIX: (size - stop, size), cw.WHOLE: (0, size)}[kind]
        self.fetched += stop - start
        with self.path(cell).open("rb") as file:
            file.seek(start)
            return file.read(stop - start)

    def plan(self, selection):
        entries, shape = cw.entries_of(selection, self.shape)
        parts = cw.split(entries, self.chunk_shape, self.grid)  # the chunks of an array are a grid, too
        return self.chain.plan_read(parts.entries), parts.cell, np.empty(shape, self.chain.spec.dtype.numpy)

    def requests(self, plan, cells):
        fetches = cw.coalesce(plan.needs)
        rows = (cells[fetches.chunk], fetches.kind, fetches.start, fetches.stop)
        return fetches, list(zip(*(column.tolist() for column in rows), strict=True))

    def read(self, selection):
        plan, cells, out = self.plan(selection)
        while plan.needs.size:
            fetches, requests = self.requests(plan, cells)
            for number, request in enumerate(requests):
                plan.feed(*fetches.buffers(number, self.fetch(*request)))
        while work := plan.take():
            work.run(out)
        return out

    async def read_async(self, selection):
        plan, cells, out = self.plan(selection)
        while plan.needs.size:
            fetches, requests = self.requests(plan, cells)
            answers = await asyncio.gather(*(asyncio.to_thread(self.fetch, *request) for request in requests))
            for number, data in enumerate(answers):
                plan.feed(*fetches.buffers(number, data))
        while work := plan.take():
            work.run(out)
        return out


def make_array(root, data):
    little = {"name": "bytes", "configuration": {"endian": "little"}}
    inner = [little, {"name": "gzip", "configuration": {"level": 5}}]
    sharding = {"chunk_shape": [8, 8], "codecs": inner, "index_codecs": [little, {"name": "crc32c"}]}
    metadata = {"zarr_format": 3, "node_type": "array", "shape": data.shape, "data_type": "uint16", "fill_value": 0}
    metadata["chunk_grid"] = {"name": "regular", "configuration": {"chunk_shape": [32, 32]}}
    metadata["chunk_key_encoding"] = {"name": "default", "configuration": {"separator": "/"}}
    metadata["codecs"] = [{"name": "sharding_indexed", "configuration": sharding}]
    (root / "zarr.json").write_text(json.dumps(metadata))
    reader = Reader(root)
    for cell in range(reader.grid[0] * reader.grid[1]):
        row, column = (32 * int(index) for index in np.unravel_index(cell, reader.grid))
        reader.path(cell).parent.mkdir(parents=True, exist_ok=True)
        reader.path(cell).write_bytes(reader.chain.encode(data[row : row + 32, column : column + 32], keep_empty=True))
    return reader


if __name__ == "__main__":
    data = np.arange(96 * 64, dtype="u2").reshape(96, 64)
    with tempfile.TemporaryDirectory() as folder:
        reader = make_array(Path(folder), data)
        assert (reader.read((slice(30, 35), 5)) == data[30:35, 5]).all()
        assert (asyncio.run(reader.read_async((slice(None, None, 9), slice(60, 3, -2)))) == data[::9, 60:3:-2]).all()
        total = sum(path.stat().st_size for path in Path(folder, "c").rglob("*") if path.is_file())
        reader.fetched = 0
        reader.read((slice(0, 8), slice(0, 8)))
        print(f"one inner chunk: fetched {reader.fetched} of {total} bytes")
