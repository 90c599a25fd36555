"""Result types of a node: the one place that asks a signature.

Builder and verifier both come here, so a type is judged by one rule wherever a node comes from.

Invariants: raises nothing but SignatureError.
Not here: places and the user's errors (builder), complaints about graphs (verifier).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..ops.definition import OpDef, SignatureError, Structure
from ..ops.structural import RegionType
from ..types import Type
from .graph import Graph, Value, Variable


def result_types(
    op: OpDef,
    operands: Sequence[Value],
    attrs: Mapping[str, Any],
    variable: Variable | None = None,
    regions: Sequence[Graph] = (),
) -> tuple[Type, ...]:
    """The types of the results. State ops see their variable's type first."""
    types: tuple[Type, ...] = tuple([operand.type for operand in operands])
    if op.structure is Structure.STATE:
        if variable is None:
            raise SignatureError("TM203", "names no variable of the graph")
        types = (variable.type, *types)
    if regions:
        attrs = {**attrs, "regions": tuple(map(region_type, regions))}
    return op.signature(types, attrs)


def region_type(region: Graph) -> RegionType:
    """What a region takes and yields."""
    return RegionType(tuple(p.type for p in region.params), tuple(r.type for r in region.results))
