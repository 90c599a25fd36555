"""`jit`: the decorator, and what it returns.

A compiled function is an object of a native type: calling it enters machine code at once. The
methods here are set on that type.

Invariants: name, signature, docstring and annotations are the function's; it pickles by
reference, as the function would.
Not here: the slow path (calls/dispatch.py), what is shown of a version (lowered.py).
"""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, TypeVar, cast, overload

from . import engine
from .calls import doors
from .calls.arguments import Signature
from .calls.dispatch import Dispatcher
from .calls.recompiles import Recompiles
from .calls.tracebacks import for_users
from .calls.variadic import variadic

if TYPE_CHECKING:
    from .export import Exported
    from .lowered import Lowered
    from .profile import Profile

P = ParamSpec("P")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


class CompiledFunction(Protocol[P, R_co]):
    """What `jit` returns, as type checkers see it."""

    __name__: str
    __wrapped__: Callable[..., Any]

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co:
        """Run compiled code for these arguments, compiling it first where there is none."""
        ...

    def lower(self, *args: P.args, **kwargs: P.kwargs) -> Lowered:
        """What would run for these arguments: graph, kernels, LLVM, assembly, plan."""
        ...

    def profile(self, *args: P.args, **kwargs: P.kwargs) -> Profile:
        """Time of each kernel for these arguments, beside the bytes it moves."""
        ...

    def explain_recompiles(self) -> Recompiles:
        """Every compilation so far, with the argument that caused it."""
        ...

    def clear_cache(self) -> None:
        """Forget all compiled versions."""
        ...

    def export(
        self,
        path: str | os.PathLike[str],
        /,
        *args: Any,
        features: str = "x86-64-v3",
        cc: str = "cc",
    ) -> Exported:
        """Write the version for these arguments as a C library and header; see the README."""
        ...


@overload
def jit(function: Callable[P, R], /) -> CompiledFunction[P, R]: ...
@overload
def jit(
    *, static_argnames: Iterable[str] | str = ()
) -> Callable[[Callable[P, R]], CompiledFunction[P, R]]: ...


def jit(
    function: Callable[P, R] | None = None, /, *, static_argnames: Iterable[str] | str = ()
) -> Any:
    """Compile a function of NumPy arrays.

    The function is traced when it is first called with arguments of new dtypes, ranks or
    structure; sizes stay open. static_argnames: parameters handed to the function as they are,
    compared by value on later calls. Also works on methods, lambdas and partials.

    Raises TraceError while tracing where the function does what cannot be compiled.
    """
    if function is None:
        return functools.partial(_jit, static=_names(static_argnames))
    return _jit(function, _names(static_argnames))


def _names(static_argnames: Iterable[str] | str) -> frozenset[str]:
    if isinstance(static_argnames, str):
        return frozenset((static_argnames,))
    return frozenset(static_argnames)


def jit_of_library(function: Callable[P, R]) -> CompiledFunction[P, R]:
    """The compiled form of a function of the library's, which `disable_jit` leaves compiled: it
    has no plain form."""
    made = _jit(function, frozenset())
    made.dispatcher.is_ours = True  # type: ignore[attr-defined]
    return made


def _jit(function: Callable[P, R], static: frozenset[str]) -> CompiledFunction[P, R]:
    if isinstance(function, classmethod | staticmethod):
        wrapped: Any = type(function)(cast(Any, _jit(cast(Any, function.__func__), static)))
        return cast("CompiledFunction[P, R]", wrapped)
    if not callable(function):
        raise TypeError(f"jit compiles functions, got {type(function).__name__}")
    signature = Signature.of(function)
    unknown = static - set(signature.names)
    if unknown:
        name = getattr(function, "__name__", "the function")
        raise TypeError(f"{name} has no parameter named {sorted(unknown)[0]!r}")
    _type_with_methods()
    dispatcher = Dispatcher(function, signature, static)
    made = variadic(dispatcher) if signature.is_variadic else dispatcher.make_native()
    target = function if hasattr(function, "__name__") else getattr(function, "func", function)
    functools.update_wrapper(made, target)
    made.__wrapped__ = function
    made.__signature__ = signature.signature
    made.dispatcher = dispatcher
    return cast(CompiledFunction[P, R], made)


@functools.cache
def _type_with_methods() -> type:
    """The native type, once its Python methods are set on it."""
    kind: Any = engine.native().function_type
    methods = (_lower, _profile, _explain_recompiles, _clear_cache, _export, _reduce, _repr)
    for method in methods:
        name = method.__name__.removeprefix("_")
        setattr(kind, {"reduce": "__reduce__", "repr": "__repr__"}.get(name, name), method)
    return cast(type, kind)


def _serving(function: Any, args: Sequence[Any], keywords: Mapping[str, Any]) -> Dispatcher:
    """The dispatcher of these arguments, which include the object where it is a method."""
    dispatcher: Dispatcher = function.dispatcher
    try:
        dispatcher.signature.bind(args, keywords)
    except TypeError as problem:
        if dispatcher.signature.names[:1] in (("self",), ("cls",)):
            problem.add_note("what looks inside a method takes the object too: f.lower(self, x)")
        raise
    return dispatcher.serving(args, keywords)


@for_users
def _lower(self: Any, *args: Any, **kwargs: Any) -> Lowered:
    return doors.lower(_serving(self, args, kwargs), args, kwargs)


@for_users
def _profile(self: Any, *args: Any, **kwargs: Any) -> Profile:
    return doors.profile_call(_serving(self, args, kwargs), args, kwargs)


def _explain_recompiles(self: Any) -> Recompiles:
    return cast(Recompiles, self.dispatcher.recompiles())


def _clear_cache(self: Any) -> None:
    self.dispatcher.clear()


@for_users
def _export(
    self: Any,
    path: str | os.PathLike[str],
    /,
    *args: Any,
    features: str = "x86-64-v3",
    cc: str = "cc",
) -> Exported:
    """Write one version as a shared library ``path`` and a C header beside it.

    args: examples; sizes that a call would leave open are parameters of the C function. features:
    ``host``, or the level of the x86-64 ABI that the library needs. cc: the compiler that links.
    Raises UnsupportedError for what cannot run without Python, ExportError where no library can
    be linked or written.
    """
    return doors.export(_serving(self, args, {}), path, args, features, cc)


def _reduce(self: Any) -> str:
    return cast(str, self.__qualname__)


def _repr(self: Any) -> str:
    return f"<compiled {getattr(self, '__qualname__', 'function')}{inspect.signature(self)}>"
