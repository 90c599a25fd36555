"""What keys do not tell apart, put right from the source, in the native language.

Both zeros are one key and so are all NaN; sorted stably they stand in the order of the source.

This module is a pattern (`patterns.py`): `Element` and the numbers are set for each dtype.

Invariants: the row is sorted but for the signs of its zeros and the kinds of its NaN.
Not here: the other elements.
"""

from __future__ import annotations

from ..native.language import Ptr, i64
from ..native.language import i32 as Element

MAGNITUDE = 0x7FFFFFFF  # bits that are not the sign
INFINITE = 0x7F800000  # the magnitude of infinity; larger ones are NaN


def mend_row(source: Ptr[Element], result: Ptr[Element], count: i64) -> None:
    """Write zeros and NaN of `source`, in order, where `result` has zeros and NaN."""
    zeros: i64 = 0
    while zeros < count and (i64(result[zeros]) & MAGNITUDE) != 0:
        zeros += 1
    nans: i64 = count
    while nans > 0 and (i64(result[nans - 1]) & MAGNITUDE) > INFINITE:
        nans -= 1
    for i in range(count):
        magnitude = i64(source[i]) & MAGNITUDE
        if magnitude == 0:
            result[zeros] = source[i]
            zeros += 1
        elif magnitude > INFINITE:
            result[nans] = source[i]
            nans += 1
