"""Which loop a ufunc runs: asked of NumPy once per combination of operand types.

An operand's key is its NumPy dtype, or a Python type where it is a weak number.

Not here: conversion of the operands.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tracemill.compiler.ops import ALL
from tracemill.compiler.records import dataclass
from tracemill.compiler.types import DType

from ..tracing.state import fail, require_dtype
from .alternatives import of_function
from .names import SPECIAL, ufunc_name

Key = Any  # np.dtype, or one of int, float, complex

OP_OF: Mapping[str, str] = {op.ufunc: op.name for op in ALL.values() if op.ufunc}
_ALIASES = {"float_power": "power"}
COMPARISONS = frozenset(("less", "less_equal", "greater", "greater_equal", "equal", "not_equal"))
_DEFAULTS: dict[Any, np.dtype[Any]] = {
    int: np.dtype(int),
    float: np.dtype(float),
    complex: np.dtype(complex),
}


@dataclass(frozen=True, slots=True)
class Loop:
    """The op to emit, the dtypes to cast operands to, and NumPy's result dtypes."""

    op: str
    operands: tuple[DType, ...]
    results: tuple[DType, ...]


_LOOPS: dict[Any, Loop] = {}


def op_name(ufunc: np.ufunc) -> str:
    """The op that is this ufunc. Raises UnsupportedError."""
    name = ufunc.__name__
    found = OP_OF.get(name) or OP_OF.get(_ALIASES.get(name, ""))
    if found is None:
        of_python = name.endswith(" (vectorized)")  # by np.frompyfunc
        hint = of_function("numpy", "frompyfunc" if of_python else name)
        hint = f"tm.special.{name} is" if name in SPECIAL else hint
        raise fail("TM110", f"{ufunc_name(ufunc)} is not supported", hint=hint)
    return found


def loop_for(
    ufunc: np.ufunc, keys: tuple[Key, ...], signature: Any = None, casting: str = "same_kind"
) -> Loop:
    """The loop for operands of these keys. Raises TypeError as NumPy does."""
    place = (ufunc, keys, signature, casting)
    found = _LOOPS.get(place)
    if found is None:
        found = _LOOPS[place] = _resolve(ufunc, keys, signature, casting)
    return found


def _resolve(ufunc: np.ufunc, keys: tuple[Key, ...], signature: Any, casting: Any) -> Loop:
    op = op_name(ufunc)
    if all(key in _DEFAULTS for key in keys):
        keys = tuple(_DEFAULTS[key] for key in keys)
    wanted = keys + (None,) * ufunc.nout
    try:
        if signature is None:
            dtypes = ufunc.resolve_dtypes(wanted)
        else:
            dtypes = ufunc.resolve_dtypes(wanted, signature=signature, casting=casting)
    except TypeError as problem:
        names = " and ".join(getattr(k, "name", None) or k.__name__ for k in keys)
        raise fail(
            "TM202", f"np.{ufunc.__name__} does not take {names}", _one_line(problem)
        ) from None
    ours = tuple(require_dtype(dtype) for dtype in dtypes)
    return Loop(op, ours[: ufunc.nin], ours[ufunc.nin :])


def fold_dtypes(
    ufunc: np.ufunc, have: np.dtype[Any], out: np.dtype[Any] | None, dtype: np.dtype[Any] | None
) -> tuple[DType, DType]:
    """The dtypes in which ``ufunc.reduce`` and its like fold and take elements, as NumPy has them.
    Raises TypeError as NumPy does."""
    signature = {} if dtype is None else {"signature": (dtype, None, None)}
    try:
        folded, element, _ = ufunc.resolve_dtypes(
            (out, have, None), reduction=True, casting="unsafe", **signature
        )
    except TypeError as problem:
        raise fail(
            "TM202", f"np.{ufunc.__name__} does not fold {have.name}", _one_line(problem)
        ) from None
    return require_dtype(folded), require_dtype(element)


def _one_line(problem: BaseException) -> str:
    return str(problem).split("\n", 1)[0]
