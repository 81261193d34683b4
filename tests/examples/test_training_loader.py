"""The training loader runs, here on a small volume, and hands on the crops that NumPy would cut."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from tests.support.pipelines import Pipeline, under_test
from tests.support.processes import run_python

EXAMPLES = Path(__file__).parents[2] / "examples"

PREPARE = f"""
import sys
from types import SimpleNamespace
import numpy as np

sys.path.insert(0, {str(EXAMPLES)!r})
import training_loader as example

volume = np.random.default_rng(0).integers(0, 255, (50, 40, 45), "u1")
"""


@pytest.fixture(scope="module")
def pipeline() -> Pipeline:
    return under_test()[0]


def test_the_example_prints_crops_per_second(pipeline: Pipeline) -> None:
    code = """
    sys.modules["demo"] = SimpleNamespace(load_volume=lambda: volume)
    sys.argv[1:] = ["--crop", "9", "--batch", "4", "--batches", "5"]
    example.main()
    """
    printed = run_python(PREPARE + dedent(code), pipeline).splitlines()
    assert printed[0] == "5 batches of 4 crops of 9^3 voxels, in crops per second"
    assert all(float(line.split()[-1]) > 0 for line in printed[1:])
    assert len(printed) == 4


def test_workers_hand_on_the_crops_that_numpy_cuts(pipeline: Pipeline, tmp_path: Path) -> None:
    code = f"""
    array = example.store(volume, {str(tmp_path / "volume.zarr")!r})
    crops = example.RandomCrops(array, (9, 8, 7), 6, 4)
    views = np.lib.stride_tricks.sliding_window_view(volume, crops.crop)
    expected = [views[tuple(crops.starts(number).T)] for number in range(4)]
    for read in (crops, list(example.loader(crops, 2)), example.OneByOne(array, (9, 8, 7), 6, 4)):
        print(all((np.asarray(batch) == box).all() for batch, box in zip(read, expected, strict=True)))
    """
    assert run_python(PREPARE + dedent(code), pipeline).split() == ["True", "True", "True"]
