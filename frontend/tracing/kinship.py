"""Memory that may be one: an array that control flow has chosen, and those it was chosen from.

In Python a name that is given an array shares its memory. In the graph what a branch or loop gives
is memory of its own, a copy. So the two are *kin*: once one of them is written the other may be
stale, it is *spent*, and whoever uses it then is refused. Nothing can refuse the caller, who sees
what is written to his arguments: a write to kin of his memory is refused itself.

    y = z if c else x + 1      kin: y and z
    y[0] = 5                   z is spent (an error here where z is the caller's)

Invariants: kinship is symmetric; two arrays that may be one memory and have two `Base`s are kin.
Not here: which arrays become kin (control/shared.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracemill.compiler.ir.graph import Location

from .box import Box
from .memory import around, root_of
from .source import user_location
from .state import Trace, fail
from .views import Base

if TYPE_CHECKING:
    from .tensor import TracedArray

Root = Base | Box
_COPY = (
    "where a branch or loop gives an array that has another name, or a view of it, a name, give it "
    "a copy: a = b.copy()"
)


def relate(trace: Trace, one: Root, other: Root) -> None:
    """In `trace`, and the bodies in it, both may be one memory."""
    for a, b in ((one, other), (other, one)):
        trace.kin.setdefault(id(a), (a, {}))[1][id(b)] = b


def kin_of(trace: Trace, base: Base) -> list[Root]:
    """Other memory that this may be."""
    root = id(root_of(base))
    found: dict[int, Root] = {}
    for at in around(trace):
        if root in at.kin:
            found.update(at.kin[root][1])
    return list(found.values())


def check_kin(trace: Trace, array: TracedArray, write: bool = False) -> None:
    """Refuse an array that may be stale, or whose writing the caller may not see.
    Raises TraceError."""
    base = array.base_memory
    where = _spent_at(trace, base)
    if where is not None:
        raise fail(
            "TM106",
            f"{array!r} is used, and whether it shares its memory with an array that is written "
            f"{where} is known only when the compiled function runs",
            hint=_COPY,
        )
    if write and any(isinstance(r, Box) or r.input is not None for r in kin_of(trace, base)):
        raise fail(
            "TM106",
            f"{array!r} is written, and whether it shares its memory with an array of the "
            "caller's is known only when the compiled function runs",
            hint=_COPY,
        )


def spend_kin(trace: Trace, base: Base) -> None:
    """`base` is written: what it may be is not to be used in `trace` from now on."""
    for root in kin_of(trace, base):
        trace.spent[id(root)] = root, user_location()


def spent_outside(trace: Trace) -> dict[int, tuple[Root, Location | None]]:
    """Memory from around `trace` that is spent in it."""
    return {key: found for key, found in trace.spent.items() if found[0].trace is not trace}


def _spent_at(trace: Trace, base: Base) -> str | None:
    """Where memory was written that this may be, if it was."""
    root = id(root_of(base))
    for at in around(trace):
        if root in at.spent:
            place = at.spent[root][1]
            return "before" if place is None else f"in line {place.line}"
    return None
