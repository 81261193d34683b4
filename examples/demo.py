"""Write and read a real volume under each codec pipeline, compare every result bit by bit, print times.

The volume is the MNI152 T1 template of the human brain (197 x 233 x 189 voxels, uint8) from nilearn's wheel.
Each pipeline writes it to local disk, as plain chunks and as shards; zarr's default pipeline then reads back
what each of them wrote. For the read times all pipelines read the same files, those that zarr's default
pipeline wrote. They take turns; a time is the median of the rounds. The files are in the page cache.

    python examples/demo.py [--rounds 7] [--image demo.png]

Exit status 1 when any comparison fails.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, entry_points, files, version
from pathlib import Path
from typing import Any

import attrs
import nibabel
import numpy as np
import zarr
from numpy.typing import NDArray
from PIL import Image

from chunkwright_zarr import explain

type Volume = NDArray[np.uint8]

VOLUME = "mni_icbm152_t1_tal_nlin_sym_09a_converted.nii.gz"
LAYOUTS: dict[str, dict[str, Any]] = {
    "chunks of 64": {"chunks": (64, 64, 64)},
    "shards of 128 with inner chunks of 32": {"chunks": (32, 32, 32), "shards": (128, 128, 128)},
}


@attrs.frozen
class Pipeline:
    """One of the pipelines that are compared."""

    name: str
    path: str
    backend: str | None = None

    @contextmanager
    def use(self) -> Iterator[None]:
        """Open arrays under this pipeline; strict: no codec is run by anything but the backend."""
        ours = {"codec_pipeline.backend": self.backend, "codec_pipeline.strict": True} if self.backend else {}
        with zarr.config.set({"codec_pipeline.path": self.path, **ours}):
            yield


@attrs.frozen
class Task:
    """Something to do with an array of zarr's, and what NumPy gives for it."""

    name: str
    run: Callable[[Any], list[Any]]
    expected: list[Volume]


@attrs.define
class Report:
    """What was compared, and the median times in milliseconds by row and pipeline."""

    pipelines: list[Pipeline]
    rows: list[tuple[str, str, list[float]]] = attrs.field(factory=list)
    comparisons: int = 0
    failures: list[str] = attrs.field(factory=list)

    def compare(self, what: str, found: list[Any], expected: list[Volume]) -> None:
        """Count a comparison, and keep what failed."""
        self.comparisons += 1
        if not all(a.dtype == b.dtype and np.array_equal(a, b) for a, b in zip(found, expected, strict=True)):
            self.failures.append(what)
            print(f"  WRONG: {what}")

    def add(self, layout: str, task: str, times: list[float]) -> None:
        """Keep a row of the table and print it."""
        self.rows.append((layout, task, times))
        cells = [f"{took:8.1f} {times[0] / took:5.2f}x" for took in times]
        print(f"  {task:<22}" + "".join(f"{cell:>24}" for cell in cells), flush=True)

    def slower_than_default(self) -> list[str]:
        """Cells in which a pipeline of ours took longer than zarr's default pipeline."""
        return [
            f"{layout}, {task}, {pipeline.name}"
            for layout, task, times in self.rows
            for pipeline, took in zip(self.pipelines, times, strict=True)
            if pipeline.backend and took > times[0]
        ]


def load_volume() -> Volume:
    """Read the template from nilearn's installed files, without importing nilearn."""
    try:
        found = next(file for file in files("nilearn") or [] if file.name == VOLUME)
    except (PackageNotFoundError, StopIteration):
        sys.exit(f"nilearn's wheel, which holds {VOLUME}, is not installed")
    return np.ascontiguousarray(nibabel.load(found.locate()).dataobj)


def available_backends() -> list[str]:
    """Name the backends that can be imported here, Rust first, and say so when it is not among them."""
    names = []
    for point in sorted(entry_points(group="chunkwright.backends"), key=lambda point: point.name, reverse=True):
        try:
            point.load()
            names.append(point.name)
        except ImportError as error:
            print(f"backend {point.name} is installed but cannot be imported: {error}")
    if "rust" not in names:
        print(f"the Rust backend is not installed here; chunkwright runs on: {', '.join(names)}")
    return names


def pipelines() -> list[Pipeline]:
    """Zarr's two pipelines, then ours with each backend."""
    zarrs_own = "zarr.core.codec_pipeline"
    return [
        Pipeline("zarr default", f"{zarrs_own}.BatchedCodecPipeline"),
        Pipeline("zarr fused", f"{zarrs_own}.FusedCodecPipeline"),
        *(Pipeline(f"chunkwright {name}", "chunkwright_zarr.CodecPipeline", name) for name in available_backends()),
    ]


def read_tasks(volume: Volume) -> list[Task]:
    """All that is read: the whole, planes along each axis, boxes at random places, rows from a list."""
    random = np.random.default_rng(0)
    sizes = random.integers(16, 65, (64, 3))
    starts = [random.integers(0, np.array(volume.shape) - size + 1) for size in sizes]
    boxes = [tuple(map(slice, start, start + size)) for start, size in zip(starts, sizes, strict=True)]
    rows = np.sort(random.choice(volume.shape[1], 24, replace=False))
    planes = [(slice(None),) * axis + (extent // 2,) for axis, extent in enumerate(volume.shape)]
    return [
        Task("read whole", lambda array: [array[...]], [volume]),
        *(
            Task(f"read plane, axis {axis}", lambda array, plane=plane: [array[plane]], [volume[plane]])
            for axis, plane in enumerate(planes)
        ),
        Task("read 64 boxes", lambda array: [array[box] for box in boxes], [volume[box] for box in boxes]),
        Task("read 24 rows by list", lambda array: [array.oindex[:, rows]], [volume[:, rows]]),
    ]


def create(path: Path, volume: Volume, layout: dict[str, Any]) -> Any:
    """Create an empty array on local disk under the pipeline in use."""
    return zarr.create_array(
        str(path), shape=volume.shape, dtype=volume.dtype, compressors=zarr.codecs.ZstdCodec(level=3), **layout
    )


def timed(action: Callable[[], Any]) -> tuple[float, Any]:
    """Return how many milliseconds an action took, and its result."""
    started = time.perf_counter()
    result = action()
    return (time.perf_counter() - started) * 1e3, result


def take_turns(count: int, rounds: int, action: Callable[[int, int], float]) -> list[float]:
    """Call ``action(round, contender)`` with a new first contender in each round; return each one's median."""
    times: list[list[float]] = [[] for _ in range(count)]
    for turn in range(rounds + 1):
        for contender in ((turn + place) % count for place in range(count)):
            took = action(turn, contender)
            if turn:  # the first round warms up
                times[contender].append(took)
    return [statistics.median(taken) for taken in times]


def measure_writes(report: Report, folder: Path, name: str, volume: Volume, rounds: int) -> None:
    """Let each pipeline write the volume, and zarr's default pipeline read it back."""

    def write(turn: int, contender: int) -> float:
        with report.pipelines[contender].use():
            array = create(folder / f"{contender}.{turn}", volume, LAYOUTS[name])
        return timed(lambda: array.__setitem__(..., volume))[0]

    report.add(name, "write whole", take_turns(len(report.pipelines), rounds, write))
    for contender, pipeline in enumerate(report.pipelines):
        for turn in range(rounds + 1):
            with report.pipelines[0].use():
                found = zarr.open_array(str(folder / f"{contender}.{turn}"), mode="r")[...]
            report.compare(f"{name}: written by {pipeline.name}, read by zarr default", [found], [volume])


def measure_read(report: Report, arrays: list[Any], name: str, task: Task, rounds: int) -> None:
    """Let each pipeline read the same files, comparing each result."""

    def read(turn: int, contender: int) -> float:
        took, found = timed(lambda: task.run(arrays[contender]))
        report.compare(f"{name}: {task.name} by {report.pipelines[contender].name}", found, task.expected)
        return took

    report.add(name, task.name, take_turns(len(arrays), rounds, read))


def measure(report: Report, folder: Path, name: str, volume: Volume, rounds: int) -> Any:
    """Fill the table for one layout; return the array as the last pipeline reads it."""
    print(f"\n{name} (ms, and how many times as fast as zarr default)")
    print(" " * 24 + "".join(f"{pipeline.name:>24}" for pipeline in report.pipelines))
    measure_writes(report, folder, name, volume, rounds)
    arrays = []
    for pipeline in report.pipelines:
        with pipeline.use():
            arrays.append(zarr.open_array(str(folder / "0.0"), mode="r"))
    for task in read_tasks(volume):
        measure_read(report, arrays, name, task, rounds)
    return arrays[2]


def save_image(path: Path, array: Any) -> None:
    """Read the middle plane along each axis and save the three side by side."""
    planes = [np.flipud(np.asarray(array[plane]).T) for plane in (np.s_[98], np.s_[:, 116], np.s_[:, :, 94])]
    height = max(plane.shape[0] for plane in planes)
    padded = [np.pad(plane, ((0, height - plane.shape[0]), (4, 4))) for plane in planes]
    picture = Image.fromarray(np.concatenate(padded, axis=1))
    picture.resize((picture.width * 2, picture.height * 2), Image.Resampling.BICUBIC).save(path)
    print(f"three planes, read by chunkwright from shards: {path}")


def main() -> int:
    """Run the comparison and return the exit status."""
    options = argparse.ArgumentParser(description="Compare codec pipelines on a real volume.")
    options.add_argument("--rounds", type=int, default=7, help="how often each time is taken")
    options.add_argument("--image", type=Path, default=Path("demo.png"), help="where the picture goes")
    chosen = options.parse_args()
    volume = load_volume()
    print(f"MNI152 T1 template, {' x '.join(map(str, volume.shape))} {volume.dtype}, zarr {version('zarr')}")
    report = Report(pipelines())
    with tempfile.TemporaryDirectory() as folder:
        for number, name in enumerate(LAYOUTS):
            sharded = measure(report, Path(folder) / str(number), name, volume, chosen.rounds)
        print(f"\n{explain(sharded)}\n")
        save_image(chosen.image, sharded)
    print(f"slower than zarr default: {'; '.join(report.slower_than_default()) or 'no cell of chunkwright'}")
    print(f"{report.comparisons} results compared bit by bit, {len(report.failures)} wrong")
    return 1 if report.failures else 0


if __name__ == "__main__":
    sys.exit(main())
