"""Forward mode: `jvp` and `linearize`.

    y, dy = tm.jvp(f, (x,), (dx,))          # f(x), and how it changes along dx
    y, along = tm.linearize(f, x)           # the same for directions that come later
    dy = along(dx)

Invariants: a tangent has the dtype, shape and nesting of what it belongs to; None belongs to
integers and bools.
Not here: the rules (with their ops), reverse mode (reverse.py, differentiation.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..compiler.errors import error
from ..compiler.ir.graph import Value
from ..compiler.ops.shaping import zeros_like
from ..compiler.transforms.jvp import pushforward
from ..control.carried import traced_result
from ..tracing.regions import Regions
from ..tracing.state import Trace, current, fail, running
from .arguments import Arguments, held
from .fitting import fitted, is_smooth
from .inner import Inner
from .outside import called, run_compiled


def jvp(
    function: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any]
) -> tuple[Any, Any]:
    """``(f(*primals), tangent)``: the value, and its derivative along the tangents.

    primals: a tuple of positional arguments, any nest of arrays and numbers. tangents: for each
    of them the same nest with the same dtypes and shapes; None for integers and bools. The cost
    is a small multiple of that of `function`, whatever the sizes, with no memory for what happened
    on the way, so `tm.while_loop` has a derivative here.

    Raises GradientError: TM121 for a tangent of another structure, dtype or shape, TM120 for an op
    that has no derivative.
    """
    for given in (primals, tangents):
        if not isinstance(given, tuple | list):
            raise fail("TM121", f"jvp takes tuples of primals and tangents, got {given!r:.60}")
    primals, tangents = tuple(primals), tuple(tangents)
    if current() is None:
        found: tuple[Any, Any] = run_compiled(_jvp, function, primals, tangents)
        return found
    return _jvp(function, primals, tangents)


def linearize(function: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[..., Any]]:
    """``(f(*primals), along)``: `along(*tangents)` is the derivative there along these.

    Outside of compiled functions each call of `along` computes the function again; in one, what
    does not depend on the tangents is shared by all calls.

    Raises GradientError as `jvp` does, when `along` is called.
    """
    if current() is None:
        kept = held(primals)
        value = run_compiled(called, function, *held(kept))  # it may write to them
        return value, lambda *tangents: run_compiled(_jvp, function, kept, tangents)[1]
    trace = running()
    arguments = Arguments.of(primals)
    inner = arguments.trace(
        trace, Regions(trace, one_device=False), "linearize", function
    )  # heard of to the end
    values, _ = pushforward(
        trace.builder, inner.graph, operands := inner.operands(arguments.moved),
        [None] * len(operands),
    )  # fmt: skip

    def along(*tangents: Any) -> Any:
        return _moved(arguments, inner, tangents)[1]

    return inner.finish(values), along


def _jvp(function: Callable[..., Any], primals: Any, tangents: Any) -> tuple[Any, Any]:
    trace = running()
    arguments = Arguments.of(primals)
    with Regions(trace, one_device=False) as regions:
        inner = arguments.trace(trace, regions, "jvp", function)
        values, found = _moved(arguments, inner, tangents)
    return inner.finish(values), found


def _moved(arguments: Arguments, inner: Inner, tangents: Any) -> tuple[list[Value], Any]:
    """The function made again in the trace that is running: its values, and nested tangents."""
    here = running()
    need_inside(here, inner.trace)
    operands = inner.operands_in(here, arguments.moved)
    directions = _directions(here, arguments, tangents)
    directions += [None] * (len(operands) - len(directions))
    values, found = pushforward(here.builder, inner.graph, operands, directions)
    own = values[: len(inner.leaves)]
    return values, inner.tree.rebuild([
        _nested(here, value, tangent, like)
        for value, tangent, like in zip(own, found, inner.leaves)
    ])  # fmt: skip


def _directions(here: Trace, arguments: Arguments, tangents: Any) -> list[Value | None]:
    values = arguments.all_values
    found = fitted(here, "tangent", tangents, values, arguments.tree, "the primals")
    return [found[at] for at in arguments.smooth]


def _nested(trace: Trace, value: Value, tangent: Value | None, like: Any) -> Any:
    if not is_smooth(value):
        return None
    return traced_result(trace, zeros_like(trace.builder, value) if tangent is None else tangent,
                         like)  # fmt: skip


def need_inside(here: Trace, home: Trace) -> None:
    """Refuse a derivative whose function was traced by a trace that is not around `here`."""
    at: Trace | None = here
    while at is not None and at is not home:
        at = at.outer if at.states is not None else None
    if at is None:
        home.check_alive(None)
        raise error("TM103", "a derivative is used in another function than it was made in")
