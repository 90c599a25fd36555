"""Control flow: branches and loops whose bodies are regions.

A region is a graph of its own that reads nothing but its parameters: what it uses of the graph
around it is an operand of the node, so passes need no rule for values from outside. Its values
have names of their own. What a loop carries has one type on every trip.

    cond %p, x...              two regions over x..., which give the same types
    while %p, c..., x...       while the last `p` is true: p, c... = region(c..., x...)
    for %a, %b, c..., x...     for i from a to below b: c... = region(i, c..., x...)
    scan c..., s..., x...      for each row r... of s...: c..., y... = region(c..., r..., x...)

A `while` is given its first condition as an operand and its region gives the next one, so that
the condition shares the body's kernels.

A region may yield tokens behind its tensors (checks, prints); the node then has one token of its
own, the last result. Variables are not touched in regions: what a body assigns is carried.

Invariants: signatures see their regions in the attribute `regions`, one `RegionType` each.
Not here: fused regions (structural.py), how loops run (assemble_flow.py), tracing them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..dims import Size
from ..types import BOOL, I64, TOKEN, TensorType, Type
from .attributes import sizes
from .definition import Attrs, OpDef, SignatureError, Structure
from .structural import RegionType

_FLAG = TensorType(BOOL, ())
_COUNTER = TensorType(I64, ())


def _cond_type(operands: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
    _tensors(operands, 1)
    regions = regions_of(attrs, 2)
    _expect("the condition", operands[0], _FLAG)
    for region in regions:
        taken(region, operands[1:])
    left, right = (yielded(region) for region in regions)
    if left != right:
        raise SignatureError(
            "TM260", f"has branches that give {text_of(left)} and {text_of(right)}"
        )
    return (*left, *token_of(regions))


def _while_type(operands: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
    _tensors(operands, 1)
    regions = regions_of(attrs, 1, "carried")
    carried = _split(operands[1:], attrs["carried"])
    _expect("the condition", operands[0], _FLAG)
    taken(regions[0], operands[1:])
    _carries(yielded(regions[0]), (_FLAG, *carried))
    return (*carried, *token_of(regions))


def _for_type(operands: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
    _tensors(operands, 2)
    regions = regions_of(attrs, 1, "carried", *({"most"} & attrs.keys()))
    sizes(() if "most" not in attrs else (attrs["most"],), "most")
    carried = _split(operands[2:], attrs["carried"])
    for bound in operands[:2]:
        _expect("a bound", bound, _COUNTER)
    taken(regions[0], (_COUNTER, *operands[2:]))
    _carries(yielded(regions[0]), carried)
    return (*carried, *token_of(regions))


def _scan_type(operands: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
    _tensors(operands, 0)
    regions = regions_of(attrs, 1, "carried", "length", "reverse", "stacked")
    (length,) = sizes((attrs["length"],), "length")
    carried = _split(operands, attrs["carried"])
    rest = operands[len(carried) :]
    rows = [_row(stack, length) for stack in _split(rest, attrs["stacked"])]
    taken(regions[0], (*carried, *rows, *rest[len(rows) :]))
    made = yielded(regions[0])
    _carries(made[: len(carried)], carried)
    stacks = [TensorType(t.dtype, (length, *t.shape)) for t in made[len(carried) :]]
    return (*carried, *stacks, *token_of(regions))


# -- what signatures ask


def _tensors(operands: Sequence[Type], least: int) -> None:
    if len(operands) < least or not all(isinstance(t, TensorType) for t in operands):
        raise SignatureError("TM201", f"needs {least} or more arrays, got {text_of(operands)}")


def regions_of(attrs: Attrs, count: int, *keys: str) -> tuple[RegionType, ...]:
    """The types of as many regions. Raises SignatureError for others, or other attributes."""
    if attrs.keys() != {"regions", *keys} or len(attrs["regions"]) != count:
        wanted = ", ".join(keys) or "no attribute"
        raise SignatureError("TM203", f"takes {count} regions and the attributes {wanted}")
    regions: tuple[RegionType, ...] = attrs["regions"]
    return regions


def _split(operands: Sequence[Type], count: object) -> tuple[TensorType, ...]:
    """The first `count` operands."""
    if type(count) is not int or not 0 <= count <= len(operands):
        raise SignatureError("TM203", f"needs a number of its operands, got {count!r}")
    return tuple([t for t in operands[:count] if isinstance(t, TensorType)])


def _row(stack: TensorType, length: Size) -> TensorType:
    if not stack.shape or stack.shape[0] != length:
        found = stack.shape[:1]
        raise SignatureError(
            "TM209",
            f"needs arrays of {length} rows, got {stack}",
            sizes=(length, found[0]) if found else None,
        )
    return TensorType(stack.dtype, stack.shape[1:])


def _expect(what: str, got: Type, wanted: Type) -> None:
    if got != wanted:
        raise SignatureError("TM260", f"needs {wanted} as {what}, got {got}")


def taken(region: RegionType, wanted: Sequence[Type]) -> None:
    """Raise SignatureError for a region of other parameters."""
    if region.params != tuple(wanted):
        raise SignatureError(
            "TM203", f"has a region of {text_of(region.params)}, its operands are {text_of(wanted)}"
        )


def yielded(region: RegionType) -> tuple[TensorType, ...]:
    """The tensors that a region gives."""
    return tuple([t for t in region.results if isinstance(t, TensorType)])


def _carries(made: Sequence[Type], carried: Sequence[Type]) -> None:
    if tuple(made) != tuple(carried):
        raise SignatureError("TM260", f"carries {text_of(carried)}, a trip gives {text_of(made)}")


def token_of(regions: Sequence[RegionType]) -> tuple[Type, ...]:
    """One token if a region has effects."""
    seen = any(not isinstance(t, TensorType) for region in regions for t in region.results)
    return (TOKEN,) if seen else ()


def text_of(types: Sequence[Type]) -> str:
    """Types as errors name them."""
    return ", ".join(map(str, types)) or "nothing"


# -- references: a region is a function of arrays that gives a tuple of its tensors, whose shapes
# and dtypes are its `forms`


def _cond(condition: Any, *operands: Any, regions: Sequence[Any]) -> Any:
    return regions[0 if condition else 1](*operands)


def _while(condition: Any, *operands: Any, carried: int, regions: Sequence[Any]) -> Any:
    carry, rest = operands[:carried], operands[carried:]
    while condition:
        condition, *carry = regions[0](*carry, *rest)
    return tuple(carry)


def _for(
    begin: Any, end: Any, *operands: Any, carried: int, regions: Sequence[Any], most: Size = 0
) -> Any:
    carry, rest = operands[:carried], operands[carried:]
    for index in range(int(begin), int(end)):
        carry = regions[0](np.int64(index), *carry, *rest)
    return tuple(carry)


def _scan(
    *operands: Any, carried: int, length: int, reverse: bool, stacked: int, regions: Sequence[Any]
) -> Any:
    carry, rest = operands[:carried], operands[carried:]
    stacks, rest = rest[:stacked], rest[stacked:]
    made = [np.empty((length, *shape), dtype) for shape, dtype in regions[0].forms[carried:]]
    for at in reversed(range(length)) if reverse else range(length):
        row = regions[0](*carry, *[stack[at] for stack in stacks], *rest)
        carry = row[:carried]
        for stack, value in zip(made, row[carried:], strict=True):
            stack[at] = value
    return (*carry, *made)


cond = OpDef(
    name="cond",
    signature=_cond_type,
    reference=_cond,
    structure=Structure.FLOW,
    doc="The results of the first region where the condition is true, else of the second.",
)

while_ = OpDef(
    name="while",
    signature=_while_type,
    reference=_while,
    structure=Structure.FLOW,
    doc="The region again and again, as long as the condition it gave last is true.",
)

for_ = OpDef(
    name="for",
    signature=_for_type,
    reference=_for,
    structure=Structure.FLOW,
    doc="The region for each integer from the first bound to below the second. `most`, where it is "
    "given, is a size that the number of trips is never above.",
)

scan = OpDef(
    name="scan",
    signature=_scan_type,
    reference=_scan,
    structure=Structure.FLOW,
    doc="The region for each row of the stacked operands; what it gives besides what it carries "
    "is stacked.",
)

FLOW: tuple[OpDef, ...] = (cond, while_, for_, scan)
