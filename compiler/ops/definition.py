"""What an op is: one record that says everything about it.

Invariants: records are immutable; an op knows types and, through the `Emitter` protocol, how to
write other ops for its gradient, but never a graph, a pass or a back end.
Not here: the records themselves (one file per family), the list of all (`ops/__init__.py`).
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any, Protocol

from ..dims import Size
from ..records import dataclass
from ..types import Type

Attrs = Mapping[str, Any]
# Judges operands and attributes, returns the result types; raises SignatureError.
Signature = Callable[[Sequence[Type], Attrs], tuple[Type, ...]]


class SignatureError(Exception):
    """Operands or attributes an op does not take. `code` is the stable error code.

    The builder turns it into the user's error, with place and op; `summary` is one sentence of
    what was got and expected, `detail` and `hint` are optional further lines. `sizes` are the
    two sizes that should have been equal (or the second 1, in a broadcast): where one of them
    is symbolic, the trace may decide that they are equal, and try again.
    """

    def __init__(
        self,
        code: str,
        summary: str,
        detail: str = "",
        hint: str = "",
        sizes: tuple[Size, Size] | None = None,
    ) -> None:
        super().__init__(summary)
        self.sizes = sizes
        self.code = code
        self.summary = summary
        self.detail = detail
        self.hint = hint


class Structure(enum.Enum):
    """The shape of an op's computation: what fusion, lowering and placement ask about."""

    ELEMENTWISE = "elementwise"  # one scalar body applied to broadcast operands
    REDUCTION = "reduction"  # folds axes with a monoid
    SCAN = "scan"  # prefixes along an axis
    MOVEMENT = "movement"  # every result element is one operand element or a fill
    GATHER = "gather"  # the same, at indices that are values
    SCATTER = "scatter"  # writes at indices that are values
    SORT = "sort"  # rows in order
    CONTRACTION = "contraction"  # sums of products
    CREATION = "creation"  # no tensor operands
    RANDOM = "random"  # counter-based draws
    STATE = "state"  # touches a variable
    EFFECT = "effect"  # something seen outside, ordered by tokens
    CONTROL = "control"  # has a region that becomes one kernel
    FLOW = "flow"  # has regions that run by choice or again and again
    TRANSFER = "transfer"  # moves a value between devices or processes
    LIBRARY = "library"  # an external kernel


@dataclass(frozen=True, slots=True)
class Facts:
    """What passes may rely on; a fact not stated does not hold."""

    commutative: bool = False
    associative: bool = False  # exactly, not up to rounding
    idempotent: bool = False  # f(f(x)) is f(x) for one operand, f(x, x) is x for two
    identity: Any = None  # a value e with f(x, e) is x, bit for bit
    identity_kinds: str = "biufc"  # dtype kinds for which `identity` is exact
    involution: bool = False  # f(f(x)) is x
    monotone: bool = False
    can_fail: bool = False  # yields a check token: bounds, domain
    # The result is the operand, or what the first region makes of the operands; only transforms
    # tell them apart.
    transparent: bool = False
    differentiable: bool = True  # False: the gradient is zero or undefined everywhere


class Emitter(Protocol):
    """What rules write with: one method per op, named as the op; `emit` for an op's record."""

    def emit(self, op: Any, operands: Sequence[Any], attrs: Attrs) -> Any: ...
    def __getattr__(self, op: str) -> Callable[..., Any]: ...


# rule(emit, node, cotangents), one cotangent per result -> cotangent or None per operand. A
# cotangent is a value of the graph; None stands for zero, and is what there is for tokens and for
# results that nobody used. Rules of elementwise ops are written as if shapes were equal; the
# transform undoes broadcasting.
Gradient = Callable[..., Sequence[Any]]

# rule(emit, node, tangents), one tangent or None (for zero) per operand -> the same per result.
# `node` has what a node has: op, operands, attrs, results, location. Rules of elementwise ops may
# answer with less than the shape of the result; the transform repeats it.
Tangent = Callable[..., Sequence[Any]]

# rule(emit, node, operands, lanes) -> one `Each` per result: see batching.py. Asked where lanes
# differ in an operand, or where the op can fail and not all lanes are active.
Batching = Callable[..., Sequence[Any]]

# rule(emit, operands, attrs) -> a value (or one per result) that means the same in the op's one
# canonical form, or None where the node already is in it. The builder asks, types are judged.
Canonical = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Routine:
    """A routine of a library that ships with NumPy, called as NumPy calls it: the inner loop of a
    generalized ufunc, which does one problem after the other.

    module, ufunc: where NumPy has it, below `numpy`. takes, gives: the names of the core axes of
    each operand and result, its last ones; the axes before them count problems. fails: whether it
    can, which it says by the floating-point flag for invalid operations. writes: whether it
    changes its first operand, a copy of which then is the first result.
    """

    module: str
    ufunc: str
    takes: tuple[tuple[str, ...], ...]
    gives: tuple[tuple[str, ...], ...]
    fails: bool = False
    writes: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class OpDef:
    """One op. `reference` and `scalar` are two independent statements of one meaning.

    name: the name in the text form, the builder method and the user function.
    signature: judges operands, gives result types.
    reference: NumPy arrays and attributes in, NumPy array (or tuple of them) out; the oracle.
    doc: one paragraph for the user's documentation.
    structure: how it computes.
    scalar: the body in the scalar language, for elementwise ops (takes `Scalar`s).
    gradient: reverse rule, None where the op has none.
    tangent: forward rule, None where the op has none.
    batching: the same for many lanes at once, None for ops that are never mapped over.
    canonical: rewrites other spellings of one meaning as nodes are made.
    ufunc: name of the NumPy ufunc that users call for it, where there is one.
    routine: what computes it, for library ops.
    step: the elementwise op that a scan folds by, where that has no monoid.
    failure: the code of what goes wrong in nodes without an attribute `code`.
    """

    name: str
    signature: Signature
    reference: Callable[..., Any]
    doc: str
    structure: Structure = Structure.ELEMENTWISE
    scalar: Callable[..., Any] | None = None
    gradient: Gradient | None = None
    tangent: Tangent | None = None
    batching: Batching | None = None
    canonical: Canonical | None = None
    facts: Facts = field(default_factory=Facts)
    ufunc: str | None = None
    routine: Routine | None = None
    step: str | None = None
    failure: str = "TM230"

    def __repr__(self) -> str:
        return f"<op {self.name}>"


def collect(*families: Sequence[OpDef]) -> Mapping[str, OpDef]:
    """One table of all records. Raises ValueError when two share a name."""
    table: dict[str, OpDef] = {}
    for family in families:
        for op in family:
            if op.name in table:
                raise ValueError(f"two ops are named {op.name}")
            table[op.name] = op
    return table
