"""Library ops as kernels: a call of a routine, launched over problems.

    solve table, a[i, m, m], b[i, m, n]  ->  call solve of table(a, b, out) for i in a range

A kernel is handed a range of problems and calls the routine for some of them at a time, so a batch
is spread over threads and can be cancelled between.

Invariants: buffers are contiguous; an operand of core rank alone is the same for all problems.
Not here: what a routine is handed (backends/llvm/calling.py), where it is (frontend).
"""

from __future__ import annotations

from collections.abc import Mapping

from ..dims import Size, product
from ..ops.definition import Structure
from ..records import replace
from ..types import TensorType
from .cost import GRAIN_WORK
from .kernel import Call, Kernel, Parameter
from .products import Split, Stage
from .region import Lowered, Region
from .symbols import kernel_dims

_FLOP = 500  # picoseconds for each of the products of a problem's sizes


def is_library(region: Region) -> bool:
    """True for a region that is one node, which a library computes."""
    return len(region.nodes) == 1 and region.nodes[0].op.structure is Structure.LIBRARY


def lower_library(region: Region) -> Lowered:
    """The kernel of such a region. An operand that the routine changes is updated in place, in
    memory that holds its content."""
    (node,) = region.nodes
    routine = node.op.routine
    assert routine is not None
    operands, results = node.operands, [r for r in node.results if isinstance(r.type, TensorType)]
    outs = [f"out{at}" for at in range(len(results))]
    changed = operands[1] if routine.writes else None
    inputs = [v for v in dict.fromkeys(operands) if v is not changed]
    names = {value: f"x{at}" for at, value in enumerate(inputs)}
    params = [Parameter(names[v], v.tensor.dtype, v.tensor.shape, "in") for v in inputs]
    bases: list[int | None] = [None] * len(results)
    modes = ["out"] * len(results)
    gives = routine.gives
    rest = outs
    if changed is not None:
        names[changed] = outs[0]
        bases[0], modes[0] = region.params.index(changed), "inout"
        gives, rest = gives[1:], outs[1:]
    params += [
        Parameter(name, r.tensor.dtype, r.tensor.shape, mode)
        for name, r, mode in zip(outs, results, modes)
    ]
    table, *taken = [names[v] for v in operands]
    core = (*routine.takes, *gives)
    statement = Call(table, node.op.name, (*taken, *rest), core, routine.fails, node.location)
    kernel = Kernel(node.op.name, tuple(params), (), (statement,))
    return Lowered(
        replace(kernel, dims=kernel_dims(kernel)),
        tuple([region.params.index(v) for v in inputs]),
        tuple(range(len(results))),
        tuple(bases),
        frozenset(),
        {},
    )


def call_of(kernel: Kernel) -> Call | None:
    """The one statement of a kernel that calls a routine."""
    found = kernel.body[0] if kernel.body else None
    return found if isinstance(found, Call) else None


def core_sizes(call: Call, params: Mapping[str, Parameter]) -> dict[str, Size]:
    """The sizes of the core axes, in the order of their first appearance."""
    found: dict[str, Size] = {}
    for name, core in zip(call.arguments, call.core):
        shape = params[name].shape
        for axis, size in zip(core, shape[len(shape) - len(core) :]):
            found.setdefault(axis, size)
    return found


def split_library(kernel: Kernel) -> Split | None:
    """The launch over problems; None for a kernel that calls nothing."""
    call = call_of(kernel)
    if call is None:
        return None
    params = {p.name: p for p in kernel.params}
    first = params[call.arguments[0]].shape
    count = product(first[: len(first) - len(call.core[0])])
    per = product(tuple(core_sizes(call, params).values())) * _FLOP
    grain = max(1, GRAIN_WORK // max(per, 1)) if isinstance(per, int) else 1
    every = tuple(range(len(kernel.params)))
    return Split((), (Stage(kernel, every, count, count * per, grain),))
