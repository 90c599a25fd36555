"""Reverse mode for functions of any result: `vjp`.

    y, pullback = tm.vjp(f, a, b)
    da, db = pullback(dy)

Invariants: a gradient has the dtype, shape and nesting of the argument it is taken by.
Not here: losses (differentiation.py), the rules and conventions (compiler/transforms/grad.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..compiler.ops.shaping import zeros_like
from ..compiler.transforms.grad import gradients
from ..compiler.transforms.jvp import pushforward
from ..tracing.regions import Regions
from ..tracing.state import current, running
from ..tracing.tensor import result
from .arguments import Arguments, held
from .fitting import fitted, is_smooth
from .forward import need_inside
from .outside import called, run_compiled


def vjp(function: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[[Any], Any]]:
    """``(f(*primals), pullback)``: `pullback(cotangent)` gives, for each argument, the gradient
    of the sum of the results' elements weighted by the cotangent.

    primals: any nest of arrays and numbers. cotangent: nested as the result, of its dtypes and
    shapes; None for integers and bools. The gradients are a tuple, nested as the arguments, None
    for integers and bools. For complex z = x + iy cotangents and gradients are dL/dx + i dL/dy.
    Outside of compiled functions each call of `pullback` computes the function again; in one, all
    calls share it.

    Raises GradientError: TM121 for a cotangent of another structure, dtype or shape, TM120 for an
    op that has no gradient.
    """
    if current() is not None:
        return _vjp(function, *primals)
    kept = held(primals)
    value = run_compiled(called, function, *held(kept))  # it may write to them
    return value, lambda cotangent: run_compiled(_pulled, function, kept, cotangent)


def _pulled(function: Callable[..., Any], primals: Any, cotangent: Any) -> Any:
    return _vjp(function, *primals)[1](cotangent)


def _vjp(function: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[[Any], Any]]:
    trace = running()
    arguments = Arguments.of(primals)
    inner = arguments.trace(
        trace, Regions(trace, one_device=False), "vjp", function
    )  # heard of to the end
    # Values of their own: what the function uses besides is a constant, even if it is the same.
    own = [trace.emit("alias", value) for value in arguments.moved]
    operands = inner.operands(own)
    values, _ = pushforward(trace.builder, inner.graph, operands, [None] * len(operands))

    def pullback(cotangent: Any) -> Any:
        here = running()
        inputs, outputs = own, values
        if here is not trace:
            need_inside(here, trace)
            mine = inner.operands_in(here, own)
            inputs = [here.emit("alias", value) for value in mine[: len(own)]]
            mine[: len(own)] = inputs
            outputs, _ = pushforward(here.builder, inner.graph, mine, [None] * len(mine))
        outputs = outputs[: len(inner.leaves)]
        weights = fitted(here, "cotangent", cotangent, outputs, inner.tree, "the results")
        smooth = [(v, ct) for v, ct in zip(outputs, weights) if is_smooth(v)]
        found = gradients(here.builder, [v for v, _ in smooth], inputs, [ct for _, ct in smooth])
        return arguments.rebuild([
            result(here, zeros_like(here.builder, value) if g is None else g)
            for g, value in zip(found, inputs)
        ])  # fmt: skip

    return inner.finish(values), pullback
