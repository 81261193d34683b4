"""What the tests of DirectArray share: arrays, selections, and a way to tell whether zarr-python's loop was used."""

from __future__ import annotations

from typing import Any

import numpy as np
import zarr
from hypothesis import strategies as st
from numpy.typing import NDArray

UNSTABLE = "ignore::zarr.errors.UnstableSpecificationWarning"
RUST = {"codec_pipeline.path": "chunkwright_zarr.CodecPipeline", "codec_pipeline.backend": "rust"}
DATA = np.arange(20 * 15 * 3, dtype="i4").reshape(20, 15, 3)
LAYOUTS: dict[str, dict[str, Any]] = {
    "chunks": {"chunks": (8, 6, 2)},
    "shards": {"chunks": (2, 3, 1), "shards": (8, 6, 2)},
    "small chunks": {"chunks": (2, 2, 1)},
    "version 2, Fortran order": {"chunks": (8, 6, 2), "zarr_format": 2, "order": "F"},
    "keys with dots": {"chunks": (8, 6, 2), "chunk_key_encoding": {"name": "default", "separator": "."}},
    "keys of version 2": {"chunks": (8, 6, 2), "chunk_key_encoding": {"name": "v2", "separator": "/"}},
    "transposed": {"chunks": (8, 6, 2), "filters": [zarr.codecs.TransposeCodec(order=(2, 0, 1))]},
    "one chunk": {"chunks": (20, 15, 3)},
}
BASIC: list[Any] = [
    ...,
    (),
    slice(None),
    7,
    -1,
    np.int64(3),
    (3, 4, 2),
    (-20, -15, -3),
    (slice(7, 9), slice(5, 13), 1),
    (slice(-5, None), ..., slice(1, 2)),
    (..., 0),
    (slice(1, 19, 5), slice(0, 15, 7)),
    (slice(0, 20, 100),),
    (slice(None, 1000), slice(-1000, 3)),
]
LISTS: list[Any] = [
    (np.array([0, 7, 8, 19]), slice(None), np.array([0, 2])),
    (np.array([3]), 4, slice(None)),
    (np.array([-20, -1]), slice(2, 9, 3)),
    (slice(3, 12), np.array([2, 2, 14], "u1")),
    (np.arange(0, 20, 3), np.arange(15) % 2 == 0),
    (np.arange(20) == 11, 14, 0),
]


def created(store: Any, values: NDArray[Any] = DATA, config: dict[str, Any] = RUST, **layout: Any) -> Any:
    with zarr.config.set(config):
        array = zarr.create_array(store, name="a/b", shape=values.shape, dtype=values.dtype, **layout)
    array[...] = values
    return array


@st.composite
def reads(draw: st.DrawFn) -> tuple[tuple[int, ...], dict[str, Any], tuple[Any, ...]]:
    """Shape of an array, its layout, and a selection with a list, a slice or an integer for each axis."""
    ndim = draw(st.integers(1, 3))
    shape = tuple(draw(st.lists(st.integers(1, 12), min_size=ndim, max_size=ndim)))
    inner = tuple(draw(st.lists(st.integers(1, 4), min_size=ndim, max_size=ndim)))
    times = tuple(draw(st.lists(st.integers(1, 3), min_size=ndim, max_size=ndim)))
    shards = {"shards": tuple(a * b for a, b in zip(inner, times, strict=True))} if draw(st.booleans()) else {}
    return shape, {"chunks": inner, **shards}, tuple(draw(_items(extent)) for extent in shape)


def _items(extent: int) -> st.SearchStrategy[Any]:
    lists = st.lists(st.integers(-extent, extent - 1), min_size=1, max_size=8)
    return st.one_of(
        st.integers(-extent, extent - 1),
        st.slices(extent).filter(lambda item: item.step is None or item.step > 0),
        lists.map(np.array),
        lists.map(lambda values: np.sort(np.array(values) % extent)),
        st.lists(st.booleans(), min_size=extent, max_size=extent).map(np.array),
    )
