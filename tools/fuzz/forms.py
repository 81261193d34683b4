"""What encoded chunks are made of, so that damage gets past what would notice it at once.

Damage to a shard that only breaks the checksum of its index tests nothing else. A :class:`Shard` is put together from
inner chunks one of which is damaged, or with an index whose numbers are, and has a checksum that is right; inner chunks
may be shards too. :class:`Layers` does the same for codecs in front of other codecs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Protocol

import attrs
import numpy as np
from numpy.typing import NDArray

from chunkwright import PreparedChain
from tools.fuzz.mutations import damage, interesting

__all__ = ("Form", "Layers", "Plain", "Shard")

_ABSENT = 2**64 - 1


class Form(Protocol):
    """Damages encoded chunks of one kind."""

    def damaged(self, random: Random) -> bytes:
        """Return a damaged chunk."""


@attrs.frozen
class Plain:
    """Bytes of which nothing is known but good examples, and the numbers that matter."""

    examples: Sequence[bytes]
    sizes: Sequence[int]

    def damaged(self, random: Random) -> bytes:
        return damage(
            random, random.choice([self.examples[0], random.choice(self.examples)]), self.examples, self.sizes
        )


@attrs.frozen
class Layers:
    """Chains of several bytes->bytes codecs: for each, what it wraps, and how to wrap something else."""

    outermost: Plain
    inner: Sequence[tuple[Plain, Callable[[bytes], bytes]]]

    def damaged(self, random: Random) -> bytes:
        if random.random() < 0.3:
            return self.outermost.damaged(random)
        form, wrap = random.choice(self.inner)
        return wrap(form.damaged(random))


@attrs.frozen(eq=False)
class Shard:
    """Shards with an index chain of ``bytes`` and perhaps checksums."""

    whole: Plain
    index: PreparedChain
    at_start: bool
    inner: Form
    inner_examples: Sequence[bytes | None]

    def damaged(self, random: Random) -> bytes:
        kind = random.random()
        if kind < 0.2:
            return self.whole.damaged(random)
        parts = list(self.inner_examples)
        if kind < 0.6:
            parts[random.randrange(len(parts))] = self.inner.damaged(random)
            return self._joined(parts, lambda table: None)
        return self._joined(parts, lambda table: _damage_index(random, table, sum(len(part or b"") for part in parts)))

    def _joined(self, parts: Sequence[bytes | None], change: Callable[[NDArray[np.uint64]], None]) -> bytes:
        size = self.index.encoded_size.nbytes
        assert size is not None
        table = np.full((len(parts), 2), _ABSENT, np.uint64)
        at = size if self.at_start else 0
        for row, part in enumerate(parts):
            if part is not None:
                table[row] = at, len(part)
                at += len(part)
        change(table)
        encoded = self.index.encode(table.reshape(self.index.spec.shape), keep_empty=True)
        assert encoded is not None
        data = b"".join(part for part in parts if part is not None)
        return bytes(encoded) + data if self.at_start else data + bytes(encoded)


def _damage_index(random: Random, table: NDArray[np.uint64], size: int) -> None:
    rows = len(table)
    for _ in range(random.choice([1, 1, 2, 4])):
        row, other = random.randrange(rows), random.randrange(rows)
        kind = random.randrange(5)
        if kind == 0:
            table[row, random.randrange(2)] = interesting(random, [size, int(table[row, 1])])
        elif kind == 1:
            table[row] = interesting(random, [size]), interesting(random, [size])
        elif kind == 2:
            table[row] = table[other]
        elif kind == 3:
            table[row, random.randrange(2)] = _ABSENT
        else:
            # Offset and length that together wrap around.
            table[row] = 2**64 - random.randrange(1, 2**10), random.randrange(2**10)
