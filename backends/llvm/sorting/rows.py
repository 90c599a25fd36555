"""Sorting the keys of one row, in the native language: by digits from the top, then by insertion.

Keys are unsigned numbers in the order of the elements (`encoding.py`). The range of the keys, not
their type, is cut into digits: the first digit of keys between low and high is
``(key - low) >> shift``. Elements go to the bucket of their digit, in order, and each bucket is a
smaller row with a smaller range. So a level takes one pass whatever the numbers are, there are at
most `64 / 11` levels of large tables, and no input takes more than so many passes.

This module is a pattern (`patterns.py`): `Key` and `CARRY` are set for each kind of row. With
`CARRY` a place moves with each key. Keys that agree but for their last `FREE` bits are equal; those
bits only say in which order they were, and they are in it already.

Invariants: stable; `other` and `moved` are as large as the row and hold nothing before or after.
`tables` has `TABLE_WORDS` words.
Not here: elements (encoding.py), many short rows (network.py), rows by several threads (pieces.py).
"""

from __future__ import annotations

from ..native.control import Control
from ..native.language import Ptr, bits_of, f64, i64, is_null
from ..native.language import u64 as Key

CARRY: bool = False
FREE = 0

TABLE_WORDS = 16384  # more than all levels take: digits of all levels together have 64 + 11 bits
SHORT = 24  # keys that are sorted by insertion
NEAR = 12  # elements of the largest bucket where one insertion over all buckets ends the work
DIGIT = 11  # bits of a digit at most
POLLED = 1 << 16  # keys between questions whether to stop


def sort_row(
    control: Control, keys: Ptr[Key], other: Ptr[Key], places: Ptr[i64], moved: Ptr[i64],
    count: i64, stay: bool, tables: Ptr[i64],
) -> None:  # fmt: skip
    """Sort `keys`; the sorted row is in `keys` if it is to stay there, else in `other`. With a
    control block that says to stop, whatever is in both then."""
    if count > POLLED and stopped(control):
        return
    if count <= SHORT:
        insert(keys, places, 0, count)
        settle(keys, other, places, moved, count, stay)
        return
    low = keys[0]
    high = low
    for i in range(1, count):
        key = keys[i]
        low = key if key < low else low
        high = key if key > high else high
    width = bits_in(high - low)
    if width <= FREE:
        if width == 0 or (low >> FREE) == (high >> FREE):
            settle(keys, other, places, moved, count, stay)
            return
    digit = bits_in(Key(count))
    digit = DIGIT if digit > DIGIT else digit
    shift = width - digit
    shift = FREE if shift < FREE else shift
    if FREE > 0:
        low = (low >> FREE) << FREE  # equal keys have one digit
    size = i64((high - low) >> Key(shift)) + 1
    if count > POLLED and stopped(control):
        return
    largest = spread(keys, other, places, moved, count, low, Key(shift), size, tables)
    if shift == FREE:
        settle(other, keys, moved, places, count, not stay)
        return
    if count > POLLED and stopped(control):
        return
    if largest <= NEAR:
        pass_on(other, moved, count)
        insert(other, moved, 0, count)
        settle(other, keys, moved, places, count, not stay)
        return
    begin: i64 = 0
    for bucket in range(size):
        end = tables[bucket]
        if end > begin:
            sort_row(
                control, other + begin, keys + begin, moved + begin if CARRY else moved,
                places + begin if CARRY else places, end - begin, not stay, tables + size,
            )  # fmt: skip
        begin = end


def stopped(control: Control) -> bool:
    """Whether the call is to stop; never where there is none to ask."""
    if is_null(control):
        return False
    return control.poll(control) != 0


def spread(
    keys: Ptr[Key], other: Ptr[Key], places: Ptr[i64], moved: Ptr[i64],
    count: i64, low: Key, shift: Key, size: i64, table: Ptr[i64],
) -> i64:  # fmt: skip
    """Move keys to their buckets in `other`; where each bucket ends is in `table`. How many keys
    the largest one has."""
    for bucket in range(size):
        table[bucket] = 0
    for i in range(count):
        bucket = i64((keys[i] - low) >> shift)
        table[bucket] += 1
    begin: i64 = 0
    largest: i64 = 0
    for bucket in range(size):
        here = table[bucket]
        largest = here if here > largest else largest
        table[bucket] = begin
        begin += here
    for i in range(count):
        key = keys[i]
        bucket = i64((key - low) >> shift)
        to = table[bucket]
        table[bucket] = to + 1
        other[to] = key
        if CARRY:
            moved[to] = places[i]
    return largest


def pass_on(keys: Ptr[Key], places: Ptr[i64], count: i64) -> None:
    """Put neighbours in order on the way from the first to the last, without a branch: little is
    left for insertion, whose branches nobody foresees."""
    last = keys[0]
    place: i64 = 0
    if CARRY:
        place = places[0]
    for i in range(1, count):
        key = keys[i]
        before = key < last
        keys[i - 1] = key if before else last
        last = last if before else key
        if CARRY:
            mine = places[i]
            places[i - 1] = mine if before else place
            place = place if before else mine
    keys[count - 1] = last
    if CARRY:
        places[count - 1] = place


def insert(keys: Ptr[Key], places: Ptr[i64], begin: i64, end: i64) -> None:
    """Sort by insertion."""
    for i in range(begin + 1, end):
        key = keys[i]
        if key < keys[i - 1]:
            place: i64 = 0
            if CARRY:
                place = places[i]
            to = i
            while to > begin and key < keys[to - 1]:
                keys[to] = keys[to - 1]
                if CARRY:
                    places[to] = places[to - 1]
                to -= 1
            keys[to] = key
            if CARRY:
                places[to] = place


def settle(
    keys: Ptr[Key], other: Ptr[Key], places: Ptr[i64], moved: Ptr[i64], count: i64, stay: bool
) -> None:
    """Copy the sorted row where it is to be."""
    if stay:
        return
    for i in range(count):
        other[i] = keys[i]
        if CARRY:
            moved[i] = places[i]


def bits_in(number: Key) -> i64:
    """How many bits a number has; one more for some large ones."""
    if number == 0:
        return 0
    return (bits_of(f64(number)) >> 52) - 1022
