"""Functions that transforms treat as one: computed again for their gradient, or with a derivative
that the user wrote. A run is that of the first region.

    recompute x...           y... = region(x...)
    custom_vjp x..., u...    and dx... = region(x..., dy..., u...)
    custom_jvp x..., u...    and y..., dy... = region(x..., dx..., u...)

x are the first `inputs` operands, floating or complex; dy belong to those y that are.

Invariants: what the functions use besides x has no derivative, but of `recompute`.
Not here: what transforms make of them (transforms/custom.py), their end (passes/inline.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..types import TensorType, Type
from .definition import Attrs, Facts, OpDef, SignatureError, Structure
from .flow import regions_of, taken, text_of, token_of, yielded
from .structural import RegionType


def _recompute_type(operands: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
    (region,) = regions_of(attrs, 1)
    taken(region, operands)
    return (*yielded(region), *token_of((region,)))


def _custom_vjp_type(operands: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
    region, back, x, u = _parts(operands, attrs)
    made = yielded(region)
    taken(back, (*x, *_smooth(made), *u))
    _gives(back, x)
    return (*made, *token_of((region,)))


def _custom_jvp_type(operands: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
    region, ahead, x, u = _parts(operands, attrs)
    made = yielded(region)
    taken(ahead, (*x, *x, *u))
    _gives(ahead, (*made, *_smooth(made)))
    return (*made, *token_of((region,)))


def _parts(
    operands: Sequence[Type], attrs: Attrs
) -> tuple[RegionType, RegionType, Sequence[Type], Sequence[Type]]:
    region, other = regions_of(attrs, 2, "inputs")
    count = attrs["inputs"]
    if type(count) is not int or not 0 <= count <= len(operands):
        raise SignatureError("TM203", f"needs a number of its operands, got {count!r}")
    taken(region, operands)
    return region, other, operands[:count], operands[count:]


def _smooth(types: Sequence[Type]) -> list[Type]:
    return [t for t in types if isinstance(t, TensorType) and t.dtype.kind in "fc"]


def _gives(region: RegionType, wanted: Sequence[Type]) -> None:
    made = yielded(region)
    if made != tuple(wanted):
        raise SignatureError(
            "TM121", f"has a derivative that gives {text_of(made)}, not {text_of(wanted)}"
        )


def _first(*operands: Any, regions: Sequence[Any], inputs: int = 0) -> Any:
    return regions[0](*operands)


_SEEN_THROUGH = Facts(transparent=True)

recompute = OpDef(
    name="recompute",
    signature=_recompute_type,
    reference=_first,
    structure=Structure.FLOW,
    facts=_SEEN_THROUGH,
    doc="The region, which gradients compute again instead of keeping what it computes.",
)

custom_vjp = OpDef(
    name="custom_vjp",
    signature=_custom_vjp_type,
    reference=_first,
    structure=Structure.FLOW,
    facts=_SEEN_THROUGH,
    doc="The first region. The second gives the gradients of its first `inputs` operands from "
    "them, the cotangents of the results, and the other operands.",
)

custom_jvp = OpDef(
    name="custom_jvp",
    signature=_custom_jvp_type,
    reference=_first,
    structure=Structure.FLOW,
    facts=_SEEN_THROUGH,
    doc="The first region. The second gives its results and their tangents from its first "
    "`inputs` operands, their tangents, and the other operands.",
)

DERIVATIVE: tuple[OpDef, ...] = (recompute, custom_vjp, custom_jvp)
