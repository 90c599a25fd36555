"""Kernels and specialisations the entry's tests use, written by hand in the native language."""

from __future__ import annotations

from typing import Any

import numpy as np

from tracemill.backends.llvm.native.control import Control
from tracemill.backends.llvm.native.encoder import (
    Frame,
    InputSpec,
    NativeSpecialisation,
    OutputSpec,
    RowSpec,
    SizeSpec,
    array_flags,
    encode,
)
from tracemill.backends.llvm.native.language import Ptr, f64, i64, pointer
from tracemill.backends.llvm.native.layout import Kind, OutputKind, RowKind, Size, Source
from tracemill.backends.llvm.native.runtime import Parameter


class Slow(Exception):
    """The slow path was reached."""


def slow(*args: Any, **keywords: Any) -> None:
    raise Slow(args, keywords)


def raiser(owner: object, code: int, node: int, *words: int) -> None:
    raise ArithmeticError(code, node, *words)


def add(ctl: Control, args: Ptr[i64], begin: i64, end: i64) -> None:
    left = pointer(Ptr[f64], args[0])
    right = pointer(Ptr[f64], args[1])
    target = pointer(Ptr[f64], args[2])
    for index in range(begin, end):
        target[index] = left[index] + right[index]


def scale(ctl: Control, args: Ptr[i64], begin: i64, end: i64) -> None:
    """target[i] = source[i] * *factor"""
    source = pointer(Ptr[f64], args[0])
    factor = pointer(Ptr[f64], args[1])
    target = pointer(Ptr[f64], args[2])
    for index in range(begin, end):
        target[index] = source[index] * factor[0]


def total(ctl: Control, args: Ptr[i64], begin: i64, end: i64) -> None:
    """*target = sum of source[:count]"""
    source = pointer(Ptr[f64], args[0])
    result: f64 = 0.0
    for index in range(args[2]):
        result = result + source[index]
    pointer(Ptr[f64], args[1])[0] = result


def refuse_negative(ctl: Control, args: Ptr[i64], begin: i64, end: i64) -> None:
    source = pointer(Ptr[f64], args[0])
    for index in range(begin, end):
        if source[index] < 0.0:
            ctl.fail(ctl, 5, 2, index, 0, 0)
            return


def forever(ctl: Control, args: Ptr[i64], begin: i64, end: i64) -> None:
    while ctl.poll(ctl) == 0:
        pass


KERNELS = (add, scale, total, refuse_negative, forever)


def array(frame: Frame, place: int = 0, **changes: Any) -> InputSpec:
    """A contiguous float64 vector at a position of the call."""
    fields: dict[str, Any] = {
        "source": Source.ARGUMENT,
        "kind": Kind.ARRAY,
        "origin": place,
        "type": np.float64,
        "ndim": 1,
        "flags": array_flags(contiguous=True, writeable=False),
        "data": frame.slot(),
        "dims": frame.slot(),
    }
    return InputSpec(**{**fields, **changes})


def vector_result(frame: Frame, like: InputSpec) -> OutputSpec:
    return OutputSpec(OutputKind.ARRAY, np.float64, (like.dims,), frame.slot())


def launch(code: Any, name: str, extent: int, *words: int, **fields: Any) -> RowSpec:
    return RowSpec(
        RowKind.LAUNCH, kernel=code.address_of(name), words=words, extent=extent, **fields
    )


def addition(code: Any, **changes: Any) -> NativeSpecialisation:
    """x + y on two float64 vectors of one length."""
    frame = Frame()
    x, y = array(frame, 0), array(frame, 1)
    out = vector_result(frame, x)
    fields: dict[str, Any] = {
        "inputs": (x, y),
        "sizes": (SizeSpec(Size.EQUAL, x.dims, y.dims),),
        "outputs": (out,),
        "rows": (launch(code, "add", x.dims, x.data, y.data, out.data),),
        "keep": (code,),
    }
    return NativeSpecialisation(frame, **{**fields, **changes})


def function(runtime: Any, names: str, *specs: NativeSpecialisation, parameters: Any = None) -> Any:
    """A native function of parameters named by single letters."""
    made = runtime.new_function(parameters or [Parameter(name) for name in names], slow, raiser)
    for spec in reversed(specs):
        runtime.install(made, encode(spec))
    return made
