"""How element types live in LLVM: in registers, in memory, and as vectors of lanes.

Invariants: a `Lane` holds one value per lane of one dtype; `width` 1 is a plain scalar that all
lanes share. bool is i1 in registers and a byte in memory; f16 and bf16 are their 16 bits (i16)
everywhere, so no half-float rule of a target's calling convention or code generator matters;
complex values are two parts in registers and neighbours in memory.
Not here: what words do with lanes (words.py), addresses (memory.py).
"""

from __future__ import annotations

from functools import cache

from llvmlite import ir

from ...compiler.records import dataclass
from ...compiler.types import BF16, BOOL, F16, F32, F64, DType, real_part_of

I1, I8, I16, I32, I64, I128 = (ir.IntType(bits) for bits in (1, 8, 16, 32, 64, 128))
HALF, FLOAT, DOUBLE = ir.HalfType(), ir.FloatType(), ir.DoubleType()
POINTER = ir.PointerType()
VOID = ir.VoidType()

_FLOATS = {F32: FLOAT, F64: DOUBLE, F16: I16, BF16: I16}


@dataclass(frozen=True, slots=True)
class Lane:
    """A value of a kernel: `parts` has one LLVM value, two for complex dtypes."""

    dtype: DType
    parts: tuple[ir.Value, ...]
    width: int = 1

    @property
    def value(self) -> ir.Value:
        """The LLVM value of a dtype that has one part."""
        return self.parts[0]


class Splat(ir.Constant):  # type: ignore[misc]
    """A vector constant with one value in all lanes."""

    def __init__(self, typ: ir.VectorType, element: ir.Constant) -> None:
        self.type = typ
        self.element = element
        self.constant = element

    def _get_reference(self) -> str:
        return f"splat ({self.element})"


class Named(ir.Constant):  # type: ignore[misc]
    """A constant LLVM has a word for: ``poison``, ``zeroinitializer``."""

    def __init__(self, typ: ir.Type, word: str, elements: list[ir.Constant] | None = None) -> None:
        self.type = typ
        self.constant = elements
        self.word = word

    def _get_reference(self) -> str:
        return self.word


@cache
def vector_of(element: ir.Type, width: int) -> ir.Type:
    """`width` lanes of an LLVM type; the type itself for one lane."""
    return element if width == 1 else ir.VectorType(element, width)


def register_element(dtype: DType) -> ir.Type:
    """The LLVM type of one part of one lane in a register."""
    if dtype is BOOL:
        return I1
    if dtype.is_integer:
        return ir.IntType(dtype.bits)
    return _FLOATS[real_part_of(dtype)]


@cache
def register_type(dtype: DType, width: int = 1) -> ir.Type:
    """The LLVM type of one part of `width` lanes in registers."""
    return vector_of(register_element(dtype), width)


@cache
def memory_element(dtype: DType) -> ir.Type:
    """The LLVM type of one part of an element in memory."""
    return I8 if dtype is BOOL else register_element(dtype)


def part_count(dtype: DType) -> int:
    """2 for complex dtypes, else 1."""
    return 2 if dtype.is_complex else 1


def width_of(value: ir.Value) -> int:
    """Lanes of an LLVM value."""
    return value.type.count if isinstance(value.type, ir.VectorType) else 1


def element_of(typ: ir.Type) -> ir.Type:
    """The type of one lane."""
    return typ.element if isinstance(typ, ir.VectorType) else typ


def constant_of(typ: ir.Type, value: object) -> ir.Constant:
    """`value` in every lane of `typ`."""
    if isinstance(typ, ir.VectorType):
        return Splat(typ, ir.Constant(typ.element, value))
    return ir.Constant(typ, value)


def splat(builder: ir.IRBuilder, value: ir.Value, width: int) -> ir.Value:
    """A scalar in all lanes; a vector of that width stays itself."""
    have = width_of(value)
    if have == width:
        return value
    if have != 1:
        raise ValueError(f"{have} lanes cannot become {width}")
    typ = ir.VectorType(value.type, width)
    if isinstance(value, ir.Constant):
        return Splat(typ, value)
    nothing = Named(typ, "poison")
    first = builder.insert_element(nothing, value, ir.Constant(I32, 0))
    zeros = [ir.Constant(I32, 0)] * width
    mask = Named(ir.VectorType(I32, width), "zeroinitializer", zeros)
    return builder.shuffle_vector(first, nothing, mask)


def widen(builder: ir.IRBuilder, lane: Lane, width: int) -> Lane:
    """The lane at `width`; a shared scalar is copied to all lanes."""
    if lane.width == width:
        return lane
    return Lane(lane.dtype, tuple(splat(builder, p, width) for p in lane.parts), width)


def suffix_of(typ: ir.Type) -> str:
    """The ending of an overloaded intrinsic's name: ``v16f32``, ``i64``."""
    if isinstance(typ, ir.VectorType):
        return f"v{typ.count}{suffix_of(typ.element)}"
    if isinstance(typ, ir.IntType):
        return f"i{typ.width}"
    if isinstance(typ, ir.PointerType):
        return "p0"
    return {HALF: "f16", FLOAT: "f32", DOUBLE: "f64"}[typ]


def intrinsic(
    builder: ir.IRBuilder, name: str, result: ir.Type, args: list[ir.Value], *overloads: ir.Type
) -> ir.Value:
    """Call an LLVM intrinsic, declared once in the module. `overloads` end its name."""
    full = ".".join([name, *map(suffix_of, overloads)])
    module = builder.module
    function = module.globals.get(full)
    if function is None:
        function = ir.Function(module, ir.FunctionType(result, [a.type for a in args]), full)
    return builder.call(function, args)


def invert(builder: ir.IRBuilder, value: ir.Value) -> ir.Value:
    """All bits of an integer (lane by lane) turned over."""
    return builder.xor(value, constant_of(value.type, -1))


def any_lane(builder: ir.IRBuilder, mask: ir.Value) -> ir.Value:
    """True (i1) when some lane of a mask is set."""
    width = width_of(mask)
    if width == 1:
        return mask
    bits = builder.bitcast(mask, ir.IntType(width))
    return builder.icmp_unsigned("!=", bits, ir.Constant(bits.type, 0))
