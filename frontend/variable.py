"""Variables: named arrays that live in a store and survive calls.

Inside a compiled function reading one is a read op and assigning one is an assign op, ordered by
tokens; outside, both act at once on the store. In expressions a Variable stands for its value.

Invariants: a Variable holds no data, only its name, its type and the store; functions that use it
hold it, and when the last of them and of the user's references is gone, the store forgets it.
Not here: how a store keeps values (runtime/store.py), optimisers.
"""

from __future__ import annotations

import itertools
import weakref
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from .calls.tracebacks import for_users
from .compiler.errors import error
from .compiler.ir.graph import Value
from .compiler.types import TensorType, dtype_of
from .runtime.store import VariableStore
from .tracing.state import Trace, current
from .tracing.tensor import fresh

_unnamed = itertools.count()
_default_store: list[VariableStore] = []


def default_store() -> VariableStore:
    """The store of variables that are not given one."""
    if not _default_store:
        _default_store.append(VariableStore())
    return _default_store[0]


class Variable(NDArrayOperatorsMixin):
    """A named, mutable array.

    value: the first content, any array-like; its dtype and shape are the variable's.
    name: unique in the store; made up (``variable_3``) where it is not given.
    device: a device name such as ``cpu:1`` to keep it on.
    """

    def __init__(
        self,
        value: Any,
        name: str | None = None,
        *,
        device: str | None = None,
        store: VariableStore | None = None,
    ) -> None:
        array = np.asarray(value)
        dtype = dtype_of(array.dtype)
        if dtype is None:
            raise error("TM210", f"a variable cannot hold {array.dtype}")
        self.store = store or default_store()
        self.name = name if name is not None else f"variable_{next(_unnamed)}"
        self.type = TensorType(dtype, array.shape)
        self.device = device
        first = np.ascontiguousarray(array).reshape(array.shape)
        cell = self.store.create(self.name, self.type, first)
        weakref.finalize(self, self.store.release, cell).atexit = False

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents."""
        return tuple(int(size) for size in self.type.shape)  # type: ignore[arg-type]

    @property
    def dtype(self) -> np.dtype[Any]:
        """NumPy dtype."""
        return self.type.dtype.numpy

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return self.type.rank

    @property
    def size(self) -> int:
        """Number of elements."""
        return int(np.prod(self.shape, dtype=np.int64))

    def read(self) -> Any:
        """The value: a traced array while tracing, else a copy as a NumPy array."""
        trace = current()
        return self.store.read(self.name) if trace is None else self.traced(trace)

    @for_users
    def assign(self, value: Any) -> None:
        """Replace the value. Dtype and shape must be the variable's (numbers are converted).

        Raises DTypeError or ShapeError otherwise.
        """
        trace = current()
        if trace is None:
            self.store.assign(self.name, self._fitting(value))
            return
        self._declare(trace)
        from_user = trace.dispatch.function(np.asarray, (value,), {"dtype": self.dtype})
        full = trace.dispatch.function(np.broadcast_to, (from_user, self.shape), {})
        self.put(trace, full.value)

    @for_users
    def assign_add(self, value: Any) -> None:
        """Add to the value; outside a trace no addition of another thread is lost."""
        if current() is None:
            self.store.add(self.name, self._fitting(value))
        else:
            self.assign(self.read() + value)

    def assign_sub(self, value: Any) -> None:
        """Subtract from the value."""
        self.assign_add(-value)

    def traced(self, trace: Trace) -> Any:
        """The value as the trace sees it now: what was assigned last in it, or a read."""
        self._declare(trace)
        return fresh(trace, self.get(trace))

    def get(self, trace: Trace) -> Value:
        """The value as the trace sees it; in a body of control flow that has not assigned it,
        the value around the body."""
        if trace.states is not None:
            assert trace.outer is not None
            held = trace.states.get(self.name)
            if held is not None:
                return held
            self._declare(trace.outer)
            return trace.lifted(self.get(trace.outer))
        read: Value = trace.builder.emit(
            "read", (), variable=self.name, name=self.name, device=self.device
        )
        return read

    def put(self, trace: Trace, value: Value) -> None:
        """Let the trace see `value` from now on; control flow carries it out of its body."""
        if trace.states is not None:
            trace.states[self.name] = value
            trace.assigned[self.name] = self
        else:
            trace.builder.emit("assign", (value,), variable=self.name, device=self.device)

    def _declare(self, trace: Trace) -> None:
        if trace.states is not None:
            assert trace.outer is not None
            self._declare(trace.outer)
            return
        known = trace.variables.setdefault(self.name, self)
        if known.store is not self.store:
            raise error(
                "TM203",
                f"two variables named {self.name!r}, of two stores, are used in one function",
                hint="give one of them another name",
            )
        trace.builder.variable(self.name, self.type, self.device)

    def _fitting(self, value: Any) -> np.ndarray[Any, Any]:
        array = np.asarray(value)
        if dtype_of(array.dtype) is None:
            raise error("TM210", f"a variable cannot hold {array.dtype}: {value!r:.60}")
        if not isinstance(value, np.ndarray | np.generic):
            array = array.astype(self.dtype)
        if array.shape != self.shape and array.ndim == 0:
            array = np.full(self.shape, array)
        return array

    # -- standing for its value

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        value: np.ndarray[Any, Any] = self.store.read(self.name)
        return value if dtype is None else value.astype(dtype, copy=False)

    def __array_ufunc__(self, ufunc: Any, method: str, *args: Any, **keywords: Any) -> Any:
        for target in keywords.get("out", ()):
            if isinstance(target, Variable):
                raise TypeError(
                    f"{target!r} is not changed by operators such as += or by out=; "
                    "write w.assign_add(value) or w.assign(value)"
                )
        plain = [a.read() if isinstance(a, Variable) else a for a in args]
        return getattr(ufunc, method)(*plain, **keywords)

    def __array_function__(self, function: Any, types: Any, args: Any, keywords: Any) -> Any:
        return function(*_read_all(args), **{k: _read_all(v) for k, v in keywords.items()})

    def __getitem__(self, key: Any) -> Any:
        return self.read()[key]

    def __setitem__(self, key: Any, value: Any) -> None:
        raise TypeError(
            f"parts of {self!r} cannot be assigned; "
            "write a = w.read(), change a and then w.assign(a)"
        )

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def __bool__(self) -> bool:
        return bool(self.read())

    def __int__(self) -> int:
        return int(self.read())

    def __float__(self) -> float:
        return float(self.read())

    def __complex__(self) -> complex:
        return complex(self.read())

    def __copy__(self) -> Variable:
        raise TypeError(
            f"{self!r} is one place in its store and cannot be copied; make another: "
            "tm.Variable(w.read())"
        )

    def __deepcopy__(self, memo: Any) -> Variable:
        return self.__copy__()

    def __reduce__(self) -> Any:
        raise TypeError(f"{self!r} cannot be pickled; write it with tm.save")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or not hasattr(np.ndarray, name):
            raise AttributeError(f"Variable has no attribute {name!r}")
        return getattr(self.read(), name)

    def __repr__(self) -> str:
        return f"<Variable {self.name}: {self.type!r}>"


def _read_all(item: Any) -> Any:
    """The argument with every Variable in it replaced by its value."""
    if isinstance(item, Variable):
        return item.read()
    if isinstance(item, list | tuple):
        return type(item)(_read_all(part) for part in item)
    return item
