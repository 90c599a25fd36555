"""The scalar language: what one lane of an elementwise body may say.

A body is an expression graph of `Scalar` nodes over a small closed set of words. Every back
end implements the words once; every elementwise op, transcendental functions included, is
written in them, so all of them fuse, vectorise and run on every target alike.

Two words have regions:

* ``rarely(condition, slow, fast)``: `fast` for all lanes; where any lane has `condition`,
  also `slow`, selected per lane. For range reduction of huge arguments and the like.
* ``loop(init, condition, step)``: carried values per lane, until no lane has `condition`;
  a lane that is done keeps its values.

Invariants: a node's dtype is fixed when it is made; operands of a word have the dtypes its
rule asks for (nothing is converted silently). Complex values exist only as pairs: arithmetic
on them is expanded to words on real parts here. Every word has one meaning for every input:

* integer arithmetic wraps; ``quot``/``rem`` truncate, by zero they give 0, MIN/-1 gives MIN
  and remainder 0; shifts by a negative or too large count give 0 (all sign bits for a
  signed right shift);
* ``lt le eq`` are false and ``ne`` is true when a NaN is compared;
* ``convert`` float to integer truncates; NaN and what does not fit give i32 and i64 their
  minimum, 8 and 16 bits the low bits of the conversion to i32, u32 those of that to i64, u64
  that to i64, its top bit flipped for the value less 2**63 where it is at least that;
* ``fma`` and ``scale`` round once; `scale` by at most 2**250 (f32), 2**2000 (f64) either way;
* f16 and bf16 are only converted (to and from f32; f16 also from f64), bitcast and selected.

Not here: the table of words (words.py), op names, graphs, vectors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..records import dataclass
from ..types import (
    BF16,
    BOOL,
    F16,
    F32,
    F64,
    I32,
    I64,
    DType,
    complex_of,
    real_part_of,
)  # fmt: skip
from .words import WORDS

Number = bool | int | float
HALVES = (F16, BF16)


class Scalar:
    """A node of a body: a word applied to operands, a parameter, a constant or a region result."""

    __slots__ = ("word", "args", "dtype", "attr")

    def __init__(
        self, word: str, args: tuple[Scalar, ...], dtype: DType, attr: object = None
    ) -> None:
        self.word = word
        self.args = args
        self.dtype = dtype
        self.attr = attr

    def __add__(self, other: Operand) -> Scalar:
        return add(self, _like(other, self))

    def __radd__(self, other: Operand) -> Scalar:
        return add(_like(other, self), self)

    def __sub__(self, other: Operand) -> Scalar:
        return sub(self, _like(other, self))

    def __rsub__(self, other: Operand) -> Scalar:
        return sub(_like(other, self), self)

    def __mul__(self, other: Operand) -> Scalar:
        return mul(self, _like(other, self))

    def __rmul__(self, other: Operand) -> Scalar:
        return mul(_like(other, self), self)

    def __truediv__(self, other: Operand) -> Scalar:
        return div(self, _like(other, self))

    def __rtruediv__(self, other: Operand) -> Scalar:
        return div(_like(other, self), self)

    def __neg__(self) -> Scalar:
        return neg(self)

    def __lt__(self, other: Operand) -> Scalar:
        return _apply("lt", self, _like(other, self))

    def __le__(self, other: Operand) -> Scalar:
        return _apply("le", self, _like(other, self))

    def __gt__(self, other: Operand) -> Scalar:
        return _apply("lt", _like(other, self), self)

    def __ge__(self, other: Operand) -> Scalar:
        return _apply("le", _like(other, self), self)

    def equals(self, other: Operand) -> Scalar:
        """a == b as a bool scalar (``==`` itself stays object identity)."""
        return eq(self, _like(other, self))

    def differs(self, other: Operand) -> Scalar:
        """a != b as a bool scalar."""
        return ne(self, _like(other, self))

    def __and__(self, other: Operand) -> Scalar:
        return _apply("and", self, _like(other, self))

    def __or__(self, other: Operand) -> Scalar:
        return _apply("or", self, _like(other, self))

    def __xor__(self, other: Operand) -> Scalar:
        return _apply("xor", self, _like(other, self))

    def __invert__(self) -> Scalar:
        return _apply("not", self)

    def __lshift__(self, other: Operand) -> Scalar:
        return _apply("shl", self, _like(other, self))

    def __rshift__(self, other: Operand) -> Scalar:
        return _apply("shr", self, _like(other, self))

    def __bool__(self) -> bool:
        raise TypeError("a scalar of a body has no truth value; write select(condition, a, b)")

    def __repr__(self) -> str:
        inner = ", ".join(map(repr, self.args))
        attr = "" if self.attr is None else f"{self.attr!r} "
        return f"{self.word}:{self.dtype.name}({attr}{inner})"


Operand = Scalar | bool | int | float


@dataclass(eq=False, slots=True)
class Rarely:
    """The regions of ``rarely``: both tuples have the same dtypes, element by element."""

    condition: Scalar
    slow: tuple[Scalar, ...]
    fast: tuple[Scalar, ...]


@dataclass(eq=False, slots=True)
class Loop:
    """The regions of ``loop``; `carried` are the leaves that stand for the state in them."""

    init: tuple[Scalar, ...]
    carried: tuple[Scalar, ...]
    condition: Scalar
    step: tuple[Scalar, ...]


@dataclass(frozen=True, slots=True)
class ScalarFunction:
    """A body for given dtypes: parameters (words ``param``, attr = position) and results."""

    params: tuple[Scalar, ...]
    results: tuple[Scalar, ...]


def trace_body(body: Callable[..., object], dtypes: Sequence[DType]) -> ScalarFunction:
    """Run `body` on parameter leaves of `dtypes` and collect its result(s)."""
    params = tuple(Scalar("param", (), dtype, i) for i, dtype in enumerate(dtypes))
    made = body(*params)
    results = made if isinstance(made, tuple) else (made,)
    if not all(isinstance(r, Scalar) for r in results):
        raise TypeError("a body returns scalars")
    return ScalarFunction(params, results)


def constant(value: Number | complex, dtype: DType) -> Scalar:
    """A literal of `dtype`; an integer wraps into the type, a complex one becomes a pair."""
    if dtype.is_complex:
        part = real_part_of(dtype)
        number = complex(value)
        return complex_(constant(number.real, part), constant(number.imag, part))
    if dtype.is_float:
        return Scalar("const", (), dtype, float(value))  # type: ignore[arg-type]
    if dtype is BOOL:
        return Scalar("const", (), dtype, bool(value))
    wrapped = int(value) & ((1 << dtype.bits) - 1)  # type: ignore[arg-type]
    if dtype.kind == "i" and wrapped >> (dtype.bits - 1):
        wrapped -= 1 << dtype.bits
    return Scalar("const", (), dtype, wrapped)


def add(a: Scalar, b: Scalar) -> Scalar:
    """a + b; complex by parts."""
    if a.dtype.is_complex:
        return complex_(real(a) + real(b), imag(a) + imag(b))
    return _apply("add", a, b)


def sub(a: Scalar, b: Scalar) -> Scalar:
    """a - b; complex by parts."""
    if a.dtype.is_complex:
        return complex_(real(a) - real(b), imag(a) - imag(b))
    return _apply("sub", a, b)


def mul(a: Scalar, b: Scalar) -> Scalar:
    """a * b; complex by the schoolbook formula, as NumPy."""
    if a.dtype.is_complex:
        return complex_(
            real(a) * real(b) - imag(a) * imag(b), real(a) * imag(b) + imag(a) * real(b)
        )
    return _apply("mul", a, b)


def neg(a: Scalar) -> Scalar:
    """-a; complex by parts."""
    if a.dtype.is_complex:
        return complex_(-real(a), -imag(a))
    return _apply("neg", a)


def fma(a: Scalar, b: Operand, c: Operand) -> Scalar:
    """a * b + c rounded once."""
    return _apply("fma", a, _like(b, a), _like(c, a))


def scale(a: Scalar, exponent: Operand) -> Scalar:
    """a * 2**exponent, rounded once; the exponent is an integral float."""
    return _apply("scale", a, _like(exponent, a))


def _unary(word: str) -> Callable[[Scalar], Scalar]:
    return lambda a: _apply(word, a)


def _binary(word: str) -> Callable[[Scalar, Scalar], Scalar]:
    return lambda a, b: _apply(word, a, b)


# Plain words; what they mean stands in the table.
sqrt = _unary("sqrt")
absolute = _unary("abs")
floor = _unary("floor")
ceil = _unary("ceil")
trunc = _unary("trunc")
rint = _unary("rint")
clz = _unary("clz")
popcount = _unary("popcount")
div = _binary("div")
quot = _binary("quot")
rem = _binary("rem")


def copysign(a: Scalar, b: Operand) -> Scalar:
    """Magnitude of a with the sign of b."""
    return _apply("copysign", a, _like(b, a))


def eq(a: Scalar, b: Scalar) -> Scalar:
    """a == b; complex when both parts are."""
    if a.dtype.is_complex:
        return eq(real(a), real(b)) & eq(imag(a), imag(b))
    return _apply("eq", a, b)


def ne(a: Scalar, b: Scalar) -> Scalar:
    """a != b."""
    if a.dtype.is_complex:
        return ne(real(a), real(b)) | ne(imag(a), imag(b))
    return _apply("ne", a, b)


def is_nan(a: Scalar) -> Scalar:
    """True for a NaN."""
    return ne(a, a)


def mulhi(a: Scalar, b: Operand) -> Scalar:
    """High half of the product of two integers of one type."""
    return _apply("mulhi", a, _like(b, a))


def select(condition: Scalar, a: Operand, b: Operand) -> Scalar:
    """a where `condition` (bool) holds, else b."""
    model = a if isinstance(a, Scalar) else b
    if not isinstance(model, Scalar):
        raise TypeError("select needs at least one typed branch")
    left, right = _like(a, model), _like(b, model)
    if condition.dtype is not BOOL or left.dtype is not right.dtype:
        raise TypeError(f"select of {condition.dtype}, {left.dtype}, {right.dtype}")
    if left.dtype.is_complex:
        return complex_(
            select(condition, real(left), real(right)), select(condition, imag(left), imag(right))
        )
    return Scalar("select", (condition, left, right), left.dtype)


def convert(a: Scalar, dtype: DType) -> Scalar:
    """Numeric conversion as NumPy's astype; to bool it is ``a != 0``."""
    if a.dtype is dtype:
        return a
    if dtype.is_complex:
        part = real_part_of(dtype)
        if a.dtype.is_complex:
            return complex_(convert(real(a), part), convert(imag(a), part))
        return complex_(convert(a, part), constant(0.0, part))
    if a.dtype.is_complex:
        if dtype is BOOL:
            return ne(a, constant(0.0, a.dtype))
        return convert(real(a), dtype)
    if a.dtype in HALVES and (dtype is not F32):
        return convert(Scalar("convert", (a,), F32), dtype)
    if dtype is BOOL:
        return a.differs(0)
    direct = a.dtype is F32 or (a.dtype, dtype) == (F64, F16)
    source = a if dtype not in HALVES or direct else convert(a, F32)
    return Scalar("convert", (source,), dtype)


def bitcast(a: Scalar, dtype: DType) -> Scalar:
    """The same bits read as `dtype` of equal width."""
    if a.dtype.bits != dtype.bits or a.dtype.is_complex or dtype.is_complex:
        raise TypeError(f"bitcast from {a.dtype} to {dtype}")
    return a if a.dtype is dtype else Scalar("bitcast", (a,), dtype)


def lookup(index: Scalar, table: Sequence[Number], dtype: DType) -> Scalar:
    """table[index] for an index known to be in range."""
    if index.dtype not in (I32, I64):
        raise TypeError("lookup needs an i32 or i64 index")
    return Scalar("lookup", (index,), dtype, tuple(table))


def real(a: Scalar) -> Scalar:
    """Real part; a real scalar is its own."""
    if not a.dtype.is_complex:
        return a
    return a.args[0] if a.word == "complex" else Scalar("real", (a,), real_part_of(a.dtype))


def imag(a: Scalar) -> Scalar:
    """Imaginary part; 0 of a real scalar."""
    if not a.dtype.is_complex:
        return constant(0, a.dtype)
    return a.args[1] if a.word == "complex" else Scalar("imag", (a,), real_part_of(a.dtype))


def complex_(re: Scalar, im: Scalar) -> Scalar:
    """The complex scalar re + i*im."""
    if re.dtype not in (F32, F64) or im.dtype is not re.dtype:
        raise TypeError(f"complex of {re.dtype} and {im.dtype}")
    return Scalar("complex", (re, im), complex_of(re.dtype))


def rarely(condition: Scalar, slow: Sequence[Scalar], fast: Sequence[Scalar]) -> tuple[Scalar, ...]:
    """Per lane `slow` where `condition` holds, else `fast`; `slow` costs nothing when unused."""
    if [s.dtype for s in slow] != [f.dtype for f in fast]:
        raise TypeError("rarely: both sides must have the same dtypes")
    region = Rarely(condition, tuple(slow), tuple(fast))
    return tuple(Scalar("result", (), s.dtype, (region, i)) for i, s in enumerate(slow))


def loop(
    init: Sequence[Scalar],
    condition: Callable[..., Scalar],
    step: Callable[..., Sequence[Scalar]],
) -> tuple[Scalar, ...]:
    """Repeat `step` on the carried scalars while `condition` of them holds, lane by lane."""
    carried = tuple(Scalar("carried", (), s.dtype, i) for i, s in enumerate(init))
    following = tuple(step(*carried))
    if [s.dtype for s in following] != [s.dtype for s in init]:
        raise TypeError("loop: step changes the dtypes of the carried scalars")
    region = Loop(tuple(init), carried, condition(*carried), following)
    return tuple(Scalar("result", (), s.dtype, (region, i)) for i, s in enumerate(carried))


def _like(value: Operand, model: Scalar) -> Scalar:
    return value if isinstance(value, Scalar) else constant(value, model.dtype)


_RESTRICTION: dict[str, Callable[[DType], bool]] = {
    "same": lambda d: d.is_integer or d in (F32, F64),
    "float": lambda d: d in (F32, F64),
    "int": lambda d: d.is_integer,
    "bits": lambda d: d.is_integer or d is BOOL,
    "compare": lambda d: d is BOOL or d.is_integer or d in (F32, F64),
}


def _apply(word: str, *args: Scalar) -> Scalar:
    rule = WORDS[word].rule
    dtype = args[0].dtype
    if any(a.dtype is not dtype for a in args) or not _RESTRICTION[rule](dtype):
        raise TypeError(f"{word} of {', '.join(a.dtype.name for a in args)}")
    return Scalar(word, args, BOOL if rule == "compare" else dtype)
