"""Long rows in pieces, in the native language: first digits, counts, spreading.

A row is sorted by several threads: each takes pieces of it, and counts how many of their keys have
each first digit. The counts of all pieces say where each key of a piece goes. See sorting.py in the
compiler, whose oracle says what is left in every buffer.

This module is a pattern (`patterns.py`): `Key`, `CARRY` and `FREE` as in rows.py.

Invariants: nothing depends on which thread takes which piece.
Not here: sorting the buckets (rows.py), keys (encoding.py).
"""

from __future__ import annotations

from ....compiler.kernel.sorting import BUCKETS, DIGIT, PIECES, SAMPLE
from ..native.language import Ptr, Struct, bits_of, f64, i64
from ..native.language import u64 as Key

CARRY: bool = False
FREE = 0


class Digit(Struct):
    """The first digit of a row's keys: the least key of the first bucket, and the shift."""

    low: i64
    shift: i64


def first_digit(sample: Ptr[Key], digit: Digit) -> None:
    """The digit that cuts the range of `SAMPLE` keys."""
    low = sample[0]
    high = low
    for i in range(1, SAMPLE):
        key = sample[i]
        low = key if key < low else low
        high = key if key > high else high
    shift = bits_in(high - low) - DIGIT
    shift = FREE if shift < FREE else shift
    if FREE > 0:
        low = (low >> FREE) << FREE
    digit.low = i64(low)
    digit.shift = shift


def sample_row(keys: Ptr[Key], sample: Ptr[Key], count: i64) -> None:
    """Copy the keys that the digit is taken from."""
    for i in range(SAMPLE):
        sample[i] = keys[i * count // SAMPLE]


def bucket_of(key: Key, low: Key, shift: Key) -> i64:
    """The bucket of a key: the first or last for those outside the range."""
    above = key - low if key > low else Key(0)
    bucket = above >> shift
    return i64(bucket) if bucket < BUCKETS else BUCKETS - 1


def count_piece(keys: Ptr[Key], begin: i64, end: i64, digit: Digit, counts: Ptr[i64]) -> None:
    """How many keys of a piece are in each bucket."""
    low = Key(digit.low)
    shift = Key(digit.shift)
    for bucket in range(BUCKETS):
        counts[bucket] = 0
    for i in range(begin, end):
        bucket = bucket_of(keys[i], low, shift)
        counts[bucket] += 1


def spread_piece(
    keys: Ptr[Key], other: Ptr[Key], places: Ptr[i64], moved: Ptr[i64], count: i64,
    piece: i64, digit: Digit, counts: Ptr[i64], ends: Ptr[i64], table: Ptr[i64],
) -> None:  # fmt: skip
    """Move the keys of a piece to their buckets; the last piece notes where these end."""
    begin: i64 = 0
    for bucket in range(BUCKETS):
        table[bucket] = begin
        for each in range(PIECES):
            here = counts[each * (BUCKETS + 1) + bucket]
            begin += here
            if each < piece:
                table[bucket] += here
    low = Key(digit.low)
    shift = Key(digit.shift)
    for i in range(piece * count // PIECES, (piece + 1) * count // PIECES):
        key = keys[i]
        bucket = bucket_of(key, low, shift)
        to = table[bucket]
        table[bucket] = to + 1
        other[to] = key
        if CARRY:
            moved[to] = places[i]
    if piece == PIECES - 1:
        for bucket in range(BUCKETS):
            ends[bucket] = table[bucket]


def is_special(counts: Ptr[i64]) -> bool:
    """Whether a piece had elements whose keys do not tell what they were."""
    found: i64 = 0
    for each in range(PIECES):
        found = found | counts[each * (BUCKETS + 1) + BUCKETS]
    return found != 0


def number_places(places: Ptr[i64], begin: i64, end: i64) -> None:
    """The places of a row, in order."""
    for i in range(begin, end):
        places[i] = i


def bits_in(number: Key) -> i64:
    """How many bits a number has; one more for some large ones."""
    if number == 0:
        return 0
    return (bits_of(f64(number)) >> 52) - 1022
