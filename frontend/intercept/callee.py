"""Which callable stands for which in intercepted code.

User functions become their rewritten selves (or run on substituted globals where there is no
source), methods, partials, instances and classes with them; Python's and NumPy's functions
become those that know traced values; other library code is called as it is.

Invariants: outside a trace every callable stands for itself.
Not here: rewriting (rewrite.py), the stand-ins (python_functions.py, numpy_functions.py).
"""

from __future__ import annotations

import functools
import sys
import types
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..loading import load
from ..numpy import calling
from ..numpy.alternatives import has_advice
from ..numpy.names import is_special
from ..tracing.access import Access, CellContent, GlobalName, HeldObject
from ..tracing.source import runs_intercepted
from ..tracing.state import Trace, current, fail
from . import numpy_functions, python_functions
from .bytecode import cell_writes, global_reads
from .numpy_functions import (
    drawn,
    is_generator,
    late_function,
    numpy_unsupported,
    set_state,
    state_of,
)
from .source_code import is_rewritten, rewritten
from .substitution import substituted
from .unseen import show_reachable

_HIGHER_ORDER = (map, filter, functools.reduce)
_STAND_INS: dict[Any, Callable[..., Any]] = {
    **python_functions.REPLACEMENTS,
    **numpy_functions.REPLACEMENTS,
    getattr: lambda *args: _get(*args),
    hasattr: lambda *args: _has(*args),
}
_HOOKS: dict[str, Any] = {}


def _calling(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of NumPy that calls functions among its arguments: those become callees."""

    def call(*args: Any, **keywords: Any) -> Any:
        return function(*[_callees(item) for item in args], **keywords)

    return call


def _callees(item: Any) -> Any:
    if isinstance(item, list | tuple):
        return type(item)([_callees(part) for part in item])
    return callee(item) if isinstance(item, types.FunctionType | types.MethodType) else item


_STAND_INS.update({f: _calling(numpy_functions.REPLACEMENTS[f]) for f in calling.FUNCTIONS})


def _get(owner: Any, name: str, *default: Any) -> Any:
    """getattr"""
    try:
        return _HOOKS["attribute"](owner, name)
    except AttributeError:
        _note_absence(owner, name)
        if not default:
            raise
        return default[0]


def _has(owner: Any, name: str) -> bool:
    """hasattr"""
    missing = object()
    return _get(owner, name, missing) is not missing


def _note_absence(owner: Any, name: str) -> None:
    trace = current()
    if trace is not None and trace.paths is not None:
        trace.paths.without(owner, name)


def set_hooks(hooks: Mapping[str, Any], stand_ins: Mapping[Any, Callable[..., Any]]) -> None:
    """Tell what the hooks in rewritten code are, and what stands for functions of Python that
    call methods of the user's (both call back into this module)."""
    _HOOKS.update(hooks)
    _STAND_INS.update(stand_ins)


def callee(function: Any) -> Any:
    """What intercepted code calls in place of `function`."""
    trace = current()
    if trace is None:
        return function
    if type(type(function).__eq__) is types.FunctionType:  # which is not to be asked
        return _stand_in(function, trace)
    try:
        found = _STAND_INS.get(function)
        if found is None:
            found = trace.functions.get(function) or late_function(function)
    except TypeError:  # not hashable
        return _stand_in(function, trace)
    if found is None:
        found = _stand_in(function, trace)
        if type(function) is types.FunctionType:
            trace.functions[function] = found
    return found


def _stand_in(function: Any, trace: Trace) -> Any:
    kind = type(function)
    if isinstance(function, np.vectorize) and callable(function.pyfunc):
        return _vectorized(function)
    if kind is types.FunctionType:
        return user_function(function, trace)
    if kind is types.MethodType:
        _refuse_chance(function, trace)
        if is_generator(function.__self__):
            return _draw(function, trace)
        return types.MethodType(callee(function.__func__), function.__self__)
    if kind is functools.partial:
        return functools.partial(callee(function.func), *function.args, **function.keywords)
    if function is sorted:
        return lambda items, **named: sorted(
            items, **{k: callee(v) if k == "key" else v for k, v in named.items()}
        )
    if any(function is one for one in _HIGHER_ORDER):
        return lambda first, *rest, **named: function(callee(first), *rest, **named)
    if kind is types.BuiltinFunctionType or kind is types.BuiltinMethodType:
        return _builtin(function, trace)
    if hasattr(kind, "lower") and hasattr(function, "dispatcher"):
        return _compiled(function, trace)
    if isinstance(function, type):
        of_numpy = function.__module__.split(".")[0] == "numpy"
        if of_numpy and has_advice(function.__module__, function.__name__):
            return numpy_unsupported(function)
        return _constructor(function)
    call = getattr(kind, "__call__", None)  # noqa: B004  the method itself is wanted
    if type(call) is types.FunctionType and runs_intercepted(call.__code__):
        return types.MethodType(callee(call), function)
    module = getattr(function, "__module__", None) or ""
    if module.split(".")[0] == "numpy" and callable(function):
        inner = getattr(function, "__wrapped__", None)
        if module.startswith("numpy.polynomial.") and type(inner) is types.FunctionType:
            return callee(inner)
        return numpy_unsupported(function)
    if kind is functools._lru_cache_wrapper:
        return callee(function.__wrapped__)
    return function


def _vectorized(made: Any) -> Callable[..., Any]:
    """An instance of np.vectorize: its Python function is one of the user's."""

    def call(*args: Any, **keywords: Any) -> Any:
        if not numpy_functions.has_arrays((*args, *keywords.values())):
            return numpy_functions.as_constant(made(*args, **keywords))
        return load("numpy.vectorized").call_vectorized(made, callee(made.pyfunc), args, keywords)

    return call


def user_function(function: types.FunctionType, trace: Trace) -> Any:
    """The function with hooks, its captured values noted."""
    code = function.__code__
    if is_rewritten(code):
        return function
    if not runs_intercepted(code):
        if (function.__module__ or "").split(".")[0] == "numpy":
            return numpy_unsupported(function)
        return numpy_unsupported(function) if is_special(function) else function
    _note(function, trace)
    made = rewritten(function, _HOOKS)
    if made is None:
        show_reachable(function, trace, _note)
        return _drawing_nothing(substituted(function, callee, trace), trace)
    cells = dict(zip(code.co_freevars, function.__closure__ or ()))
    copy = types.FunctionType(
        made,
        function.__globals__,
        function.__name__,
        _loaded(function.__defaults__),
        tuple([cells[name] for name in made.co_freevars]),
    )
    copy.__kwdefaults__ = function.__kwdefaults__
    copy.__qualname__ = function.__qualname__
    return copy


def _loaded(defaults: tuple[Any, ...] | None) -> tuple[Any, ...] | None:
    load = _HOOKS["load"]
    return None if defaults is None else tuple([load(item) for item in defaults])


def _note(function: types.FunctionType, trace: Trace) -> None:
    """Remember where the function's globals, free variables and defaults come from."""
    paths = trace.paths
    if paths is None:
        return
    namespace = function.__globals__
    module = namespace.get("__name__", "?")
    for name in sorted(global_reads(function.__code__)):
        if name in namespace:
            path = f"global {name} of {module}"
            paths.note(namespace[name], path, Access(GlobalName(namespace, name)))
    assigned = cell_writes(function.__code__)
    paths.outside.function(function, paths.is_captured(function), assigned)
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
        try:
            content = cell.cell_contents
        except ValueError:  # still empty
            continue
        if name not in assigned and name != "__class__":
            path = f"{name} of {function.__qualname__}"
            paths.note(content, path, Access(CellContent(cell)))
    defaults = function.__defaults__
    if defaults:
        read = Access(HeldObject(function)).attribute("__defaults__")
        paths.note_immutable(defaults, f"defaults of {function.__qualname__}", read)


def _builtin(function: Any, trace: Trace) -> Any:
    """C functions. Those of containers that were there before may hand out arrays."""
    owner = getattr(function, "__self__", None)
    _refuse_chance(function, trace)
    if is_generator(owner):
        return _draw(function, trace)
    if type(owner) in (dict, list, tuple) and function.__name__ in ("get", "pop", "__getitem__"):
        load = _HOOKS["load"]
        return lambda *args, **named: load(function(*args, **named))
    module = getattr(function, "__module__", None) or ""
    if module.split(".")[0] == "numpy":
        return numpy_unsupported(function)
    return function


def _refuse_chance(function: Any, trace: Trace) -> None:
    """Refuse methods of Python's random number generators."""
    owner = function.__self__
    if type(owner).__module__ != "random" or function.__name__ in ("seed", "getstate", "setstate"):
        return
    made_here = trace.paths is None or not trace.paths.is_captured(owner)
    if made_here and function != getattr(sys.modules["random"], function.__name__, None):
        return
    raise fail(
        "TM106",
        f"random.{function.__name__} draws from a generator outside the function, which would be "
        "frozen into the compiled function",
        hint="draw outside and pass the numbers, or use tm.random",
    )


def _draw(function: Any, trace: Trace) -> Any:
    """A method of one of NumPy's generators. Cython makes them methods in one release of NumPy and
    builtin ones in another, so both ways lead here."""
    owner = function.__self__
    if trace.paths is not None and trace.paths.is_captured(owner):
        refused = _frozen_draw(function, type(owner).__name__)
        made: Callable[..., Any] = load("random.of_numpy").draw(function, refused)
        return made
    return drawn(function)


def _drawing_nothing(function: Any, trace: Trace) -> Any:
    """Code without source, whose draws are not seen when they are made, but afterwards."""
    found = [] if trace.paths is None else trace.paths.found()
    generators = [owner for owner in found if is_generator(owner)]
    if not generators:
        return function

    def call(*args: Any, **keywords: Any) -> Any:
        before = [state_of(owner) for owner in generators]
        made = function(*args, **keywords)
        for owner, state in zip(generators, before):
            if repr(state_of(owner)) != repr(state):
                set_state(owner, state)
                raise fail(
                    "TM106",
                    "code whose source is not at hand draws from a generator from outside, which "
                    "would be frozen into the compiled function",
                    hint="put the function into a file, draw outside and pass the numbers, or use "
                    "tm.random",
                )
        return made

    return call


def _frozen_draw(function: Any, kind: str) -> Any:
    def call(*args: Any, **keywords: Any) -> Any:
        raise fail(
            "TM106",
            f"{kind}.{function.__name__} of a generator from outside would be frozen into the "
            "compiled function",
            hint="draw outside and pass the numbers, or use tm.random",
        )

    return call


def _compiled(function: Any, trace: Trace) -> Any:
    """A compiled function called by another: inlined."""
    inner = function.__wrapped__

    def call(*args: Any, **keywords: Any) -> Any:
        if any(inner is other for other in trace.inlined):
            chain = " -> ".join(getattr(f, "__name__", "?") for f in (*trace.inlined, inner))
            raise fail(
                "TM104",
                f"a compiled function calls itself: {chain}",
                hint="write the recursion as a loop, or decorate only the outer function",
            )
        trace.inlined.append(inner)
        try:
            return callee(inner)(*args, **keywords)
        finally:
            trace.inlined.pop()

    return call


def _constructor(kind: Any) -> Any:
    """A class of the user: its __init__ runs intercepted."""
    makes = type(kind).__call__
    if type(makes) is types.FunctionType and runs_intercepted(makes.__code__):
        return types.MethodType(callee(makes), kind)  # of a metaclass
    init = kind.__init__
    after = getattr(kind, "__post_init__", None)
    if type(after) is types.FunctionType and kind.__new__ is object.__new__:
        return _dataclass(kind, after)
    plain = (
        type(init) is types.FunctionType
        and runs_intercepted(init.__code__)
        and init.__code__.co_filename != "<string>"
        and kind.__new__ is object.__new__
        and type(kind).__call__ is type.__call__
    )
    if not plain:
        return kind

    def construct(*args: Any, **keywords: Any) -> Any:
        made = object.__new__(kind)
        callee(init)(made, *args, **keywords)
        return made

    return construct


def _dataclass(kind: Any, after: types.FunctionType) -> Any:
    """A dataclass whose `__post_init__` is the user's: that runs intercepted, too."""

    def construct(*args: Any, **keywords: Any) -> Any:
        made = object.__new__(kind)
        held = getattr(made, "__dict__", None)
        if held is None:
            return kind(*args, **keywords)
        held["__post_init__"] = types.MethodType(callee(after), made)
        kind.__init__(made, *args, **keywords)
        held.pop("__post_init__", None)
        return made

    return construct
