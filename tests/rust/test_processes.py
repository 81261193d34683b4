"""Threads, forked processes, limits of threads, and pickles."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import threading
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from chunkwright.buffers import Buffers
from chunkwright.entries import Entries
from chunkwright_rust import RustBackend, _native
from tests.rust.chains import LITTLE, RUST, ZSTD, only_run, poisson, prepare

SHAPE = (32, 32, 16)
CHUNKS = 24
CHAIN = prepare([LITTLE, ZSTD, "crc32c"], "uint16", SHAPE)
VALUES = poisson((CHUNKS, *SHAPE), "u2")
BUFFERS = CHAIN.encode_many(list(VALUES))
ENTRIES = Entries.whole(SHAPE, CHUNKS)


def decodes(max_workers: int | None = None) -> bool:
    """Whether a batch large enough for all threads decodes to what it was."""
    out = np.zeros_like(VALUES)
    CHAIN.decode_many_into(BUFFERS, ENTRIES, out, max_workers=max_workers)
    return bool((out == VALUES).all())


def encodes() -> bool:
    """Whether a batch encodes to the same bytes as before."""
    encoded = RUST.encode_from(only_run(CHAIN), VALUES, ENTRIES, base=[None] * CHUNKS, keep_empty=False)
    return [bytes(data) for data in encoded if data is not None] == [
        bytes(data) for data in BUFFERS if data is not None
    ]


def in_a_fork(question: Callable[[], bool]) -> bool:
    """Ask in a forked child that leaves without cleaning up."""
    child = os.fork()
    if child == 0:
        try:
            os._exit(0 if question() else 1)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(2)
    return os.waitpid(child, 0)[1] == 0


def busy(stop: threading.Event) -> list[threading.Thread]:
    """Threads that decode and encode until they are stopped."""

    def work() -> None:
        while not stop.is_set():
            assert decodes()
            assert encodes()

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    return threads


@pytest.mark.parametrize("max_workers", [None, 1, 2, 64])
def test_any_limit_of_threads_gives_the_same(max_workers: int | None) -> None:
    assert decodes(max_workers)


def test_one_worker_means_that_no_other_thread_takes_part() -> None:
    # The threads of the process are those of the pool and of Python; with one worker a fork child makes none.
    def alone() -> bool:
        return decodes(1) and len(os.listdir("/proc/self/task")) == 1

    if not Path("/proc/self/task").exists():
        pytest.skip("no /proc to count threads in")
    assert in_a_fork(alone)


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_two_hundred_forked_children_in_a_row_decode_and_encode() -> None:
    assert decodes()
    for _ in range(200):
        assert in_a_fork(lambda: decodes() and encodes())


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_children_that_are_forked_while_other_threads_decode_decode() -> None:
    stop = threading.Event()
    threads = busy(stop)
    try:
        for _ in range(200):
            assert in_a_fork(decodes)
    finally:
        stop.set()
        for thread in threads:
            thread.join()


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_of_a_child_decodes() -> None:
    assert in_a_fork(lambda: decodes() and in_a_fork(decodes))


@pytest.mark.parametrize("method", ["fork", "spawn"])
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_worker_processes_decode(method: str) -> None:
    assert decodes()
    with multiprocessing.get_context(method).Pool(2) as pool:
        assert pool.map(decodes, [None] * 8) == [True] * 8


def test_many_threads_at_once_decode_and_encode() -> None:
    results: list[bool] = []

    def work() -> None:
        results.extend(decodes() and encodes() for _ in range(10))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [True] * 80


def test_backends_are_equal_and_pickle_by_value() -> None:
    again = pickle.loads(pickle.dumps(RUST))
    assert again == RUST == RustBackend()
    assert hash(again) == hash(RUST)


def test_a_prepared_chain_pickles() -> None:
    again = pickle.loads(pickle.dumps(CHAIN))
    assert again.backends == (RUST,)
    assert (again.decode(BUFFERS[0]) == VALUES[0]).all()


def test_encoded_bytes_are_read_only_and_exact() -> None:
    encoded: Any = BUFFERS[0]
    view = memoryview(encoded)
    assert view.readonly
    assert view.nbytes == len(encoded)
    assert bytes(pickle.loads(pickle.dumps(encoded))) == bytes(encoded)


def test_the_first_chunk_that_is_broken_is_named() -> None:
    broken = [bytes(data) if data is not None else b"" for data in BUFFERS]
    broken[5] = broken[5][:-1] + b"!"
    broken[17] = b""
    for max_workers in (None, 1):
        with pytest.raises(ValueError, match="crc32c: wrong checksum") as caught:
            RUST.decode_into(
                only_run(CHAIN), Buffers.of(broken), ENTRIES, np.zeros_like(VALUES), max_workers=max_workers
            )
        assert caught.value.position == 5  # type: ignore[attr-defined]


def test_there_is_at_least_one_thread() -> None:
    assert _native.threads() >= 1
