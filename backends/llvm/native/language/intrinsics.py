"""Names native code uses for what Python cannot say: casts, addresses, atomics, bytes, the
processor.

They are declarations: the type checker reads their signatures, the translator recognises the
function objects and emits code (`lowering`). Called from Python they raise, so a mistake is loud.

Invariants: every name here has exactly one emitter in `lowering.EMITTERS`; a test compares the two.
Not here: process functions; those are fields of the control block.
"""

from __future__ import annotations

from typing import NoReturn, TypeVar

from .types import Element, Ptr, f64, i64

Result = TypeVar("Result")


def _native_only() -> NoReturn:
    raise NotImplementedError("this exists only in translated code")


def null(kind: type[Result]) -> Result:
    """The null pointer of a pointer type."""
    _native_only()


def is_null(pointer: object) -> bool:
    """Whether a pointer is null."""
    _native_only()


def cast(kind: type[Result], pointer: object) -> Result:
    """The same address seen as another pointer type."""
    _native_only()


def address(pointer: object) -> i64:
    """A pointer as an integer."""
    _native_only()


def pointer(kind: type[Result], value: i64) -> Result:
    """An integer as a pointer."""
    _native_only()


def offset(pointer: object, count: i64) -> object:
    """The address this many bytes further."""
    _native_only()


def at(first: Result, index: i64) -> Result:
    """The structure so many structures after the first of a row of them."""
    _native_only()


def ref(place: Element) -> Ptr[Element]:
    """The address of a field or an element."""
    _native_only()


def sizeof(kind: type[object]) -> i64:
    """Bytes of a structure, a constant."""
    _native_only()


def stack(kind: type[Result], count: i64) -> Ptr[Result]:
    """A constant number of values in the function's frame, not initialised."""
    _native_only()


def local(kind: type[Result]) -> Result:
    """One structure in the function's frame, not initialised."""
    _native_only()


def function(target: Result) -> Result:
    """A translated function as a value: a function pointer."""
    _native_only()


def load_acquire(place: Ptr[Element]) -> Element:
    """Atomic load; later accesses stay after it."""
    _native_only()


def store_release(place: Ptr[Element], value: Element) -> None:
    """Atomic store; earlier accesses stay before it."""
    _native_only()


def fetch_add(place: Ptr[Element], value: Element) -> Element:
    """Atomic addition, sequentially consistent; gives the value before."""
    _native_only()


def exchange(place: Ptr[Element], value: Element) -> Element:
    """Atomic swap, sequentially consistent; gives the value before."""
    _native_only()


def compare_exchange(place: Ptr[Element], expected: Element, desired: Element) -> bool:
    """Atomic store of `desired` if `expected` is there; whether it was."""
    _native_only()


def fence() -> None:
    """Full memory barrier."""
    _native_only()


def pause() -> None:
    """Tell the processor that this is a waiting loop."""
    _native_only()


def thread_pointer() -> i64:
    """A number that differs for all threads alive."""
    _native_only()


def copy_bytes(target: object, source: object, count: i64) -> None:
    """Copy bytes between places that do not overlap."""
    _native_only()


def clear_bytes(target: object, count: i64) -> None:
    """Set bytes to zero."""
    _native_only()


def bits_of(value: f64) -> i64:
    """The bits of a float as an integer."""
    _native_only()


def float_of(bits: i64) -> f64:
    """The float with these bits."""
    _native_only()
