"""What a loop carries while it is traced: types before the body is known, and after.

A carried Python number takes the type that the body gives it, as in NumPy ``0.0 + x[i]`` is of
x's type: the body sees it as a Python number first, and then, traced again, as an array.

Invariants: the types of the values are those the node carries, once a body fits.
Not here: the nodes (traced.py).
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import field
from typing import Any

import numpy as np

from ..calls.trees import Tree, flatten, paths
from ..compiler.ir.graph import Value
from ..compiler.records import dataclass
from ..compiler.types import TensorType
from ..lifted import read
from ..numpy.operands import value_of, weak_type
from ..tracing.number import TracedNumber
from ..tracing.regions import Handed
from ..tracing.state import Trace, fail, require_dtype
from ..tracing.tensor import TracedArray, fresh, result

KEPT = "what a loop carries keeps its dtype and shape on every trip"


@dataclass(slots=True)
class Carried:
    """What a loop carries: the leaves before it, their tree, and what the body is handed."""

    name: str  # of the function of the user's that is said in errors
    leaves: list[Any]
    tree: Tree
    values: list[Value] = field(default_factory=list)
    kinds: list[str | type] = field(default_factory=list)

    @classmethod
    def of(cls, name: str, initial: Any) -> Carried:
        """The nested value before the loop."""
        leaves, tree = flatten(initial)
        made = cls(name, [read(leaf) for leaf in leaves], tree)
        made.values = [value_of(leaf) for leaf in made.leaves]
        made.kinds = [kind_of(leaf) for leaf in made.leaves]
        return made

    def handed(self) -> list[Handed]:
        """The parameters of a body."""
        names = [path_text(path).strip(".[]'") or "carry" for path in paths(self.tree)]
        return [
            Handed(name, value.tensor, kind)
            for name, value, kind in zip(names, self.values, self.kinds)
        ]

    def fit(self, trace: Trace, inner: Trace, given: Any) -> list[Value] | None:
        """What a trip gives, in the carried types; None where these must change first."""
        leaves, tree = flatten(given)
        need_structure(self.name, self.tree, tree)
        made: list[Value] = []
        changed = False
        for at, (leaf, path) in enumerate(zip(leaves, paths(tree))):
            leaf = read(leaf)
            value = value_of(leaf)
            carried = self.values[at]
            if isinstance(self.kinds[at], type):
                self._settle(trace, at, leaf, value)
                changed = True
                continue
            if value.tensor.dtype != carried.tensor.dtype and is_weak(leaf):
                common = np.result_type(carried.tensor.dtype.numpy, weak_type(leaf))
                if common == carried.tensor.dtype.numpy:
                    value = inner.cast(value, carried.tensor.dtype)
            same = value.tensor.dtype == carried.tensor.dtype
            if not same or not same_shape(trace, carried.tensor, value.tensor):
                raise self._unfit(path_text(path), carried.tensor, value)
            made.append(value)
        return None if changed else made

    def _settle(self, trace: Trace, at: int, leaf: Any, value: Value) -> None:
        """A carried Python number becomes an array of the type the body gives it."""
        dtype = value.tensor.dtype
        number = self.leaves[at]
        if is_weak(leaf):
            common = np.result_type(_strong(number), _strong(leaf))
        else:
            common = np.result_type(dtype.numpy, weak_type(number))
        self.values[at] = trace.cast(self.values[at], require_dtype(common))
        self.kinds[at] = "scalar"

    def _unfit(self, path: str, carried: TensorType, made: Value) -> Exception:
        problem = fail(
            "TM260",
            f"{self.name} carries {path or 'a value'} as {carried}, its body gives {made.tensor}",
            KEPT,
            hint=_hint(carried, made.tensor),
        )
        if made.node is not None and made.node.location is not None:
            problem.place = made.node.location
        return problem

    def wrapped(self, trace: Trace, values: Sequence[Value]) -> Any:
        """The nested value of these carried values."""
        leaves = [traced_result(trace, value, like) for value, like in zip(values, self.leaves)]
        return self.tree.rebuild(leaves)


def kind_of(leaf: Any) -> str | type:
    """How a body sees a carried leaf."""
    if type(leaf) is TracedNumber:
        return leaf.kind
    if type(leaf) in (bool, int, float, complex):
        return type(leaf)
    if is_weak(leaf):
        return int
    return "array" if isinstance(leaf, np.ndarray) else "scalar"


def is_weak(leaf: Any) -> bool:
    """True for Python numbers, known or traced, and sizes."""
    return not isinstance(weak_type(leaf), np.dtype) and not isinstance(leaf, np.generic)


def _strong(leaf: Any) -> Any:
    """The dtype a Python number has on its own."""
    return value_of(leaf).tensor.dtype.numpy


def same_shape(trace: Trace, left: TensorType, right: TensorType) -> bool:
    return left.rank == right.rank and all(
        trace.sizes.equal(a, b, "control flow keeps shapes")
        for a, b in zip(left.shape, right.shape)
    )


def traced_result(trace: Trace, value: Value, like: Any) -> Any:
    is_array = isinstance(like, np.ndarray) or type(like) is TracedArray
    return fresh(trace, value) if is_array else result(trace, value)


def need_structure(name: str, carried: Tree, given: Tree) -> None:
    """Raise TraceError where a trip gives another structure than is carried."""
    if given != carried:
        raise fail(
            "TM260",
            f"the body of {name} gives another structure than it is handed",
            f"{carried.spec} is carried, the body gives {given.spec}",
        )


def own_arrays(trace: Trace | None, operands: Sequence[Any]) -> Sequence[Any]:
    """What a branch is handed: new arrays for arrays, so that it writes to its own; outside of
    traces as in them."""
    leaves, tree = flatten(tuple(operands))
    own = [_own(trace, leaf) for leaf in leaves]
    return operands if all(map(operator.is_, own, leaves)) else tree.rebuild(own)


def _own(trace: Trace | None, leaf: Any) -> Any:
    if type(leaf) is not np.ndarray and type(leaf) is not TracedArray:
        return leaf
    return leaf.copy() if trace is None else fresh(trace, value_of(leaf))


def path_text(path: Any) -> str:
    return "".join(map(repr, path))


def _hint(carried: TensorType, made: TensorType) -> str:
    if carried.dtype != made.dtype:
        return f"give the value before the loop the dtype {made.dtype.numpy}, or convert it inside"
    return "slice or pad it to the shape that is carried"
