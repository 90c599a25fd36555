"""The types of the native language, as values for the translator and as names for annotations.

A native function is a Python function whose annotations are made of these names. For the type
checker `i64` is `int` and a structure is a class, so mypy checks native code as the Python it also
is; for the translator the same names are the records below. `Task` as a type is a pointer to a
structure Task; `Ptr[T]` points to an array of T; `Raw` is an address of unknown contents;
`Callable` is a function pointer.

Invariants: types are values, compared by value (named tuples, because a warm start makes these
classes and dataclasses take five times as long); structures follow C layout rules for the 64-bit
ABI.
Not here: reading annotations (`reader`) and LLVM's types (`lowering`); LLVM is not imported.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, NamedTuple, TypeAlias, TypeVar

Element = TypeVar("Element")


class Int(NamedTuple):
    """An integer of fixed width. Called, it wraps a Python integer as the machine would."""

    name: str
    bits: int
    signed: bool

    def __call__(self, value: int) -> int:
        wrapped = int(value) & ((1 << self.bits) - 1)
        if self.signed and wrapped >> (self.bits - 1):
            return wrapped - (1 << self.bits)
        return wrapped

    def __str__(self) -> str:
        return self.name


class Float(NamedTuple):
    """IEEE binary64."""

    name: str = "f64"

    def __call__(self, value: float) -> float:
        return float(value)

    def __str__(self) -> str:
        return self.name


class Bool(NamedTuple):
    """Truth, the only type of conditions."""

    name: str = "bool"

    def __str__(self) -> str:
        return self.name


class Void(NamedTuple):
    """The result of a function that returns nothing."""

    name: str = "None"

    def __str__(self) -> str:
        return self.name


class RawPointer(NamedTuple):
    """An address of unknown contents: any pointer becomes one, `cast` turns it back."""

    name: str = "Raw"

    def __str__(self) -> str:
        return self.name


class Pointer(NamedTuple):
    """The address of consecutive values of one type."""

    target: Type
    form: str = "Ptr"  # tells records of equal contents apart

    def __str__(self) -> str:
        return f"Ptr[{self.target}]"


class Reference(NamedTuple):
    """The address of one structure."""

    struct: type[Struct]
    form: str = "Reference"

    def __str__(self) -> str:
        return self.struct.__name__


class FunctionPointer(NamedTuple):
    """The address of a function with this signature."""

    parameters: tuple[Type, ...]
    result: Type

    def __str__(self) -> str:
        return f"Callable[[{', '.join(map(str, self.parameters))}], {self.result}]"


class InlineArray(NamedTuple):
    """Values held inside a structure; reading the field gives the address of the first."""

    element: Type
    length: int

    def __str__(self) -> str:
        return f"Annotated[Ptr[{self.element}], {self.length}]"


Type: TypeAlias = (
    Int | Float | Bool | Void | RawPointer | Pointer | Reference | FunctionPointer | InlineArray
)
POINTERS = (RawPointer, Pointer, Reference, FunctionPointer)


class Struct:
    """Base of structures: fields are the annotations, in order."""


class Ptr(Generic[Element]):
    """A pointer to values of one type; in native code it indexes and moves like C's."""

    def __getitem__(self, index: int) -> Element:
        raise NotImplementedError("pointers exist only in translated code")

    def __setitem__(self, index: int, value: Element) -> None:
        raise NotImplementedError("pointers exist only in translated code")

    def __add__(self, count: int) -> Ptr[Element]:
        raise NotImplementedError("pointers exist only in translated code")


I8 = Int("i8", 8, True)
U8 = Int("u8", 8, False)
I16 = Int("i16", 16, True)
I32 = Int("i32", 32, True)
U32 = Int("u32", 32, False)
I64 = Int("i64", 64, True)
U64 = Int("u64", 64, False)
F64 = Float()
BOOL = Bool()
VOID = Void()
RAW = RawPointer()

if TYPE_CHECKING:
    i8: TypeAlias = int
    u8: TypeAlias = int
    i16: TypeAlias = int
    i32: TypeAlias = int
    u32: TypeAlias = int
    i64: TypeAlias = int
    u64: TypeAlias = int
    f64: TypeAlias = float
    Raw: TypeAlias = object
else:
    i8, u8, i16, i32, u32, i64, u64, f64 = I8, U8, I16, I32, U32, I64, U64, F64
    Raw = RAW


def size_of(kind: Type) -> int:
    """Bytes one value of this type takes in memory."""
    if isinstance(kind, Int):
        return kind.bits // 8
    if isinstance(kind, Bool):
        return 1
    if isinstance(kind, InlineArray):
        return size_of(kind.element) * kind.length
    if isinstance(kind, Void):
        raise ValueError("a value of no type has no size")
    return 8


def alignment_of(kind: Type) -> int:
    """The alignment the C ABI gives a value of this type."""
    return size_of(kind.element) if isinstance(kind, InlineArray) else size_of(kind)
