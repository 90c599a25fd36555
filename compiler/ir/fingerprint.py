"""A stable hash of what a graph computes, for caches.

Equal for graphs that differ in the names of values or of the graph, in locations or in hints.
Names of variables, of sizes and of devices count: a plan binds them.

Invariants: the same on every machine, process and Python version; linear; iterative but for
regions inside regions.
Not here: what else a cache key needs (target, versions).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from .graph import Graph, Node, Value
from .literals import literal_text

# Changes with the encoding, so that old and new hashes never meet.
_VERSION = "1"


def fingerprint(graph: Graph) -> str:
    """64 hexadecimal digits."""
    hasher = hashlib.sha256(_VERSION.encode())
    for variable in sorted(graph.variables.values(), key=lambda v: v.name):
        hasher.update(f"var {variable.name} {variable.type} {variable.device}\n".encode())
    _Encoder(hasher).graph(graph)
    return hasher.hexdigest()


class _Encoder:
    def __init__(self, hasher: Any) -> None:
        self._hasher = hasher
        self._types: dict[Any, str] = {}

    def graph(self, graph: Graph) -> None:
        numbers: dict[Value, int] = {}
        for param in graph.params:
            numbers[param] = len(numbers)
            self._line("param", self._type(param))
        for node in graph.nodes:
            self._node(node, numbers)
            for result in node.results:
                numbers[result] = len(numbers)
        self._line("return", *[numbers[result] for result in graph.results])

    def _node(self, node: Node, numbers: Mapping[Value, int]) -> None:
        self._line(
            node.op.name,
            *[numbers[value] for value in node.operands],
            "after",
            *sorted([numbers[value] for value in node.after]),
            "at",
            node.variable,
            node.device,
            *map(self._type, node.results),
        )
        for key, value in node.attrs.items():
            if isinstance(value, np.ndarray):
                self._line(key, value.dtype.name, value.shape)
                self._hasher.update(value.tobytes())
            else:
                self._line(key, literal_text(value))
        for region in node.regions:
            self._line("region")
            self.graph(region)

    def _type(self, value: Value) -> str:
        found = self._types.get(value.type)
        if found is None:
            found = self._types[value.type] = str(value.type)
        return found

    def _line(self, *words: object) -> None:
        self._hasher.update(" ".join([str(word) for word in words]).encode() + b"\n")
