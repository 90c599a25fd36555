"""Control flow for users: `cond`, `switch`, `while_loop`, `fori_loop`, `scan`, `map`.

    y = tm.cond(x.sum() > 0, np.sqrt, np.square, x)
    y = tm.switch(kind, [np.sin, np.cos, np.tanh], x)
    x, n = tm.while_loop(lambda c: np.abs(c[0]) > 1e-9, lambda c: (c[0] / 2, c[1] + 1), (x, 0))
    x = tm.fori_loop(0, 100, lambda i, x: 0.5 * (x + a / x), a)
    carry, ys = tm.scan(lambda h, x: (np.tanh(h @ w + x), h), h, xs)
    norms = tm.map(np.linalg.norm, matrices)

Inside a compiled function they are nodes of the graph: the trips run in machine code, how many
there are is no reason to compile again, and any nested dict, list, tuple or dataclass of arrays
and numbers can be carried. Outside, and under `disable_jit`, they are the plain Python loops
they stand for.

Invariants: what a loop carries keeps its dtype and shape on every trip, compiled or not. A body
gets arrays of its own: writing to them never writes to what was passed in.
Not here: the graph (traced.py).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..calls.trees import Tree, flatten, paths
from ..tracing.state import current, fail
from ..variable import Variable
from .carried import KEPT, need_structure, own_arrays, path_text
from .traced import (
    traced_cond,
    traced_fori,
    traced_place,
    traced_scan,
    traced_while,
    user_function,
)


def cond(
    predicate: Any,
    if_true: Callable[..., Any],
    if_false: Callable[..., Any],
    *operands: Any,
) -> Any:
    """``if_true(*operands)`` where the predicate is true, else ``if_false(*operands)``.

    Only the branch that is taken runs. Both must give the same structure, dtypes and shapes (a
    Python number takes the other's dtype). The branches may use values around them.
    """
    trace = current()
    if trace is None or _is_known(predicate):
        branch = if_true if _one_bool(predicate, "cond") else if_false
        return branch(*own_arrays(trace, operands))
    return traced_cond(trace, predicate, (if_true, if_false), operands)


def switch(index: Any, branches: Sequence[Callable[..., Any]], *operands: Any) -> Any:
    """``branches[index](*operands)``: an index below zero counts from the end, and one that leaves
    the list is an IndexError.

    Only the branch that is taken runs. What they give is as in `cond`.
    """
    functions = list(branches)
    if not functions:
        raise fail("TM260", "switch needs a branch to take")
    trace = current()
    if trace is None or type(index) in (int, np.int64):
        return functions[_one_integer(index)](*own_arrays(trace, operands))
    return _between(traced_place(trace, index, len(functions)), 0, functions)(*operands)


def _between(place: Any, first: int, functions: Sequence[Callable[..., Any]]) -> Callable[..., Any]:
    """The function at a place, halves chosen by `cond`. first: the place of the first one."""
    if len(functions) == 1:
        return functions[0]
    middle = len(functions) // 2
    left = _between(place, first, functions[:middle])
    right = _between(place, first + middle, functions[middle:])
    return lambda *operands: cond(place < first + middle, left, right, *operands)


def while_loop(test: Callable[..., Any], body: Callable[..., Any], initial: Any) -> Any:
    """``while test(carry): carry = body(carry)``, from `initial`; the last carry."""
    trace = current()
    if trace is not None:
        return traced_while(trace, test, body, initial)
    carry = _Carry("while_loop", initial)
    while _one_bool(test(carry.value), "while_loop"):
        carry.advance(body(carry.value))
    return carry.final()


def fori_loop(lower: Any, upper: Any, body: Callable[..., Any], initial: Any) -> Any:
    """``for i in range(lower, upper): carry = body(i, carry)``, from `initial`; the last carry.

    The bounds may be known only at run time. `i` is a Python integer to the body.
    """
    trace = current()
    if trace is not None:
        return traced_fori(trace, lower, upper, body, initial)
    for bound in (lower, upper):
        if np.ndim(bound) or np.asarray(bound).dtype.kind not in "iu":
            raise fail("TM260", f"the bounds of fori_loop are integers, got {bound!r:.60}")
    carry = _Carry("fori_loop", initial)
    for i in range(int(lower), int(upper)):
        carry.advance(body(i, carry.value))
    return carry.final()


def scan(
    body: Callable[..., Any],
    initial: Any,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
) -> tuple[Any, Any]:
    """Go over the rows of `xs`, carrying a value: ``carry, y = body(carry, x)`` for each.

    Gives the last carry and all y, stacked. xs: an array or a nest of them, of equal first sizes;
    or None, with a `length`. reverse: from the last row to the first; y keeps the places.
    """
    trace = current()
    if trace is not None:
        return traced_scan(trace, body, initial, xs, length, reverse)
    stacks, tree = flatten(xs)
    arrays = [np.asarray(stack) for stack in stacks]
    count = _count(arrays, length)
    carry = _Carry("scan", initial)
    rows: list[tuple[list[Any], Tree]] = [([], tree)] * count
    for at in reversed(range(count)) if reverse else range(count):
        given = body(carry.value, tree.rebuild([np.array(array[at])[()] for array in arrays]))
        if not isinstance(given, tuple) or len(given) != 2:
            raise fail("TM260", f"the body of scan gives a pair (carry, y), got {given!r:.60}")
        carry.advance(given[0])
        rows[at] = flatten(given[1])
    if not count:
        return carry.final(), _empty(body, carry, tree, arrays)
    stacked = [np.stack(column) for column in zip(*[leaves for leaves, _ in rows], strict=True)]
    return carry.final(), rows[0][1].rebuild(stacked)


def map(function: Callable[..., Any], xs: Any) -> Any:
    """``function(x)`` for each row of `xs`, one after another, and what it gives, stacked.

    xs: an array or a nest of them, of equal first sizes. `vmap` does all rows together, which is
    faster where they fit in memory.
    """
    trace = current()
    each = function if trace is None else user_function(function)
    return scan(lambda carry, row: (carry, each(row)), (), xs)[1]


def _empty(body: Callable[..., Any], carry: _Carry, tree: Tree, arrays: list[Any]) -> Any:
    """What no rows stack up to: the body says what one would give, seen on zeros."""
    like = tree.rebuild([np.zeros(array.shape[1:], array.dtype)[()] for array in arrays])
    leaves, made = flatten(body(carry.value, like)[1])
    return made.rebuild([np.empty((0, *np.shape(y)), np.asarray(y).dtype) for y in leaves])


class _Carry:
    """What a plain loop carries, checked after each trip."""

    def __init__(self, name: str, initial: Any) -> None:
        self._name = name
        leaves, self._tree = flatten(initial)
        self._leaves = [
            np.array(leaf) if isinstance(leaf, np.ndarray | Variable) else leaf for leaf in leaves
        ]

    @property
    def value(self) -> Any:
        """The nested value for the next trip."""
        return self._tree.rebuild(self._leaves)

    def advance(self, given: Any) -> None:
        """Take what a trip gave. Raises TraceError where a dtype or shape changed."""
        leaves, tree = flatten(given)
        need_structure(self._name, self._tree, tree)
        self._leaves = [
            self._next(at, old, new) for at, (old, new) in enumerate(zip(self._leaves, leaves))
        ]

    def _next(self, at: int, old: Any, new: Any) -> Any:
        before, after = np.asarray(old), np.asarray(new)
        if _is_number(old):
            dtype = np.result_type(old, new) if after.ndim == 0 else after.dtype
        else:
            dtype = np.result_type(before.dtype, new) if _is_number(new) else after.dtype
        if after.shape != before.shape or (dtype != before.dtype and not _is_number(old)):
            path = path_text(paths(self._tree)[at])
            raise fail(
                "TM260",
                f"{self._name} carries {path or 'a value'} as {before.dtype}{list(before.shape)}, "
                f"its body gives {after.dtype}{list(after.shape)}",
                KEPT,
            )
        if _is_number(old) and _is_number(new):
            return new
        return after.astype(dtype)[()] if isinstance(new, np.generic) or after.ndim == 0 else new

    def final(self) -> Any:
        """The nested value, Python numbers as NumPy's."""
        return self._tree.rebuild(
            [np.asarray(leaf)[()] if _is_number(leaf) else leaf for leaf in self._leaves]
        )


def _is_number(leaf: Any) -> bool:
    return type(leaf) in (bool, int, float, complex)


def _is_known(predicate: Any) -> bool:
    """True for a bool that is there, not the stand-in of one."""
    return type(predicate) in (bool, np.bool_)


def _one_bool(predicate: Any, what: str) -> bool:
    if np.ndim(predicate):
        raise fail(
            "TM260",
            f"the condition of {what} is one bool, got an array of shape {np.shape(predicate)}",
            hint="reduce it with .any() or .all()",
        )
    return bool(predicate)


def _one_integer(index: Any) -> int:
    if np.ndim(index) or np.asarray(index).dtype.kind not in "iu":
        raise fail("TM260", f"the index of switch is one integer, got {index!r:.60}")
    return operator.index(index[()] if isinstance(index, np.ndarray) else index)


def _count(arrays: list[Any], length: int | None) -> int:
    sizes = [] if length is None else [int(length)]
    for array in arrays:
        if not array.ndim:
            raise fail("TM260", f"scan goes over the first axis of arrays, got {array!r:.60}")
        sizes.append(array.shape[0])
    if not sizes:
        raise fail("TM260", "scan needs arrays to go over, or a length")
    if min(sizes) < 0 or min(sizes) != max(sizes):
        raise fail("TM260", f"scan goes over {min(sizes)} and {max(sizes)} rows together")
    return sizes[0]
