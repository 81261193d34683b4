"""Ways to damage bytes: pure functions of a random generator and the bytes.

Numbers are written where headers and trailers are more often than elsewhere, and are those that somebody might trust:
close to the sizes that are right, or at the ends of what an integer holds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

__all__ = ("damage", "interesting")

_EXTREMES = [0, 1, 2**7, 2**15, 2**31 - 1, 2**31, 2**32 - 1, 2**40, 2**62, 2**63 - 1, 2**63, 2**64 - 2, 2**64 - 1]


def interesting(random: Random, sizes: Sequence[int]) -> int:
    """A number below 2**64 that is nearly right, or at the end of a range."""
    if sizes and random.random() < 0.5:
        return min(max(0, random.choice(sizes) + random.choice([-8, -4, -1, 0, 1, 4, 8])), _EXTREMES[-1])
    return random.choice(_EXTREMES)


def damage(random: Random, data: bytes, others: Sequence[bytes], sizes: Sequence[int]) -> bytes:
    """Damage bytes once or a few times; ``others`` are good bytes of the same kind, ``sizes`` numbers that matter."""
    content = bytearray(data)
    for _ in range(random.choice([1, 1, 1, 2, 3])):
        random.choice(_WAYS)(random, content, others, sizes)
    return bytes(content)


type _Way = Callable[[Random, bytearray, Sequence[bytes], Sequence[int]], None]


def _flip(random: Random, content: bytearray, others: Sequence[bytes], sizes: Sequence[int]) -> None:
    for _ in range(random.choice([1, 1, 2, 8]) if content else 0):
        content[_place(random, content) % len(content)] ^= 1 << random.randrange(8)


def _replace(random: Random, content: bytearray, others: Sequence[bytes], sizes: Sequence[int]) -> None:
    place = _place(random, content)
    some = random.randbytes(random.randrange(1, 9))
    content[place : place + len(some)] = some


def _write_number(random: Random, content: bytearray, others: Sequence[bytes], sizes: Sequence[int]) -> None:
    width = random.choice([1, 2, 4, 4, 8])
    place = _place(random, content)
    number = interesting(random, [*sizes, len(content)]) % 2 ** (8 * width)
    content[place : place + width] = number.to_bytes(width, random.choice(["little", "little", "big"]))


def _cut(random: Random, content: bytearray, others: Sequence[bytes], sizes: Sequence[int]) -> None:
    del content[random.randrange(len(content) + 1) :]


def _behead(random: Random, content: bytearray, others: Sequence[bytes], sizes: Sequence[int]) -> None:
    del content[: random.randrange(len(content) + 1)]


def _remove(random: Random, content: bytearray, others: Sequence[bytes], sizes: Sequence[int]) -> None:
    place = _place(random, content)
    del content[place : place + random.randrange(1, 17)]


def _insert(random: Random, content: bytearray, others: Sequence[bytes], sizes: Sequence[int]) -> None:
    place = _place(random, content)
    content[place:place] = random.choice([random.randbytes(random.randrange(1, 17)), bytes(random.randrange(1, 65))])


def _repeat(random: Random, content: bytearray, others: Sequence[bytes], sizes: Sequence[int]) -> None:
    first = random.randrange(len(content) + 1)
    part = bytes(content[first : first + random.choice([1, 8, 64, len(content)])])
    content[first:first] = part * random.choice([1, 2, 50])


def _append(random: Random, content: bytearray, others: Sequence[bytes], sizes: Sequence[int]) -> None:
    content += random.choice([b"\0", bytes(1000), random.randbytes(9), random.choice(others)])


def _splice(random: Random, content: bytearray, others: Sequence[bytes], sizes: Sequence[int]) -> None:
    other = random.choice(others)
    place = random.randrange(len(content) + 1)
    content[place:] = other[min(place, random.randrange(len(other) + 1)) :]


def _exchange(random: Random, content: bytearray, others: Sequence[bytes], sizes: Sequence[int]) -> None:
    content[:] = random.choice(others)


def _nonsense(random: Random, content: bytearray, others: Sequence[bytes], sizes: Sequence[int]) -> None:
    content[:] = random.randbytes(random.randrange(200))


_WAYS: list[_Way] = [
    *([_flip] * 4),
    *([_write_number] * 4),
    *([_replace] * 2),
    *([_splice] * 2),
    *(_cut, _behead, _remove, _insert, _repeat, _append, _exchange, _nonsense),
]


def _place(random: Random, content: bytearray) -> int:
    """Where: in the first bytes, in the last, or anywhere."""
    size = len(content)
    where = random.random()
    if where < 0.5:
        return random.randrange(min(size, 40) + 1)
    if where < 0.7:
        return max(0, size - random.randrange(1, 25))
    return random.randrange(size + 1)
