"""`f.export(path, *example_args)`: one version of a compiled function as a C library.

The function is traced for the examples, as a call would be; sizes that stay open become
parameters of the C function. Captured arrays are constants of the library, Variables begin with
the content they have now.

Invariants: exporting changes nothing: no version is installed, no Variable written.
Not here: the library (backends/export).
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from . import engine
from .backends.cpu.target import host_target
from .backends.export.description import Description, Given, describe
from .backends.export.header import header_text
from .backends.export.interface import interface_of
from .backends.export.link import write_library
from .backends.export.names import library_name
from .backends.llvm.native.from_plan import SizeRelation
from .calls.build import plan_of
from .calls.specialise import Traced
from .calls.trees import flatten, paths
from .compiler.dims import dim_text
from .compiler.errors import CODES, error
from .compiler.ir.graph import Location
from .compiler.ir.traversal import devices
from .compiler.kernel.library import call_of
from .compiler.kernel.target import Target
from .compiler.plan import ErrorPlace, ExecutionPlan, HostCall, Origin, all_rows
from .compiler.records import dataclass, replace
from .tracing.guards import ScalarGuard, SizeGuard, StridesGuard
from .tracing.result import InputOutput, SizeOutput, TensorOutput

if TYPE_CHECKING:
    from .calls.dispatch import Dispatcher

# Vectors that schedules may use, by level of the x86-64 ABI.
LEVELS = {"x86-64-v2": 128, "x86-64-v3": 256, "x86-64-v4": 512}


@dataclass(frozen=True, slots=True)
class Exported:
    """The two files of an export."""

    library: Path
    header: Path


def export(
    dispatcher: Dispatcher,
    path: str | os.PathLike[str],
    args: Sequence[Any],
    features: str,
    cc: str,
) -> Exported:
    """Write the library and the header beside it."""
    target = _target(features)
    place = Path(path)
    name = library_name(place)
    library = place.with_name(f"{place.name.removesuffix('.so')}.so")
    examples = [_contiguous(value) for value in args]
    traced = _with_contiguous_captures(dispatcher.trace_only(examples, {}))
    _refuse(traced)
    plan, positions = plan_of(traced, target)
    refuse_host_calls(plan)
    described = _describe(traced, plan, _shapes(plan, traced, positions))
    interface = interface_of(described, name, _returned(plan, traced, positions))
    places = [_sentence(place) for place in plan.error_places]
    header = header_text(
        interface,
        origin=f"the function {plan.name}",
        features="the processor it was made on" if features == "host" else features,
        places=places,
        variables=[
            f"{s.name}: {s.value.dtype}[{', '.join(map(str, s.value.shape))}], {s.value.nbytes}"
            for s in described.states
        ],
    )
    code = _tables().object_code(described, interface, places, features)
    made = Exported(library, library.with_name(f"{name}.h"))
    write_library(code, header, made.library, made.header, cc)
    return made


def _tables() -> Any:
    """The module that loads LLVM."""
    return import_module(".backends.export.tables", __package__)


def _target(features: str) -> Target:
    if features == "host":
        return host_target().for_schedules(1)
    if features not in LEVELS:
        raise error(
            "TM203",
            f"features={features!r} is not known",
            hint=f"use one of host, {', '.join(LEVELS)}",
        )
    return Target(LEVELS[features], 1)


# -- what is traced


def _contiguous(value: Any) -> Any:
    """The example, arrays in C order: how an argument of a C function lies."""
    leaves, tree = flatten(value)
    return tree.rebuild(
        [
            np.ascontiguousarray(x).reshape(x.shape) if isinstance(x, np.ndarray) else x
            for x in leaves
        ]
    )


def _with_contiguous_captures(traced: Traced) -> Traced:
    """Captured arrays as they will lie in the library."""
    inputs = tuple(
        replace(item, value=np.ascontiguousarray(item.value).reshape(item.value.shape))
        if item.kind == "captured"
        else item
        for item in traced.trace.inputs
    )
    return replace(traced, trace=replace(traced.trace, inputs=inputs))


def _refuse(traced: Traced) -> None:
    """Raise UnsupportedError, naming it, for what a library cannot do."""
    result = traced.trace
    named = devices(result.graph)
    if named:
        _cannot(f"a function placed on devices ({', '.join(sorted(named))})")
    if traced.rebound:
        keys = ", ".join(repr(key) for change in traced.rebound for key in change.entries)
        what = f"a function that puts something into a dict, list or object it is given ({keys})"
        _cannot(what, "return the new value instead")
    for position in result.writes:
        item = result.inputs[position]
        if item.kind == "captured":
            what = f"a write to an array from outside the function ({item.name})"
            _cannot(what, "make it a tm.Variable", item.location)
    for output in result.outputs:
        if isinstance(output, InputOutput) and result.inputs[output.input].kind == "captured":
            item = result.inputs[output.input]
            what = f"returning an array from outside the function ({item.name}) itself"
            _cannot(what, "return a copy of it", item.location)
    for guard in result.guards:
        if isinstance(guard, StridesGuard):
            _cannot(f"a function that looks at strides ({guard.text})")


def refuse_host_calls(plan: ExecutionPlan) -> None:
    """Raise UnsupportedError, with the user's line, where a row calls back into Python or a kernel
    calls a library that Python has loaded."""
    for kernel in plan.kernels:
        call = call_of(kernel)
        if call is not None:
            what = f"{kernel.name}, which a library that ships with NumPy computes,"
            _cannot(what, "compute it before and pass the result", call.location)
    for row in all_rows(plan.rows):
        if isinstance(row, HostCall):
            texts = plan.callbacks[row.callback].items()
            asked = ", ".join(f"{key}={v!r}" for key, v in texts if isinstance(v, str))
            what = f"print or another call back into Python ({asked})"
            _cannot(what, "take it out, or do it in C", row.location)


def _cannot(what: str, hint: str = "", place: object = None) -> NoReturn:
    raise error("TM113", f"{what} cannot be exported", hint=hint, place=place)


# -- what is made of it


def _describe(traced: Traced, plan: ExecutionPlan, shapes: Mapping[int, str]) -> Description:
    result = traced.trace
    fixed = {g.leaf: g.expected for g in result.guards if isinstance(g, ScalarGuard)}
    given = [
        Given(item.name, item.value if item.leaf is None else fixed.get(item.leaf))
        for item in result.inputs
    ]
    at = {item.leaf: position for position, item in enumerate(result.inputs)}
    symbols = {
        symbol: (at[leaf], axis)
        for symbol, (leaf, axis) in traced.symbol_places.items()
        if leaf in at
    }
    return describe(
        plan,
        given,
        _values(plan.variables, result.variables),
        relations=[
            SizeRelation(guard.left, guard.relation, guard.right)
            for guard in result.guards
            if isinstance(guard, SizeGuard)
        ],
        symbols=symbols,
        shapes=shapes,
    )


def _shapes(plan: ExecutionPlan, traced: Traced, positions: Mapping[int, int]) -> dict[int, str]:
    """Sizes as text, by buffer of the plan: of arguments, and of results."""
    graph = traced.trace.graph
    found = {
        at: ", ".join(map(dim_text, value.tensor.shape)) for at, value in enumerate(graph.params)
    }
    for output, position in positions.items():
        made = traced.trace.outputs[output] if output >= 0 else None
        if isinstance(made, TensorOutput):
            shape = graph.results[made.result].tensor.shape
            found[plan.results[position].buffer] = ", ".join(map(dim_text, shape))
    return found


def _returned(
    plan: ExecutionPlan, traced: Traced, positions: Mapping[int, int]
) -> dict[int | str, str]:
    """Names of results by buffer; of those that are no output, what they are, by name."""
    result = traced.trace
    found: dict[int | str, str] = {}
    for at, (output, path) in enumerate(zip(result.outputs, paths(result.structure), strict=True)):
        name = "out" + "".join(map(repr, path))
        if isinstance(output, SizeOutput):
            found[name] = f"the size {dim_text(output.size)}"
            continue
        if at not in positions:
            found[name] = f"always {getattr(output, 'value', None)!r}"
            continue
        buffer = plan.results[positions[at]].buffer
        if plan.buffers[buffer].origin is Origin.OUTPUT:
            found.setdefault(buffer, name)
        else:
            found[name] = f"the argument {plan.buffers[buffer].name} itself"
    return found


def _sentence(place: ErrorPlace) -> str:
    """What failed and where; of the file's place only its name, since others will read it."""
    where = ""
    if isinstance(place.location, Location):
        line = place.location
        where = f"{Path(line.file).name}:{line.line}, in {line.function}: "
    if place.raises:
        return f"{where}{place.raises.partition(':')[2]}{place.arguments}"
    title = CODES[place.code].title if place.code in CODES else "A check failed."
    return f"{where}{place.op}: {title} [{place.code}]"


def _values(names: Sequence[str], variables: Mapping[str, Any]) -> dict[str, Any]:
    """The variables' values; those of one store as of one moment."""
    stores = {id(variables[name].store): variables[name].store for name in names}
    found: dict[str, Any] = {}
    for store in stores.values():
        store.use_locks(engine.native())
        mine = [name for name in names if variables[name].store is store]
        found.update(store.snapshot(mine).values)
    return {name: found[name] for name in names}
