"""A body of the scalar language as LLVM code for some lanes.

Bodies are graphs with shared nodes; each node is emitted once per scope, operands first,
without recursion. Nodes whose operands are all shared scalars stay scalar and are copied to
lanes only where a lane-wise operand meets them.

Invariants: `rarely` emits `slow` in a block of its own, entered when some lane asks for it; a
node first needed there is not visible outside. `loop` computes what does not change in it
before it.
Not here: the words (words.py), which values the parameters are (block.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from llvmlite import ir

from ...compiler.ops.scalar import Loop, Rarely, Scalar, ScalarFunction
from ...compiler.types import DType, real_part_of
from .conversions import convert
from .lookup import lookup
from .site import Site
from .types import Lane, any_lane, register_type, widen
from .words import WORDS

Region = Rarely | Loop


def emit_body(site: Site, body: ScalarFunction, args: Sequence[Lane]) -> list[Lane]:
    """The results of `body` for `args`, which may mix lane-wise and shared values."""
    return _Emission(site, args).values(body.results)


def constant_lane(dtype: DType, value: object) -> Lane:
    """A literal, the same in all lanes."""
    if not dtype.is_complex:
        return Lane(dtype, (_literal(dtype, value),))
    part = real_part_of(dtype)
    number = complex(value)  # type: ignore[call-overload]
    return Lane(dtype, (_literal(part, number.real), _literal(part, number.imag)))


def _literal(dtype: DType, value: object) -> ir.Constant:
    typ = register_type(dtype)
    if dtype.is_float:
        if dtype.bits == 16:
            bits = int(dtype.numpy.type(value).view("u2"))
            return ir.Constant(typ, bits)
        return ir.Constant(typ, float(value))  # type: ignore[arg-type]
    return ir.Constant(typ, int(value))  # type: ignore[call-overload]


class _Emission:
    """One run over a body: the lanes of its nodes, scope by scope."""

    def __init__(self, site: Site, args: Sequence[Lane]) -> None:
        self.site = site
        self.args = args
        self.scopes: list[dict[object, tuple[Lane, ...]]] = [{}]

    def values(self, nodes: Iterable[Scalar]) -> list[Lane]:
        """The lanes of `nodes`, emitting what is not there yet."""
        return [self.value(node) for node in nodes]

    def value(self, node: Scalar) -> Lane:
        """The lane of one node; an explicit stack, because chains may be long."""
        stack = [node]
        while stack:
            top = stack[-1]
            if self._found(top) is not None:
                stack.pop()
                continue
            missing = [n for n in _operands(top) if self._found(n) is None]
            if missing:
                stack.extend(reversed(missing))
                continue
            stack.pop()
            self._emit(top)
        found = self._found(node)
        assert found is not None
        return found

    def _found(self, node: Scalar) -> Lane | None:
        key: object = node
        position = 0
        if node.word == "result":
            key, position = node.attr  # type: ignore[misc]
        for scope in reversed(self.scopes):
            lanes = scope.get(key)
            if lanes is not None:
                return lanes[position]
        return None

    def _emit(self, node: Scalar) -> None:
        if node.word == "result":
            region: Region = node.attr[0]  # type: ignore[index]
            emit = self._rarely if isinstance(region, Rarely) else self._loop
            self.scopes[-1][region] = tuple(emit(region))  # type: ignore[arg-type]
            return
        special = _SPECIAL.get(node.word)
        if special is not None:
            lane = special(self, node, [self.value(a) for a in node.args])
        else:
            lane = self._word(node)
        self.scopes[-1][node] = (lane,)

    def _word(self, node: Scalar) -> Lane:
        lanes = [self.value(a) for a in node.args]
        width = max(lane.width for lane in lanes)
        values = [widen(self.site.builder, lane, width).value for lane in lanes]
        result = WORDS[node.word](self.site, lanes[0].dtype, *values)
        return Lane(node.dtype, (result,), width)

    def _rarely(self, region: Rarely) -> list[Lane]:
        builder = self.site.builder
        condition = self.value(region.condition)
        fast = self.values(region.fast)
        before = builder.block
        slow_block = builder.append_basic_block("slow")
        join = builder.append_basic_block("join")
        branch = builder.cbranch(any_lane(builder, condition.value), slow_block, join)
        branch.set_weights([1, 1000])
        builder.position_at_end(slow_block)
        self.scopes.append({})
        chosen = [self._choose(condition, s, f) for s, f in zip(self.values(region.slow), fast)]
        self.scopes.pop()
        fast_widths = [max(a.width, b.width) for a, b in zip(chosen, fast)]
        slow_end = builder.block
        builder.branch(join)
        # A shared fast value beside lane-wise slow ones is copied to lanes before the branch.
        with builder.goto_block(before):
            fast = [widen(builder, lane, width) for lane, width in zip(fast, fast_widths)]
        builder.position_at_end(join)
        return [
            _join(builder, (slow, slow_end), (quick, before)) for slow, quick in zip(chosen, fast)
        ]

    def _choose(self, condition: Lane, a: Lane, b: Lane) -> Lane:
        """a in the lanes of `condition`, else b."""
        builder = self.site.builder
        width = max(condition.width, a.width, b.width)
        if condition.width == 1 and width > 1:
            condition = widen(builder, condition, width)
        a, b = widen(builder, a, width), widen(builder, b, width)
        parts = (builder.select(condition.value, x, y) for x, y in zip(a.parts, b.parts))
        return Lane(a.dtype, tuple(parts), width)

    def _loop(self, region: Loop) -> list[Lane]:
        builder = self.site.builder
        outer = self.values(_invariants(region))
        init = self.values(region.init)
        width = max(lane.width for lane in (*outer, *init))
        init = [widen(builder, lane, width) for lane in init]
        before = builder.block
        head = builder.append_basic_block("loop")
        body = builder.append_basic_block("step")
        done = builder.append_basic_block("done")
        builder.branch(head)
        builder.position_at_end(head)
        carried = [
            Lane(x.dtype, tuple(_phi(builder, p, before) for p in x.parts), width) for x in init
        ]
        self.scopes.append({c: (lane,) for c, lane in zip(region.carried, carried)})
        condition = self.value(region.condition)
        builder.cbranch(any_lane(builder, condition.value), body, done)
        builder.position_at_end(body)
        following = [
            self._choose(condition, s, c) for s, c in zip(self.values(region.step), carried)
        ]
        self.scopes.pop()
        for lane, next_lane in zip(carried, following):
            next_lane = widen(builder, next_lane, width)
            for phi, part in zip(lane.parts, next_lane.parts):
                phi.add_incoming(part, builder.block)
        builder.branch(head)
        builder.position_at_end(done)
        return carried


def _phi(builder: ir.IRBuilder, value: ir.Value, block: ir.Block) -> ir.PhiInstr:
    phi = builder.phi(value.type)
    phi.add_incoming(value, block)
    return phi


def _join(builder: ir.IRBuilder, left: tuple[Lane, ir.Block], right: tuple[Lane, ir.Block]) -> Lane:
    parts = []
    for a, b in zip(left[0].parts, right[0].parts):
        phi = _phi(builder, a, left[1])
        phi.add_incoming(b, right[1])
        parts.append(phi)
    return Lane(left[0].dtype, tuple(parts), left[0].width)


def _operands(node: Scalar) -> tuple[Scalar, ...]:
    """What must be emitted before `node`, in its own scope."""
    if node.word != "result":
        return node.args
    region: Region = node.attr[0]  # type: ignore[index]
    if isinstance(region, Rarely):
        return (region.condition, *region.fast)
    return (*_invariants(region), *region.init)


def _parts(node: Scalar) -> tuple[Scalar, ...]:
    """All nodes that `node` reads, regions included."""
    if node.word != "result":
        return node.args
    region: Region = node.attr[0]  # type: ignore[index]
    if isinstance(region, Rarely):
        return (region.condition, *region.slow, *region.fast)
    return (*region.init, region.condition, *region.step)


def _invariants(region: Loop) -> list[Scalar]:
    """Nodes inside the loop's regions that do not depend on what it carries."""
    changing: dict[Scalar, bool] = dict.fromkeys(region.carried, True)
    stack = [region.condition, *region.step]
    order: list[Scalar] = []
    while stack:
        top = stack[-1]
        if top in changing:
            stack.pop()
            continue
        missing = [n for n in _parts(top) if n not in changing]
        if missing:
            stack.extend(missing)
            continue
        stack.pop()
        changing[top] = any(changing[n] for n in _parts(top))
        order.append(top)
    found: dict[Scalar, None] = {}
    for node in (region.condition, *region.step):
        if not changing[node] and node.word != "carried":
            found[node] = None
    for node in order:
        if changing[node] and node.word != "result":
            for operand in node.args:
                if not changing[operand] and operand.word != "carried":
                    found[operand] = None
    return list(found)


def _param(run: _Emission, node: Scalar, args: list[Lane]) -> Lane:
    lane = run.args[node.attr]  # type: ignore[call-overload]
    assert isinstance(lane, Lane)
    return lane


def _const(run: _Emission, node: Scalar, args: list[Lane]) -> Lane:
    return constant_lane(node.dtype, node.attr)


def _select(run: _Emission, node: Scalar, args: list[Lane]) -> Lane:
    return run._choose(*args)


def _convert(run: _Emission, node: Scalar, args: list[Lane]) -> Lane:
    (a,) = args
    return Lane(node.dtype, (convert(run.site, a.dtype, node.dtype, a.value),), a.width)


def _bitcast(run: _Emission, node: Scalar, args: list[Lane]) -> Lane:
    (a,) = args
    typ = register_type(node.dtype, a.width)
    value = a.value if a.value.type == typ else run.site.builder.bitcast(a.value, typ)
    return Lane(node.dtype, (value,), a.width)


def _lookup(run: _Emission, node: Scalar, args: list[Lane]) -> Lane:
    table: tuple[object, ...] = node.attr  # type: ignore[assignment]
    literals = [_literal(node.dtype, entry) for entry in table]
    return Lane(node.dtype, (lookup(run.site, args[0].value, literals),), args[0].width)


def _complex(run: _Emission, node: Scalar, args: list[Lane]) -> Lane:
    width = max(a.width for a in args)
    parts = tuple(widen(run.site.builder, a, width).value for a in args)
    return Lane(node.dtype, parts, width)


def _part(index: int) -> Callable[[_Emission, Scalar, list[Lane]], Lane]:
    return lambda run, node, args: Lane(node.dtype, (args[0].parts[index],), args[0].width)


_SPECIAL: dict[str, Callable[[_Emission, Scalar, list[Lane]], Lane]] = {
    "param": _param,
    "const": _const,
    "select": _select,
    "convert": _convert,
    "bitcast": _bitcast,
    "lookup": _lookup,
    "complex": _complex,
    "real": _part(0),
    "imag": _part(1),
}
