"""Names of values: unique in a graph, taken from the program where it has one.

Invariants: a name is letters, digits, dots and underscores and does not start with a digit; a
clash gets a number behind it.
Not here: where hints come from (the trace).
"""

from __future__ import annotations

import re

_GOOD = re.compile(r"[A-Za-z_][\w.]*")
_BAD = re.compile(r"[^\w.]+", re.ASCII)


class Names:
    """The names taken so far."""

    __slots__ = ("_next", "_taken")

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._next: dict[str, int] = {}

    def claim(self, hint: str) -> str:
        """`hint` itself if it is free, else with the first free number behind it."""
        if hint not in self._taken:
            if not hint.isidentifier() or not hint.isascii():
                hint = self._repaired(hint)
            if hint not in self._taken:
                self._taken.add(hint)
                return hint
        number = self._next.get(hint, 0)
        stem = f"{hint}_" if hint[-1].isdigit() else hint
        while (name := f"{stem}{number}") in self._taken:
            number += 1
        self._next[hint] = number + 1
        self._taken.add(name)
        return name

    def release(self, name: str) -> None:
        """Make `name` free: its value is being replaced."""
        self._taken.discard(name)

    def take(self, name: str) -> None:
        """Mark `name` as taken: the value of that name stays after all."""
        self._taken.add(name)

    @staticmethod
    def _repaired(hint: str) -> str:
        name = _BAD.sub("_", hint).strip("_.") or "value"
        return name if _GOOD.fullmatch(name) else f"_{name}"
