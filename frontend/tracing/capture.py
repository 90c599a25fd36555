"""Arrays and values from outside that a trace uses: hidden inputs of its graph.

Invariants: one input for one array object; a view of a captured array is another input. Where
one of them is written, both lie in a box (box.py).
Not here: guards of captured Python values (paths.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tracemill.compiler.types import TensorType

from .access import Access, HeldObject
from .source import user_location
from .state import Input, Trace, fail, require_dtype
from .tensor import TracedArray, fresh
from .views import Base

_FOLDED = 256  # elements of a read-only array that becomes a constant


def capture(trace: Trace, array: np.ndarray[Any, Any]) -> TracedArray:
    """The traced array for a NumPy array that the trace did not make."""
    if trace.states is not None:
        assert trace.outer is not None
        return capture(trace.outer, array)  # lifted where it is used
    found = trace.captured.get(id(array))
    if found is not None:
        made: TracedArray = found[1]
        if trace.boxes is not None and trace.paths is not None:
            trace.paths.source_of(array)  # it may have been met before the function read it
        return made
    # Plain arrays first: to name np.ma is to load it.
    if type(array) is not np.ndarray and isinstance(array, np.ma.MaskedArray | np.matrix):
        raise fail(
            "TM105",
            f"{type(array).__name__} cannot be compiled",
            hint="pass plain arrays (for a masked array, its data and its mask)",
        )
    dtype = require_dtype(array.dtype)
    derived = type(array) is not np.ndarray and issubclass(type(array), np.ndarray)
    if derived or not array.flags.aligned:
        what = type(array).__name__ if derived else "unaligned array"
        raise fail(
            "TM105",
            f"the function reads an array from outside that is no plain one: {what}",
            hint="pass it as an argument, or keep a plain array (np.array(a))",
        )
    constant = _constant(trace, array)
    if constant is not None:
        made = constant
    else:
        source = trace.paths.source_of(array) if trace.paths is not None else None
        name, read = source or ("captured", Access(HeldObject(array)))
        item = Input("captured", name, None, read, array, user_location())
        value = trace.add_input(item, TensorType(dtype, array.shape))
        made = TracedArray(
            trace,
            Base(
                trace, value, element_strides(array), len(trace.inputs) - 1, array.flags.writeable
            ),
        )
    trace.captured[id(array)] = (array, made)
    if trace.boxes is not None:
        trace.boxes.add_captured(array, made)
    return made


def element_strides(array: np.ndarray[Any, Any]) -> tuple[int, ...] | None:
    """Strides in elements, None where C-contiguous."""
    if array.flags.c_contiguous:
        return None
    return tuple(stride // array.itemsize for stride in array.strides)


def refuse_outer(trace: Trace, input: int) -> None:
    """Refuse to write an array of an enclosing function in an inner one."""
    mine = trace.inputs[input]
    if mine.kind == "outer":
        raise fail(
            "TM106",
            f"{mine.name} belongs to the enclosing function and is written in an inner one",
            hint="return the new value from the inner function",
        )


def _constant(trace: Trace, array: np.ndarray[Any, Any]) -> TracedArray | None:
    """A small array that nobody can write, as a constant."""
    if array.flags.writeable or not array.flags.owndata or array.size > _FOLDED:
        return None
    made = fresh(trace, trace.builder.constant(array))
    made.base_memory.writeable = False
    return made
