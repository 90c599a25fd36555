"""Routines that quickly compiled kernels call: the long pieces of their code, compiled once.

Code that shall be there soon is not optimised, and what is long in it (an exponential, the tree
of a reduction) is not even generated again: a kernel calls a routine, which was optimised when
the first kernel of this process needed it and is linked into each kernel that calls it.

Invariants: a routine computes the bits that the same code computes in its place. Equal kernels
get equal code: routines are numbered by first use in their kernel. Masks cross a call as
integers: as vectors they travel in other registers than they are computed in, and without
optimisation LLVM has no instruction for that copy.
Not here: what is worth a routine (statements.py, counter.py, reduce.py).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import NamedTuple

from llvmlite import ir

from ...compiler.kernel.kernel import Kernel, Statement
from ...compiler.records import dataclass
from ...compiler.types import DType
from .emission import emitted
from .frame import Frame, Level
from .machine import Machine
from .native.objects import CodeBlob, link
from .site import Site
from .types import I1, VOID

Values = Sequence[ir.Value]
Emit = Callable[[Frame, Values], Values]
ENTRY = "routine"
_NOTHING = Kernel("routine", (), (), ())


@dataclass(frozen=True, slots=True, eq=False)
class Routine:
    """A compiled routine and the types of its results."""

    code: CodeBlob
    results: tuple[ir.Type, ...]

    @property
    def linkable(self) -> tuple[CodeBlob, str]:
        """The code and its entry, as `link` wants them."""
        return self.code, ENTRY


class Hole(NamedTuple):
    """What a kernel calls that is filled in later: its number, dtype and width of its operands."""

    number: int
    operands: tuple[tuple[DType, int], ...]


_compiled: dict[Hashable, Routine] = {}  # of this process: as many as there are bodies


class Routines:
    """The routines of one kernel."""

    def __init__(self) -> None:
        self._used: dict[Routine, str] = {}
        self.holes: dict[str, Hole] = {}

    def call(self, site: Site, key: Hashable, args: Values, emit: Emit) -> list[ir.Value]:
        """The results of `emit` for `args`. `key` says all that `emit` depends on, the types of
        `args` included, the machine aside."""
        routine = routine_for(key, site.machine, [a.type for a in args], emit)
        name = self._used.setdefault(routine, f"r{len(self._used)}")
        return _call(site.builder, name, args, routine.results)

    def call_hole(
        self, site: Site, hole: Hole, args: Values, results: Sequence[ir.Type]
    ) -> list[ir.Value]:
        """The results, of these types, of what is filled in later."""
        name = f"h{hole.number}"
        while self.holes.setdefault(name, hole) != hole:  # at other widths it is another routine
            name += "_"
        return _call(site.builder, name, args, results)

    def codes(self) -> dict[str, tuple[CodeBlob, str]]:
        """By symbol: the code, and its entry there."""
        return {name: routine.linkable for routine, name in self._used.items()}


def routine_for(key: Hashable, machine: Machine, types: Sequence[ir.Type], emit: Emit) -> Routine:
    """The routine of this key, compiled now if this process has not got it."""
    routine = _compiled.get((key, machine))
    if routine is None:
        routine = _compiled[key, machine] = _compile(types, machine, emit)
    return routine


def _call(
    builder: ir.IRBuilder, name: str, args: Values, results: Sequence[ir.Type]
) -> list[ir.Value]:
    function = builder.module.globals.get(name)
    if function is None:
        kind = _signature(results, [a.type for a in args])
        function = ir.Function(builder.module, kind, name)
        function.attributes.add("nounwind")
    made = builder.call(function, [_as(builder, a, _crossing(a.type)) for a in args])
    if len(results) <= 1:
        values = [made] * len(results)
    else:
        values = [builder.extract_value(made, at) for at in range(len(results))]
    return [_as(builder, value, typ) for value, typ in zip(values, results, strict=True)]


def _compile(types: Sequence[ir.Type], machine: Machine, emit: Emit) -> Routine:
    # What a routine gives is only known when it has been emitted: once for that, once for good.
    draft = _emit(ir.Module(name="draft"), machine, types, (), emit)
    results = tuple(value.type for value in draft)
    module = ir.Module(name=ENTRY)
    module.triple = machine.triple
    _emit(module, machine, types, results, emit)
    return Routine(link(emitted(module, machine, 2)), results)


def _emit(
    module: ir.Module,
    machine: Machine,
    types: Sequence[ir.Type],
    results: Sequence[ir.Type],
    emit: Emit,
) -> Values:
    """The routine's function, which gives the values of these types."""
    function = ir.Function(module, _signature(results, types), ENTRY)
    function.attributes.add("nounwind")
    entry = function.append_basic_block("entry")
    builder = ir.IRBuilder(entry)
    frame = Frame(Site(builder, machine), _NOTHING, function, _no_statements)
    frame.levels.append(Level(entry))
    start = frame.block("start")
    builder.branch(start)
    builder.position_at_end(start)
    values = emit(frame, [_as(builder, a, typ) for a, typ in zip(function.args, types)])
    builder.branch(frame.exit)
    builder.position_at_end(frame.exit)
    if not results:
        builder.ret_void()
        return values
    given = [_as(builder, value, _crossing(value.type)) for value in values]
    whole: ir.Value = given[0]
    if len(given) > 1:
        whole = ir.Constant(function.ftype.return_type, ir.Undefined)
        for at, value in enumerate(given):
            whole = builder.insert_value(whole, value, at)
    builder.ret(whole)
    return values


def _no_statements(frame: Frame, statements: Iterable[Statement]) -> None:
    raise AssertionError("a routine has no statements")


def _signature(results: Iterable[ir.Type], types: Iterable[ir.Type]) -> ir.FunctionType:
    made, taken = tuple(map(_crossing, results)), map(_crossing, types)
    if not made:
        return ir.FunctionType(VOID, taken)
    return ir.FunctionType(made[0] if len(made) == 1 else ir.LiteralStructType(made), taken)


def _crossing(typ: ir.Type) -> ir.Type:
    """The type that a value of this one has in a call."""
    mask = isinstance(typ, ir.VectorType) and typ.element == I1
    return ir.IntType(typ.count) if mask else typ


def _as(builder: ir.IRBuilder, value: ir.Value, typ: ir.Type) -> ir.Value:
    return value if value.type == typ else builder.bitcast(value, typ)
