"""Control flow in the graph: what `functions` does while a function is traced.

A body becomes a region of one node. Its parameters are the carried values, then the Variables it
assigns, then whatever it uses from around it. Where a carried type, or that a Variable is
assigned, shows only as the body is traced, it is traced again.

Invariants: when a body is traced for the last time the types of what it carries are known.
Not here: running control flow outside of traces (functions.py), tracing of a region
(tracing/regions.py), how it is compiled.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..calls.trees import Tree, flatten, paths
from ..compiler.dims import Size
from ..compiler.ir.graph import Value
from ..compiler.records import dataclass
from ..compiler.types import BOOL, I64, TensorType
from ..intercept.callee import callee
from ..lifted import read
from ..numpy.operands import value_of, weak_type
from ..tracing.affine import count_between
from ..tracing.regions import Handed, Region, Regions, with_operands
from ..tracing.source import take_for_user_code
from ..tracing.state import Trace, fail, require_dtype
from ..tracing.tensor import fresh
from .carried import Carried, is_weak, own_arrays, path_text, same_shape, traced_result
from .trips import most_trips

_MOST_TRACES = 5  # kinds of numbers, and Variables found by the way, settle before that


def traced_cond(
    trace: Trace, predicate: Any, functions: Sequence[Callable[..., Any]], operands: Sequence[Any]
) -> Any:
    """A `cond` node; its results, nested as the branches give them."""
    test = _truth(trace, predicate, "cond")
    arms = [_Arm(user_function(function), operands) for function in functions]
    with Regions(trace) as regions:
        for arm in arms:
            arm.trace(regions, {})
        variables = {**arms[0].region.assigned, **arms[1].region.assigned}
        wanted = _joined(trace, arms)
        for arm in arms:
            if variables or [v.tensor.dtype for v in arm.values] != [t.dtype for t in wanted]:
                arm.trace(regions, variables, wanted)
        captured = list(dict.fromkeys(v for arm in arms for v in arm.region.captured))
        made = trace.builder.emit_all(
            "cond",
            [test, *captured],
            {},
            regions=[with_operands(arm.region, captured) for arm in arms],
        )
    found = iter(made)
    leaves = [traced_result(trace, next(found), arms[0].leaves[at]) for at in range(len(wanted))]
    for variable in variables.values():
        variable.put(trace, next(found))
    assert arms[0].tree is not None
    return arms[0].tree.rebuild(leaves)


def traced_place(trace: Trace, index: Any, count: int) -> Any:
    """An index of a list of so many, counted from the front; the run checks it."""
    value = value_of(read(index))
    if value.tensor.shape or value.tensor.dtype.kind not in "iu":
        raise fail("TM260", f"the index of switch is one integer, got {value.type!r}")
    places = trace.builder.constant(np.arange(count))
    return fresh(trace, trace.emit("gather", places, trace.cast(value, I64), axes=(0,))[0])


class _Arm:
    """One branch. wanted: the types of its results, once both are known."""

    def __init__(self, function: Callable[..., Any], operands: Sequence[Any]) -> None:
        self.function = function
        self.operands = operands
        self.region: Region
        self.leaves: list[Any] = []
        self.values: list[Value] = []
        self.tree: Tree | None = None

    def trace(
        self, regions: Regions, variables: dict[str, Any], wanted: Sequence[TensorType] = ()
    ) -> None:
        def body(_: list[Any], inner: Trace) -> Sequence[Value]:
            for variable in variables.values():
                variable.get(inner)
            self.leaves, self.tree = flatten(self.function(*own_arrays(inner, self.operands)))
            self.values = [value_of(read(leaf)) for leaf in self.leaves]
            if wanted:
                self.values = [inner.cast(v, t.dtype) for v, t in zip(self.values, wanted)]
            return [*self.values, *[variable.get(inner) for variable in variables.values()]]

        self.region = regions.trace("branch", (), body)


def _joined(trace: Trace, arms: Sequence[_Arm]) -> list[TensorType]:
    """The types both branches give: equal, but for Python numbers, which take the other's."""
    first, second = arms
    assert first.tree is not None
    assert second.tree is not None
    if first.tree != second.tree:
        raise fail(
            "TM260",
            "the branches of cond give different structures",
            f"{first.tree.spec} if true, {second.tree.spec} if false",
        )
    found = []
    for at, path in enumerate(paths(first.tree)):
        left, right = first.leaves[at], second.leaves[at]
        a, b = first.values[at].tensor, second.values[at].tensor
        dtype = a.dtype
        if a.dtype != b.dtype:
            joined = require_dtype(np.result_type(weak_type(read(left)), weak_type(read(right))))
            if not (is_weak(left) or is_weak(right)) or joined not in (a.dtype, b.dtype):
                raise _unfit(path, a, b)
            dtype = joined
        if not same_shape(trace, a, b):
            raise _unfit(path, a, b)
        found.append(a.with_dtype(dtype))
    return found


# -- loops


@dataclass(slots=True)
class _Settled:
    """A body traced with its final types, and the Variables it assigns, by name."""

    region: Region
    variables: dict[str, Any]


def _settled(
    trace: Trace,
    regions: Regions,
    carried: Carried,
    run: Callable[[list[Any], Trace], tuple[Sequence[Value] | None, Sequence[Value]]],
    *,
    before: Sequence[Handed] = (),
    after: Sequence[Handed] = (),
    first: int = 0,
) -> _Settled:
    """Trace a body until its types and Variables are known.

    run: gives the next carried values, None where a type changed, and what else is yielded;
    `first` of those come first. before, after: what it is handed around the carried values.
    """
    variables: dict[str, Any] = {}
    for _ in range(_MOST_TRACES):
        changed = False

        def body(items: list[Any], inner: Trace) -> Sequence[Value]:
            nonlocal changed
            made, rest = run(items, inner)
            changed = made is None
            return [*rest[:first], *(made or ()), *rest[first:]]

        handed = [*before, *carried.handed(), *after]
        region = regions.trace(carried.name, handed, body, list(variables.values()))
        fresh_variables = {n: v for n, v in region.assigned.items() if n not in variables}
        variables.update(fresh_variables)
        if not changed and not fresh_variables:
            return _Settled(region, variables)
    raise fail("TM260", f"the types that {carried.name} carries change on every trip")


def traced_while(
    trace: Trace, test: Callable[..., Any], body: Callable[..., Any], init: Any
) -> Any:
    """A `while` node."""
    test, body = user_function(test), user_function(body)
    carried = Carried.of("while_loop", init)

    def run(items: list[Any], inner: Trace) -> tuple[Sequence[Value] | None, Sequence[Value]]:
        given = body(carried.tree.rebuild(items))
        made = carried.fit(trace, inner, given)
        if made is None:
            return None, [inner.builder.constant(np.False_)]
        again = carried.wrapped(inner, made)
        return made, [_truth(inner, test(again), "while_loop")]

    with Regions(trace) as regions:
        settled = _settled(trace, regions, carried, run, first=1)
        start = carried.wrapped(trace, carried.values)
        before = _truth(trace, test(start), "while_loop")
        return _loop(trace, "while", [before], carried, settled)


def traced_fori(trace: Trace, lower: Any, upper: Any, body: Callable[..., Any], init: Any) -> Any:
    """A `for` node."""
    body = user_function(body)
    bounds = [_bound(trace, lower), _bound(trace, upper)]
    carried = Carried.of("fori_loop", init)

    def run(items: list[Any], inner: Trace) -> tuple[Sequence[Value] | None, Sequence[Value]]:
        count_between(items[0], lower, upper)
        return carried.fit(trace, inner, body(items[0], carried.tree.rebuild(items[1:]))), ()

    counter = Handed("i", TensorType(I64, ()), int)
    with Regions(trace) as regions:
        settled = _settled(trace, regions, carried, run, before=[counter])
        return _loop(trace, "for", bounds, carried, settled, most_trips(trace, lower, upper))


def traced_scan(
    trace: Trace, body: Callable[..., Any], init: Any, xs: Any, length: Any, reverse: bool
) -> tuple[Any, Any]:
    """A `scan` node."""
    body = user_function(body)
    carried = Carried.of("scan", init)
    stacks, tree = flatten(xs)
    values = [value_of(read(stack)) for stack in stacks]
    count = _length(trace, values, length)
    rows = [Handed("row", TensorType(v.tensor.dtype, v.tensor.shape[1:]), "scalar") for v in values]
    made: list[Any] = [None]

    def run(items: list[Any], inner: Trace) -> tuple[Sequence[Value] | None, Sequence[Value]]:
        split = len(carried.leaves)
        given = body(carried.tree.rebuild(items[:split]), tree.rebuild(items[split:]))
        if not isinstance(given, tuple) or len(given) != 2:
            raise fail("TM260", f"the body of scan gives a pair (carry, y), got {given!r:.60}")
        made[0] = flatten(given[1])
        following = carried.fit(trace, inner, given[0])
        return following, [value_of(read(leaf)) for leaf in made[0][0]]

    with Regions(trace) as regions:
        settled = _settled(trace, regions, carried, run, after=rows)
        count = trace.sizes.normal(count)
        attrs = {"length": count, "reverse": reverse, "stacked": len(values)}
        final, found = _scanned(trace, carried, settled, values, attrs)
    leaves = [fresh(trace, value) for value in found]
    return final, made[0][1].rebuild(leaves)


def _scanned(
    trace: Trace, carried: Carried, settled: _Settled, stacks: list[Value], attrs: dict[str, Any]
) -> tuple[Any, list[Value]]:
    """The node of a scan: what it carries in the end, and what it stacks.

    Variables are traced behind the rows and what is stacked, and stand before both in the node.
    """
    region, variables = settled.region, list(settled.variables.values())
    graph, own = region.graph, len(carried.values)
    given, count = own + len(stacks), len(variables)
    params = graph.params
    graph.params = (*params[:own], *params[given : given + count], *params[own:given],
                    *params[given + count :])  # fmt: skip
    tensors = [r for r in graph.results if isinstance(r.type, TensorType)]
    tokens = graph.results[len(tensors) :]
    ys = len(tensors) - own - count
    graph.results = (*tensors[:own], *tensors[own + ys :], *tensors[own : own + ys], *tokens)
    held = [variable.get(trace) for variable in variables]
    operands = [*carried.values, *held, *stacks, *region.captured]
    attrs = {**attrs, "carried": own + count}
    found = trace.builder.emit_all("scan", operands, attrs, regions=[graph])
    for variable, value in zip(variables, found[own:]):
        variable.put(trace, value)
    return carried.wrapped(trace, found[:own]), list(found[own + count : own + count + ys])


def _loop(
    trace: Trace,
    op: str,
    head: Sequence[Value],
    carried: Carried,
    settled: _Settled,
    most: Mapping[str, Size] | None = None,
) -> Any:
    """The node of a loop, and what it carries in the end."""
    region, variables = settled.region, list(settled.variables.values())
    held = [variable.get(trace) for variable in variables]
    operands = [*head, *carried.values, *held, *region.captured]
    attrs = {"carried": len(carried.values) + len(held), **(most or {})}
    found = trace.builder.emit_all(op, operands, attrs, regions=[region.graph])
    for variable, value in zip(variables, found[len(carried.values) :]):
        variable.put(trace, value)
    return carried.wrapped(trace, found[: len(carried.values)])


# -- words


def user_function(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that a body calls, with what the trace needs in it."""
    take_for_user_code(function)
    found: Callable[..., Any] = callee(function)
    return found


def _truth(trace: Trace, item: Any, what: str) -> Value:
    """A condition as a bool of rank 0."""
    value = value_of(read(item))
    if value.tensor.shape:
        raise fail(
            "TM260",
            f"the condition of {what} is one bool, got {value.type!r}",
            hint="reduce it with .any() or .all()",
        )
    if value.tensor.dtype == BOOL:
        return value
    zero = trace.literal(0, value.tensor.dtype)
    made: Value = trace.emit("not_equal", value, zero)
    return made


def _bound(trace: Trace, item: Any) -> Value:
    """A bound of a counting loop as i64."""
    value = value_of(read(item))
    if value.tensor.shape or value.tensor.dtype.kind not in "iu":
        raise fail("TM260", f"the bounds of fori_loop are integers, got {value.type!r}")
    return trace.cast(value, I64)


def _length(trace: Trace, values: Sequence[Value], length: Any) -> Any:
    """How many rows all stacks have."""
    sizes = [] if length is None else [length.now() if hasattr(length, "now") else int(length)]
    for value in values:
        if not value.tensor.shape:
            raise fail("TM260", f"scan goes over the first axis of arrays, got {value.type!r}")
        sizes.append(value.tensor.shape[0])
    if not sizes:
        raise fail("TM260", "scan needs arrays to go over, or a length")
    for size in sizes[1:]:
        if not trace.sizes.equal(sizes[0], size, "scan goes over these axes together"):
            raise fail("TM260", f"scan goes over {sizes[0]} and {size} rows together")
    if isinstance(sizes[0], int) and sizes[0] < 0:
        raise fail("TM260", f"the length of scan is {sizes[0]}")
    return sizes[0]


def _unfit(path: Any, a: TensorType, b: TensorType) -> Exception:
    what = path_text(path) or "a value"
    return fail(
        "TM260",
        f"cond gives {what} as {a} if true, as {b} if false",
        "both branches give the same dtypes and shapes",
    )
