"""Loops around numbers as one kernel: what they carry is in registers.

A loop whose body makes numbers, reads elements of arrays and writes them is a `Loop` around the
statements of its steps, and so are the loops and branches in it. Arrays stay where they are.

    for %0, %n, %d ... {                      loop trip carry (i = zero) when some until last {
      %x = gather %d, %i                        x = load d[check(i, n)]
      %e = scatter %d, %y, %i         ->        store d[check(i, n)] = y
      yield %e                                  yield next
    }                                         }

Invariants: the same ops on the same values as row by row; a failure is that of the first step that
fails.
Not here: which regions are like that (nest_body.py), loops over whole arrays (rolled.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import dropwhile
from itertools import product as places

from ..dims import Dim, Size, symbols_of
from ..ir.graph import Graph, Node, Value
from ..ops.definition import OpDef, Structure
from ..ops.flow import cond, for_, scan, while_
from ..types import BOOL, I64, DType, TensorType
from .aliasing import safe_pairs
from .blocks import Block, Writer
from .combining import written
from .kernel import Check, Checked, If, Index, Kernel, Load, Loop, Parameter, Statement, Store
from .lowering_values import Unlowered, Values
from .movement import update_position
from .nest_body import FORMS, LOOPS, Body, Step, all_steps, body_of
from .region import Lowered, Region, kernel_name
from .rolled import is_rolled
from .short import folded
from .symbols import kernel_dims, used_buffers


def is_nest(region: Region) -> bool:
    """True for a loop, perhaps with what makes its bounds, that is to be lowered here."""
    return bool(region.nodes) and region.nodes[-1].op in LOOPS and not is_rolled(region.nodes[-1])


def lower_nest(region: Region) -> Lowered:
    """The kernel of a loop. Raises Unlowered."""
    stacks = region.nodes[-1].results[region.nodes[-1].attrs["carried"] :]
    body = body_of(Graph("nest", region.params, region.nodes, region.results), stacks)
    if body is None:
        raise Unlowered("the loop does more than make numbers")
    return _Lowering(region, body).run()


class _InOrder(Writer):
    """Puts statements where it stands, in a block of control flow, and never before that."""

    def __init__(self, taken: Iterable[str]) -> None:
        super().__init__(taken)
        self.here = self.root

    def block_of(self, indices: Iterable[Size], names: Iterable[str] = ()) -> Block:
        found = super().block_of(indices, names)
        return found if found.depth > self.here.depth else self.here

    @contextmanager
    def inside(self) -> Iterator[list[Statement]]:
        """Write a block; what is made in it is not known behind it."""
        outer, lets, indices = self.here, self._lets, self._indices
        self.here = Block("", 1, outer)
        self._lets, self._indices = dict(lets), dict(indices)
        yield self.here.out
        self.here, self._lets, self._indices = outer, lets, indices

    def add(self, statement: Statement, names: Iterable[str] = ()) -> None:
        """Append a statement that defines these names."""
        self.here.out.append(statement)
        self.home.update(dict.fromkeys(names, self.here))


class _Scope:
    """A body while it is written: the names of its numbers, and where its arrays lie."""

    def __init__(self, writer: Writer) -> None:
        self.buffers: dict[Value, str] = {}
        self._values = Values(writer, self.buffers, lambda key, name: None)

    def at(self, value: Value, index: tuple[int, ...] | None = None) -> str:
        """The name of an element of an array; of a number, or of its only one, where no index is
        given. It stays known."""
        place = (0,) * value.tensor.rank if index is None else index
        name = self._values.at(value, place)
        self._values.known(value, place, name)
        return name

    def get(self, value: Value) -> str:
        """The name of a number, or of the memory of an array."""
        return self.buffers[value] if value.tensor.shape else self.at(value)

    def set(self, value: Value, name: str) -> None:
        """Say what `get` gives."""
        if value.tensor.shape:
            self.buffers[value] = name
        else:
            self._values.known(value, (), name)


class _Lowering:
    def __init__(self, region: Region, body: Body) -> None:
        self.region = region
        self.body = body
        self.writer = _InOrder(_dims(body))
        self.stacks: dict[Value, str] = {}  # where each trip of the loop writes an element

    def run(self) -> Lowered:
        """The kernel around the outermost body."""
        w, region, scope = self.writer, self.region, _Scope(self.writer)
        buffers = [w.name(param.name) for param in region.params]
        scope.buffers.update(zip(region.params, buffers))
        for value in self.body.results:
            if value.tensor.shape and value not in self.body.homes:
                self.stacks[value] = w.name(f"out_{value.name}")
        self.steps(self.body, scope)
        outs: list[Parameter] = []
        bases: list[int | None] = []
        for value in self.body.results:
            base = self.body.homes.get(value)
            name = self.stacks.get(value) or scope.get(value)
            if base is not None:
                outs.append(_parameter(name, value, "inout"))
            elif value in self.stacks:
                outs.append(_parameter(name, value, "out"))
            else:
                buffer = w.name(f"out_{name}")
                w.add(Store(buffer, (), name))
                outs.append(_parameter(buffer, value, "out"))
            bases.append(base)
        body = tuple(w.root.out)
        used = used_buffers(body)
        inputs = [
            at
            for at, buffer in enumerate(buffers)
            if buffer in used and at not in self.body.changed
        ]
        params = [
            _parameter(buffers[at], region.params[at], "in", at in region.strided) for at in inputs
        ]
        nodes = dropwhile(lambda n: not n.regions, [step.node for step in all_steps(self.body)])
        name = kernel_name(list(nodes))
        kernel = Kernel(name, (*params, *outs), (), body)
        kernel = Kernel(name, kernel.params, kernel_dims(kernel), body)
        results = tuple(range(len(outs)))
        return Lowered(kernel, tuple(inputs), results, tuple(bases), safe_pairs(kernel), {})

    def steps(self, body: Body, scope: _Scope) -> None:
        """The statements of a body, where the writer stands."""
        for step in body.steps:
            node = step.node
            if step.bodies:
                _FLOW[node.op](self, step, scope)
            elif step.ends:
                self.write(node, scope)
            elif node.op.structure is Structure.EFFECT:
                self.writer.add(Check(scope.at(node.operands[0]), None, node.location))
            else:
                for result in node.results:
                    if isinstance(result.type, TensorType):
                        _elements(result, scope)
            for version in step.ends:
                del scope.buffers[version]

    def write(self, node: Node, scope: _Scope) -> None:
        """Few elements of an array, all of which are known before the first is written."""
        base, value = node.operands[:2]
        buffer, elements = scope.buffers[base], _elements(value, scope)
        if node.op.structure is Structure.SCATTER:
            axes = node.attrs["axes"]
            first, end = axes[0], axes[0] + value.tensor.rank - base.tensor.rank + len(axes)
            sizes = base.tensor.shape[first:]
            at = [Checked(scope.at(v), size) for v, size in zip(node.operands[2:], sizes)]
            place: tuple[Index, ...]
            for index, name in elements:
                place = (*index[:first], *at, *index[end:])
                self.writer.add(written(buffer, node, place, name))
        else:
            for index, name in elements:
                self.writer.add(Store(buffer, update_position(node, index), name))
        scope.buffers[node.results[0]] = buffer

    # -- control flow

    def loop(self, step: Step, scope: _Scope) -> None:
        """Numbers that are carried are registers, and so is the number of a trip of a `for`."""
        w, node, (body,) = self.writer, step.node, step.bodies
        form, count = FORMS[node.op], node.attrs["carried"]
        given = [scope.get(v) for v in node.operands]
        starts = [*given[: form.own], *given[form.ahead :]]
        inner, axis = _Scope(w), w.name("trip")
        held: dict[str, tuple[str, DType]] = {}  # carried numbers: what they begin with
        rows: list[tuple[Value, str]] = []
        carried: list[str] = []
        for at, (param, start) in enumerate(zip(body.params, starts)):
            if form.own + count <= at < form.own + count + node.attrs.get("stacked", 0):
                rows.append((param, start))
            elif at < form.own + count and not param.tensor.shape:
                name = w.name(param.name)
                held[name] = start, param.tensor.dtype
                inner.set(param, name)
                carried.append(name)
            else:
                inner.set(param, start)
                carried.append(start)
        when = until = None
        if form.own:
            when = w.let("some", "lt", given[:2], BOOL)
        elif form.tests:
            when = given[0]
        with w.inside() as out:
            w.home.update(dict.fromkeys(held, w.here))
            self.rows(node, axis, rows, inner)
            self.steps(body, inner)
            made = [inner.get(v) for v in body.results if not v.tensor.shape]
            if form.own:
                made.insert(0, w.let("next", "add", (next(iter(held)), w.constant(1, I64)), I64))
                until = w.let("last", "le", (given[1], made[0]), BOOL)
            elif form.tests:
                until = w.let("last", "not", (made.pop(0),), BOOL)
            for result, name in zip(node.results[count:], made[len(held) :]):
                if result in self.stacks:
                    w.add(Store(self.stacks[result], _row(node, axis), name))
        init, dtypes = zip(*held.values()) if held else ((), ())
        yields = tuple(made[: len(held)])
        extent = node.attrs.get("length")
        w.add(Loop(tuple(held), init, axis, extent, tuple(out), yields, until, dtypes, when), held)
        for result, name in zip(node.results[:count], carried[form.own :]):
            scope.set(result, name)

    def rows(self, node: Node, axis: str, rows: Sequence[tuple[Value, str]], inner: _Scope) -> None:
        """The numbers that a trip of a scan is given."""
        for param, buffer in rows:
            name = self.writer.name(param.name)
            load = Load(name, buffer, _row(node, axis), param.tensor.dtype)
            self.writer.add(load, [name])
            inner.set(param, name)

    def branch(self, step: Step, scope: _Scope) -> None:
        """Numbers that both sides make are the results of an `If`; arrays lie where they were."""
        w, node = self.writer, step.node
        test, *given = [scope.get(v) for v in node.operands]
        arms: list[tuple[tuple[Statement, ...], list[str]]] = []
        for body in step.bodies:
            inner = _Scope(w)
            for param, name in zip(body.params, given):
                inner.set(param, name)
            with w.inside() as out:
                self.steps(body, inner)
                arms.append((tuple(out), [inner.get(v) for v in body.results]))
        (then, yields), (otherwise, others) = arms
        names: list[str] = []
        chosen: list[tuple[str, str]] = []
        dtypes: list[DType] = []
        for result, a, b in zip(node.results, yields, others):
            if result.tensor.shape:
                scope.set(result, a)
                continue
            names.append(w.name(result.name))
            chosen.append((a, b))
            dtypes.append(result.tensor.dtype)
            scope.set(result, names[-1])
        w.add(
            If(
                test, then, otherwise, tuple(names), tuple([a for a, _ in chosen]),
                tuple([b for _, b in chosen]), tuple(dtypes),
            ),
            names,
        )  # fmt: skip


_FLOW: Mapping[OpDef, Callable[[_Lowering, Step, _Scope], None]] = {
    cond: _Lowering.branch,
    while_: _Lowering.loop,
    for_: _Lowering.loop,
    scan: _Lowering.loop,
}


def _elements(value: Value, scope: _Scope) -> list[tuple[tuple[int, ...], str]]:
    """The indices and names of all elements of an array of few."""
    indices = places(*[range(folded((size,))) for size in value.tensor.shape])
    return [(index, scope.at(value, index)) for index in indices]


def _row(node: Node, axis: str) -> tuple[Size]:
    """Which row of its arrays a trip of a scan reads and makes."""
    trip = Dim.symbol(axis)
    return (node.attrs["length"] - 1 - trip if node.attrs["reverse"] else trip,)


def _parameter(name: str, value: Value, mode: str, strided: bool = False) -> Parameter:
    return Parameter(name, value.tensor.dtype, value.tensor.shape, mode, strided)


def _dims(body: Body) -> set[str]:
    """The symbols of all sizes."""
    values = [*body.params]
    for step in all_steps(body):
        values += [r for r in step.node.results if isinstance(r.type, TensorType)]
    return {symbol for value in values for symbol in symbols_of(value.tensor.shape)}
