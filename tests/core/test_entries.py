"""Batches are cut into parts by chunk."""

from __future__ import annotations

import numpy as np
import pytest

from chunkwright import Entries


def entries(chunks: list[int]) -> Entries:
    """One element of each chunk, the ``i``-th at ``i``."""
    rows = np.arange(len(chunks))[:, None]
    return Entries.boxes(chunk=np.array(chunks), start=rows * 0, count=rows * 0 + 1, out_start=rows)


@pytest.mark.parametrize("most", [1, 2, 3, 4, 100])
def test_parts_have_all_entries_of_their_chunks(most: int) -> None:
    # Chunk 1 is not selected, chunk 3 twice.
    whole = entries([0, 2, 3, 3, 4])
    first_of_next, seen = 0, []
    for first, last, part in whole.windows(5, most):
        assert first == first_of_next
        assert first < last <= first + most
        seen += [(first + chunk, place) for chunk, place in zip(part.chunk, part.out_start[:, 0], strict=True)]
        assert set(part.chunk.tolist()) <= set(range(last - first))
        first_of_next = last
    assert first_of_next == 5
    assert seen == [(0, 0), (2, 1), (3, 2), (3, 3), (4, 4)]


def test_entries_out_of_order_are_one_part() -> None:
    whole = entries([1, 0])
    [(first, last, part)] = whole.windows(2, 1)
    assert (first, last) == (0, 2)
    assert part is whole
