"""The value of a constant that is filled in after compilation, known without loading LLVM.

Not here: its code (`slots`), who fills it in (backends/cpu/mapped.py).
"""

from __future__ import annotations

from typing import NamedTuple

TABLE = "constants"  # the symbol of the words


class Slot(NamedTuple):
    """The value of a `Constant` that is the word of this number."""

    number: int
