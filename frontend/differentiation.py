"""Gradients for users: of functions, and of values in the function being compiled.

    slope = tm.grad(f)(x)                            # anywhere
    loss, slopes = tm.value_and_grad(f, argnums=(0, 1))(w, b)
    opt.apply(tm.gradients(loss, [w, b]))            # inside a compiled function

Invariants: a gradient has the dtype, shape and nesting of what it is taken by; zeros where the
loss does not depend on it, None for integers and bools. For a complex argument z = x + iy it is
dL/dx + i dL/dy.
Not here: the rules and conventions (compiler/transforms/grad.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .calls.trees import flatten
from .compiler.errors import error
from .compiler.ir.graph import Value
from .compiler.ops.shaping import zeros_like
from .compiler.transforms.grad import gradients as append_gradients
from .intercept.callee import callee
from .lifted import derived, lifted, read
from .numpy.operands import value_of
from .tracing.number import TracedNumber
from .tracing.source import take_for_user_code
from .tracing.state import Trace, current, fail, running
from .tracing.tensor import fresh, result
from .variable import Variable


def gradients(loss: Any, wrt: Any) -> Any:
    """The gradients of a scalar `loss` by each array or Variable in `wrt`, nested as `wrt` is.

    Only while tracing, on values of that trace. A Variable stands for all the times it was read.
    """
    trace = current()
    if trace is None:
        raise error(
            "TM103",
            "tm.gradients goes through the graph of a compiled function, and none is traced here",
            hint="tm.value_and_grad takes a function, and works under tm.disable_jit() too",
        )
    leaves, tree = flatten(wrt)
    sources = [_reads(trace, leaf) for leaf in leaves]
    flat = [value for values in sources for value in values]
    found = iter(append_gradients(trace.builder, [_scalar(loss, "gradients")], flat))
    parts = [[next(found) for _ in values] for values in sources]
    return tree.rebuild([_answer(trace, leaf, part) for leaf, part in zip(leaves, parts)])


def value_and_grad(
    function: Callable[..., Any], argnums: int | Sequence[int] = 0, *, has_aux: bool = False
) -> Callable[..., Any]:
    """A function that gives ``(value, gradient)``; with `has_aux`, `function` gives
    ``(loss, anything)`` and the first of the pair is that pair.

    argnums: positions of the arguments to differentiate by, a tuple for a tuple of gradients.
    """

    def inner(*args: Any, **keywords: Any) -> Any:
        return _value_and_grad(function, argnums, has_aux, args, keywords)

    return derived("value_and_grad", function, inner)


def grad(
    function: Callable[..., Any], argnums: int | Sequence[int] = 0, *, has_aux: bool = False
) -> Callable[..., Any]:
    """A function that gives the gradient of `function`; with `has_aux`, ``(gradient, aux)``."""

    def inner(*args: Any, **keywords: Any) -> Any:
        value, slope = _value_and_grad(function, argnums, has_aux, args, keywords)
        return (slope, value[1]) if has_aux else slope

    return derived("grad", function, inner)


@lifted
def stop_gradient(x: Any) -> Any:
    """`x` itself, as a constant for every gradient."""
    trace = running()
    return result(trace, trace.emit("stop_gradient", value_of(read(x))))


def _value_and_grad(
    function: Callable[..., Any],
    argnums: int | Sequence[int],
    has_aux: bool,
    args: tuple[Any, ...],
    keywords: dict[str, Any],
) -> tuple[Any, Any]:
    trace = running()
    numbers = (argnums,) if isinstance(argnums, int) else tuple(argnums)
    given = list(args)
    leaves: list[Any] = []
    trees = []
    flat: list[Value] = []
    for number in numbers:
        if not -len(args) <= number < len(args):
            raise fail("TM203", f"argnums={number}, but the function got {len(args)} arguments")
        mine, tree = flatten(given[number])
        own = [_own(trace, leaf) for leaf in mine]
        given[number] = tree.rebuild(own)
        leaves.append(own)
        flat += [leaf.value for leaf in own]  # before the function writes to them
        trees.append(tree)
    take_for_user_code(function)
    value = callee(function)(*given, **keywords)
    loss = value[0] if has_aux else value
    found = iter(append_gradients(trace.builder, [_scalar(loss, "grad")], flat))
    answers = [
        tree.rebuild([_answer(trace, leaf, [next(found)]) for leaf in own])
        for own, tree in zip(leaves, trees)
    ]
    return value, answers[0] if isinstance(argnums, int) else tuple(answers)


def _own(trace: Trace, leaf: Any) -> Any:
    """The argument as a value of its own: the same array captured elsewhere is a constant."""
    leaf = read(leaf)
    value = value_of(leaf)
    if value.tensor.dtype.kind in "fc":
        value = trace.emit("alias", value)
    if isinstance(leaf, bool | int | float | complex) and not hasattr(leaf, "dtype"):
        kind = leaf.__class__
        return TracedNumber(trace, value, kind)
    return fresh(trace, value) if value.tensor.shape else result(trace, value)


def _reads(trace: Trace, leaf: Any) -> list[Value]:
    """The values of the graph that a leaf of `wrt` stands for."""
    if not isinstance(leaf, Variable):
        return [value_of(leaf)]
    nodes = trace.builder.nodes
    found = [n.results[0] for n in nodes if n.variable == leaf.name and n.op.name == "read"]
    return found or [value_of(leaf.read())]


def _answer(trace: Trace, leaf: Any, parts: Sequence[Value | None]) -> Any:
    """The sum of what arrived, as an array; zeros for nothing, None for what is no float."""
    like = value_of(read(leaf))
    if like.tensor.dtype.kind not in "fc":
        return None
    total: Value | None = None
    for part in parts:
        if part is not None:
            total = part if total is None else trace.emit("add", total, part)
    return result(trace, zeros_like(trace.builder, like) if total is None else total)


def _scalar(loss: Any, what: str) -> Value:
    """The loss, known to be one real floating number."""
    if current() is None or loss is None:
        raise fail("TM120", f"{what} needs a loss, got {loss!r}")
    value = value_of(read(loss))
    if value.tensor.shape or not value.tensor.dtype.is_float:
        raise fail(
            "TM120",
            f"{what} needs a real number as loss, got {value.type!r}",
            hint="reduce it first, for example with .sum() or .mean()"
            if value.tensor.shape
            else "differentiate a function of floats: convert with .astype(float) before the call",
        )
    return value
