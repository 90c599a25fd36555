"""Reverse-mode gradients: a graph grows by the nodes that compute them.

`gradients` appends to a builder, so it serves a live trace and a finished graph alike; what it
appends are ordinary nodes, so it can be applied again to its own results.

Conventions:

* The gradient of a real loss L by a complex z = x + iy is dL/dx + i dL/dy: it points uphill, and
  for a holomorphic f the cotangent is multiplied by the conjugate of f'.
* None stands for "no path": an input that is an integer or bool, or that the outputs do not
  depend on except through integers, `stop_gradient` and state.
* Elementwise rules are written as if all shapes were equal; the sums that undo broadcasting are
  made here.
* Where a cotangent is exactly zero because a `select` (also inside maximum, clip, abs, ...) did
  not take a branch, what flows on through elementwise ops is zero, even if the local derivative
  is infinite or NaN: the gradient of ``sum(where(x > 0, sqrt(x), 0))`` at 0 is 0. Elsewhere the
  product is what floating point makes of it: the gradient of ``0 * sqrt(x)`` at 0 is NaN.

Invariants: nothing here recurses; work is linear in the nodes between inputs and outputs; a node
made for the gradient of another has its place in the user's program and its device.
Not here: the rules (with their ops), forward mode (jvp.py), branches and loops (flow.py), what
depends on what (reach.py), which outputs a user may differentiate (frontend).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from ..dims import Size
from ..errors import error
from ..ir.builder import Builder
from ..ir.graph import Graph, Node, Value
from ..ops.definition import Gradient, Structure
from ..ops.shaping import filled, sum_to, zeros_like
from ..types import TensorType
from .flow import flow_cotangents
from .reach import between, carries, reached
from .regions import Asked
from .sums import added

# The rule for a node, None where its results do not depend smoothly on its operands.
RuleOf = Callable[[Node], Gradient | None]


def op_rule(node: Node) -> Gradient | None:
    """The rule of the node's op; GradientError for an op that should have one and has not."""
    if node.op.gradient is not None:
        return node.op.gradient
    if node.op.facts.differentiable:
        raise error(
            "TM120", f"{node.op.name} has no gradient", place=node.location,
            hint="wrap its operands in stop_gradient if none should flow through it; "
            "tm.custom_vjp gives the function around it a rule of its own",
        )  # fmt: skip
    return None


def gradients(
    builder: Builder,
    outputs: Sequence[Value],
    inputs: Sequence[Value],
    cotangents: Sequence[Value | None] | None = None,
    rule_of: RuleOf = op_rule,
) -> list[Value | None]:
    """Append to `builder` the gradient of `outputs` by each of `inputs`; None where no path is.

    cotangents: the weight of each output (None: that output does not count); without them each
    output is weighted by ones. rule_of: where a rule comes from, for functions that bring their
    own.
    """
    found = reached(builder.nodes, inputs)
    nodes, _ = between(builder.nodes, outputs, found)
    reverse = _Reverse(builder, rule_of, found)
    for output, cotangent in zip(outputs, cotangents or [None] * len(outputs), strict=True):
        if cotangent is None and cotangents is not None:
            continue
        reverse.seed(output, cotangent)
    for node in reversed(nodes):
        reverse.step(node)
    return [reverse.cotangent(value) for value in inputs]


def gradient_graph(
    graph: Graph,
    inputs: Sequence[Value],
    outputs: Sequence[Value] | None = None,
    cotangents: Sequence[Value | None] | None = None,
    rule_of: RuleOf = op_rule,
) -> Graph:
    """`graph`, returning after its own tensors the gradients by `inputs`: zeros for no path.

    outputs: what is differentiated; without it, all floating tensors the graph returns.
    """
    tensors = [value for value in graph.results if isinstance(value.type, TensorType)]
    tokens = [value for value in graph.results if not isinstance(value.type, TensorType)]
    builder = Builder.extending(graph)
    chosen = [v for v in tensors if carries(v)] if outputs is None else outputs
    found = gradients(builder, chosen, inputs, cotangents, rule_of)
    made = [zeros_like(builder, v) if g is None else g for v, g in zip(inputs, found)]
    finished = builder.finish([], tokens)
    finished.results = (*tensors, *made, *tokens)
    return finished


class _Reverse:
    """The state of one sweep: cotangents by value, and which of them a select has cut."""

    def __init__(self, builder: Builder, rule_of: RuleOf, reached: set[Value]) -> None:
        self._builder = builder
        self._rule_of = rule_of
        self._reached = reached
        self._parts: dict[Value, list[Value]] = {}
        self._sums: dict[Value, Value] = {}
        self._cut: set[Value] = set()

    def seed(self, output: Value, cotangent: Value | None) -> None:
        """Weight an output."""
        if not carries(output):
            raise error("TM120", f"%{output.name} is {output.type!r}, which has no gradient")
        if cotangent is None:
            shape = output.tensor.shape
            cotangent = filled(self._builder, 1, output.tensor.dtype, shape)
        elif cotangent.type != output.type:
            raise error(
                "TM120",
                f"the cotangent of %{output.name} is {cotangent.type!r}, not {output.type!r}",
            )
        self._parts.setdefault(output, []).append(cotangent)

    def cotangent(self, value: Value) -> Value | None:
        """The sum of what has arrived at `value`."""
        parts = self._parts.get(value)
        if not parts:
            return None
        total = self._sums.get(value)
        if total is None:
            total = parts[0]
            for part in parts[1:]:
                total = added(self._builder, total, part)
            self._sums[value] = total
            if any(part in self._cut for part in parts):
                self._cut.add(total)
        return total

    def step(self, node: Node) -> None:
        """Carry the cotangents of a node's results to its operands."""
        with self._builder.standing_at(node):
            arrived = [self.cotangent(result) for result in node.results]
            if all(cotangent is None for cotangent in arrived):
                return
            if node.op.structure is Structure.FLOW:
                self._through_flow(node, arrived)
                return
            rule = self._rule_of(node)
            if rule is None:
                return
            some = [ct for ct in arrived if ct is not None]
            for operand, made in zip(node.operands, rule(self._builder, node, arrived)):
                if made is not None and operand in self._reached:
                    self._pass_on(node, operand, made, some)

    def _through_flow(self, node: Node, arrived: Sequence[Value | None]) -> None:
        operands = node.operands  # before a loop is changed
        wanted = [operand in self._reached for operand in operands]
        smooth = [ct if r in self._reached else None for r, ct in zip(node.results, arrived)]
        if all(cotangent is None for cotangent in smooth):
            return
        before = self._taken(operands, wanted)
        inner = partial(gradients, rule_of=self._rule_of)
        asked = Asked(smooth, wanted, before, inner)
        found = flow_cotangents(self._builder, node, asked)
        for operand, want, made, held in zip(operands, wanted, found, before, strict=True):
            if made is not None and want:
                self._pass_on(node, operand, made, [])
                if held in self._cut:
                    self._cut.add(made)

    def _taken(self, operands: Sequence[Value], wanted: Sequence[bool]) -> list[Value | None]:
        """What has arrived at operands so far, to be added to: it arrives with the rest again."""
        made: list[Value | None] = []
        for operand, want in zip(operands, wanted):
            made.append(self.cotangent(operand) if want else None)
            if want:
                self._parts.pop(operand, None)
        return made

    def _pass_on(self, node: Node, operand: Value, made: Value, cts: list[Value]) -> None:
        builder = self._builder
        cut = any(ct in self._cut for ct in cts)
        elementwise = node.op.structure is Structure.ELEMENTWISE
        if cut and elementwise and not _vanishes_with(made, cts):
            made = self._keep_zeros(made, cts)
        cut = cut or _is_select(made)
        if made.tensor.dtype != operand.tensor.dtype:
            made = _as_dtype_of(builder, made, operand)
        if elementwise:
            made = _fit(builder, made, operand.tensor.shape)
        if made.type != operand.type:
            raise error(
                "TM304",
                f"the gradient rule of {node.op.name} made {made.type!r} for {operand.type!r}",
                place=node.location,
            )
        if cut:
            self._cut.add(made)
        self._parts.setdefault(operand, []).append(made)
        self._sums.pop(operand, None)

    def _keep_zeros(self, made: Value, cts: list[Value]) -> Value:
        """`made`, but zero wherever all cotangents it comes from are zero."""
        builder = self._builder
        silent: Value | None = None
        for ct in cts:
            zero = builder.emit("equal", (ct, builder.constant(0, ct.tensor.dtype)))
            silent = zero if silent is None else builder.emit("logical_and", (silent, zero))
        assert silent is not None
        nothing = builder.constant(0, made.tensor.dtype)
        kept: Value = builder.emit("select", (silent, nothing, made))
        return kept


def _is_select(value: Value) -> bool:
    return value.node is not None and value.node.op.name == "select"


def _vanishes_with(made: Value, cts: list[Value]) -> bool:
    """Whether `made` is plainly zero where the cotangents are: one itself, or a unary op of one.

    Rules are linear in the cotangents, so an op with no other operand maps zero to zero.
    """
    if made in cts:
        return True
    return made.node is not None and len(made.node.operands) == 1 and made.node.operands[0] in cts


def _fit(builder: Builder, made: Value, shape: tuple[Size, ...]) -> Value:
    """Undo broadcasting of an operand of `shape`; or do it, where a rule answered with less."""
    have = made.tensor.shape
    if have == shape:
        return made
    if len(have) >= len(shape):
        own = have[len(have) - len(shape) :]
        made = sum_to(builder, made, tuple(1 if w == 1 else h for h, w in zip(own, shape)))
    if made.tensor.shape != shape:
        made = builder.emit("broadcast_to", (made,), {"shape": shape})
    return made


def _as_dtype_of(builder: Builder, made: Value, operand: Value) -> Value:
    """A cotangent in its operand's dtype: of a real operand, the real part of a complex one."""
    dtype = operand.tensor.dtype
    if made.tensor.dtype.is_complex and not dtype.is_complex:
        made = builder.emit("real", (made,))
    if made.tensor.dtype != dtype:
        made = builder.emit("cast", (made,), {"dtype": dtype})
    return made
