"""CRC-32C (Castagnoli), by tables and many bytes at a time.

A checksum is linear: the checksum of two parts is the first one's, moved on by as many zero bytes as the second
part has, exclusive-or the second one's. So many bytes are laid out as rows that are all worked on together,
column by column, and neighbouring rows are then joined two by two. A few bytes are not worth that.
"""

from __future__ import annotations

from collections.abc import Buffer
from functools import cache

import numpy as np
from numpy.typing import NDArray

__all__ = ("crc32c",)

_REVERSED_POLYNOMIAL = 0x82F63B78
_ALL = 0xFFFFFFFF
_FEW = 4096

type Words = NDArray[np.uint32]


def crc32c(data: Buffer) -> int:
    """Compute the CRC-32C checksum of some bytes.

    Parameters
    ----------
    data
        Contiguous bytes.

    Returns
    -------
    int
        From 0 to 2^32 - 1.

    Examples
    --------
    >>> hex(crc32c(b"123456789"))
    '0xe3069283'
    """
    values = np.frombuffer(data, np.uint8)
    if len(values) < _FEW:
        return _one_by_one(values.tobytes())
    # About as many rows as columns; a power of two of them, and zeros in front, which do not change a sum of zero.
    bits = (len(values).bit_length() + 1) // 2
    columns = -(-len(values) >> bits)
    table = np.zeros((1 << bits) * columns, np.uint8)
    table[len(table) - len(values) :] = values
    sums = _sums(table.reshape(1 << bits, columns))
    length = columns
    while len(sums) > 1:
        sums = _moved(sums[0::2], length) ^ sums[1::2]
        length *= 2
    start = _moved(np.array([_ALL], np.uint32), len(values))
    return int(sums[0] ^ start[0]) ^ _ALL


def _one_by_one(data: bytes) -> int:
    table, total = _byte_list(), _ALL
    for byte in data:
        total = table[(total ^ byte) & 0xFF] ^ total >> 8
    return total ^ _ALL


def _sums(rows: NDArray[np.uint8]) -> Words:
    """Checksums of rows, from a start of zero."""
    table = _byte_table()
    sums = np.zeros(len(rows), np.uint32)
    for column in np.ascontiguousarray(rows.T):
        sums = table[(sums ^ column) & 0xFF] ^ (sums >> np.uint32(8))
    return sums


@cache
def _byte_table() -> Words:
    """Checksum of each byte."""
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, (table >> np.uint32(1)) ^ np.uint32(_REVERSED_POLYNOMIAL), table >> np.uint32(1))
    return table


@cache
def _byte_list() -> list[int]:
    """The same as Python integers, which are faster one by one."""
    values: list[int] = _byte_table().tolist()
    return values


def _moved(sums: Words, zeros: int) -> Words:
    """Checksums after as many zero bytes."""
    bit = 0
    while zeros >> bit:
        if zeros >> bit & 1:
            sums = _applied(_zeros_tables(bit), sums)
        bit += 1
    return sums


def _applied(tables: Words, sums: Words) -> Words:
    """What a linear map makes of each sum, given what it makes of each value of each byte."""
    result: Words = tables[0][sums & 0xFF]
    for byte in range(1, 4):
        result = result ^ tables[byte][sums >> np.uint32(8 * byte) & 0xFF]
    return result


@cache
def _zeros_tables(power: int) -> Words:
    """The map that moves a checksum on by 2^power zero bytes."""
    bytes_in_place = np.arange(256, dtype=np.uint32) << (8 * np.arange(4, dtype=np.uint32))[:, None]
    if power:
        half = _zeros_tables(power - 1)
        return _applied(half, _applied(half, bytes_in_place))
    moved: Words = _byte_table()[bytes_in_place & 0xFF] ^ (bytes_in_place >> np.uint32(8))
    return moved
