"""The canonical text of a graph: one node a line, stable names, no ids.

Rank 0 constants print where they are used: as ``0.5`` if that has the dtype of the last value
among the operands, else as ``0.5:f32``; a bool is ``true`` or ``false`` anywhere. A fused region
names the operands of its node; a region of control flow says what it takes, and its names are its
own.

Invariants: equal graphs print equal; the parser reads the text back to a graph that prints the
same.
Not here: attribute values (literals.py), complaints (the verifier hands them in as notes).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..ops.creation import constant
from ..ops.definition import Structure
from ..types import BOOL, DType, TensorType
from .graph import Graph, Node, Value
from .literals import array_text, is_plain, literal_text


def print_graph(
    graph: Graph,
    *,
    locations: bool = False,
    notes: Mapping[Node | None, Sequence[str]] | None = None,
) -> str:
    """The text of `graph` with its variables.

    locations: each line ends with the user's line. notes: comments to put on the lines of nodes
    (None: on the first line).
    """
    return "\n".join(_Printer(locations, notes or {}).file(graph)) + "\n"


class _Printer:
    def __init__(self, locations: bool, notes: Mapping[Node | None, Sequence[str]]) -> None:
        self._locations = locations
        self._notes = notes

    def file(self, graph: Graph) -> Iterator[str]:
        for variable in graph.variables.values():
            yield f"var @{variable.name}: {variable.type}{_device(variable.device)}"
        if graph.variables:
            yield ""
        params = _params(graph)
        results = ", ".join(str(r.type) for r in graph.results) or "()"
        yield f"graph @{graph.name}({params}) -> {results} {{{self._comment(None)}"
        yield from self._body(graph, {}, "  ")
        names = ", ".join(f"%{r.name}" for r in graph.results)
        yield f"  return {names}".rstrip()
        yield "}"

    def _body(self, graph: Graph, names: Mapping[Value, str], indent: str) -> Iterator[str]:
        inline = inline_constants(graph)
        for node in graph.nodes:
            if node.results and node.results[0] in inline:
                continue
            head = indent + self._node(node, inline, names)
            if not node.regions:
                yield head + self._comment(node)
                continue
            for place, region in enumerate(node.regions):
                start = head if place == 0 else f"{indent}}}"
                inner: dict[Value, str] = {}
                if node.op.structure is Structure.FLOW:
                    start += f" ({_params(region)})"
                else:
                    inner = {p: names.get(o, o.name) for p, o in zip(region.params, node.operands)}
                yield f"{start} {{{self._comment(node) if place == 0 else ''}"
                yield from self._body(region, inner, indent + "  ")
                yielded = ", ".join(f"%{inner.get(r, r.name)}" for r in region.results)
                yield f"{indent}  yield {yielded}".rstrip()
            yield indent + "}"

    def _node(self, node: Node, inline: set[Value], names: Mapping[Value, str]) -> str:
        like = _literal_dtype(node.operands, inline)
        pieces = [f"@{node.variable}"] if node.variable is not None else []
        pieces += [_operand(v, inline, names, like) for v in node.operands]
        text = ", ".join(f"%{r.name}" for r in node.results) + f" = {node.op.name}"
        if pieces:
            text += " " + ", ".join(pieces)
        if node.attrs:
            text += f" {{{', '.join(f'{k}={literal_text(v)}' for k, v in node.attrs.items())}}}"
        text += f" : {', '.join(str(r.type) for r in node.results)}{_device(node.device)}"
        if node.after:
            text += f" after {', '.join(f'%{names.get(v, v.name)}' for v in node.after)}"
        return text

    def _comment(self, node: Node | None) -> str:
        notes = list(self._notes.get(node, ()))
        if self._locations and node is not None and node.location is not None:
            notes.insert(0, repr(node.location))
        return f"  // {'; '.join(notes)}" if notes else ""


def _params(graph: Graph) -> str:
    return ", ".join(f"%{p.name}: {p.type}" for p in graph.params)


def inline_constants(graph: Graph) -> set[Value]:
    """The rank 0 constants that print at their uses, all of them on the constant's device."""
    found = {node.results[0] for node in graph.nodes if node.op is constant and _can_inline(node)}
    if not found:
        return found
    used: set[Value] = set()
    for node in graph.nodes:
        for value in node.operands:
            if value in found:
                home = value.node.device if value.node else None
                if node.op.structure is Structure.CONTROL or node.device != home:
                    found.discard(value)
                used.add(value)
        found.difference_update(node.after)
    return (found & used).difference(graph.results)


def _can_inline(node: Node) -> bool:
    array: Any = node.attrs.get("value")
    return (
        len(node.results) == 1
        and getattr(array, "ndim", 1) == 0
        and not node.after
        and isinstance(node.results[0].type, TensorType)
        and node.results[0].type.dtype.numpy == array.dtype
        and is_plain(array)
    )


def _literal_dtype(operands: Sequence[Value], inline: set[Value]) -> DType | None:
    """The dtype of a literal without a type: that of the last operand that is not a literal."""
    for value in reversed(operands):
        if value not in inline and isinstance(value.type, TensorType):
            return value.type.dtype
    return None


def _operand(
    value: Value, inline: set[Value], names: Mapping[Value, str], like: DType | None
) -> str:
    if value not in inline or value.node is None:
        return f"%{names.get(value, value.name)}"
    text = array_text(value.node.attrs["value"])
    dtype = value.tensor.dtype
    return text if dtype in (like, BOOL) else f"{text}:{dtype.name}"


def _device(device: str | None) -> str:
    return "" if device is None else f" on {device}"
