"""Feed random crops of a brain volume to training, from several worker processes, and print crops per second.

The volume is that of ``demo.py``. The data set is one as torch knows it: an item is a batch, which is read in one
call. torch's ``DataLoader`` takes it as it is; without torch, which this does not need, a pool of processes stands in.

    python examples/training_loader.py [--crop 48] [--batch 32] [--batches 32] [--workers 2]
"""

import argparse
import multiprocessing
import tempfile
import time
from pathlib import Path

import numpy as np
import zarr

import chunkwright_zarr


class RandomCrops:
    """Batches of random crops; batch ``i`` is the same whichever process reads it, and when."""

    def __init__(self, array, crop, batch, batches):
        self.array, self.crop, self.batch, self.batches = array, crop, batch, batches

    def __len__(self):
        return self.batches

    def starts(self, number):
        greatest = np.subtract(self.array.shape, self.crop)
        return np.random.default_rng(number).integers(0, greatest + 1, (self.batch, self.array.ndim))

    def __getitem__(self, number):
        if not 0 <= number < self.batches:
            raise IndexError(number)
        return self.read(self.starts(number))

    def read(self, starts):
        return chunkwright_zarr.read_boxes(self.array, starts, self.crop)


class OneByOne(RandomCrops):
    """The same batches, one read of zarr's per crop."""

    def read(self, starts):
        boxes = (tuple(map(slice, start, start + self.crop)) for start in starts)
        return np.stack([self.array[box] for box in boxes])


def loader(crops, workers):
    """Yield batches that worker processes have read ahead."""
    try:
        from torch.utils.data import DataLoader
    except ImportError:
        with multiprocessing.get_context("spawn").Pool(workers, initializer=keep, initargs=(crops,)) as pool:
            yield from pool.imap(batch_of_worker, range(len(crops)))
    else:
        yield from DataLoader(crops, batch_size=None, num_workers=workers, multiprocessing_context="spawn")


def keep(crops):
    global crops_of_worker
    crops_of_worker = crops


def batch_of_worker(number):
    return crops_of_worker[number]


def train(batches, crops):
    """Stand in for training; return crops per second, not counting the first batch, for which workers start."""
    batches = iter(batches)
    total = float(next(batches)[:, 0].sum())
    started = time.perf_counter()
    for batch in batches:
        total += float(batch[:, 0].sum())
    return (len(crops) - 1) * crops.batch / (time.perf_counter() - started)


def store(volume, path):
    array = zarr.create_array(
        path,
        shape=volume.shape,
        chunks=(32,) * 3,
        shards=(128,) * 3,
        dtype=volume.dtype,
        compressors=zarr.codecs.ZstdCodec(),
    )
    array[...] = volume
    return array


def main():
    options = argparse.ArgumentParser(description="Read random crops of the brain volume of demo.py.")
    for name, default in {"crop": 48, "batch": 32, "batches": 32, "workers": 2}.items():
        options.add_argument(f"--{name}", type=int, default=default)
    chosen = options.parse_args()
    from demo import load_volume

    with tempfile.TemporaryDirectory() as folder:
        array = store(load_volume(), str(Path(folder, "volume.zarr")))
        described = (array, (chosen.crop,) * 3, chosen.batch, chosen.batches)
        one_by_one, crops = OneByOne(*described), RandomCrops(*described)
        assert (one_by_one[0] == crops[0]).all()
        print(f"{chosen.batches} batches of {chosen.batch} crops of {chosen.crop}^3 voxels, in crops per second")
        print(f"  one read per crop, in this process         {train(one_by_one, crops):8.0f}")
        print(f"  read_boxes, in this process                {train(crops, crops):8.0f}")
        print(f"  read_boxes, in {chosen.workers} worker processes {train(loader(crops, chosen.workers), crops):16.0f}")


if __name__ == "__main__":
    main()
