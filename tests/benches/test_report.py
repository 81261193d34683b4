"""What is concluded from times."""

from __future__ import annotations

from pathlib import Path

import pytest

from benches.report.causes import cause_of
from benches.report.comparison import compared
from benches.report.ratios import geometric_mean, summaries
from benches.report.tables import tables, written_out
from benches.report.verdicts import Verdict, verdicts
from benches.results import Cell, Results, Row

ROLES = {
    "ours, rust": "ours",
    "ours, numcodecs": "ours",
    "ours, direct": "ours direct",
    "zarr batched": "pipeline",
    "zarr fused": "pipeline",
    "tensorstore": "rival",
    "zarrista": "rival",
    "limit": "limit",
    "nothing": "nothing",
}
META = {"quick": False, "commit": "abc", "time": "now"}


def results(*cells: tuple[Cell, dict[str, float]]) -> Results:
    """Results with the given seconds."""
    contenders = {name: {"role": role, "atomic": name != "zarrista", "version": "1"} for name, role in ROLES.items()}
    rows = [Row(cell, name, (seconds,)) for cell, times in cells for name, seconds in times.items()]
    return Results(META, contenders, rows)


def grid(operation: str = "read all", layout: str = "64 zstd", store: str = "local") -> Cell:
    """A cell of the grid."""
    return Cell("grid", "photons", store, layout, operation, 2)


def find(found: list[Verdict], text: str) -> Verdict:
    """The verdict whose aim has a text in it."""
    (verdict,) = (one for one in found if text in one.aim and ("DirectArray" in one.aim) is ("DirectArray" in text))
    return verdict


TIMES = {
    "ours, rust": 2.0,
    "ours, numcodecs": 5.0,
    "ours, direct": 1.5,
    "zarr batched": 20.0,
    "zarr fused": 6.0,
    "tensorstore": 4.0,
    "zarrista": 3.0,
    "limit": 1.0,
    "nothing": 0.25,
}


def test_a_summary_compares_our_first_backend_with_the_best_of_others() -> None:
    (one,) = summaries(results((grid(), TIMES)), "grid")
    assert (one.best_name, one.ratio, one.pipeline_ratio, one.default_ratio) == ("zarrista", 1.5, 3.0, 10.0)
    assert one.limit == 1.25
    assert one.limit_ratio == 1.6


@pytest.mark.parametrize(("operation", "limit"), [("read all", 1.0), ("write all", 1.25)])
def test_our_array_is_compared_with_a_limit_of_its_own(operation: str, limit: float) -> None:
    (one,) = summaries(results((grid(operation), TIMES)), "grid", ours="ours, direct")
    assert (one.ratio, one.limit) == (2.0, limit)


def test_our_array_is_judged_beside_the_pipeline() -> None:
    judged = verdicts(results((grid(), {**TIMES, "ours, rust": 3.5})))
    assert not find(judged, "local: ahead of the best").reached
    assert find(judged, "local, DirectArray: ahead of the best").reached


@pytest.mark.parametrize(
    ("layout", "best"), [("16 zstd", "tensorstore"), ("64 zstd", "zarrista"), ("128/8 zstd", "zarrista")]
)
def test_whole_writes_of_small_chunks_are_compared_with_atomic_rivals(layout: str, best: str) -> None:
    (one,) = summaries(results((grid("write all", layout), TIMES)), "grid")
    assert one.best_name == best


def test_the_geometric_mean_leaves_out_what_is_not_known() -> None:
    assert geometric_mean([2.0, None, 8.0]) == pytest.approx(4.0)
    assert geometric_mean([None]) is None


def test_being_behind_the_best_is_reported_with_the_cell() -> None:
    verdict = find(verdicts(results((grid(), {**TIMES, "ours, rust": 3.5}))), "ahead of the best")
    assert not verdict.reached
    assert verdict.short[0].startswith("photons | local | 64 zstd | read all | 2 CPU: 0.86")


@pytest.mark.parametrize(("ours", "limit", "reached"), [(3.1, 2.7, True), (3.1, 1.0, False), (3.3, 2.7, False)])
def test_where_the_limit_is_near_095_counts_as_ahead(ours: float, limit: float, reached: bool) -> None:
    times = {**TIMES, "ours, rust": ours, "limit": limit}
    assert find(verdicts(results((grid(), times))), "ahead of the best").reached is reached


@pytest.mark.parametrize(("ours", "limit", "reached"), [(4.5, 3.5, True), (5.0, 3.5, False), (4.5, 2.0, False)])
def test_below_09_is_allowed_near_a_limit_that_is_below_too(ours: float, limit: float, reached: bool) -> None:
    times = {**TIMES, "ours, rust": ours, "limit": limit}
    assert find(verdicts(results((grid(), times))), "no cell below 0.9").reached is reached


@pytest.mark.parametrize(("ours", "limit", "reached"), [(1.9, 1.0, True), (2.1, 1.0, False), (2.1, 1.6, True)])
def test_on_the_memory_store_three_times_is_asked_where_the_limit_allows_it(
    ours: float, limit: float, reached: bool
) -> None:
    cell = grid(layout="128/32 zstd", store="memory")
    found = verdicts(results((cell, {**TIMES, "ours, rust": ours, "limit": limit})))
    assert find(found, "at least 3 times").reached is reached


def test_the_portable_backend_is_compared_with_the_fused_pipeline() -> None:
    found = verdicts(results((grid(), {**TIMES, "ours, numcodecs": 6.7})))
    assert not find(found, "numcodecs backend").reached


@pytest.mark.parametrize(("requests", "seconds", "reached"), [(8, 0.05, (True, True)), (9, 0.08, (False, False))])
def test_latency_is_judged_by_requests_and_rounds(requests: int, seconds: float, reached: tuple[bool, bool]) -> None:
    cell = Cell("latency", "photons", "latency", "128/32 zstd", "read all", 2)
    counted = {"nbytes": 10.0, "rounds": 2.0, "latency": 0.02, "memory_seconds": 0.01}
    found = results()
    found.rows = [
        Row(cell, "ours, rust", (seconds,), {**counted, "requests": requests}),
        Row(cell, "zarr batched", (1.0,), {**counted, "requests": 8}),
    ]
    judged = verdicts(found)
    assert (find(judged, "no more requests").reached, find(judged, "rounds").reached) == reached


def test_memory_is_judged_in_results_and_in_shards() -> None:
    found = results()
    for operation, peak in (("read all", 1.1), ("write 4 GiB by shards", 9.0)):
        cell = Cell("memory", "photons", "local", "128/32 zstd", operation, 2)
        found.rows.append(Row(cell, "ours, rust", (1.0,), {"anon": peak, "unit": 1.0}))
    judged = verdicts(found)
    assert find(judged, "a read needs").reached
    assert not find(judged, "writes stay").reached


def test_verdicts_are_about_all_cpus() -> None:
    slow = {**TIMES, "ours, rust": 100.0}
    one_cpu = Cell("grid", "photons", "local", "64 zstd", "read all", 1)
    assert find(verdicts(results((grid(), TIMES), (one_cpu, slow))), "ahead of the best").reached


def test_results_are_kept_as_they_are(tmp_path: Path) -> None:
    found = results((grid(), TIMES))
    found.skipped.append(("cell", "zarrista", "why"))
    found.save(tmp_path / "results.json")
    assert Results.load(tmp_path / "results.json") == found


def test_a_comparison_shows_what_became_faster() -> None:
    table = compared(results((grid(), TIMES)), results((grid(), {**TIMES, "ours, rust": 1.0})))
    assert [row[-1] for row in table.rows] == ["2.00", "1.26"]


def test_a_table_has_a_column_for_everyone_and_a_line_for_every_cell() -> None:
    (table,) = tables(results((grid(), TIMES), (grid("write all"), TIMES)))
    assert set(ROLES) <= set(table.heads)
    assert len(table.rows) == 3
    assert "geometric mean" in written_out(table).splitlines()[-1]


@pytest.mark.parametrize(
    ("operation", "layout", "store", "cause"),
    [
        ("read boxes", "128/32 raw", "local", "changes of threads"),
        ("write plane", "64 zstd", "local", "half written"),
        ("read lists", "16 zstd", "memory", "selects in Python"),
        ("read plane, first axis", "64 raw", "local", "reads nothing"),
        ("read plane, first axis", "128/32 raw", "local", "reads nothing"),
        ("write plane", "64 zstd", "memory", ""),
        ("write all", "16 zstd", "local", "thousands of files"),
    ],
)
def test_where_we_are_behind_the_cause_is_named(operation: str, layout: str, store: str, cause: str) -> None:
    cell = grid(operation, layout, store)
    assert cause in cause_of(cell, "ours, rust")
    assert not cause_of(grid("write plane", "128/32 raw", "memory"), "ours, rust")
    of_array = cause_of(cell, "ours, direct")
    assert "zarr-python" not in of_array
    assert of_array == cause_of(cell, "ours, rust") or operation.startswith("read")
    times = TIMES | {"ours, rust": 9.0, "limit": 0.1}
    behind = [line for verdict in verdicts(results((cell, times))) for line in verdict.short if str(cell) in line]
    assert behind
    assert all(cause in line for line in behind)
