"""The words of the text form, and the values they spell.

Invariants: a scanner reads one line; it raises `GraphError` with the line's number.
Not here: nodes, names, regions (parser.py).
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from typing import Any

from ..dims import Size, parse_dim
from ..errors import TracemillError, error
from ..types import DTYPES, TOKEN, DType, TensorType, Type, dtype_named

_SPACE = re.compile(r"\s*")
_NAME = re.compile(r"[A-Za-z_][\w.]*")
_LITERAL = re.compile(
    r"(?P<float>-?(?:\d+\.\d*(?:e[-+]?\d+)?|\d+e[-+]?\d+|inf\b)|nan\b)"
    r"|(?P<bool>(?:true|false)\b)"
    r'|(?P<bytes>bytes"[^"]*")'
    r'|(?P<string>"(?:[^"\\]|\\.)*")'
    r"|(?P<complex>complex\()"
)
_DEVICE = re.compile(r"[\w:*./]+")
_DTYPES = frozenset(dtype.name for dtype in DTYPES)


class Scanner:
    """Reads words from the left of one line."""

    def __init__(self, line: str, number: int) -> None:
        self.line = line
        self.number = number
        self.at = 0

    def fail(self, expected: str) -> TracemillError:
        """The error that says what was expected here."""
        return error(
            "TM301", f"line {self.number}: expected {expected}, got {self.line[self.at :]!r}"
        )

    def skip(self) -> None:
        """Go to the next word."""
        found = _SPACE.match(self.line, self.at)
        self.at = found.end() if found else self.at

    def done(self) -> bool:
        """True at the end of the line."""
        self.skip()
        return self.at == len(self.line)

    def peek(self, word: str) -> bool:
        """True where `word` comes next."""
        self.skip()
        return self.line.startswith(word, self.at)

    def accept(self, word: str) -> bool:
        """Read `word` if it comes next."""
        if self.peek(word):
            self.at += len(word)
            return True
        return False

    def expect(self, word: str) -> None:
        """Read `word`."""
        if not self.accept(word):
            raise self.fail(repr(word))

    def match(self, pattern: re.Pattern[str], what: str) -> str:
        """Read what `pattern` matches."""
        self.skip()
        found = pattern.match(self.line, self.at)
        if not found:
            raise self.fail(what)
        self.at = found.end()
        return found.group()

    def name(self, mark: str = "") -> str:
        """A name behind its mark, ``%`` or ``@``."""
        self.expect(mark)
        return self.match(_NAME, f"a name after {mark!r}" if mark else "a name")

    def device(self) -> str | None:
        """``on cpu:0``, where it is there."""
        return self.match(_DEVICE, "a device") if self.accept("on ") else None

    def type(self) -> Type:
        """A tensor type or ``token``."""
        word = self.name()
        if word == "token":
            return TOKEN
        if word not in _DTYPES:
            raise self.fail(f"a type instead of {word!r}")
        self.expect("[")
        shape: list[Size] = []
        while not self.accept("]"):
            if shape:
                self.expect(",")
            shape.append(self.size())
        return TensorType(dtype_named(word), tuple(shape))

    def size(self) -> Size:
        """A size, up to the comma or bracket that ends it."""
        self.skip()
        depth, start = 0, self.at
        while self.at < len(self.line):
            mark = self.line[self.at]
            if depth == 0 and mark in ",]{}:":
                break
            depth += (mark == "(") - (mark == ")")
            if depth < 0:
                break
            self.at += 1
        text = self.line[start : self.at].strip()
        try:
            return parse_dim(text)
        except ValueError as problem:
            self.at = start
            raise self.fail("a size") from problem

    def value(self) -> Any:
        """An attribute value or literal: a number, text, dtype, size or list."""
        self.skip()
        if self.accept("["):
            items: list[Any] = []
            while not self.accept("]"):
                if items:
                    self.expect(",")
                items.append(self.value())
            return tuple(items)
        found = _LITERAL.match(self.line, self.at)
        if found:
            self.at = found.end()
            return self._literal(found.lastgroup or "", found.group())
        dtype = self._dtype()
        return self.size() if dtype is None else dtype

    def _literal(self, kind: str, text: str) -> Any:
        if kind == "float":
            return float(text)
        if kind == "bool":
            return text == "true"
        if kind == "string":
            return json.loads(text)
        if kind == "bytes":
            try:
                return base64.b64decode(text[6:-1], validate=True)
            except binascii.Error as problem:
                raise self.fail("base 64") from problem
        real = self.value()
        self.expect(",")
        imag = self.value()
        self.expect(")")
        return complex(real, imag)

    def _dtype(self) -> DType | None:
        found = _NAME.match(self.line, self.at)
        if found and found.group() in _DTYPES:
            self.at = found.end()
            return dtype_named(found.group())
        return None
