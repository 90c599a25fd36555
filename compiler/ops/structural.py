"""Fused regions.

A region is a graph whose parameters stand, in order, for the node's operands. The signature of
an op with regions finds their types in the attribute `regions`, one `RegionType` each, which is
there only while types are judged.

Invariants: a region reads nothing but its parameters.
Not here: which nodes are fused (passes), loops and branches (flow.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..records import dataclass
from ..types import TensorType, Type
from .definition import Attrs, OpDef, SignatureError, Structure


@dataclass(frozen=True, slots=True)
class RegionType:
    """What a region takes and yields."""

    params: tuple[Type, ...]
    results: tuple[Type, ...]


def _fused_type(operands: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
    if attrs.keys() != {"regions"} or len(attrs["regions"]) != 1:
        raise SignatureError("TM203", "takes one region and no attributes")
    (region,) = attrs["regions"]
    if region.params != tuple(operands):
        raise SignatureError(
            "TM203", f"has a region for {list(region.params)}, got operands {list(operands)}"
        )
    if not all(isinstance(t, TensorType) for t in operands):
        raise SignatureError("TM201", "needs arrays as operands, got a token")
    results: tuple[Type, ...] = region.results
    return results


def _fused(*arrays: Any, regions: Sequence[Any]) -> Any:
    return regions[0](*arrays)


fused = OpDef(
    name="fused",
    signature=_fused_type,
    reference=_fused,
    structure=Structure.CONTROL,
    doc="The nodes of the region as one kernel.",
)

STRUCTURAL: tuple[OpDef, ...] = (fused,)
