"""What the user says about derivatives: `checkpoint`, `custom_vjp`, `custom_jvp`.

    layer = tm.checkpoint(layer)             # its gradient computes it again

    @tm.custom_vjp
    def f(x): ...
    f.defvjp(forward, backward)              # forward(x) -> (y, kept); backward(kept, dy) -> (dx,)

    @tm.custom_jvp
    def g(x): ...
    g.defjvp(rule)                           # rule((x,), (dx,)) -> (y, dy)

A rule may call its function. Then derivatives of higher order ask for the rule again: up to the
third it answers, beyond it is the derivative of the function's own code.

Invariants: a call without derivatives runs the function itself and nothing else.
Not here: what gradients, tangents and lanes make of these nodes (compiler/transforms).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from ..calls.trees import Tree, flatten
from ..compiler.ir.graph import Value
from ..compiler.ops.shaping import zeros_like
from ..control.carried import same_shape
from ..intercept.callee import callee
from ..lifted import lifted, read
from ..numpy.operands import value_of
from ..tracing.regions import Handed, Regions, with_operands
from ..tracing.source import take_for_user_code
from ..tracing.state import Trace, fail, running
from ..tracing.tensor import result
from .arguments import Arguments
from .fitting import fitted, is_smooth
from .inner import Inner

Function = Callable[..., Any]
ORDERS = 3  # of derivatives that a rule serves where it calls its own function


def checkpoint(function: Function) -> Function:
    """The function, which gradients compute again from its arguments, so that nothing of what it
    computes is kept for them: less memory for more time.

    Values, gradients of any order and errors are those of `function`. What it prints is printed
    once. Outside of gradients nothing changes.
    """

    def inner(*args: Any, **keywords: Any) -> Any:
        trace, arguments = running(), Arguments.of(args)
        with Regions(trace) as regions:
            found = arguments.trace(
                trace, regions, "checkpoint", function, lambda own: (own, keywords)
            )
            operands = found.operands(arguments.moved)
            made = trace.builder.emit_all("recompute", operands, {}, regions=[found.graph])
        return found.finish(made)

    inner.__name__ = f"checkpoint_of_{getattr(function, '__name__', 'function')}"
    return lifted(inner)


def custom_vjp(function: Function) -> Any:
    """The function, with a gradient that ``f.defvjp(forward, backward)`` states.

    forward: takes the arguments, gives ``(value, kept)``, any nest. backward: takes `kept` and the
    cotangent of the value, nested as it is, and gives a tuple with the gradient by each argument,
    of its structure, dtypes and shapes; None for zeros, and for integers and bools. What the
    function uses besides its arguments gets no gradient. Derivatives of second order go through
    `forward` and `backward`; forward mode is refused (TM120).

    Raises GradientError when called: TM120 before `defvjp`, or where a Variable is assigned, TM121
    where the parts do not fit.
    """
    rules = _Rules(function)

    def inner(*args: Any) -> Any:
        if rules.depth == ORDERS:
            return callee(function)(*args)
        forward, backward = rules.stated("defvjp(forward, backward)")
        trace, arguments = running(), Arguments.of(args)
        with Regions(trace) as regions:
            primal = arguments.trace(trace, regions, "custom_vjp", function)

            def back(own: Sequence[Any], items: Sequence[Any]) -> Any:
                value, kept = _pair(callee(forward)(*own), "forward gives a pair (value, kept)")
                _need_same(running(), primal, value)
                given = callee(backward)(kept, _results_nest(primal, items))
                return _fitting("gradient", given, arguments.all_values, arguments.tree,
                                "the arguments")  # fmt: skip

            seeds = [value for value in _outputs(primal) if is_smooth(value)]
            with rules.run():
                rule = _rule(trace, regions, "custom_vjp", arguments, seeds, back)
            return _node(trace, "custom_vjp", arguments, primal, rule)

    made = rules.on(inner)
    made.defvjp = lambda forward, backward: rules.state(forward, backward)
    return made


def custom_jvp(function: Function) -> Any:
    """The function, with a derivative that ``f.defjvp(rule)`` states, for both modes.

    rule: takes the tuple of arguments and that of their tangents, nested as they are, None for
    integers and bools, and gives ``(value, tangent)``, which is linear in the tangents: so
    gradients are its transpose. What the function uses besides its arguments has no derivative.

    Raises GradientError when called: TM120 before `defjvp`, or where a Variable is assigned, TM121
    where the parts do not fit.
    """
    rules = _Rules(function)

    def inner(*args: Any) -> Any:
        if rules.depth == ORDERS:
            return callee(function)(*args)
        (stated,) = rules.stated("defjvp(rule)")
        trace, arguments = running(), Arguments.of(args)
        with Regions(trace) as regions:
            primal = arguments.trace(trace, regions, "custom_jvp", function)

            def ahead(own: Sequence[Any], items: Sequence[Any]) -> Any:
                given = callee(stated)(tuple(own), arguments.rebuild(items))
                value, moved = _pair(given, "the rule gives a pair (value, tangent)")
                leaves = _need_same(running(), primal, value)
                outputs = _outputs(primal)
                return (*leaves, *_fitting("tangent", moved, outputs, primal.tree, "the results"))

            with rules.run():
                rule = _rule(trace, regions, "custom_jvp", arguments, arguments.moved, ahead)
            return _node(trace, "custom_jvp", arguments, primal, rule)

    made = rules.on(inner)
    made.defjvp = lambda rule: rules.state(rule)
    return made


class _Depth(threading.local):
    now = 0


class _Rules:
    """What is stated about one function."""

    def __init__(self, function: Function) -> None:
        self.function = function
        self._given: tuple[Function, ...] = ()
        self._depth = _Depth()

    @property
    def depth(self) -> int:
        """How many rules are being traced, each because the one before calls the function."""
        return self._depth.now

    @contextmanager
    def run(self) -> Iterator[None]:
        """Trace a rule."""
        self._depth.now += 1
        try:
            yield
        finally:
            self._depth.now -= 1

    def stated(self, how: str) -> tuple[Function, ...]:
        """The rules. Raises GradientError where there are none yet."""
        if not self._given:
            name = getattr(self.function, "__name__", "the function")
            raise fail("TM120", f"{name} has no derivative yet", hint=f"state it with {name}.{how}")
        return self._given

    def state(self, *given: Function) -> None:
        """Take the rules; calls that are compiled already keep those they had."""
        for rule in given:
            if not callable(rule):
                raise fail("TM120", f"a derivative is stated by functions, got {rule!r:.60}")
            take_for_user_code(rule)
        self._given = given

    def on(self, inner: Function) -> Any:
        """The function that users call."""
        inner.__name__ = getattr(self.function, "__name__", "function")
        return lifted(inner)


def _rule(
    trace: Trace,
    regions: Regions,
    name: str,
    arguments: Arguments,
    seeds: Sequence[Value],
    run: Callable[[Sequence[Any], Sequence[Any]], Any],
) -> Inner:
    """The region of a rule, of the arguments and of what is of the types of `seeds`."""
    count = len(arguments.leaves)
    params = arguments.handed()
    params.update({count + at: Handed("seed", v.tensor) for at, v in enumerate(seeds)})

    def rebuild(leaves: list[Any]) -> tuple[Sequence[Any], Mapping[str, Any]]:
        return (arguments.tree.rebuild(leaves[:count]), leaves[count:]), {}

    leaves = [*arguments.leaves, *[None] * len(seeds)]
    return Inner(trace, regions, name, run, leaves, rebuild, params)


def _node(trace: Trace, op: str, arguments: Arguments, primal: Inner, rule: Inner) -> Any:
    """The function and its rule as the regions of one node; what the function gives."""
    for inner in (primal, rule):
        for name in inner.variables:
            what = "an array around it" if name.startswith("memory ") else f"the Variable {name!r}"
            raise fail("TM120", f"a function with a derivative of its own writes to {what}")
    captured = list(dict.fromkeys((*primal.region.captured, *rule.region.captured)))
    graphs = [with_operands(inner.region, captured) for inner in (primal, rule)]
    operands = [*arguments.moved, *captured]
    attrs = {"inputs": len(arguments.smooth)}
    return primal.finish(trace.builder.emit_all(op, operands, attrs, regions=graphs))


def _pair(given: Any, what: str) -> tuple[Any, Any]:
    if not isinstance(given, tuple) or len(given) != 2:
        raise fail("TM121", f"{what}, got {given!r:.60}")
    return given


def _outputs(primal: Inner) -> list[Value]:
    return list(primal.graph.results[: len(primal.leaves)])


def _results_nest(primal: Inner, items: Sequence[Any]) -> Any:
    """Cotangents, nested as the results; None for integers and bools."""
    rest = iter(items)
    return primal.tree.rebuild([
        next(rest) if is_smooth(value) else None for value in _outputs(primal)
    ])  # fmt: skip


def _need_same(trace: Trace, primal: Inner, value: Any) -> list[Any]:
    """The leaves of a value that a rule gives. Raises GradientError where it is not of the types
    of the function's."""
    leaves, tree = flatten(value)
    if tree != primal.tree:
        raise fail(
            "TM121",
            "the value of the rule is nested differently from that of the function",
            f"{tree.spec} for {primal.tree.spec}",
        )
    for leaf, wanted in zip(leaves, _outputs(primal)):
        made = value_of(read(leaf))
        same = made.tensor.dtype == wanted.tensor.dtype
        if not same or not same_shape(trace, made.tensor, wanted.tensor):
            raise fail(
                "TM121", f"the function gives a {wanted.type!r}, its rule a {made.type!r} for it"
            )
    return leaves


def _fitting(
    what: str, given: Any, values: Sequence[Value | None], tree: Tree, names: str
) -> tuple[Any, ...]:
    """The leaves that belong to floating numbers, zeros where there is None."""
    trace = running()
    found = fitted(trace, what, given, values, tree, names, missing="zero")
    return tuple([
        result(trace, zeros_like(trace.builder, value) if made is None else made)
        for made, value in zip(found, values)
        if is_smooth(value)
    ])  # fmt: skip
