"""Names in C: of the library, of its types and of the parameters of a function.

Invariants: a name is an identifier of C11 and of C++17 and unique among those given out together.
Not here: what a parameter means (`description`).
"""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import Path

from ...compiler.errors import error
from ...compiler.types import DType

C_TYPES = {
    "bool": "bool",
    "i8": "int8_t",
    "i16": "int16_t",
    "i32": "int32_t",
    "i64": "int64_t",
    "u8": "uint8_t",
    "u16": "uint16_t",
    "u32": "uint32_t",
    "u64": "uint64_t",
    "f16": "uint16_t",
    "bf16": "uint16_t",
    "f32": "float",
    "f64": "double",
    "c64": "float",
    "c128": "double",
}
NOTES = {
    "f16": "each the bits of an IEEE half",
    "bf16": "each the bits of a bfloat16",
    "c64": "each a real and an imaginary part",
    "c128": "each a real and an imaginary part",
}
_IDENTIFIER = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_KEYWORDS = frozenset(
    "alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t"
    " class compl const const_cast constexpr continue decltype default delete do double"
    " dynamic_cast else enum explicit export extern false final float for friend goto if inline"
    " int long main mutable namespace new noexcept not not_eq nullptr operator or or_eq override"
    " private protected public register reinterpret_cast restrict return short signed sizeof"
    " static static_assert static_cast struct switch template this thread_local throw true try"
    " typedef typeid typename typeof union unsigned using virtual void volatile wchar_t while xor"
    " xor_eq NULL linux unix size_t int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t"
    " uint64_t".split()
)


def c_type(dtype: DType) -> str:
    """The type of an element, or of each of its two parts."""
    return C_TYPES[dtype.name]


def library_name(path: Path) -> str:
    """``digits`` for ``out/libdigits.so`` and for ``out/libdigits``. Raises ArgError."""
    name = path.name.removesuffix(".so").removeprefix("lib")
    if not _IDENTIFIER.fullmatch(name) or name in _KEYWORDS:
        raise error(
            "TM113",
            f"{name!r} cannot begin the names of C functions",
            hint="call the file lib followed by a C identifier, such as libdigits.so",
        )
    return name


class Names:
    """Gives out the names of one parameter list."""

    def __init__(self, taken: Collection[str] = ()) -> None:
        self._taken = {*taken, *_KEYWORDS}

    def unique(self, wanted: str) -> str:
        """A free identifier as near as can be to what is wanted."""
        base = re.sub(r"[^A-Za-z0-9_]+", "_", wanted).strip("_")
        if not base or base[0].isdigit():
            base = f"x{base}"
        name, number = base, 1
        while name in self._taken:
            number += 1
            name = f"{base}_{number}"
        self._taken.add(name)
        return name
