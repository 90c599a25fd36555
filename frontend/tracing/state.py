"""The trace in progress: the graph being built, its inputs, its sizes and guards.

One trace runs in a thread at a time; traces nest, and the innermost one is current.

Invariants: every traced value belongs to one trace and is dead when that trace has ended.
Not here: what user code sees (tensor.py, number.py, integer.py), the meaning of NumPy functions
(the dispatch table, handed in), running the function (run.py).
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any, Protocol

import numpy as np

from tracemill.compiler.dims import Dim, Size
from tracemill.compiler.errors import TracemillError, error, number_text
from tracemill.compiler.ir.builder import Builder
from tracemill.compiler.ir.graph import Location, Value
from tracemill.compiler.records import dataclass
from tracemill.compiler.types import DType, TensorType, dtype_of

from .access import Access
from .guards import AxesGuard, CaptureGuard, ScalarGuard, StridesGuard, has_content
from .sizes import Sizes
from .source import user_location


class Dispatch(Protocol):
    """What traced values call for their operators, methods and NumPy functions."""

    def ufunc(self, ufunc: Any, method: str, args: Any, keywords: Any) -> Any: ...
    def function(self, function: Any, args: Any, keywords: Any) -> Any: ...
    def method(self, name: str) -> Callable[..., Any] | None: ...
    def getitem(self, array: Any, key: Any) -> Any: ...
    def setitem(self, array: Any, key: Any, value: Any) -> None: ...
    def attribute(self, name: str) -> Callable[[Any], Any] | None: ...
    def number(self, size: Any) -> Any: ...
    def python_number(self, value: Value) -> Any: ...
    def common_dtype(self, *items: Any) -> DType: ...
    def handler(self, function: Any) -> Callable[..., Any] | None: ...
    def no_attribute(self, name: str) -> AttributeError: ...
    @property
    def cut(self) -> Any: ...  # functions of arrays that are cut along axes


@dataclass(frozen=True, slots=True)
class Input:
    """Where a graph parameter's data comes from at each call.

    kind: ``argument`` (an array or NumPy scalar leaf), ``scalar`` (a Python number leaf),
    ``captured`` (an array from outside) or ``outer`` (a value of the enclosing trace).
    leaf: index of the flat argument. read: gets a captured array again, given the flat
    arguments. value: the captured array, or the enclosing trace's value.
    """

    kind: str
    name: str
    leaf: int | None = None
    read: Access | None = None
    value: Any = None
    location: Location | None = None


_SMALL_CONSTANT = 16  # elements


class _Current(threading.local):
    trace: Trace | None = None


_CURRENT = _Current()


def current() -> Trace | None:
    """The innermost trace running in this thread."""
    return _CURRENT.trace


def running() -> Trace:
    """The same, known to exist. Raises TraceError."""
    trace = _CURRENT.trace
    if trace is None:
        raise error("TM103", "this can only be done while a function is being traced")
    return trace


@dataclass(eq=False, slots=True)
class Trace:
    """See the module."""

    name: str
    dispatch: Dispatch
    hints: Mapping[str, int]
    builder: Builder = field(init=False)
    sizes: Sizes = field(init=False)
    inputs: list[Input] = field(default_factory=list)
    by_param: dict[Value, Input] = field(default_factory=dict)
    guards: list[ScalarGuard | StridesGuard | AxesGuard | CaptureGuard] = field(
        default_factory=list
    )
    outer: Trace | None = None
    alive: bool = True
    captured: dict[Any, Any] = field(default_factory=dict)
    paths: Any = None
    boxes: Any = None
    variables: dict[str, Any] = field(default_factory=dict)
    known: dict[Value, Any] = field(default_factory=dict)
    named: set[Value] = field(default_factory=set)
    functions: dict[Any, Any] = field(default_factory=dict)
    inlined: list[Any] = field(default_factory=list)
    entered: list[int] = field(default_factory=list)  # blocks traced on a traced test
    shown: list[tuple[Any, Any, Any, Any]] = field(default_factory=list)
    _casts: dict[tuple[Value, DType], Value] = field(default_factory=dict)
    _dim_values: dict[Size, Value] = field(default_factory=dict)
    _literals: dict[Any, Value] = field(default_factory=dict)
    layouts: dict[int, StridesGuard] = field(default_factory=dict)
    axes_orders: dict[int, AxesGuard] = field(default_factory=dict)
    states: dict[str, Value] | None = None  # of a region: what variables hold now
    assigned: dict[str, Any] = field(default_factory=dict)
    memory: dict[int, Any] = field(default_factory=dict)  # that bodies in it have met
    kin: dict[int, Any] = field(default_factory=dict)  # memory that may be one: see kinship.py
    spent: dict[int, Any] = field(default_factory=dict)  # memory that is not to be used
    atoms: dict[Value, Any] = field(default_factory=dict)  # integers that others are sums of
    is_trip: bool = False  # of a Python `for`, whose trips could also run while tracing
    loop: str | None = None  # what a trip of a Python loop is: "graph", "trial" or "now"
    regional: dict[int, Any] = field(default_factory=dict)  # of a region: memory around it
    lanes: Any = None  # of a function that is mapped: see lanes.py
    _fixed_leaves: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.outer = _CURRENT.trace
        self.builder = Builder(self.name, user_location)
        self.builder.hints.update(self.hints)
        if self.outer is None:
            self.sizes = Sizes(self.hints, user_location)
        else:
            self.sizes = self.outer.sizes
            self.sizes.add(self.hints)
        self.sizes.listeners.append(self.replace)

    def __enter__(self) -> Trace:
        self.outer = _CURRENT.trace
        _CURRENT.trace = self
        return self

    def __exit__(self, *_: object) -> None:
        if self.states is None:
            self.hide()
        _CURRENT.trace = self.outer
        self.sizes.listeners.remove(self.replace)
        self.alive = False

    def become_region(self) -> None:
        """Be the trace of a body of control flow: what is outside is the enclosing trace's."""
        assert self.outer is not None
        self.states = {}
        shared = ("paths", "shown", "inlined", "entered", "guards", "layouts", "axes_orders")
        for name in shared:
            setattr(self, name, getattr(self.outer, name))

    def is_inside(self, outer: Trace) -> bool:
        """True for the trace of a body of control flow in `outer`, however deep."""
        at: Trace | None = self
        while at is not None and at.states is not None:
            at = at.outer
            if at is outer:
                return True
        return False

    def hide(self) -> list[str]:
        """Put arrays back where traced ones stood for them. Gives the keys under which the
        function put other traced values, which are gone then."""
        stored = []
        while self.shown:
            place, key, array, traced = self.shown.pop()
            now = _item(place, key)
            if getattr(now, "tracing", None) is self:
                place[key] = array
                if now is not traced:
                    stored.append(str(key))
        return stored

    # -- nodes

    def add_input(self, item: Input, type: TensorType) -> Value:
        """A new parameter of the graph."""
        value = self.builder.param(item.name or "x", type)
        self.inputs.append(item)
        self.by_param[value] = item
        return value

    def lifted(self, value: Value) -> Value:
        """A value of the enclosing trace as an input of this one; small constants anew."""
        found = self.captured.get(value)
        if found is None:
            array = None if value.node is None else value.node.attrs.get("value")
            if isinstance(array, np.ndarray) and array.size <= _SMALL_CONSTANT:
                found = self.builder.constant(array)
            else:
                source = Input("outer", value.name, value=value, location=user_location())
                found = self.add_input(source, value.tensor)
            self.captured[value] = found
        return found

    def emit(self, op: str, *operands: Value, **attrs: Any) -> Any:
        """Make a node: its result, or a tuple of them.

        Where sizes that must fit are not known to, the hints decide and a guard is recorded.
        """
        tried: list[Any] = [None]
        while True:
            try:
                made = self.builder.emit(op, operands, attrs)
                self.sizes.need_extents(made if type(made) is tuple else (made,))
                return made
            except TracemillError as problem:
                sizes: Any = problem.sizes
                if sizes in tried or not self.unify(*sizes):
                    self.explain(problem, sizes or ())
                    raise
                tried.append(sizes)
            attrs = {key: self._now(value) for key, value in attrs.items()}

    def explain(self, problem: TracemillError, sizes: Sequence[Size]) -> TracemillError:
        """The error, saying what the symbols of sizes that do not fit are in the example call."""
        hints = self.sizes.hints
        symbols = {s: hints.get(s) for z in sizes if isinstance(z, Dim) for s in z.symbols()}
        if known := [f"{s} is {hint}" for s, hint in symbols.items() if hint is not None]:
            text = f"in this call {', '.join(known)}"
            problem.detail = f"{problem.detail}; {text}" if problem.detail else text
            problem.hint = ""
        return problem

    def _now(self, attribute: Any) -> Any:
        """An attribute over the symbols that remain."""
        if isinstance(attribute, Dim):
            return self.sizes.normal(attribute)
        if isinstance(attribute, tuple):
            return tuple([self._now(part) for part in attribute])
        return attribute

    def cast(self, value: Value, dtype: DType) -> Value:
        """The value converted to `dtype`; itself if it has that dtype."""
        if value.type.dtype is dtype:  # type: ignore[union-attr]
            return value
        key = (value, dtype)
        made = self._casts.get(key)
        if made is None:
            made = self._casts[key] = self.builder.emit("cast", (value,), {"dtype": dtype})
        return made

    def literal(self, number: Any, dtype: DType) -> Value:
        """A number of rank 0. Raises OverflowError for an integer that does not fit."""
        key = (dtype.name, type(number), number) if number else None
        made = self._literals.get(key)
        if made is None:
            made = self.builder.constant(self.number(number, dtype), dtype)
            if key is not None and number == number:
                self._literals[key] = made
        return made

    def number(self, number: Any, dtype: DType) -> Any:
        """The number as a NumPy scalar, as NumPy converts a Python number."""
        with np.errstate(all="ignore"):
            if type(number) is int and dtype.is_integer:
                return _checked(number, dtype)
            return np.asarray(number).astype(dtype.numpy)[()]

    def size_value(self, size: Size) -> Value:
        """A size as an i64 value: the last element of ``iota(size + 1)``."""
        size = self.sizes.normal(size)
        made = self._dim_values.get(size)
        if made is None:
            made = self._dim_values[size] = self._size_value(size)
        return made

    def _size_value(self, size: Size) -> Value:
        if isinstance(size, int):
            return self.builder.constant(np.int64(size))
        positive = _part(size, 1)
        negative = _part(size, -1)
        count = self.emit("iota", size=positive + 1)
        last = self.emit("slice", count, start=(positive,), size=(1,), step=(1,))
        value: Value = self.emit("reshape", last, shape=())
        return value if negative == 0 else self.emit("sub", value, self.size_value(negative))

    # -- sizes

    def unify(self, left: Size, right: Size) -> bool:
        """Asked by the builder: make two sizes equal, or one of them 1, as the hints say. That
        they do not fit is guarded too, as the function may go on with the error caught."""
        reason = "an operation needs these sizes to fit"
        if self.sizes.equal(left, right, reason):
            return True
        return any(
            isinstance(size, Dim) and self.sizes.equal(size, 1, reason) for size in (left, right)
        )

    def replace(self, change: Mapping[str, Size]) -> None:
        """Rewrite all that mentions a removed symbol."""
        self.builder.substitute(change)
        self._dim_values.clear()

    # -- facts taken from the example call

    def fix_leaf(self, leaf: int, value: Any, reason: str) -> None:
        """Guard a scalar argument by its value."""
        if leaf not in self._fixed_leaves:
            self._fixed_leaves.add(leaf)
            self.guards.append(ScalarGuard(leaf, value, reason, user_location()))

    def fix_captured(self, source: Input, reason: str) -> None:
        """Guard a captured array by its content."""
        assert source.read is not None
        known = [g for g in self.guards if isinstance(g, CaptureGuard) and g.check is has_content]
        if not any(guard.read is source.read for guard in known):
            content = source.value.copy()
            place = user_location()
            self.guards.append(
                CaptureGuard(source.name, source.read, has_content, content, reason, place)
            )

    # -- errors

    def check_alive(self, made: Location | None) -> None:
        """Refuse a value of a trace that has ended, or that runs in another thread."""
        if not self.alive:
            where = f" It was made at {made}." if made else ""
            raise error(
                "TM103",
                f"a value of the trace of {self.name} is used after that trace has ended.{where}",
                place=user_location(),
                hint="return it from the function instead of keeping it in a global, a list or "
                "an attribute",
            )


def fail(code: str, summary: str, detail: str = "", hint: str = "") -> TracemillError:
    """An error at the user's line."""
    return error(code, summary, place=user_location(), detail=detail, hint=hint)


def stored_outside(name: str) -> TracemillError:
    """The error for a traced value that the function keeps in an attribute or item."""
    return fail(
        "TM103",
        f"a traced value is stored in the attribute {name!r} of an object that outlives the trace",
        hint="return it, or keep state in a tm.Variable and assign that",
    )


def require_dtype(numpy_dtype: Any) -> DType:
    """Our element type for a NumPy dtype or what NumPy takes for one. Raises DTypeError."""
    wanted = np.dtype(numpy_dtype)
    found = dtype_of(wanted)
    if found is None:
        kind = {
            "O": "object", "M": "datetime", "m": "timedelta", "S": "bytes", "U": "string",
            "V": "structured", "g": "long double", "G": "long double",
        }.get(wanted.char)  # fmt: skip
        what = f"{kind} arrays ({wanted})" if kind else f"the dtype {wanted}"
        raise fail(
            "TM210",
            f"{what} cannot be compiled",
            hint="bool, integers, floats and complex numbers in native byte order can",
        )
    return found


def _checked(number: int, dtype: DType) -> Any:
    try:
        return dtype.numpy.type(number)
    except OverflowError:
        name = dtype.numpy.name
        raise fail(
            "TM246", f"Python integer {number_text(number)} out of bounds for {name}"
        ) from None


def _item(place: Any, key: Any) -> Any:
    with contextlib.suppress(LookupError):  # the function took it out
        return place[key]


def _part(size: Dim, sign: int) -> Size:
    total: Size = 0
    for factors, coefficient in size.terms:
        if (coefficient > 0) == (sign > 0):
            total = (
                total + Dim(((factors, 1),)) * abs(coefficient)
                if factors
                else total + abs(coefficient)
            )
    return total
