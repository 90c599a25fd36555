"""Element types, tensor types and tokens: what a value of the graph can be.

Invariants: every type is immutable, hashable and equal by content. A shape is a tuple of
dims, each an `int` or a symbolic `Dim`.
Not here: promotion (NumPy decides it, in the frontend), layout in memory (a property of
buffers), devices.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping

import numpy as np

from .dims import Dim, Size, dim_text
from .records import dataclass


@dataclass(frozen=True, slots=True)
class DType:
    """An element type. `kind` is NumPy's letter: b bool, i int, u uint, f float, c complex."""

    name: str
    kind: str
    bits: int
    _numpy: np.dtype[np.generic] | None  # None: bfloat16, which NumPy itself does not have

    @property
    def numpy(self) -> np.dtype[np.generic]:
        """NumPy's name for it."""
        return _bfloat16() if self._numpy is None else self._numpy

    @property
    def itemsize(self) -> int:
        """Bytes of one element in memory (bool takes a whole byte)."""
        return self.numpy.itemsize

    @property
    def is_integer(self) -> bool:
        """True for signed and unsigned integers, not for bool."""
        return self.kind in "iu"

    @property
    def is_float(self) -> bool:
        """True for real floating types."""
        return self.kind == "f"

    @property
    def is_complex(self) -> bool:
        """True for complex types."""
        return self.kind == "c"

    def __repr__(self) -> str:
        return self.name

    def __hash__(self) -> int:
        return hash(self.name)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DType) and self.name == other.name


def _dtype(name: str, kind: str, bits: int, numpy: object) -> DType:
    return DType(name, kind, bits, np.dtype(numpy))  # type: ignore[call-overload]


@functools.cache
def _bfloat16() -> np.dtype[np.generic]:
    """The dtype of the package that defines it, loaded by the first who asks: few programs do."""
    from ml_dtypes import bfloat16

    made: np.dtype[np.generic] = np.dtype(bfloat16)
    return made


BOOL = _dtype("bool", "b", 1, np.bool_)
I8 = _dtype("i8", "i", 8, np.int8)
I16 = _dtype("i16", "i", 16, np.int16)
I32 = _dtype("i32", "i", 32, np.int32)
I64 = _dtype("i64", "i", 64, np.int64)
U8 = _dtype("u8", "u", 8, np.uint8)
U16 = _dtype("u16", "u", 16, np.uint16)
U32 = _dtype("u32", "u", 32, np.uint32)
U64 = _dtype("u64", "u", 64, np.uint64)
F16 = _dtype("f16", "f", 16, np.float16)
BF16 = DType("bf16", "f", 16, None)
F32 = _dtype("f32", "f", 32, np.float32)
F64 = _dtype("f64", "f", 64, np.float64)
C64 = _dtype("c64", "c", 64, np.complex64)
C128 = _dtype("c128", "c", 128, np.complex128)

DTYPES: tuple[DType, ...] = (
    BOOL, I8, I16, I32, I64, U8, U16, U32, U64, F16, BF16, F32, F64, C64, C128,
)  # fmt: skip
_BY_NAME = {dtype.name: dtype for dtype in DTYPES}
_BY_NUMPY = {dtype.numpy: dtype for dtype in DTYPES if dtype is not BF16}


def dtype_named(name: str) -> DType:
    """The element type of the text form, such as ``f32``. Raises KeyError."""
    return _BY_NAME[name]


def dtype_of(numpy_dtype: object) -> DType | None:
    """The element type for a NumPy dtype in native byte order; None when there is none."""
    asked: np.dtype[np.generic] = np.dtype(numpy_dtype)  # type: ignore[call-overload]
    found = _BY_NUMPY.get(asked)
    if found is None and asked.name == "bfloat16" and asked == BF16.numpy:
        return BF16
    return found


def real_part_of(dtype: DType) -> DType:
    """f32 for c64, f64 for c128, the type itself otherwise."""
    return {C64: F32, C128: F64}.get(dtype, dtype)


def complex_of(dtype: DType) -> DType:
    """c64 for f32, c128 for f64."""
    return {F32: C64, F64: C128}[dtype]


# Bits of significance and of exponent of the floating types.
_FLOATS = {"f16": (11, 5), "bf16": (8, 8), "f32": (24, 8), "f64": (53, 11)}


def holds(wide: DType, narrow: DType) -> bool:
    """True where `wide` has every value of `narrow`, exactly."""
    if wide == narrow or narrow.kind == "b":
        return True
    if wide.is_complex:
        return holds(real_part_of(wide), real_part_of(narrow))
    if wide.is_float:
        digits, exponent = _FLOATS[wide.name]
        if narrow.is_float:
            return digits >= _FLOATS[narrow.name][0] and exponent >= _FLOATS[narrow.name][1]
        return narrow.is_integer and digits >= narrow.bits - (narrow.kind == "i")
    if wide.kind == "i":
        return narrow.is_integer and wide.bits >= narrow.bits + (narrow.kind == "u")
    return wide.kind == "u" and narrow.kind == "u" and wide.bits >= narrow.bits


class TensorType:
    """The type of a dense array: element type and shape, ``f32[n, 784]``."""

    __slots__ = ("dtype", "shape", "_hash")

    def __init__(self, dtype: DType, shape: tuple[Size, ...]) -> None:
        self.dtype = dtype
        self.shape = shape
        self._hash = hash((dtype.name, shape))

    @property
    def rank(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def is_static(self) -> bool:
        """True when no dim is symbolic."""
        return all(type(size) is int for size in self.shape)

    def with_dtype(self, dtype: DType) -> TensorType:
        """The same shape with another element type."""
        return TensorType(dtype, self.shape)

    def substitute(self, env: Mapping[str, Size]) -> TensorType:
        """Replace dim symbols by sizes or other expressions."""
        shape = tuple([s.substitute(env) if isinstance(s, Dim) else s for s in self.shape])
        return self if shape == self.shape else TensorType(self.dtype, shape)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return (
            isinstance(other, TensorType)
            and self._hash == other._hash
            and self.dtype.name == other.dtype.name
            and self.shape == other.shape
        )

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return f"{self.dtype.name}[{', '.join(dim_text(s) for s in self.shape)}]"


class TokenType:
    """The type of an effect: carries order, no data."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "token"


TOKEN = TokenType()
Type = TensorType | TokenType
