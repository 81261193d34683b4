"""A short run of the fuzzer finds nothing in our backends, and finds what is wrong with bad ones."""

from __future__ import annotations

import sys
from pathlib import Path
from random import Random

import pytest

from chunkwright_numcodecs import NumcodecsBackend
from tests.support.backends import backends
from tools.fuzz.__main__ import main
from tools.fuzz.mutations import damage
from tools.fuzz.targets import targets

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="memory is measured as only Linux tells it")


@pytest.mark.parametrize("backend", ["numcodecs", "rust", "chunkwright:ReferenceBackend"])
def test_nothing_is_found_in(backend: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    status = main(["--backend", backend, "--inputs", "3000", "--keep", str(tmp_path)])
    assert status == 0, capfd.readouterr().out


FAULTS = {
    "Aborting": "crash: SIGABRT",
    "Looping": "hang: too much CPU time",
    "Sleeping": "hang: too long",
    "Greedy": "memory: ",
    "Trusting": "MemoryError",
    "Misnamed": "KeyError",
    "Forgetful": "state: ",
}


@pytest.mark.parametrize("name", FAULTS)
def test_it_is_found(name: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    chosen = ["--backend", f"tests.fuzz.bad_backends:{name}", "--only", "bytes, gzip of int32 (6, 7)"]
    assert main([*chosen, "--inputs", "40", "--seconds", "0.3", "--keep", str(tmp_path)]) == 1
    printed = capfd.readouterr().out
    assert FAULTS[name] in printed
    again = next(line for line in printed.splitlines() if line.startswith("  again: "))
    assert list(tmp_path.glob("*.chunk"))
    number = again.partition("--first ")[2].partition(" ")[0]
    assert main([*chosen, "--first", number, "--inputs", "1", "--seconds", "0.3", "--keep", str(tmp_path)]) == 1


def test_every_backend_has_targets_of_every_codec_that_it_runs() -> None:
    named = " ".join(target.name for target in targets(NumcodecsBackend()))
    for codec in ("zstd", "gzip", "blosc", "crc32c", "vlen-utf8", "vlen-bytes", "sharding_indexed", "cast_value"):
        assert codec in named
    for backend in backends():
        assert len(targets(backend)) > 20


def test_damage_is_decided_by_the_seed_and_changes_most_chunks() -> None:
    good = bytes(range(100))
    damaged = [damage(Random(seed), good, [good[::-1]], [100]) for seed in range(200)]
    assert damaged == [damage(Random(seed), good, [good[::-1]], [100]) for seed in range(200)]
    assert sum(data != good for data in damaged) > 190
    assert len(set(damaged)) > 150
