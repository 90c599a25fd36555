"""What user code holds while it is traced: arrays and NumPy scalars without data.

A traced array answers as a `numpy.ndarray`, a traced scalar as a NumPy scalar of its dtype.
Operators, methods and NumPy functions go to the trace's dispatch table.

Invariants: scalars never change; an array's content changes only through `write`.
Not here: the meaning of any operation.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, NoReturn

import numpy as np

from tracemill.compiler.dims import product
from tracemill.compiler.ir.graph import Location, Value
from tracemill.compiler.types import TensorType

from .concrete import concrete
from .integer import user_size
from .kinship import check_kin, spend_kin
from .memory import region_base, region_step
from .numbers_needed import data_error, number_error
from .operators import MEMORY_PROTOCOLS, InPlaceOperators, Operators
from .state import Trace, current, fail
from .views import Base, Step, Strides, contiguous_strides, read_steps, write_steps


class Traced(Operators):
    """What arrays and scalars have in common."""

    __slots__ = ("tracing",)
    __array_priority__ = 1000.0
    tracing: Trace

    @property
    def value(self) -> Value:
        """The present content in the graph."""
        raise NotImplementedError

    # -- attributes of numpy.ndarray

    @property
    def tensor_type(self) -> TensorType:
        """Element type and shape."""
        return self.value.tensor

    @property
    def dtype(self) -> Any:
        """The NumPy dtype."""
        return self.value.tensor.dtype.numpy

    @property
    def shape(self) -> tuple[Any, ...]:
        """Sizes; those unknown while compiling are `TracedSize`s."""
        shape = self.value.tensor.shape
        for size in shape:
            if type(size) is not int:
                return tuple([user_size(self.tracing, s) for s in shape])
        return shape

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.value.tensor.shape)

    @property
    def size(self) -> Any:
        """Number of elements."""
        return user_size(self.tracing, product(self.value.tensor.shape))

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return self.value.tensor.dtype.itemsize

    @property
    def nbytes(self) -> Any:
        """Bytes of all elements."""
        return self.size * self.itemsize

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name not in MEMORY_PROTOCOLS:
            raise AttributeError(name)
        found = self.alive().dispatch.attribute(name)
        if found is not None:
            return found(self)
        found = self.tracing.dispatch.method(name)
        if found is None:
            raise self.tracing.dispatch.no_attribute(name)
        return partial(found, self)

    # -- NumPy's protocols

    def __array_ufunc__(self, ufunc: Any, method: str, *args: Any, **keywords: Any) -> Any:
        return self.alive().dispatch.ufunc(ufunc, method, args, keywords)

    def __array_function__(self, function: Any, types: Any, args: Any, keywords: Any) -> Any:
        return self.alive().dispatch.function(function, args, keywords)

    def __array__(self, *_: Any, **__: Any) -> NoReturn:
        self.tracing.check_alive(self.made)
        raise data_error(self)

    # -- conversions that need the number itself

    def __bool__(self) -> bool:
        return bool(self._number("bool"))

    def __int__(self) -> int:
        return int(self._number("int"))

    def __float__(self) -> float:
        return float(self._number("float"))

    def __complex__(self) -> complex:
        return complex(self._number("complex"))

    def __index__(self) -> int:
        return int(self._number("index").__index__())

    def __format__(self, spec: str) -> str:
        return repr(self) if not spec else format(self._number("format").item(), spec)

    def _number(self, wanted: str) -> Any:
        self.tracing.check_alive(self.made)
        found = concrete(self.tracing, self.value, f"{wanted}() of it was taken")
        if found is None:
            raise number_error(self, wanted)
        return found

    def alive(self) -> Trace:
        """Its trace, known to be running. Raises TraceError."""
        if not self.tracing.alive:
            self.tracing.check_alive(self.made)
        return self.tracing

    def __copy__(self) -> Any:
        return self.copy()

    def __deepcopy__(self, memo: Any) -> Any:
        return self.copy()

    @property
    def made(self) -> Location | None:
        """Where in the user's program this was computed."""
        node = self._last_value().node
        return None if node is None else node.location

    def _last_value(self) -> Value:
        raise NotImplementedError

    def __repr__(self) -> str:
        value = self._last_value()
        ended = "" if self.tracing.alive else ", its trace has ended"
        return f"<traced {value.type!r} %{value.name}{ended}>"


class TracedScalar(Traced):
    """A NumPy scalar, such as ``x.sum()`` or ``x[0]``."""

    __slots__ = ("_value",)

    def __init__(self, trace: Trace, value: Value) -> None:
        self.tracing = trace
        self._value = value

    @property
    def value(self) -> Value:
        return self._value

    def _last_value(self) -> Value:
        return self._value

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return self._value.tensor.dtype.numpy.type

    def __hash__(self) -> int:
        return hash(self._number("hash").item())

    def __getitem__(self, key: Any) -> Any:
        return self.alive().dispatch.getitem(self, key)

    def __round__(self, digits: Any = None) -> Any:
        if digits is not None:
            return self.round(digits)
        rounded: Any = np.rint(self)
        return self.tracing.dispatch.python_number(rounded.value).converted(int)


class TracedArray(InPlaceOperators, Traced):
    """An array: a view, or the whole, of versioned memory."""

    __slots__ = ("_value", "_version", "base_memory", "parent", "steps")
    __hash__ = None  # type: ignore[assignment]

    def __init__(
        self, trace: Trace, base: Base, steps: tuple[Step, ...] = (), value: Value | None = None
    ) -> None:
        self.tracing = trace
        self.base_memory = base
        self.steps = steps
        if value is None:
            value = read_steps(trace, base.value, steps) if steps else base.value
        self._value = value
        self._version = base.version
        self.parent: TracedArray | None = None

    @property
    def value(self) -> Value:
        base = self.base_memory
        trace = current()
        if trace is not None:
            check_kin(trace, self)
        if trace is not self.tracing and trace is not None and trace.is_inside(self.tracing):
            return self.seen_by(trace).value
        if self._version != base.version:
            self._value = read_steps(self.tracing, base.value, self.steps)
            self._version = base.version
        return self._value

    def _last_value(self) -> Value:
        return self._value

    @property
    def tensor_type(self) -> TensorType:
        return self._value.tensor

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return np.ndarray

    def __setattr__(self, name: str, value: Any) -> None:
        if name in ("shape", "dtype", "strides"):
            instead = {"shape": "reshape", "dtype": "view"}.get(name, "a view")
            raise fail(
                "TM111", f"{name} of a traced array cannot be assigned", hint=f"use {instead}"
            )
        object.__setattr__(self, name, value)

    def seen_by(self, trace: Trace) -> TracedArray:
        """The same array in a body of control flow inside its trace."""
        if trace is self.tracing:
            return self
        own = self.tracing
        made = TracedArray(trace, region_base(trace, self.base_memory, own))
        for step in self.steps:
            made = made.view_by(region_step(trace, step, own))
        return made

    def view_by(self, step: Step) -> TracedArray:
        """A view of this view. No new memory."""
        made = TracedArray(
            self.tracing, self.base_memory, (*self.steps, step), step.read(self.tracing, self.value)
        )
        made.parent = self
        return made

    def write(self, content: Value) -> None:
        """Replace the content; type and shape are those of the array. Raises ValueError."""
        base = self.base_memory
        self.require_writeable()
        trace = current()
        assert trace is not None
        if trace is not self.tracing:
            self.seen_by(trace).write(content)
            return
        spend_kin(trace, base)
        base.value = write_steps(trace, base.value, self.steps, content) if self.steps else content
        base.version += 1
        self._value = content
        self._version = base.version

    def lie_in(self, base: Base) -> None:
        """Take `base`, whose content is this whole array's, for its memory."""
        self.base_memory = base
        self._value, self._version = base.value, base.version

    def require_writeable(self) -> None:
        """Refuse read-only memory. Raises ValueError."""
        self.tracing.check_alive(self.made)
        trace = current()
        if self.tracing is not trace and not (trace and trace.is_inside(self.tracing)):
            raise fail(
                "TM106",
                f"{self!r} belongs to the enclosing function and is written in an inner one",
                hint="carry it: return the new value from the inner function",
            )
        if trace is not None:
            check_kin(trace, self, write=True)
        if not self.is_writeable:
            raise fail("TM247", "assignment destination is read-only")

    @property
    def is_writeable(self) -> bool:
        """Whether NumPy would let this array be written."""
        return self.base_memory.writeable and all(step.writeable for step in self.steps)

    def element_strides(self) -> Strides:
        """Strides in elements, over the sizes that remain."""
        now = self.tracing.sizes.normal
        chain: list[TracedArray] = []
        at = self
        while at.parent is not None:
            chain.append(at)
            at = at.parent
        strides = at.base_memory.strides or contiguous_strides(at.tensor_type.shape)
        for view in reversed(chain):
            assert view.parent is not None
            shape = tuple(map(now, view.parent.tensor_type.shape))
            found = view.steps[-1].strides(self.tracing, shape, tuple(map(now, strides)))
            assert found is not None
            strides = found
        return tuple(map(now, strides))

    @property
    def is_plain(self) -> bool:
        """True for a whole array that is C-contiguous however the arguments lie in memory."""
        base = self.base_memory
        return not (self.steps or base.strides or base.layout_of or base.order_of)

    @property
    def real(self) -> Any:
        """The real part: a view of a complex array."""
        return self.tracing.dispatch.attribute("real")(self)  # type: ignore[misc]

    @real.setter
    def real(self, value: Any) -> None:
        self.tracing.dispatch.setitem(self.real, ..., value)

    @property
    def imag(self) -> Any:
        """The imaginary part: a view of a complex array."""
        return self.tracing.dispatch.attribute("imag")(self)  # type: ignore[misc]

    @imag.setter
    def imag(self, value: Any) -> None:
        self.tracing.dispatch.setitem(self.imag, ..., value)

    def __len__(self) -> int:
        shape = self.tensor_type.shape
        if not shape:
            raise TypeError("len() of unsized object")
        return self.tracing.sizes.specialise(
            shape[0], "its len() was taken by code that needs an int"
        )

    def __iter__(self) -> Iterator[Any]:
        shape = self.tensor_type.shape
        if not shape:
            raise TypeError("iteration over a 0-d array")
        count = self.tracing.sizes.specialise(shape[0], "Python code iterates over this axis")
        return (self[i] for i in range(count))

    def __contains__(self, item: Any) -> bool:
        return bool(self.tracing.dispatch.function(np.any, (self == item,), {}))

    def __getitem__(self, key: Any) -> Any:
        return self.alive().dispatch.getitem(self, key)

    def __setitem__(self, key: Any, item: Any) -> None:
        self.alive().dispatch.setitem(self, key, item)


def fresh(trace: Trace, value: Value, strides: Strides | None = None) -> TracedArray:
    """A new array of its own memory."""
    return TracedArray(trace, Base(trace, value, strides), (), value)


def result(trace: Trace, value: Value) -> Traced:
    """What a ufunc or reduction returns: an array, or a scalar where the rank is 0."""
    if value.tensor.shape:
        return TracedArray(trace, Base(trace, value), (), value)
    return TracedScalar(trace, value)
