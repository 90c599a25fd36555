"""Where the tables of a specialisation name kernels: the words that better code is written into.

Invariants: the words are aligned, and native code reads each anew for every launch; they are valid
as long as the `Encoded` lives, which a call under way keeps.
Not here: writing the tables (`encoder`), which code is better (backends/cpu/mapped.py).
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator

from .encoder import Encoded
from .language import layout_of
from .layout import Row, RowKind


def kernel_words(encoded: Encoded) -> Iterator[int]:
    """The addresses of the words that hold kernels' addresses, one for each launching row."""
    layout = layout_of(Row)
    kind, kernel = layout.fields["kind"].offset, layout.fields["kernel"].offset
    rows, count = encoded.record["rows"], encoded.record["n_rows"]
    starts = range(rows, rows + count * layout.size, layout.size)
    return (at + kernel for at in starts if _word(at + kind) == RowKind.LAUNCH)


def _word(address: int) -> int:
    return ctypes.c_int64.from_address(address).value
