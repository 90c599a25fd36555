"""Replacing dim symbols in a graph that is not finished yet.

Invariants: changes nodes in place, which only the builder that still owns them may ask for.
What does not mention a replaced symbol is not looked at: a trace that makes n sizes one, as for
a list of n weight arrays, does work in proportion to n.
Not here: deciding which symbols are equal (the trace).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..dims import Dim, Size, symbols_of
from ..types import TensorType
from .attrs import has_dims, substitute_value
from .graph import Node, Value

Holder = Node | Value  # what mentions a symbol: a node, or a parameter of the graph


class Mentions:
    """Which nodes and parameters of a builder mention which symbol.

    The graph is looked through when a symbol is first replaced, and from then on only what is
    new: a trace that replaces none pays nothing.
    """

    def __init__(self) -> None:
        self._seen = (0, 0)
        self._changed: list[Node] = []
        self._holders: dict[str, dict[Holder, None]] = {}

    def changed(self, node: Node) -> None:
        """A node that was seen may mention more symbols now."""
        self._changed.append(node)

    def substitute(
        self, params: Sequence[Value], nodes: Sequence[Node], env: Mapping[str, Size]
    ) -> None:
        """Replace symbols in all that mentions them; both sequences only grow between calls."""
        self._look(params, nodes)
        holders: dict[Holder, None] = {}
        for symbol in env:
            holders.update(self._holders.pop(symbol, {}))
        for holder in holders:
            if isinstance(holder, Node):
                _substitute_node(holder, env)
            else:
                holder.type = holder.tensor.substitute(env)
        for name in {name for size in env.values() for name in symbols_of((size,))}:
            self._holders.setdefault(name, {}).update(holders)

    def _look(self, params: Sequence[Value], nodes: Sequence[Node]) -> None:
        known_params, known_nodes = self._seen
        for param in params[known_params:]:
            self._note(param, _symbols_of_values((param,)))
        for node in (*nodes[known_nodes:], *self._changed):
            self._note(node, _symbols_of_node(node))
        self._seen = len(params), len(nodes)
        self._changed.clear()

    def _note(self, holder: Holder, symbols: Iterator[str]) -> None:
        for symbol in symbols:
            self._holders.setdefault(symbol, {})[holder] = None


def _substitute_node(node: Node, env: Mapping[str, Size]) -> None:
    """Replace symbols in the result types, attributes and regions of `node`."""
    pending = [node]
    while pending:
        current = pending.pop()
        _substitute_values(current.results, env)
        if current.attrs and has_dims(current.attrs):
            current.attrs = {k: substitute_value(v, env) for k, v in current.attrs.items()}
        current.verified = False
        for region in current.regions:
            _substitute_values(region.params, env)
            pending.extend(region.nodes)


def _substitute_values(values: Sequence[Value], env: Mapping[str, Size]) -> None:
    for value in values:
        if isinstance(value.type, TensorType):
            value.type = value.type.substitute(env)


def _symbols_of_node(node: Node) -> Iterator[str]:
    pending = [node]
    while pending:
        current = pending.pop()
        yield from _symbols_of_values(current.results)
        for attr in current.attrs.values():
            yield from _symbols_of_attr(attr)
        for region in current.regions:
            yield from _symbols_of_values(region.params)
            pending.extend(region.nodes)


def _symbols_of_values(values: Sequence[Value]) -> Iterator[str]:
    for value in values:
        if isinstance(value.type, TensorType):
            yield from symbols_of(value.type.shape)


def _symbols_of_attr(attr: Any) -> Iterator[str]:
    if isinstance(attr, Dim):
        yield from attr.symbols()
    elif isinstance(attr, tuple):
        for item in attr:
            yield from _symbols_of_attr(item)
