"""The greatest elements so far, in the native language.

Elements come as keys turned round, so that the greatest have the least keys. Those that may be
among the wanted ones are kept as they come; when there is no more room they are sorted, the wanted
ones stay, and the last of them is the limit for all that follow.

Invariants: what is kept holds the wanted ones of all that came; of equal keys earlier places stay.
Not here: looking at the elements (selecting.py).
"""

from __future__ import annotations

from typing import Annotated

from ..native.control import Control
from ..native.language import Ptr, Struct, i64, null, u64
from . import rows
from .patterns import functions_for

ROOM = 512  # more than three times what is wanted, and a vector
VECTOR = 16

sort_row = functions_for(rows, "held", Key=u64, CARRY=True)["sort_row"]


class Held(Struct):
    """Keys with their places, and as much memory to sort them."""

    count: i64
    limit: u64  # larger keys are not wanted
    keys: Annotated[Ptr[u64], 512]
    other: Annotated[Ptr[u64], 512]
    places: Annotated[Ptr[i64], 512]
    moved: Annotated[Ptr[i64], 512]


def hold_nothing(held: Held, limit: u64) -> None:
    """Begin with a row: no key is larger than the limit."""
    held.count = 0
    held.limit = limit


def offer(
    held: Held, keys: Ptr[u64], count: i64, first: i64, wanted: i64, tables: Ptr[i64]
) -> None:
    """Keep those of neighbouring elements that may be wanted."""
    for lane in range(count):
        key = keys[lane]
        if key <= held.limit:
            held.keys[held.count] = key
            held.places[held.count] = first + lane
            held.count += 1
    if held.count > ROOM - VECTOR:
        trim(held, wanted, tables)


def trim(held: Held, wanted: i64, tables: Ptr[i64]) -> None:
    """Sort what is held and keep the wanted ones; elements as great as the last come too late."""
    sort_row(
        null(Control), held.keys, held.other, held.places, held.moved, held.count, True, tables
    )
    if held.count >= wanted:
        held.count = wanted
        last = held.keys[wanted - 1]
        held.limit = last - 1 if last > 0 else u64(0)


def give(held: Held, places: Ptr[i64], wanted: i64, tables: Ptr[i64]) -> None:
    """Write where the wanted ones are."""
    trim(held, wanted, tables)
    for i in range(held.count):
        places[i] = held.places[i]
