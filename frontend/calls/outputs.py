"""What a plan is asked for by its version: which results it returns, whose strides are open, which
parameters are the same memory.

Invariants: follows from the trace alone, so it is the same for a plan made now and a kept one.
Not here: the structure of the results (bind.py).
"""

from __future__ import annotations

from ..tracing.result import InputOutput, SizeOutput, TensorOutput
from .overlap import by_place
from .specialise import ArraySpec, Traced


def returned(traced: Traced) -> tuple[list[int], dict[int, int]]:
    """What the plan returns, and the position there of each flat output (see `Built`)."""
    returns: list[int] = []
    positions: dict[int, int] = {}
    parameters: dict[int, int] = {}
    for index, output in enumerate(traced.trace.outputs):
        if isinstance(output, TensorOutput):
            if output.same_as is None:
                positions[index] = len(returns)
                returns.append(output.result)
            else:
                positions[index] = positions[output.same_as]
        elif isinstance(output, InputOutput):
            parameters[index] = output.input
        elif isinstance(output, SizeOutput):
            parameters |= {-1 - p: p for p, _ in traced.size_places(output.size).values()}
    for index, parameter in parameters.items():
        if -1 - parameter not in returns:
            returns.append(-1 - parameter)
        positions[index] = returns.index(-1 - parameter)
    return returns, positions


def strided(traced: Traced) -> list[int]:
    """Positions of parameters whose arrays may have any strides."""
    found = []
    for position, item in enumerate(traced.trace.inputs):
        if item.kind == "captured":
            if not item.value.flags.c_contiguous:
                found.append(position)
        elif item.leaf is not None:
            spec = traced.specs[item.leaf]
            if isinstance(spec, ArraySpec) and spec.strided:
                found.append(position)
    return found


def shared(traced: Traced) -> list[list[int]]:
    """Groups of parameters whose arrays have elements in common."""
    places = traced.places()
    groups = []
    for sharing in traced.sharings:
        at = by_place(sharing, places)
        groups += [[at[m] for m in group] for group in sharing.groups if len(group) > 1]
    return groups
