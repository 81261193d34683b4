"""Make a small sharded Zarr array on disk with the core alone, for ``embed.py`` to read."""

import json
import tempfile
from itertools import product
from pathlib import Path

import numpy as np

import chunkwright as cw

LITTLE = {"name": "bytes", "configuration": {"endian": "little"}}
GZIP = {"name": "gzip", "configuration": {"level": 5}}
SHARDING = {"chunk_shape": [8, 8], "codecs": [LITTLE, GZIP], "index_codecs": [LITTLE, {"name": "crc32c"}]}
METADATA = {
    "zarr_format": 3,
    "node_type": "array",
    "shape": [96, 64],
    "data_type": "uint16",
    "fill_value": 0,
    "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [32, 32]}},
    "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
    "codecs": [{"name": "sharding_indexed", "configuration": SHARDING}],
}
DATA = np.arange(96 * 64, dtype="u2").reshape(96, 64)


def sample_array(folder=None):
    root = Path(folder or tempfile.mkdtemp())
    (root / "zarr.json").write_text(json.dumps(METADATA))
    bound, shape = cw.from_array_metadata(METADATA)
    chain = bound.prepare(shape, backends=[cw.ReferenceBackend()])
    for row, column in product(range(3), range(2)):
        path = root / "c" / str(row) / str(column)
        path.parent.mkdir(parents=True, exist_ok=True)
        shard = DATA[32 * row : 32 * row + 32, 32 * column : 32 * column + 32]
        path.write_bytes(chain.encode(shard, keep_empty=True))
    return root
