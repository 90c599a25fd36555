"""One traced version of a function: from the leaves of a call to a graph with its guards.

Invariants: a specialisation never changes; `mismatch` and the native tests agree, and a call that
passes neither is compiled anew.
Not here: its plan (built.py), the table of a function's versions (dispatch.py), the native tables
(bind.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..backends.llvm.native.constants import is_like_an_array
from ..compiler.dims import Dim, Size, dim_text
from ..compiler.errors import error
from ..compiler.records import dataclass, replace
from ..compiler.types import DType, dtype_of
from ..loading import load
from ..tracing.guards import CaptureGuard, Guard, SizeGuard
from ..tracing.leaves import ArrayLeaf, Leaf, NumpyScalarLeaf, ScalarLeaf, StaticLeaf
from ..tracing.result import TraceResult
from ..tracing.run import trace
from ..tracing.shapes import choose_shapes
from ..tracing.sharing import Sharing
from .arguments import FlatCall, Signature, refuse_array_like
from .overlap import Met, mismatch, place_key, same_arrays, sharings_of
from .rebinding import Rebound, Watch
from .trees import Tree, flatten

_NUMBERS = (bool, int, float, complex)
_TRACES = 4  # of one call: each shows what the function writes, if arrays share memory as found


@dataclass(frozen=True, slots=True)
class ArraySpec:
    """An array argument: dtype, rank, sizes, layout."""

    dtype: DType
    shape: tuple[Size, ...]
    strided: bool

    def mismatch(self, leaf: Any) -> str | None:
        """What is different about `leaf`, sizes aside; None if nothing."""
        if type(leaf) is not np.ndarray:
            return f"is {_kind(leaf)} instead of an array"
        if dtype_of(leaf.dtype) is not self.dtype:
            return f"has dtype {leaf.dtype} instead of {self.dtype.numpy}"
        if leaf.ndim != len(self.shape):
            return f"has rank {leaf.ndim} instead of {len(self.shape)}"
        if not self.strided and not leaf.flags.c_contiguous:
            return "is not C-contiguous any more"
        return None


@dataclass(frozen=True, slots=True)
class NumberSpec:
    """A Python number or NumPy scalar argument: its exact type."""

    type: type

    def mismatch(self, leaf: Any) -> str | None:
        """What is different about `leaf`; None if nothing."""
        if type(leaf) is not self.type:
            return f"is {_kind(leaf)} instead of {_name(self)}"
        if isinstance(leaf, int) and not -(2**63) <= leaf < 2**63:
            return "is an integer of more than 64 bits"
        return None


@dataclass(frozen=True, slots=True)
class StaticSpec:
    """Any other argument: the object itself, or one of its type and equal to it."""

    value: Any

    def mismatch(self, leaf: Any) -> str | None:
        """What is different about `leaf`; None if nothing."""
        same = leaf is self.value or _is_equal(leaf, self.value)
        return None if same else f"is {leaf!r:.60} instead of {self.value!r:.60}"


LeafSpec = ArraySpec | NumberSpec | StaticSpec


@dataclass(frozen=True, slots=True)
class Traced:
    """A traced version: what it accepts and its graph.

    tree, specs: structure and leaves of the arguments. symbol_places: the (leaf, axis) whose
    extent each symbol is. rebound: what the function does to containers of the arguments; where
    it does anything, what is returned is a pair of its results and the values they are given.
    changed: what the function both looks at and changes, so that this is right for one call only.
    """

    tree: Tree
    specs: tuple[LeafSpec, ...]
    names: tuple[str, ...]
    symbol_places: Mapping[str, tuple[int, int]]
    trace: TraceResult
    rebound: tuple[Rebound, ...] = ()
    sharings: tuple[Sharing, ...] = ()
    changed: str = ""

    def mismatch(self, call: FlatCall) -> str | None:
        """Why this version cannot serve `call`: argument, old and new value. None if it can."""
        if call.tree != self.tree:
            return f"the arguments are nested as {call.tree.spec} instead of {self.tree.spec}"
        for name, spec, leaf in zip(self.names, self.specs, call.leaves, strict=True):
            different = spec.mismatch(leaf)
            if different is not None:
                return f"{name} {different}"
        sizes = {s: call.leaves[leaf].shape[axis] for s, (leaf, axis) in self.symbol_places.items()}
        return (
            self._size_mismatch(call, sizes)
            or self._guard_mismatch(call, sizes)
            or self._write_mismatch(call)
            or self._captured_mismatch()
            or mismatch(self.arrays(call), self.sharings)
        )

    def size_places(self, size: Size) -> Mapping[str, tuple[int, int]]:
        """The (parameter, axis) whose extent each symbol of `size` is."""
        parameters = {item.leaf: at for at, item in enumerate(self.trace.inputs)}
        symbols = size.symbols() if isinstance(size, Dim) else ()
        places = {symbol: self.symbol_places[symbol] for symbol in symbols}
        return {symbol: (parameters[leaf], axis) for symbol, (leaf, axis) in places.items()}

    def _size_mismatch(self, call: FlatCall, sizes: Mapping[str, int]) -> str | None:
        for name, spec, leaf in zip(self.names, self.specs, call.leaves, strict=True):
            if isinstance(spec, ArraySpec):
                for axis, size in enumerate(spec.shape):
                    wanted = size.evaluate(sizes) if isinstance(size, Dim) else size
                    if leaf.shape[axis] != wanted:
                        return f"axis {axis} of {name} is {leaf.shape[axis]} instead of {wanted}"
        return None

    def _guard_mismatch(self, call: FlatCall, sizes: Mapping[str, int]) -> str | None:
        for guard in self.trace.guards:
            if isinstance(guard, SizeGuard):
                holds, text = guard.holds(sizes), self._named(guard.text)
            else:
                holds, text = guard.holds(call.leaves), guard.text
            if not holds:
                where = f" ({guard.location})" if guard.location else ""
                return f"{text} does not hold any more: {guard.reason}{where}"
        return None

    def _write_mismatch(self, call: FlatCall) -> str | None:
        for item in self.arrays(call):
            if item.written and not item.array.flags.writeable:
                return f"{item.name} is read-only and is written"
        return None

    def _captured_mismatch(self) -> str | None:
        """NumPy lets an array change its shape and element type in place."""
        for item, param in zip(self.trace.inputs, self.trace.graph.params):
            array = item.value
            if item.leaf is None and type(array) is np.ndarray:
                have, wanted = array.shape, param.tensor.shape
                if array.dtype != param.tensor.dtype.numpy:
                    return f"{item.name} has become {array.dtype}"
                if have != wanted:
                    return f"{item.name} has shape {have} instead of {tuple(wanted)}"
        return None

    def arrays(self, call: FlatCall) -> list[Met]:
        """The inputs of the graph that are arrays."""
        found = []
        for place, item in enumerate(self.trace.inputs):
            array = item.value if item.leaf is None else call.leaves[item.leaf]
            if isinstance(array, np.ndarray):
                key = array if item.leaf is None else item.leaf
                found.append(Met(key, item.name, array, place in self.trace.writes))
        return found

    def places(self) -> dict[Any, int]:
        """The position of each input of the graph, by what it is in the call (`place_key`)."""
        inputs = enumerate(self.trace.inputs)
        return {place_key(item.leaf, item.value): place for place, item in inputs}

    def _named(self, text: str) -> str:
        places = ", ".join(
            f"{symbol} is axis {axis} of {self.names[leaf]}"
            for symbol, (leaf, axis) in self.symbol_places.items()
            if symbol in text
        )
        return f"{text} ({places})"


def trace_call(
    function: Callable[..., Any],
    signature: Signature,
    call: FlatCall,
    names: Sequence[str],
    freed: frozenset[tuple[int, int]],
    static: frozenset[int],
) -> Traced:
    """Trace `function` for a call.

    names: of the leaves, for messages. freed: axes that get a symbol however small. static:
    leaves that are handed to the function as they are.

    What the function writes is only known once it has been traced. Where that is memory that
    several arrays share, it is traced again, now knowing it.
    """
    sharings: tuple[Sharing, ...] = ()
    for _ in range(_TRACES):
        traced = _trace_once(function, signature, call, names, freed, static, sharings)
        found = sharings_of(traced.arrays(call))
        if same_arrays(found, sharings):
            return traced
        sharings = found
    raise error(
        "TM254",
        f"{signature.function.__name__} writes other arrays each time it is traced",
        hint="pass copies of the arrays that share memory",
    )


def _trace_once(
    function: Callable[..., Any],
    signature: Signature,
    call: FlatCall,
    names: Sequence[str],
    freed: frozenset[tuple[int, int]],
    static: frozenset[int],
    sharings: tuple[Sharing, ...],
) -> Traced:
    """Trace it for arrays that share memory like this, and nothing else that is written."""
    shapes = {
        i: leaf.shape
        for i, leaf in enumerate(call.leaves)
        if type(leaf) is np.ndarray and i not in static
    }
    chosen, hints, places = choose_shapes(shapes, freed=freed)
    leaves: list[Leaf] = []
    specs: list[LeafSpec] = []
    for i, leaf in enumerate(call.leaves):
        described, spec = _describe(leaf, names[i], chosen.get(i), i in static)
        leaves.append(described)
        specs.append(spec)

    watches: list[Watch] = []
    rebound: tuple[Rebound, ...] = ()

    def rebuild(made: list[Any]) -> tuple[Sequence[Any], Mapping[str, Any]]:
        values = call.tree.rebuild(made)
        watches.append(Watch(values))
        return signature.call(values)

    def flatten_all(results: Any) -> tuple[Sequence[Any], Any]:
        nonlocal rebound
        rebound, values = watches[0].changes()
        return flatten((results, values) if rebound else results)

    result = trace(
        function,
        leaves,
        rebuild,
        hints=hints,
        name=getattr(function, "__name__", "function").replace("<lambda>", "lambda"),
        flatten=flatten_all,
        sharings=sharings,
        fails=lambda running, problem: bool(load("control.raised").fails(running, problem)),
    )
    lasting, broken = _lasting(result.guards, call)
    changed = next((path for path in broken if path in result.looked_at), "")
    result = replace(result, guards=lasting)
    return Traced(call.tree, tuple(specs), tuple(names), places, result, rebound, sharings, changed)


def _lasting(guards: Sequence[Guard], call: FlatCall) -> tuple[tuple[Guard, ...], list[str]]:
    """Guards but those on what the function itself changed while it was traced, and their paths.

    Such a change (a list appended to) is an effect of tracing: it happens once, unless the
    function looks at what it changes.
    """
    lasting: list[Guard] = []
    broken: list[str] = []
    for guard in guards:
        if isinstance(guard, CaptureGuard) and not guard.holds(call.leaves):
            broken.append(guard.path)
        else:
            lasting.append(guard)
    return tuple(lasting), broken


def _describe(
    leaf: Any, name: str, shape: tuple[Size, ...] | None, static: bool
) -> tuple[Leaf, LeafSpec]:
    if static:
        return StaticLeaf(leaf, name), StaticSpec(leaf)
    if shape is not None:
        dtype = dtype_of(leaf.dtype)
        assert dtype is not None
        contiguous = leaf.flags.c_contiguous
        strides = None if contiguous else tuple(s // leaf.itemsize for s in leaf.strides)
        described = ArrayLeaf(dtype, shape, name, strides, leaf.flags.writeable)
        return described, ArraySpec(dtype, shape, not contiguous)
    if type(leaf) in _NUMBERS:
        return ScalarLeaf(leaf, name), NumberSpec(type(leaf))
    if isinstance(leaf, np.generic) and dtype_of(leaf.dtype) is not None:
        return NumpyScalarLeaf(leaf, name), NumberSpec(type(leaf))
    refuse_array_like(leaf, name)
    return StaticLeaf(leaf, name), StaticSpec(leaf)


def freed_axes(versions: Sequence[Traced], call: FlatCall) -> frozenset[tuple[int, int]]:
    """Axes where `call` has another size than an earlier version that fixed it: they get symbols.

    Size 1 stays a number: it broadcasts.
    """
    found = set()
    for version in versions:
        if version.tree != call.tree:
            continue
        for i, (spec, leaf) in enumerate(zip(version.specs, call.leaves, strict=True)):
            if not isinstance(spec, ArraySpec) or spec.mismatch(leaf) is not None:
                continue
            for axis, size in enumerate(spec.shape):
                if isinstance(size, int) and 1 not in (size, leaf.shape[axis]):
                    if size != leaf.shape[axis]:
                        found.add((i, axis))
    return frozenset(found)


def _is_equal(leaf: Any, value: Any) -> bool:
    if type(leaf) is not type(value) or is_like_an_array(value):
        return False
    try:
        return bool(leaf == value)
    except Exception:  # noqa: BLE001  what cannot be compared is not the same
        return False


def _kind(leaf: Any) -> str:
    return "an array" if isinstance(leaf, np.ndarray) else f"a {type(leaf).__name__}"


def _name(spec: NumberSpec) -> str:
    return f"a {spec.type.__name__}"


def shape_text(spec: LeafSpec) -> str:
    """A leaf as text, such as ``f32[n, 784]``."""
    if isinstance(spec, ArraySpec):
        return f"{spec.dtype.name}[{', '.join(map(dim_text, spec.shape))}]"
    return spec.type.__name__ if isinstance(spec, NumberSpec) else repr(spec.value)[:40]
