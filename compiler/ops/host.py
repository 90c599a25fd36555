"""Calls of Python functions by compiled code.

A function is an attribute: its name, `HostFunction`, is a text that carries the function along.
A plain text names a function of NumPy, so that graphs with such calls can be written down.

Invariants: calls are effects, made in program order, as often as the program says.
Not here: what users write, what their functions are given (frontend/host_calls.py); when a plan
makes the call (assemble.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..types import TOKEN, DType, TensorType, Type
from .attributes import exactly, sizes, tensor
from .batching import Each, Lanes, Operands
from .definition import Attrs, OpDef, SignatureError, Structure

Arrays = Sequence[np.ndarray[Any, Any]]


class HostFunction(str):
    """A name, and what it stands for: a function of arrays that returns a sequence of them."""

    function: Callable[..., Arrays]
    place: object

    def __new__(
        cls, name: str, function: Callable[..., Arrays], place: object = None
    ) -> HostFunction:
        made = super().__new__(cls, name)
        made.function = function
        made.place = place
        return made


def function_of(name: str) -> Callable[..., Arrays]:
    """The function that an attribute names. Raises SignatureError where it is not to be had."""
    if isinstance(name, HostFunction):
        return name.function
    found: Any = getattr(np, name, None)
    if not callable(found):
        raise SignatureError("TM203", f"names a function that is not here: {name!r}")

    def call(*arrays: Any) -> Arrays:
        made = found(*arrays)
        return made if isinstance(made, tuple) else (made,)

    return call


def host_callback(attrs: Attrs) -> Callable[..., None]:
    """What a plan calls with the arrays of the operands and of the results, which it fills."""
    function = function_of(attrs["function"])
    count = len(attrs["shapes"])

    def call(*arrays: Any) -> None:
        first = len(arrays) - count
        # The function may keep what it is given, or write to it: these arrays end with the call.
        made = function(*[array.copy() for array in arrays[:first]])
        for target, result in zip(arrays[first:], made, strict=True):
            if target.size:
                check_shape(result, target.shape)
                target[...] = result

    return call


def _type(operands: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
    dtypes, function, shapes = exactly(attrs, "dtypes", "function", "shapes")
    for at in range(len(operands)):
        tensor(operands, at)
    if not isinstance(function, str):
        raise SignatureError("TM203", f"needs the name of a function, got {function!r}")
    if not isinstance(dtypes, tuple) or not all(isinstance(dtype, DType) for dtype in dtypes):
        raise SignatureError("TM203", f"needs a tuple of dtypes, got {dtypes!r}")
    if not isinstance(shapes, tuple) or len(shapes) != len(dtypes):
        raise SignatureError("TM203", f"needs a shape for each of {len(dtypes)} dtypes")
    results = [TensorType(d, sizes(s, "a shape")) for d, s in zip(dtypes, shapes)]
    return (*results, TOKEN)


def _reference(*arrays: Any, function: str, dtypes: Any, shapes: Any) -> tuple[Any, ...]:
    made = function_of(function)(*[array.copy() for array in arrays])
    results = [np.empty(s, d.numpy) if 0 in s else m for m, s, d in zip(made, shapes, dtypes)]
    return (*results, None)


def check_shape(result: Any, shape: Sequence[Any]) -> None:
    """Raise SignatureError for an array of another shape."""
    found = np.shape(result)
    if found != tuple(shape):
        raise SignatureError("TM268", f"it returned shape {found} where {shape} is declared")


def _lanes(emit: Any, node: Any, operands: Operands, lanes: Lanes) -> Sequence[Each]:
    """One call for all lanes, which calls the function for one active lane after the other."""
    attrs: Mapping[str, Any] = node.attrs
    own = [each.own for each in operands]
    values = [each.value for each in operands]
    if lanes.active is None:
        values.append(emit.broadcast_to(emit.constant(np.True_), shape=(lanes.size,)))
    else:
        values.append(lanes.active)
    name = f"{attrs['function']} of lanes"
    made = emit.emit(
        node.op,
        values,
        {
            "dtypes": attrs["dtypes"],
            "function": HostFunction(name, _one_by_one(attrs, own)),
            "shapes": tuple([(lanes.size, *shape) for shape in attrs["shapes"]]),
        },
    )
    *results, token = made if isinstance(made, tuple) else (made,)
    return [*[Each(result, True) for result in results], Each(token, False)]


def _one_by_one(attrs: Attrs, own: Sequence[bool]) -> Callable[..., Arrays]:
    function = function_of(attrs["function"])
    dtypes = [dtype.numpy for dtype in attrs["dtypes"]]

    def call(*arrays: Any) -> Arrays:
        *operands, active = arrays
        rows: list[Arrays | None] = []
        for lane, runs in enumerate(active):
            given = [a[lane, ...].copy() if o else a.copy() for a, o in zip(operands, own)]
            rows.append(function(*given) if runs else None)
        return [_stacked([None if r is None else r[at] for r in rows], dtype)
                for at, dtype in enumerate(dtypes)]  # fmt: skip

    return call


def _stacked(rows: Sequence[Any], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Results as rows of an array, zeros where a lane made none."""
    some = next((row for row in rows if row is not None), np.zeros((), dtype))
    return np.array([np.zeros_like(some) if row is None else row for row in rows], dtype)


host_call = OpDef(
    name="host_call",
    signature=_type,
    reference=_reference,
    batching=_lanes,
    structure=Structure.EFFECT,
    doc="Call the Python function named `function` with the operands, in program order; its "
    "results are arrays of `dtypes` and `shapes`.",
)

HOST: tuple[OpDef, ...] = (host_call,)
