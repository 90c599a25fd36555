"""Whole derivatives: `jacobian` and `hessian`.

    slopes = tm.jacobian(f)(x)              # slopes[i, j]: of f(x)[i] by x[j]
    curvature = tm.hessian(loss)(x)

Forwards every element of an argument is a lane whose tangent is 1 there, backwards every element of
a result is one whose cotangent is (compiler/transforms/vmap.py); what the lanes share, above all
the function itself, is computed once.

Invariants: the axes of a result come before those of the argument.
Not here: one direction (forward.py, reverse.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from ..compiler.dims import Size, product
from ..compiler.ir.builder import Builder
from ..compiler.ir.graph import Graph, Value
from ..compiler.ops.batching import Each, Lanes, moved_axis
from ..compiler.ops.shaping import zeros_like
from ..compiler.transforms.grad import gradients
from ..compiler.transforms.jvp import pushforward
from ..compiler.transforms.vmap import batched
from ..compiler.types import TensorType
from ..lifted import derived
from ..tracing.regions import Regions
from ..tracing.state import Trace, fail, running
from ..tracing.tensor import result
from .arguments import Arguments
from .fitting import is_smooth
from .inner import Inner

MODES = ("forward", "reverse")


def jacobian(
    function: Callable[..., Any], argnums: int | Sequence[int] = 0, *, mode: str | None = None
) -> Callable[..., Any]:
    """A function that gives the derivatives of all elements of the results by all elements of
    arguments.

    argnums: the positions of the arguments, a tuple for a tuple of derivatives. mode: "forward",
    which takes as many tangents as arguments have elements, or "reverse", which takes as many
    cotangents as results have; without it, what is less in the first call.

    The answer is nested as the results, and in each leaf as the arguments; an array there has the
    shape of the result's leaf followed by that of the argument's, and the result's dtype. None
    stands for integers and bools.

    Raises GradientError (TM120) for complex arguments, for complex results in reverse, and for
    what has no derivative.
    """
    if mode is not None and mode not in MODES:
        raise fail("TM203", f"the mode of jacobian is forward or reverse, got {mode!r}")

    def inner(*args: Any, **keywords: Any) -> Any:
        return _jacobian(function, argnums, mode, args, keywords)

    return derived("jacobian", function, inner)


def hessian(function: Callable[..., Any], argnums: int | Sequence[int] = 0) -> Callable[..., Any]:
    """A function that gives the second derivatives: the jacobian, forwards, of that in reverse.

    argnums: as `jacobian` has it. An array of the answer has the shape of the result's leaf, then
    those of the two arguments'. Raises GradientError (TM120) as `jacobian` does.
    """
    slopes = jacobian(function, argnums, mode="reverse")
    return jacobian(slopes, argnums, mode="forward")


def _jacobian(
    function: Callable[..., Any],
    argnums: int | Sequence[int],
    mode: str | None,
    args: tuple[Any, ...],
    keywords: dict[str, Any],
) -> Any:
    trace = running()
    numbers = (argnums,) if isinstance(argnums, int) else tuple(argnums)
    for number in numbers:
        if not -len(args) <= number < len(args):
            raise fail("TM203", f"argnums={number}, but the function got {len(args)} arguments")
    arguments = Arguments.of([args[number] for number in numbers])

    def together(chosen: Sequence[Any]) -> tuple[Sequence[Any], dict[str, Any]]:
        everything = list(args)
        for number, item in zip(numbers, chosen):
            everything[number] = item
        return everything, keywords

    with Regions(trace, one_device=False) as regions:
        inner = arguments.trace(trace, regions, "jacobian", function, together)
        whole = _Whole(trace, arguments, inner)
        found = whole.rows(mode or whole.cheaper())
    if inner.variables:
        inner.finish(whole.values())
    nests = [None if row is None else arguments.rebuild(row) for row in found]
    if isinstance(argnums, int):
        nests = [None if nest is None else nest[0] for nest in nests]
    return inner.tree.rebuild(nests)


class _Whole:
    """A function and its arguments, of which all derivatives are taken."""

    def __init__(self, trace: Trace, arguments: Arguments, inner: Inner) -> None:
        self.trace = trace
        self.graph = inner.graph
        self.inputs = arguments.moved
        self.operands = inner.operands(self.inputs)
        self.outputs = list(inner.graph.results[: len(inner.leaves)])
        for value in self.inputs:
            if value.tensor.dtype.is_complex:
                raise fail(
                    "TM120",
                    f"a jacobian by complex numbers is not one array, got {value.type!r}",
                    hint="jvp and vjp take complex arguments; or give real and imaginary parts",
                )

    def cheaper(self) -> str:
        """The mode with fewer lanes in the first call; forward at a tie."""
        counts = [
            sum(self._count(value) for value in values if is_smooth(value))
            for values in (self.inputs, self.outputs)
        ]
        complex_ = any(value.tensor.dtype.is_complex for value in self.outputs)
        return MODES[0] if complex_ or counts[0] <= counts[1] else MODES[1]

    def values(self) -> list[Value]:
        """The function itself."""
        return pushforward(
            self.trace.builder, self.graph, self.operands, [None] * len(self.operands)
        )[0]

    def rows(self, mode: str) -> list[list[Any] | None]:
        """For each result one array for each argument; None for a result of integers."""
        if mode == MODES[0]:
            columns = [self._by_input(at) for at in range(len(self.inputs))]
            return [
                [self._wrapped(column[at]) for column in columns] if is_smooth(out) else None
                for at, out in enumerate(self.outputs)
            ]
        return [
            [self._wrapped(made) for made in self._of_output(at)] if is_smooth(out) else None
            for at, out in enumerate(self.outputs)
        ]

    def _by_input(self, at: int) -> list[Value | None]:
        """Of all results by one argument, with lanes for its elements."""
        region, tangent, params = self._region(self.inputs[at].tensor)
        moved = [tangent if place == at else None for place in range(len(params))]
        values, tangents = pushforward(region, self.graph, params, moved)
        pairs = list(zip(values, tangents))[: len(self.outputs)]
        smooth = [i for i, (value, _) in enumerate(pairs) if is_smooth(value)]
        results = [_or_zeros(region, pairs[i][1], pairs[i][0]) for i in smooth]
        made = self._lanes(region.finish(results), self.inputs[at].tensor)
        shape = self.inputs[at].tensor.shape
        return self._spread(smooth, [self._lanes_last(each, shape) for each in made])

    def _of_output(self, at: int) -> list[Value]:
        """Of one result by all arguments, with lanes for its elements."""
        tensor = self.outputs[at].tensor
        if tensor.dtype.is_complex:
            raise fail(
                "TM120", f"a jacobian in reverse is one of real results, got {tensor}",
                hint='jacobian(f, mode="forward") takes complex results',
            )  # fmt: skip
        region, weight, params = self._region(tensor)
        values, _ = pushforward(region, self.graph, params, [None] * len(params))
        inputs = params[: len(self.inputs)]
        found = gradients(region, [values[at]], inputs, [weight])
        results = [_or_zeros(region, made, value) for made, value in zip(found, inputs)]
        made = self._lanes(region.finish(results), tensor)
        return [
            self._emit("reshape", each.value, shape=(*tensor.shape, *value.tensor.shape))
            for each, value in zip(made, self.inputs)
        ]

    def _region(self, tensor: TensorType) -> tuple[Builder, Value, list[Value]]:
        """A graph of a tangent or cotangent, and of what the function takes."""
        region = Builder("jacobian")
        region.hints = dict(self.trace.sizes.hints)
        seed = region.param("seed", tensor)
        return region, seed, [region.param(v.name, v.type) for v in self.operands]

    def _lanes(self, graph: Graph, tensor: TensorType) -> list[Each]:
        """The graph for each element of a value, where its seed is 1 at that place alone."""
        builder = self.trace.builder
        if not tensor.shape:
            one = builder.constant(1, tensor.dtype)
            values, _ = pushforward(
                builder, graph, [one, *self.operands], [None] * len(graph.params)
            )
            lone = Lanes(1)
            return [Each(lone.spread(builder, Each(value, False)), True) for value in values]
        count = product(tensor.shape)
        seeds = self._basis(tensor, count)
        operands = [Each(seeds, True), *[Each(value, False) for value in self.operands]]
        lanes = Lanes(count)
        made = batched(builder, graph, operands, lanes)
        return [Each(lanes.spread(builder, each), True) for each in made]

    def _basis(self, tensor: TensorType, count: Size) -> Value:
        numbers = self._emit("iota", size=count)
        rows = self._emit("reshape", numbers, shape=(count, 1))
        ones = self._emit("cast", self._emit("equal", rows, numbers), dtype=tensor.dtype)
        return self._emit("reshape", ones, shape=(count, *tensor.shape))

    def _lanes_last(self, each: Each, shape: tuple[Size, ...]) -> Value:
        behind = moved_axis(self.trace.builder, each.value, 0, each.rank)
        return self._emit("reshape", behind, shape=(*behind.tensor.shape[:-1], *shape))

    def _spread(self, places: Sequence[int], made: Sequence[Value]) -> list[Value | None]:
        found = dict(zip(places, made, strict=True))
        return [found.get(at) for at in range(len(self.outputs))]

    def _wrapped(self, value: Value | None) -> Any:
        assert value is not None
        return result(self.trace, value)

    def _emit(self, op: str, *operands: Value, **attrs: Any) -> Value:
        made: Value = self.trace.builder.emit(op, operands, attrs)
        return made

    def _count(self, value: Value) -> int:
        return prod([self.trace.sizes.hint(size) for size in value.tensor.shape])


def _or_zeros(builder: Builder, made: Value | None, like: Value) -> Value:
    if made is not None:
        return made
    zeros: Value = zeros_like(builder, like)
    return zeros
