"""Replacing dim symbols in nodes that are not finished yet.

Invariants: changes nodes in place, which only the builder that still owns them may ask for.
Not here: deciding which symbols are equal (the trace).
"""

from __future__ import annotations

from collections.abc import Mapping

from ..dims import Size
from ..types import TensorType
from .attrs import has_dims, substitute_value
from .graph import Node


def substitute_node(node: Node, env: Mapping[str, Size]) -> None:
    """Replace symbols in the result types, attributes and regions of `node`."""
    pending = [node]
    replaced = dict(env)
    while pending:
        current = pending.pop()
        for result in current.results:
            if isinstance(result.type, TensorType):
                result.type = result.type.substitute(replaced)
        if current.attrs and has_dims(current.attrs):
            current.attrs = {k: substitute_value(v, replaced) for k, v in current.attrs.items()}
        current.verified = False
        for region in current.regions:
            for param in region.params:
                if isinstance(param.type, TensorType):
                    param.type = param.type.substitute(replaced)
            pending.extend(region.nodes)
