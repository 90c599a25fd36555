"""A function traced and evaluated by the ops' references, beside the function itself.

Invariants: arguments are copied for each side, with their strides; both results and the arguments
afterwards are compared: values, dtypes, shapes, kinds, or the class of what was raised.

Not here: compiled code.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import optree

from tracemill.compiler.ir.evaluator import evaluate
from tracemill.compiler.ir.verifier import verify
from tracemill.compiler.types import dtype_of
from tracemill.tracing.guards import SizeGuard
from tracemill.tracing.leaves import ArrayLeaf, NumpyScalarLeaf, ScalarLeaf, StaticLeaf
from tracemill.tracing.result import (
    InputOutput,
    SizeOutput,
    StaticOutput,
    TensorOutput,
    TraceResult,
)
from tracemill.tracing.run import trace
from tracemill.tracing.shapes import choose_shapes

_NAMES = "xyzwabcdefghijk"


@dataclass
class TracedCall:
    """A trace of a function of flat arguments, to be called again; variables stay as they are."""

    result: TraceResult
    places: dict[str, tuple[int, int]]

    def sizes(self, args: Any) -> dict[str, int]:
        """The size of each symbol in a call."""
        return {name: args[leaf].shape[axis] for name, (leaf, axis) in self.places.items()}

    def broken_guard(self, args: Any) -> str | None:
        """The text of a guard that a call does not keep."""
        sizes = self.sizes(args)
        for guard in self.result.guards:
            if not guard.holds(sizes if isinstance(guard, SizeGuard) else args):
                return guard.text
        return None

    def __call__(self, *args: Any) -> Any:
        """The results for other arguments, which must keep the guards."""
        assert self.broken_guard(args) is None
        data = []
        for item, param in zip(self.result.inputs, self.result.graph.params):
            found = item.read(args) if item.read is not None else args[item.leaf]
            data.append(np.asarray(found, param.tensor.dtype.numpy))
        store = {name: held.read() for name, held in self.result.variables.items()}
        made = evaluate(self.result.graph, data, store)
        outputs = [self._output(output, made, data, args) for output in self.result.outputs]
        for index, place in self.result.writes.items():
            data[index][...] = made[place]
        return optree.tree_unflatten(self.result.structure, outputs)

    def _output(self, output: Any, made: Any, data: Any, args: Any) -> Any:
        if isinstance(output, TensorOutput):
            array = made[output.result]
            if output.kind == "array":
                return array
            return array[()] if output.kind == "scalar" else array.item()
        if isinstance(output, InputOutput):
            place = self.result.writes.get(output.input)
            return data[output.input] if place is None else made[place]
        if isinstance(output, SizeOutput):
            size = output.size
            return size if isinstance(size, int) else size.evaluate(self.sizes(args))
        assert isinstance(output, StaticOutput)
        return output.value


def flatten_results(results: Any) -> tuple[list[Any], Any]:
    """What is returned, taken apart; None is a leaf."""
    return optree.tree_flatten(results, none_is_leaf=True)


def trace_function(function: Callable[..., Any], *args: Any) -> TracedCall:
    """Trace `function` for these positional arguments, all symbols as the rules choose."""
    arrays = {i: arg.shape for i, arg in enumerate(args) if isinstance(arg, np.ndarray)}
    shapes, hints, places = choose_shapes(arrays)
    leaves: list[Any] = []
    for i, arg in enumerate(args):
        name = _NAMES[i % len(_NAMES)]
        if isinstance(arg, np.ndarray):
            dtype = dtype_of(arg.dtype)
            assert dtype is not None
            strides = tuple(s // arg.itemsize for s in arg.strides)
            plain = None if arg.flags.c_contiguous else strides
            leaves.append(ArrayLeaf(dtype, shapes[i], name, plain, arg.flags.writeable))
        elif isinstance(arg, np.generic):
            leaves.append(NumpyScalarLeaf(arg, name))
        elif isinstance(arg, bool | int | float | complex):
            leaves.append(ScalarLeaf(arg, name))
        else:
            leaves.append(StaticLeaf(arg, name))
    result = trace(function, leaves, hints=hints, flatten=flatten_results)
    verify(result.graph)
    return TracedCall(result, places)


def copied(arg: Any) -> Any:
    """A copy of an argument with the same strides."""
    if not isinstance(arg, np.ndarray):
        return arg
    if arg.flags.c_contiguous:
        return arg.copy()
    low, high = np.lib.array_utils.byte_bounds(arg)
    memory = np.zeros(high - low, np.uint8)
    offset = arg.__array_interface__["data"][0] - low
    made = np.ndarray(arg.shape, arg.dtype, memory, offset, arg.strides)
    made[...] = arg
    return made


def outcome(function: Callable[..., Any], args: Any) -> tuple[Any, Any]:
    """(result or exception, arguments afterwards)."""
    own = [copied(arg) for arg in args]
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            return function(*own), own
        except Exception as problem:  # noqa: BLE001  compared with the other side's
            return problem, own


def assert_same(function: Callable[..., Any], *args: Any) -> None:
    """The traced function gives what the function gives."""
    wanted, wanted_args = outcome(function, args)
    got, got_args = outcome(lambda *own: trace_function(function, *own)(*own), args)
    if isinstance(wanted, Exception):
        assert isinstance(got, type(wanted)), f"{wanted!r} was expected, got {got!r}"
        return
    if isinstance(got, Exception):
        raise got
    assert_equal(got, wanted)
    assert_equal(got_args, wanted_args)


def assert_equal(got: Any, wanted: Any) -> None:
    """Two results are alike: structure, types, dtypes, shapes, values."""
    mine, my_tree = optree.tree_flatten(got, none_is_leaf=True)
    theirs, their_tree = optree.tree_flatten(wanted, none_is_leaf=True)
    assert my_tree == their_tree
    for a, b in zip(mine, theirs):
        assert_leaf_equal(a, b)


def assert_leaf_equal(a: Any, b: Any) -> None:
    """Two leaves are alike; floats to a few ulp."""
    if not isinstance(b, np.ndarray | np.generic):
        assert type(a) is type(b), f"{a!r} is no {type(b).__name__}"
        close = a == b or isinstance(b, float | complex) and np.isclose(a, b, 1e-12, equal_nan=True)
        assert close, f"{a!r} != {b!r}"
        return
    assert isinstance(a, np.ndarray) == isinstance(b, np.ndarray), f"{type(a)} against {type(b)}"
    assert a.dtype == b.dtype, f"{a.dtype} against {b.dtype}"
    assert a.shape == b.shape, f"{a.shape} against {b.shape}"
    tolerance = {2: 2e-3, 4: 2e-6}.get(b.dtype.itemsize // (1 + (b.dtype.kind == "c")), 1e-13)
    if b.dtype.kind in "fc":
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance * 1e-3)
    else:
        np.testing.assert_array_equal(a, b)
