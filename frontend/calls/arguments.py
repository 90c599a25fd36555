"""The arguments of a call: bound to parameters, flattened, brought into the form kernels take.

Invariants: values are in the order of the signature; a leaf is an exact `ndarray` in native byte
order and aligned, a NumPy scalar, a Python number, or a static object.
Not here: what a trace makes of leaves (specialise.py), guards.
"""

from __future__ import annotations

import inspect
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from types import FunctionType
from typing import Any

import numpy as np

from ..compiler.records import dataclass
from ..compiler.types import dtype_of
from ..tracing.source import is_library_file
from ..tracing.state import fail
from .trees import Tree, flatten, paths

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


@dataclass(frozen=True, slots=True)
class Signature:
    """The parameters of a function without ``*args`` and ``**kwargs``."""

    function: Callable[..., Any]
    signature: inspect.Signature
    names: tuple[str, ...]

    @staticmethod
    def of(function: Callable[..., Any]) -> Signature:
        """Read it from the function."""
        signature = inspect.signature(function)
        return Signature(function, signature, tuple(signature.parameters))

    @property
    def is_variadic(self) -> bool:
        """True when there is an ``*args`` or ``**kwargs``."""
        kinds = {p.kind for p in self.signature.parameters.values()}
        variadic = {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}
        return bool(kinds & variadic)

    def bind(self, args: Sequence[Any], keywords: Mapping[str, Any]) -> list[Any]:
        """Values in the order of the parameters. Raises TypeError as the call would."""
        try:
            bound = self.signature.bind(*args, **keywords)
        except TypeError as problem:
            name = getattr(self.function, "__name__", "function")
            raise TypeError(f"{name}() {problem}") from None
        bound.apply_defaults()
        return [bound.arguments[name] for name in self.names]

    def call(self, values: Sequence[Any]) -> tuple[list[Any], dict[str, Any]]:
        """Positional and keyword arguments that pass these values."""
        args: list[Any] = []
        keywords: dict[str, Any] = {}
        for parameter, value in zip(self.signature.parameters.values(), values, strict=True):
            if parameter.kind in _POSITIONAL:
                args.append(value)
            else:
                keywords[parameter.name] = value
        return args, keywords


@dataclass(frozen=True, slots=True)
class FlatCall:
    """Leaves of all arguments, and their structure (a tuple of one tree per parameter)."""

    leaves: list[Any]
    tree: Tree
    changed: bool

    def values(self) -> Sequence[Any]:
        """One value per parameter, put together again."""
        found: Sequence[Any] = self.tree.rebuild(self.leaves)
        return found


def flat_call(values: Sequence[Any], names: Sequence[str] = ()) -> FlatCall:
    """Flatten and normalise; `changed` says whether a leaf was replaced. names: the parameters',
    for messages."""
    leaves, tree = flatten(tuple(values))
    _refuse_deques(tree.spec)
    normal: list[Any] = []
    copies: dict[int, np.ndarray[Any, Any]] = {}
    for leaf in leaves:
        if isinstance(leaf, np.ndarray):
            _refuse(leaf, lambda: _leaf_name(tree, len(normal), names))
            normal.append(copies.setdefault(id(leaf), _normal(leaf)))
        else:
            normal.append(leaf)
    changed = any(a is not b for a, b in zip(leaves, normal, strict=True))
    return FlatCall(normal, tree, changed)


def _refuse_deques(spec: Any) -> None:
    """Raise TraceError for a container whose items native code cannot reach."""
    if spec.type is deque:
        raise fail("TM105", "an argument is or holds a deque", hint="pass a list: list(the_deque)")
    for part in spec.children():
        _refuse_deques(part)


def _leaf_name(tree: Tree, index: int, names: Sequence[str]) -> str:
    """Such as ``params['w'][0]``."""
    path = paths(tree)[index]
    first = path[0].key
    name = names[first] if first < len(names) else f"argument {first}"
    return name + "".join(map(repr, path[1:]))


def _refuse(array: np.ndarray[Any, Any], name: Callable[[], str]) -> None:
    """Raise DTypeError, with the argument's name, for an array that cannot be compiled."""
    # Plain arrays first: to name np.ma is to load it.
    if type(array) is not np.ndarray and isinstance(array, np.ma.MaskedArray | np.matrix):
        raise fail(
            "TM210",
            f"{name()} is a {type(array).__name__}, which cannot be compiled",
            hint="pass the plain arrays: for a masked array its data and its mask",
        )
    if dtype_of(array.dtype) is None:
        raise fail(
            "TM210",
            f"{name()} is an array of {_dtype_text(array.dtype)}, which cannot be compiled",
            hint="bool, integers, floats and complex numbers in native byte order can",
        )


def refuse_array_like(leaf: Any, name: str) -> None:
    """Raise DTypeError for an object that holds an array of which nobody can see that it has
    changed: a column of a table, a tensor of another library, a buffer."""
    kind = type(leaf)
    converts = getattr(kind, "__array__", None)
    own = isinstance(converts, FunctionType) and not is_library_file(converts.__code__.co_filename)
    if kind is memoryview or converts is not None and not own and not hasattr(kind, "traced"):
        package = kind.__module__.split(".")[0]
        raise fail(
            "TM210",
            f"{name} is a {kind.__name__} of {package}, which cannot be compiled",
            hint="pass its array (np.asarray(x), of pandas x.to_numpy()), and make of the result "
            "what you need",
        )


def _normal(leaf: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """An exact, aligned ndarray: the array, a view of it, or a copy (copied.py), which may be
    written if the array may."""
    plain = leaf if type(leaf) is np.ndarray else leaf.view(np.ndarray)
    if plain.flags.aligned:
        return plain
    copy = plain.copy()
    copy.flags.writeable = plain.flags.writeable
    return copy


def _dtype_text(dtype: np.dtype[Any]) -> str:
    if dtype.byteorder == ">" or (dtype.byteorder == "<" and not dtype.isnative):
        return f"{dtype} in foreign byte order"
    if dtype.fields:
        return "a structured dtype"
    return str(dtype)
