"""Names that are still free.

Not here: what they name.
"""

from __future__ import annotations


def fresh(hint: str, taken: set[str]) -> str:
    """`hint`, or with the first free number behind it; taken from now on."""
    name, number = hint, 0
    while name in taken:
        name, number = f"{hint}{number}", number + 1
    taken.add(name)
    return name
