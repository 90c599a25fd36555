"""The table of words: the closed vocabulary of the scalar language.

A new word costs a line here, one in scalar_reference.py and one in each back end.
Not here: how bodies are written with them (scalar.py), what they do (scalar_reference.py).
"""

from __future__ import annotations

from ..records import dataclass


@dataclass(frozen=True, slots=True)
class Word:
    """One word of the language: its name, operand count, type rule and meaning in a line."""

    name: str
    arity: int
    rule: str
    doc: str


# Rules: `same`: all operands alike, result alike; `float`, `int`, `bits`: the same, restricted;
# `compare`: operands alike, result bool; the others are spelled out at their constructors.
WORDS: dict[str, Word] = {
    word.name: word
    for word in (
        Word("add", 2, "same", "a + b"),
        Word("sub", 2, "same", "a - b"),
        Word("mul", 2, "same", "a * b"),
        Word("div", 2, "float", "a / b, correctly rounded"),
        Word("quot", 2, "int", "a / b truncated towards zero"),
        Word("rem", 2, "int", "a - b * quot(a, b)"),
        Word("neg", 1, "same", "-a, sign bit flipped for floats"),
        Word("fma", 3, "float", "a * b + c, rounded once"),
        Word("scale", 2, "float", "a * 2**b for an integral b, rounded once"),
        Word("sqrt", 1, "float", "square root, correctly rounded"),
        Word("abs", 1, "same", "magnitude; the minimum of a signed type stays itself"),
        Word("copysign", 2, "float", "magnitude of a, sign of b"),
        Word("floor", 1, "float", "round down"),
        Word("ceil", 1, "float", "round up"),
        Word("trunc", 1, "float", "round towards zero"),
        Word("rint", 1, "float", "round to nearest, ties to even"),
        Word("lt", 2, "compare", "a < b"),
        Word("le", 2, "compare", "a <= b"),
        Word("eq", 2, "compare", "a == b"),
        Word("ne", 2, "compare", "a != b"),
        Word("and", 2, "bits", "bitwise and"),
        Word("or", 2, "bits", "bitwise or"),
        Word("xor", 2, "bits", "bitwise exclusive or"),
        Word("not", 1, "bits", "bitwise complement"),
        Word("shl", 2, "int", "a << b"),
        Word("shr", 2, "int", "a >> b, arithmetic for signed types"),
        Word("clz", 1, "int", "leading zero bits; the width for zero"),
        Word("popcount", 1, "int", "number of one bits"),
        Word("mulhi", 2, "int", "high half of the double-width product"),
        Word("select", 3, "select", "b where the bool a holds, else c"),
        Word("convert", 1, "convert", "numeric conversion to the dtype"),
        Word("bitcast", 1, "bitcast", "the same bits as another dtype of that width"),
        Word("lookup", 1, "lookup", "element of a constant table at an in-range i32/i64 index"),
        Word("real", 1, "part", "real part of a complex leaf"),
        Word("imag", 1, "part", "imaginary part of a complex leaf"),
        Word("complex", 2, "complex", "a complex value of two parts"),
    )
}
