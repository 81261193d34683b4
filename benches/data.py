"""What is stored: synthetic volumes, a real one, and strings.

The synthetic volume holds photon counts over a smooth field: noisy enough that zstd only halves it, as real
detectors give. Everything is made from a fixed seed, so that results of different commits are about the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, files
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

__all__ = ("DATA", "DataMissingError", "DataSet", "make_data")

BRAIN = "mni_icbm152_t1_tal_nlin_sym_09a_converted.nii.gz"


class DataMissingError(Exception):
    """A data set is not installed here; the message says which and how to get it."""


@attrs.frozen(eq=False)
class DataSet:
    """An array to store, and the data type that zarr is told."""

    name: str
    values: NDArray[Any]
    dtype: Any

    @property
    def edge(self) -> int:
        """The length of the shortest axis."""
        return int(min(self.values.shape))


def make_data(name: str, edge: int) -> DataSet:
    """Make a data set; volumes have ``edge`` elements along each axis, strings a thousand times as many in all."""
    return DATA[name](edge)


def _mean_counts(edge: int) -> NDArray[np.float64]:
    x, y, z = np.ogrid[:edge, :edge, :edge]
    counts: NDArray[np.float64] = 40 * (3.2 + np.sin(x / 17) + np.cos(y / 23) + np.sin(z / 31))
    return counts


def _photons(edge: int) -> DataSet:
    return DataSet("photons", np.random.default_rng(0).poisson(_mean_counts(edge)).astype(np.uint16), "uint16")


def _field(edge: int) -> DataSet:
    noise = np.random.default_rng(1).normal(0, 1, (edge,) * 3)
    steps = np.round((_mean_counts(edge) + noise) * 64)  # a detector that resolves 1/64
    return DataSet("float32", (steps / 64).astype(np.float32), "float32")


def _brain(edge: int) -> DataSet:
    """Read the template of the human brain that the demo uses; its extents do not divide into chunks."""
    try:
        import nibabel

        found = next(file for file in files("nilearn") or [] if file.name == BRAIN)
    except (ImportError, PackageNotFoundError, StopIteration):
        raise DataMissingError(
            f"nibabel or nilearn, whose wheel holds {BRAIN}, is not installed (make setup)"
        ) from None
    image: Any = nibabel.load(found.locate())
    volume = np.asarray(image.dataobj)
    centre = tuple(slice(start := max(extent - edge, 0) // 2, start + edge) for extent in volume.shape)
    return DataSet("brain", np.ascontiguousarray(volume[centre]), "uint8")


def _strings(edge: int) -> DataSet:
    random = np.random.default_rng(2)
    words = np.array(
        ["axon", "cortex", "dura", "fornix", "gyrus", "hippocampus", "pia", "sulcus", "thalamus", "Überzug"]
    )
    count = edge * 1000
    numbers = random.integers(0, 10**6, count)
    texts = [f"{word}-{number}" for word, number in zip(random.choice(words, count), numbers, strict=True)]
    return DataSet("strings", np.array(texts, dtype=np.dtypes.StringDType()), "str")


DATA: dict[str, Callable[[int], DataSet]] = {
    "photons": _photons,
    "brain": _brain,
    "float32": _field,
    "strings": _strings,
}
