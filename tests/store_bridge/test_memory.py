"""Memory that is lent, comes back when the last view of it is gone, and is lent again."""

from __future__ import annotations

import gc
import threading

import numpy as np

from chunkwright_store._memory import LARGEST, SMALLEST, Memory


def address(piece: np.ndarray) -> int:
    return int(piece.__array_interface__["data"][0])


def test_a_piece_is_lent_again_once_nobody_has_it() -> None:
    memory = Memory(1 << 20)
    first = memory.take(SMALLEST)
    where = address(first)
    del first
    assert address(memory.take(SMALLEST)) == where


def test_a_piece_is_not_lent_while_a_view_of_it_is_left() -> None:
    memory = Memory(1 << 20)
    first = memory.take(SMALLEST)
    first[:] = 7
    view = memoryview(first)[10:20]
    part = np.frombuffer(view, "u2")
    del first, view
    second = memory.take(SMALLEST)
    second[:] = 9
    assert part.tobytes() == b"\x07" * 10
    assert memory.kept == 0


def test_no_more_is_kept_than_allowed() -> None:
    memory = Memory(2 * SMALLEST)
    pieces = [memory.take(SMALLEST) for _ in range(5)]
    pieces.clear()
    gc.collect()
    assert memory.kept == 2 * SMALLEST


def test_small_and_large_pieces_are_not_kept() -> None:
    memory = Memory(1 << 40)
    for length in (0, 1, SMALLEST - 1, LARGEST + 1):
        assert memory.take(length).shape == (length,)
    assert memory.kept == 0


def test_threads_never_have_one_piece_at_the_same_time() -> None:
    memory = Memory(1 << 22)
    wrong: list[int] = []

    def work(mark: int) -> None:
        for _ in range(300):
            piece = memory.take(SMALLEST)
            piece[::4096] = mark
            if (piece[::4096] != mark).any():
                wrong.append(mark)

    threads = [threading.Thread(target=work, args=(mark,)) for mark in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
