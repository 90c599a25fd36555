"""Run a function once on traced arguments and collect its graph.

Not here: flattening of arguments (the caller's), interception of what the function calls
(intercept/), the dispatch table (numpy/dispatch.py).
"""

from __future__ import annotations

from collections.abc import (
    AsyncIterator,
    Callable,
    Coroutine,
    Iterator,
    Mapping,
    Sequence,
    ValuesView,
)
from functools import partial
from typing import Any

import numpy as np

from tracemill.compiler.dims import Dim
from tracemill.compiler.errors import number_text
from tracemill.compiler.ir.graph import Graph, Value
from tracemill.compiler.types import TensorType, dtype_of

from ..intercept.entry import intercepted
from ..numpy.dispatch import DISPATCH
from ..numpy.operands import is_traced
from ..numpy.unsized import Unsized
from .box import Boxes, SharedBase
from .capture import capture, refuse_outer
from .guards import AxesGuard, StridesGuard, step_ranks
from .integer import TracedSize
from .leaves import ArrayLeaf, Leaf, MadeLeaf, NumpyScalarLeaf, ScalarLeaf
from .number import KINDS, TracedNumber
from .paths import Paths
from .result import InputOutput, Output, SizeOutput, StaticOutput, TensorOutput, TraceResult
from .sharing import Sharing
from .state import Input, Trace, fail, stored_outside
from .tensor import TracedArray, TracedScalar
from .texts import refuse_text
from .undefined import Undefined
from .views import Base, argument_strides

Flatten = Callable[[Any], tuple[Sequence[Any], Any]]
Rebuild = Callable[[list[Any]], tuple[Sequence[Any], Mapping[str, Any]]]


def trace(
    function: Callable[..., Any],
    leaves: Sequence[Leaf],
    rebuild: Rebuild | None = None,
    *,
    hints: Mapping[str, int] | None = None,
    name: str = "",
    flatten: Flatten,
    sharings: Sequence[Sharing] = (),
    fails: Callable[[Trace, Exception], bool] | None = None,
) -> TraceResult:
    """Run `function` once on traced arguments.

    leaves: its flat arguments. rebuild: makes (args, kwargs) of the traced leaves; without it
    they are the positional arguments. hints: the size of each symbol in the example call.
    flatten: (results) -> (leaves, structure). sharings: memory that arrays share. fails: asked
    whether the run raises an exception of the function; all others pass through.
    """
    name = name or getattr(function, "__name__", "function")
    with Trace(name, DISPATCH, dict(hints or {})) as running:
        running.paths = Paths(running)
        made: list[Any] = []
        for index, leaf in enumerate(leaves):
            made.append(_argument(running, leaf, index, made))
        if sharings:
            running.boxes = Boxes(running, sharings, partial(capture, running))
            running.boxes.add_arguments(made)
        args, keywords = rebuild(made) if rebuild is not None else (made, {})
        try:
            results = intercepted(function, running)(*args, **keywords)
        except BaseException as problem:
            running.paths.outside.restore()
            if not (fails and isinstance(problem, Exception) and fails(running, problem)):
                raise
            results = None
        running.paths.outside.check()
        stored = running.hide()
        if stored:
            raise stored_outside(stored[0])
        flat, structure = flatten(results)
        if sharings:
            running.boxes.add_missing()
        return _finished(running, flat, structure, made)


def _argument(running: Trace, leaf: Leaf, index: int, made: Sequence[Any]) -> Any:
    if isinstance(leaf, ArrayLeaf):
        if leaf.same_as is not None:
            return made[leaf.same_as]
        item = Input("argument", leaf.name or f"x{index}", index)
        value = running.add_input(item, TensorType(leaf.dtype, leaf.shape))
        place = len(running.inputs) - 1
        base = Base(running, value, None, place, leaf.writeable)
        if leaf.strides is not None:
            sizes = tuple([running.sizes.hint(size) for size in leaf.shape])
            base.strides, order = argument_strides(leaf.shape, leaf.strides, sizes)
            base.layout_of = frozenset((place,))
            reason = "whether a reshape of it is a view depends on its strides"
            running.layouts[place] = StridesGuard(index, order, leaf.strides, reason)
            ranks = step_ranks(sizes, leaf.strides)
            reason = "the axes of arrays made of it lie in memory in the order of its own"
            running.axes_orders[place] = AxesGuard(index, ranks, reason)
        return TracedArray(running, base, (), value)
    if isinstance(leaf, ScalarLeaf):
        kind = type(leaf.value)
        if kind is int and not -(2**63) <= leaf.value < 2**63:  # type: ignore[operator]
            raise fail(
                "TM246",
                f"the argument {leaf.name or index} is "
                f"{number_text(leaf.value)}, "  # type: ignore[arg-type]
                "which no 64-bit integer holds",
            )
        item = Input("scalar", leaf.name or f"x{index}", index, value=leaf.value)
        value = running.add_input(item, TensorType(KINDS[kind], ()))
        return TracedNumber(running, value, kind)
    if isinstance(leaf, NumpyScalarLeaf):
        item = Input("argument", leaf.name or f"x{index}", index, value=leaf.value)
        dtype = dtype_of(np.asarray(leaf.value).dtype)
        assert dtype is not None
        return TracedScalar(running, running.add_input(item, TensorType(dtype, ())))
    if isinstance(leaf, MadeLeaf):
        return leaf.make(running)
    if running.paths is not None:
        running.paths.add_argument(leaf.value, index, leaf.name)
    return leaf.value


def _finished(
    running: Trace, flat: Sequence[Any], structure: Any, made: Sequence[Any]
) -> TraceResult:
    results: list[Value] = []
    places: dict[Value, int] = {}

    def place(value: Value) -> int:
        if value not in places:
            places[value] = len(results)
            results.append(value)
        return places[value]

    seen: dict[int, int] = {}
    outputs = [_output(running, item, i, place, seen) for i, item in enumerate(flat)]
    writes = {i: place(value) for i, value in _written(running, made).items()}
    graph: Graph = running.builder.finish(results)
    sizes = running.sizes
    used = {
        s for p in graph.params for n in p.tensor.shape if isinstance(n, Dim) for s in n.symbols()
    }
    graph.hints = {name: hint for name, hint in sizes.hints.items() if name in used}
    guards = (*sizes.guards, *running.guards)
    if running.outer is not None:
        guards = tuple(running.guards)
    return TraceResult(
        graph, tuple(running.inputs), tuple(outputs), structure, writes, guards,
        dict(running.hints), dict(sizes.replaced), dict(running.variables),
        running.paths.looked_at(),
    )  # fmt: skip


def _output(
    running: Trace, item: Any, index: int, place: Callable[[Value], int], seen: dict[int, int]
) -> Output:
    kind = type(item)
    if kind is np.ndarray:
        item, kind = capture(running, item), TracedArray
    elif issubclass(kind, Unsized):
        item, kind = item.array(), TracedArray
    if kind is TracedArray and item.tracing is running:
        base = item.base_memory
        if base.input is not None and not item.steps and running.inputs[base.input].kind != "outer":
            return InputOutput(base.input)
        same = seen.setdefault(id(item), index)
        return TensorOutput(place(item.value), "array", None if same == index else same)
    if kind is TracedScalar and item.tracing is running:
        return TensorOutput(place(item.value), "scalar")
    if kind is TracedNumber and item.tracing is running:
        return TensorOutput(place(item.value), item.kind.__name__)
    if kind is TracedSize:
        return SizeOutput(item.now())
    if kind in (TracedArray, TracedScalar, TracedNumber):
        item.tracing.check_alive(item.made)
        raise fail("TM103", f"{item!r} belongs to another trace and is returned")
    _refuse_result(item)
    hint = "return the value and make the text of the result; tm.print shows it in the function"
    refuse_text(item, "returned", hint)
    return StaticOutput(item)


def _refuse_result(item: Any) -> None:
    """Refuse what is not the same at every call: the function runs no more after its trace."""
    if type(item) is Undefined:
        item.refuse()
    kind = type(item).__name__
    if isinstance(item, Iterator | AsyncIterator | Coroutine):
        if isinstance(item, Coroutine):
            item.close()
        raise fail(
            "TM105", f"a {kind} is returned", hint="return a list or tuple of what it would yield"
        )
    held = getattr(item, "__dict__", None)
    inner = item if isinstance(item, set | frozenset | ValuesView) else ()
    if any(map(is_traced, inner)) or (
        type(held) is dict and not isinstance(item, type) and any(map(is_traced, held.values()))
    ):
        raise fail(
            "TM105",
            f"the {kind} that is returned holds traced values, and cannot be made again at "
            "each call",
            hint="return the values, or a dataclass, named tuple, dict or list of them",
        )


def _written(running: Trace, made: Sequence[Any]) -> dict[int, Value]:
    """Input index -> final content, for memory of arguments and captured arrays."""
    found: dict[int, Value] = {}
    captured = [item[1] for item in running.captured.values() if isinstance(item, tuple)]
    for item in (*made, *captured):
        if type(item) is TracedArray and item.tracing is running:
            base = item.base_memory
            written = base.is_written if isinstance(base, SharedBase) else base.version > 0
            if isinstance(base, SharedBase) and base.is_whole:
                base = base.box.whole or base  # all of them are this memory
            if written and base.input is not None:
                refuse_outer(running, base.input)
                found[base.input] = base.value
    return found
