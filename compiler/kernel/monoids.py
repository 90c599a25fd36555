"""Monoids, and the one definition of what a reduction's value is, for every target.

Elements e[0..n) of a reduction fold like this (`fold` is the definition, in a few lines):

* blocks: e is cut into blocks of 4,096 elements, the last may be shorter;
* few: a block of fewer than 8 elements folds from its first to its last, as NumPy does;
* lanes: in any other block, lane l of 64 folds elements l, l + 64, l + 128, ... from the first to
  the last; a lane without elements takes no part;
* tree over lanes: lane l takes in lane l + 32, then l + 16, 8, 4, 2, 1, absent lanes skipped;
* tree over blocks: neighbours combine pairwise; the tree of k blocks is the tree of the first p
  (p the largest power of two below k) combined with the tree of the rest. A stack of partial
  results, merged like the carries of a binary counter, computes it while streaming.

The left operand of `combine` is always the one that came first. Every monoid's neutral value n
is exact, ``combine(n, x)`` and ``combine(x, n)`` are x bit for bit, so absent lanes may hold it.
Integer monoids may be folded in any order. A column reduction is the same definition with 64
accumulators per column, row r going to accumulator r % 64: rows stream.

Invariants: records are immutable; combine is written in the scalar language, once.
Not here: which axes are reduced, loops (lowering), vectors (back ends).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import field
from functools import cache, reduce
from typing import Any

from ..ops.scalar import Scalar, add, convert, eq, imag, is_nan, mul, real, select
from ..ops.stepping import STEPS, step_of
from ..records import dataclass
from ..types import BF16, BOOL, F16, F32, I64, DType

LANES = 64
BLOCK = 4096
FEW = 8  # elements from which on a block has lanes
State = tuple[Scalar, ...]


@dataclass(frozen=True, slots=True)
class Monoid:
    """One way to fold. A state is `arity` scalars; several states may ride in one loop.

    accumulate: the dtype a reduction folds a value of the given dtype in (f16 and bf16 in f32).
    neutral: the state that changes nothing, per dtype of the folded value.
    combine: two states to one, the earlier first.
    empty: the result of no elements; None where that is an error the graph has ruled out.
    lift: the operand's element (converted to the accumulation dtype) is the state's first part;
    an indexed monoid's second part is the element's index.
    ops: the ops that fold with this monoid.
    of_values: of an indexed monoid, the one that folds the values alone.
    absorbing: the value that one element with it gives the whole; None where there is none.
    starts: whether a fold begins with its first element, as there is no neutral value: `neutral`
    is then just some state.
    step: the elementwise op that `combine` is, where it is one.
    """

    name: str
    arity: int
    accumulate: Callable[[DType], DType]
    neutral: Callable[[DType], tuple[Any, ...]]
    combine: Callable[[State, State], State]
    empty: Callable[[DType], tuple[Any, ...]] | None
    ops: tuple[str, ...] = field(default=())
    absorbing: bool | None = None
    of_values: str | None = None
    starts: bool = False
    step: str | None = None

    @property
    def indexed(self) -> bool:
        """True when a state carries the position of its value."""
        return self.arity == 2


def widened(dtype: DType) -> DType:
    """The dtype in which values of `dtype` are folded."""
    return F32 if dtype in (F16, BF16) else dtype


def lowest(dtype: DType) -> Any:
    """The least value of a dtype."""
    if dtype.is_complex:
        return complex(float("-inf"), float("-inf"))
    if dtype.is_float:
        return float("-inf")
    if dtype is BOOL:
        return False
    return -(1 << (dtype.bits - 1)) if dtype.kind == "i" else 0


def highest(dtype: DType) -> Any:
    """The greatest value of a dtype."""
    if dtype.is_complex:
        return complex(float("inf"), float("inf"))
    if dtype.is_float:
        return float("inf")
    if dtype is BOOL:
        return True
    return (1 << (dtype.bits - 1)) - 1 if dtype.kind == "i" else (1 << dtype.bits) - 1


def negative_zero(dtype: DType) -> Any:
    """The exact neutral value of addition: -0.0, for x + -0.0 is x even for x = -0.0."""
    if dtype.is_complex:
        return complex(-0.0, -0.0)
    return -0.0 if dtype.is_float else 0


def nan_of(a: Scalar) -> Scalar:
    """True for a NaN, or a complex number with one; never for integers."""
    if a.dtype.is_complex:
        return is_nan(real(a)) | is_nan(imag(a))
    return is_nan(a)


def before(a: Scalar, b: Scalar) -> Scalar:
    """a < b; complex in dictionary order, as NumPy sorts them."""
    if a.dtype.is_complex:
        return (real(a) < real(b)) | (eq(real(a), real(b)) & (imag(a) < imag(b)))
    if a.dtype is BOOL:
        return ~a & b
    return a < b


def _kept(a: Scalar, worse: Scalar) -> Scalar:
    """The earlier value stays unless the later beats it; the first NaN stays always."""
    has_nan = a.dtype.is_float or a.dtype.is_complex
    return (~worse) | nan_of(a) if has_nan else ~worse


def _beats(challenger: Scalar, holder: Scalar, least: bool) -> Scalar:
    wins = before(challenger, holder) if least else before(holder, challenger)
    if challenger.dtype.is_float or challenger.dtype.is_complex:
        return wins | nan_of(challenger)
    return wins


def _extreme(least: bool) -> Callable[[State, State], State]:
    def combine(a: State, b: State) -> State:
        x, y = a[0], b[0]
        if not x.dtype.is_float:
            return (select(_kept(x, _beats(y, x, least)), x, y),)
        # As processors have it: one instruction, and one comparison for a NaN that comes later.
        better = select((y < x) if least else (x < y), y, x)
        return (select(is_nan(y), y, better),)

    return combine


def _arg_extreme(least: bool) -> Callable[[State, State], State]:
    def combine(a: State, b: State) -> State:
        (x, i), (y, k) = a, b
        later_wins = ~_kept(x, _beats(y, x, least))
        tie = same(x, y) & (k < i)
        take = later_wins | tie
        return select(take, y, x), select(take, k, i)

    return combine


def same(a: Scalar, b: Scalar) -> Scalar:
    """Equal, or both NaN."""
    equal = eq(a, b) if a.dtype is not BOOL else ~(a ^ b)
    if a.dtype.is_float or a.dtype.is_complex:
        return equal | (nan_of(a) & nan_of(b))
    return equal


def _rounded(word: Callable[[Scalar, Scalar], Scalar]) -> Callable[[State, State], State]:
    """A word as `combine`; of halves, which scans and an `Update` in their own memory fold as
    they are, rounded each time."""

    def combine(a: State, b: State) -> State:
        x, y = a[0], b[0]
        if x.dtype in (F16, BF16):
            return (convert(word(convert(x, F32), convert(y, F32)), x.dtype),)
        return (word(x, y),)

    return combine


_NOWHERE = (1 << 63) - 1
_one = lambda dtype: (1,)

SUM = Monoid(
    "sum", 1, widened, lambda d: (negative_zero(d),), _rounded(add),
    lambda d: (0,), ("sum", "cumsum", "scatter_add"),
)  # fmt: skip
PROD = Monoid("prod", 1, widened, _one, _rounded(mul), _one, ("prod", "cumprod"))
MIN = Monoid("min", 1, widened, lambda d: (highest(d),), _extreme(True), None, ("min",))
MAX = Monoid("max", 1, widened, lambda d: (lowest(d),), _extreme(False), None, ("max",))
ANY = Monoid(
    "any", 1, lambda d: BOOL, lambda d: (False,), lambda a, b: (a[0] | b[0],),
    lambda d: (False,), ("any",), True,
)  # fmt: skip
ALL = Monoid(
    "all", 1, lambda d: BOOL, lambda d: (True,), lambda a, b: (a[0] & b[0],),
    lambda d: (True,), ("all",), False,
)  # fmt: skip
ARGMIN = Monoid(
    "argmin",
    2,
    widened,
    lambda d: (highest(d), _NOWHERE),
    _arg_extreme(True),
    None,
    ("argmin",),
    of_values="min",
)
ARGMAX = Monoid(
    "argmax",
    2,
    widened,
    lambda d: (lowest(d), _NOWHERE),
    _arg_extreme(False),
    None,
    ("argmax",),
    of_values="max",
)

MONOIDS: dict[str, Monoid] = {m.name: m for m in (SUM, PROD, MIN, MAX, ANY, ALL, ARGMIN, ARGMAX)}
_BY_OP = {op: monoid for monoid in MONOIDS.values() for op in monoid.ops}


def named(name: str) -> Monoid:
    """What folds under that name: a monoid, or an elementwise op, step by step. Raises KeyError."""
    return MONOIDS.get(name) or _stepping(name)


def is_named(name: str) -> bool:
    """Whether something folds under that name."""
    return name in MONOIDS or name in STEPS


@cache
def _stepping(step: str) -> Monoid:
    body = STEPS[step].scalar
    assert body is not None

    def combine(a: State, b: State) -> State:
        own, wide = a[0].dtype, b[0].dtype
        count, _ = step_of(step, wide)
        return (convert(body(*(convert(a[0], wide), b[0])[:count]), own),)

    return Monoid(
        step, 1, lambda d: d, lambda d: (0,), combine, None, starts=True, step=step
    )  # fmt: skip


def monoid_of(op_name: str, step: str | None = None) -> Monoid:
    """What a reduction or scan op folds with. Raises KeyError for another op."""
    return _BY_OP[op_name] if step is None else named(step)


def combining(op_name: str, step: str | None) -> Monoid | None:
    """What a scatter op writes with; None where the last writer wins."""
    return _BY_OP.get(op_name) if step is None else named(step)


def state_dtypes(monoid: Monoid, dtype: DType) -> tuple[DType, ...]:
    """The dtypes of a state that folds values of `dtype`."""
    folded = monoid.accumulate(dtype)
    return (folded, I64) if monoid.indexed else (folded,)


def lift(monoid: Monoid, value: Scalar) -> Scalar:
    """The value in the dtype it is folded in."""
    return convert(value, monoid.accumulate(value.dtype))


def fold(combine: Callable[[Any, Any], Any], elements: Sequence[Any]) -> Any:
    """The value of a reduction over at least one element: the definition above."""
    blocks = (elements[at : at + BLOCK] for at in range(0, len(elements), BLOCK))
    return tree(combine, (_block(combine, block) for block in blocks))


def tree(combine: Callable[[Any, Any], Any], elements: Iterable[Any]) -> Any:
    """The balanced tree over blocks, with a stack that works like a binary counter."""
    stack: list[Any] = []
    for count, element in enumerate(elements):
        while count & 1:
            element = combine(stack.pop(), element)
            count >>= 1
        stack.append(element)
    result = stack.pop()
    while stack:
        result = combine(stack.pop(), result)
    return result


def _block(combine: Callable[[Any, Any], Any], block: Sequence[Any]) -> Any:
    if len(block) < FEW:
        return reduce(combine, block)
    lanes = list(block[:LANES])
    for at in range(LANES, len(block)):
        lanes[at % LANES] = combine(lanes[at % LANES], block[at])
    width = LANES // 2
    while width:
        for lane in range(max(0, min(width, len(lanes) - width))):
            lanes[lane] = combine(lanes[lane], lanes[lane + width])
        del lanes[width:]
        width //= 2
    return lanes[0]
