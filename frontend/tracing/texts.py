"""Texts that were made of traced values: they show stand-ins, and are for prints alone.

Not here: numbers that a text is asked for (numbers_needed.py).
"""

from __future__ import annotations

import re
from typing import Any

from .state import fail

_TRACED = re.compile(r"<traced [^<>]*>")


def refuse_text(item: Any, what: str, hint: str) -> None:
    """Raise TraceError for a text that has a stand-in in it. what: what happens to it."""
    found = _TRACED.search(item) if type(item) is str else None
    if found is not None:
        raise fail(
            "TM102",
            f"a text made of {found[0]} is {what}, which is known only when the compiled function "
            "runs",
            hint=hint,
        )
