"""Text to graph, unjudged: the parser goes round the builder so that wrong graphs can be written.

For tests and the developer's command line. A node's location is its line of the text. Text
behind ``//`` is a comment.

Invariants: types are as written; a value nobody defines is one without a node; what cannot be
read at all raises `GraphError` with the line.
Not here: words and values (scanner.py), whether the graph is well-formed (verifier.py).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..errors import error
from ..ops import ALL
from ..ops.creation import constant
from ..ops.definition import OpDef, Structure
from ..types import BOOL, F32, DType, TensorType, Type
from .attrs import freeze
from .graph import Graph, Location, Node, Value, Variable
from .literals import array_from_literal
from .names import Names
from .scanner import Scanner

_VALUE = re.compile(r"%([A-Za-z_][\w.]*)")
_MARKS = re.compile(r'"(?:[^"\\]|\\.)*"|[()\[\]]|//(?=\s|$)')


def parse_graph(text: str, ops: Mapping[str, OpDef] = ALL) -> Graph:
    """The graph that `text` spells. Raises GraphError."""
    return _Parser(text, ops).file()


class _Scope:
    """The names seen in a graph or region, and its literals."""

    def __init__(self, outer: _Scope | None = None) -> None:
        self.values: dict[str, Value] = {}
        self.defined: set[str] = set()
        self.nodes: list[Node] = []
        self.literals: dict[tuple[str, bytes, str | None], Value] = {}
        self.outer = outer

    def use(self, name: str) -> Value:
        """The value of that name, which may be defined later or never."""
        found = self.values.get(name)
        if found is None:
            found = self.values[name] = Value(name, TensorType(F32, ()))
        return found

    def define(self, name: str, type: Type) -> Value:
        """A value of that name; one used before it is defined is filled in."""
        if name in self.defined:
            return Value(name, type)
        self.defined.add(name)
        found = self.use(name)
        found.type = type
        return found


class _Parser:
    def __init__(self, text: str, ops: Mapping[str, OpDef]) -> None:
        lines = text.split("\n")
        self._lines = [Scanner(_uncommented(line), i + 1) for i, line in enumerate(lines)]
        self._lines = [line for line in self._lines if not line.done()]
        self._at = 0
        self._ops = ops
        self._names = Names()
        for line in self._lines:
            for name in _VALUE.findall(line.line):
                self._names.claim(name)
        self._graph = ""

    def file(self) -> Graph:
        variables: dict[str, Variable] = {}
        while (line := self._line()).accept("var "):
            name = line.name("@")
            line.expect(":")
            type = line.type()
            if not isinstance(type, TensorType):
                raise line.fail("an array's type")
            variables[name] = Variable(name, type, line.device())
            self._end(line)
        graph = self._header(line, variables)
        if self._at != len(self._lines):
            raise self._lines[self._at].fail("the end")
        return graph

    def _header(self, line: Scanner, variables: Mapping[str, Variable]) -> Graph:
        line.expect("graph ")
        self._graph = line.name("@")
        line.expect("(")
        scope = _Scope()
        params = self._params(line, scope)
        line.expect("->")
        self._results_header(line)
        self._end(line)
        results = self._body(scope, "return")
        self._line_end("}")
        return Graph(self._graph, params, tuple(scope.nodes), results, dict(variables))

    def _params(self, line: Scanner, scope: _Scope) -> tuple[Value, ...]:
        """What stands behind an opening parenthesis."""
        params: list[Value] = []
        while not line.accept(")"):
            if params:
                line.expect(",")
            name = line.name("%")
            line.expect(":")
            params.append(scope.define(name, line.type()))
        return tuple(params)

    def _results_header(self, line: Scanner) -> None:
        """Types after the arrow; the results' own types say the same."""
        if not line.accept("()"):
            line.type()
            while line.accept(","):
                line.type()
        line.expect("{")

    def _body(self, scope: _Scope, end: str) -> tuple[Value, ...]:
        while True:
            line = self._line()
            if line.accept(end):
                break
            self._node(line, scope)
        names = [] if line.done() else [line.name("%")]
        while line.accept(","):
            names.append(line.name("%"))
        self._end(line)
        return tuple(scope.use(name) for name in names)

    def _node(self, line: Scanner, scope: _Scope) -> None:
        names = [line.name("%")]
        while line.accept(","):
            names.append(line.name("%"))
        line.expect("=")
        word = line.name()
        op = self._ops.get(word)
        if op is None:
            raise error("TM240", f"line {line.number}: there is no op named {word!r}")
        variable, written = self._operands(line)
        attrs = self._attrs(line)
        line.expect(":")
        types = [line.type()]
        while line.accept(","):
            types.append(line.type())
        if len(types) != len(names):
            raise line.fail(f"{len(names)} types")
        device = line.device()
        after = self._after(line, scope)
        place = Location("text", line.number, self._graph)
        operands = self._values(written, scope, types, device, place, line)
        if op is constant and "value" in attrs:
            attrs["value"] = self._array(attrs["value"], types[0], line)
        regions = self._regions(line, op, operands, scope)
        self._end(line)
        node = Node(op, operands, freeze(attrs), place, device, after, variable, tuple(regions))
        node.results = tuple(scope.define(n, t) for n, t in zip(names, types))
        for index, result in enumerate(node.results):
            result.node, result.index = node, index
        scope.nodes.append(node)

    def _operands(self, line: Scanner) -> tuple[str | None, list[Any]]:
        """The variable, and operands: names as text, literals as (value, dtype or None)."""
        variable: str | None = None
        written: list[Any] = []
        while not line.peek("{") and not line.peek(":"):
            if written or variable is not None:
                line.expect(",")
            if line.peek("@"):
                variable = line.name("@")
            elif line.peek("%"):
                written.append(line.name("%"))
            else:
                value = line.value()
                typed = line.line.startswith(":", line.at) and line.line[line.at + 1 : line.at + 2]
                dtype = None
                if typed and typed != " ":
                    line.expect(":")
                    dtype = line.value()
                written.append((value, dtype))
        return variable, written

    def _attrs(self, line: Scanner) -> dict[str, Any]:
        attrs: dict[str, Any] = {}
        if not line.accept("{"):
            return attrs
        while not line.accept("}"):
            if attrs:
                line.expect(",")
            key = line.name()
            line.expect("=")
            attrs[key] = line.value()
        return attrs

    def _after(self, line: Scanner, scope: _Scope) -> tuple[Value, ...]:
        if not line.accept("after "):
            return ()
        found = [scope.use(line.name("%"))]
        while line.accept(","):
            found.append(scope.use(line.name("%")))
        return tuple(found)

    def _values(
        self,
        written: Sequence[Any],
        scope: _Scope,
        types: Sequence[Type],
        device: str | None,
        place: Location,
        line: Scanner,
    ) -> tuple[Value, ...]:
        named = [scope.use(w) for w in written if isinstance(w, str)]
        arrays = [v.type for v in named if isinstance(v.type, TensorType)]
        like = arrays[-1].dtype if arrays else None
        found: list[Value] = []
        for w in written:
            if isinstance(w, str):
                found.append(scope.use(w))
                continue
            dtype = w[1] or (BOOL if isinstance(w[0], bool) else like)
            if not isinstance(dtype, DType):
                raise line.fail("a literal with a type, such as 1.0:f32")
            array = self._array(w[0], TensorType(dtype, ()), line)
            found.append(self._literal(array, scope, device, place))
        return tuple(found)

    def _literal(
        self, array: np.ndarray[Any, Any], scope: _Scope, device: str | None, place: Location
    ) -> Value:
        key = (array.dtype.name, array.tobytes(), device)
        found = scope.literals.get(key)
        if found is None:
            node = Node(constant, (), {"value": array}, place, device)
            type = constant.signature((), node.attrs)[0]
            found = Value(self._names.claim("constant"), type, node, 0)
            node.results = (found,)
            scope.nodes.append(node)
            scope.literals[key] = found
        return found

    def _array(self, value: Any, type: Type, line: Scanner) -> np.ndarray[Any, Any]:
        if not isinstance(type, TensorType) or not type.is_static:
            raise line.fail("an array type without symbols for a constant")
        try:
            shape = tuple(size for size in type.shape if isinstance(size, int))
            return array_from_literal(value, type.dtype, shape)
        except (ValueError, TypeError, OverflowError) as problem:
            raise line.fail(f"a literal that fits {type}") from problem

    def _regions(
        self, line: Scanner, op: OpDef, operands: Sequence[Value], scope: _Scope
    ) -> list[Graph]:
        regions: list[Graph] = []
        while line.peek("{") or line.peek("("):
            inner = _Scope(scope)
            if op.structure is Structure.FLOW:
                line.expect("(")
                params = self._params(line, inner)
            else:
                params = tuple(inner.define(v.name, v.type) for v in operands)
            line.expect("{")
            self._end(line)
            yielded = self._body(inner, "yield")
            regions.append(Graph("region", params, tuple(inner.nodes), yielded))
            line = self._line()
            line.expect("}")
        return regions

    def _line(self) -> Scanner:
        if self._at == len(self._lines):
            raise error("TM301", "the text ends inside a graph")
        self._at += 1
        return self._lines[self._at - 1]

    def _line_end(self, word: str) -> None:
        line = self._line()
        line.expect(word)
        self._end(line)

    def _end(self, line: Scanner) -> None:
        if not line.done():
            raise line.fail("the end of the line")


def _uncommented(line: str) -> str:
    """The line without its comment. A string may hold the comment's mark, and so may brackets:
    there it divides sizes."""
    depth = 0
    for found in _MARKS.finditer(line):
        mark = found.group()
        if mark in "([":
            depth += 1
        elif mark in ")]":
            depth -= 1
        elif mark == "//" and not depth:
            return line[: found.start()].rstrip()
    return line
