"""The maker of nodes: infers types, canonicalises, orders effects, names and locates.

``b.add(x, y)`` is short for ``b.emit("add", (x, y))``; keywords are attributes. A Python number
among the operands becomes a constant of the dtype of the last value among them.

Invariants: every node made here passes the verifier. Types are judged first, then the node is
brought into its op's canonical form: constants of a commutative op to the right, then the
record's own rule, which may answer with an existing value.
Not here: what the ops mean, promotion, tracing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from ..dims import Size
from ..errors import error
from ..ops import ALL
from ..ops.creation import constant as constant_op
from ..ops.definition import OpDef, SignatureError, Structure
from ..types import DType, TensorType, TokenType, Type
from .attrs import freeze, literal_array
from .graph import Graph, Location, Node, Value, Variable
from .inference import result_types
from .names import Names
from .order import Order
from .substitute import Mentions

_ORDERED = (Structure.STATE, Structure.EFFECT, Structure.FLOW)
Locate = Callable[[], Location | None]
# Asked where two sizes should be equal and one is symbolic: True if now they are (the trace has
# called `substitute` and recorded a guard), and the node is tried again.
Unify = Callable[[Any, Any], bool]


class Builder:
    """Builds one graph, or one region of a graph.

    device: placed on nodes that are not given one. location: of nodes made next, where `locate`
    is not given. hint: the name of nodes that are given none (the op's own name where None).
    """

    def __init__(
        self,
        name: str,
        locate: Locate | None = None,
        unify: Unify | None = None,
        names: Names | None = None,
    ) -> None:
        self.name = name
        self.device: str | None = None
        self.location: Location | None = None
        self.hint: str | None = None
        self.params: list[Value] = []
        self.nodes: list[Node] = []
        self.variables: dict[str, Variable] = {}
        self.hints: dict[str, int] = {}
        self.tokens: list[Value] = []
        self.names = names or Names()
        self._order = Order()
        self._mentions = Mentions()
        self._locate = locate
        self._unify = unify
        self._scalars: dict[tuple[str, bytes, str | None], Value] = {}
        self._inferred: dict[Any, tuple[Type, ...]] = {}

    @classmethod
    def extending(cls, graph: Graph, locate: Locate | None = None) -> Builder:
        """A builder that goes on where `graph` ends, sharing its nodes."""
        builder = cls(graph.name, locate)
        builder.begin_like(graph)
        for node in graph.nodes:
            builder.adopt(node)
        return builder

    def begin_like(self, graph: Graph) -> None:
        """Take over parameters, variables, hints and all names of `graph`, but no node."""
        self.params = list(graph.params)
        self.variables = dict(graph.variables)
        self.hints = dict(graph.hints)
        pending = [graph]
        while pending:
            inner = pending.pop()
            for value in inner.values():
                self.names.claim(value.name)
            for node in inner.nodes:
                if node.op.structure is not Structure.FLOW:  # whose regions have names of their own
                    pending.extend(node.regions)

    def adopt(self, node: Node) -> None:
        """Append a node that exists, whose names are taken already."""
        self.nodes.append(node)
        if node.op is constant_op and node.attrs["value"].ndim == 0 and not node.after:
            array = node.attrs["value"]
            self._scalars.setdefault(
                (array.dtype.name, array.tobytes(), node.device), node.results[0]
            )
        self._note(node)

    def param(self, name: str, type: Type) -> Value:
        """Add a parameter."""
        value = Value(self.names.claim(name), type)
        self.params.append(value)
        return value

    def variable(self, name: str, type: TensorType, device: str | None = None) -> Variable:
        """Declare a variable; the same declaration twice is the same variable."""
        made = Variable(name, type, device)
        known = self.variables.setdefault(name, made)
        if known != made:
            raise error(
                "TM245",
                f"@{name} is declared as {made.type}, it is {known.type}",
                place=self.place(),
            )
        return known

    def constant(self, value: Any, dtype: DType | None = None, *, name: str | None = None) -> Value:
        """A literal array; a number of rank 0 is made once."""
        array = literal_array(value, dtype)
        if array.ndim:
            made = self.emit(constant_op, (), {"value": array}, name=name)
            assert isinstance(made, Value)
            return made
        key = (array.dtype.name, array.tobytes(), self.device)
        found = self._scalars.get(key)
        if found is None:
            made = self.emit(constant_op, (), {"value": array}, name=name)
            assert isinstance(made, Value)
            found = self._scalars[key] = made
        return found

    def emit(
        self,
        op: str | OpDef,
        operands: Sequence[Any] = (),
        attrs: Mapping[str, Any] | None = None,
        *,
        name: str | Sequence[str] | None = None,
        variable: str | None = None,
        after: Sequence[Value] = (),
        device: str | None = None,
        regions: Sequence[Graph] = (),
    ) -> Any:
        """Make a node; its result, or a tuple of them where the op has several."""
        record = self._record(op) if isinstance(op, str) else op
        values = self._operands(operands)
        frozen = freeze(attrs)
        if record.facts.commutative and len(values) == 2 and _literal_first(values):
            values = (values[1], values[0])
        types = self._judge(record, values, frozen, variable, regions)
        if record.canonical is not None and not after:
            found = self._canonical(record, values, frozen, name, device)
            if found is not None:
                return found
        if record.structure is Structure.STATE and variable is not None and not after:
            known = self._read_again(variable, types[0], device or self.device)
            if known is not None:
                return known
        node = self._make(record, values, frozen, types, after, device, variable, regions)
        self._name(node, types, name)
        self.nodes.append(node)
        self._note(node)
        return node.results[0] if len(types) == 1 else node.results

    def emit_all(self, op: str | OpDef, *args: Any, **keywords: Any) -> tuple[Value, ...]:
        """The same; all results, however many the op has."""
        made = self.emit(op, *args, **keywords)
        return made if isinstance(made, tuple) else (made,)

    def again(
        self,
        node: Node,
        operands: Sequence[Value],
        *,
        after: Sequence[Value] = (),
        device: str | None = None,
        regions: Sequence[Graph] = (),
    ) -> tuple[Value, ...]:
        """Make a node of another graph, with its names and place, on values of this one."""
        self.location = node.location
        return self.emit_all(
            node.op,
            operands,
            node.attrs,
            name=[result.name for result in node.results],
            variable=node.variable,
            after=after,
            device=device,
            regions=regions,
        )

    def __getattr__(self, op: str) -> Callable[..., Any]:
        record = ALL.get(op)
        if record is None:
            raise AttributeError(f"there is no op named {op!r}")
        method = partial(_emit_sugar, self, record)
        self.__dict__[op] = method
        return method

    def region(self, operands: Sequence[Value]) -> Builder:
        """A builder for a region of this graph: its parameters stand for `operands`."""
        inner = Builder("region", self._locate, self._unify, self.names)
        inner.location = self.location
        inner.params = [Value(operand.name, operand.type) for operand in operands]
        return inner

    def substitute(self, env: Mapping[str, Size]) -> None:
        """Replace dim symbols everywhere: the trace found out what they are."""
        self._mentions.substitute(self.params, self.nodes, env)
        for symbol in env:
            self.hints.pop(symbol, None)

    def changed(self, node: Node) -> None:
        """A node of this graph was given further results, attributes or regions."""
        node.verified = False
        self._mentions.changed(node)

    def finish(self, results: Sequence[Value] = (), tokens: Sequence[Value] | None = None) -> Graph:
        """The graph. Keeps every effect, or exactly `tokens`."""
        known = set(results)
        kept = [t for t in (self.tokens if tokens is None else tokens) if t not in known]
        return Graph(
            self.name,
            tuple(self.params),
            tuple(self.nodes),
            (*results, *dict.fromkeys(kept)),
            dict(self.variables),
            dict(self.hints),
        )

    @contextmanager
    def standing_at(self, node: Node) -> Iterator[None]:
        """Make nodes with the place and device of `node`."""
        saved = self.location, self.device, self._locate
        self.location, self.device, self._locate = node.location, node.device, None
        try:
            yield
        finally:
            self.location, self.device, self._locate = saved

    def place(self) -> Location | None:
        """Where in the user's program the next node comes from."""
        return self._locate() if self._locate is not None else self.location

    # -- the steps of emit

    def _record(self, op: str) -> OpDef:
        record = ALL.get(op)
        if record is None:
            raise error("TM240", f"there is no op named {op!r}", place=self.place())
        return record

    def _operands(self, operands: Sequence[Any]) -> tuple[Value, ...]:
        for operand in operands:
            if not isinstance(operand, Value):
                break
        else:
            return tuple(operands)
        like = [v for v in operands if isinstance(v, Value) and isinstance(v.type, TensorType)]
        if not like:
            raise error("TM201", "an op of numbers alone has no dtype", place=self.place())
        dtype = like[-1].tensor.dtype
        return tuple(v if isinstance(v, Value) else self.constant(v, dtype) for v in operands)

    def _judge(
        self,
        record: OpDef,
        operands: tuple[Value, ...],
        attrs: Mapping[str, Any],
        variable: str | None,
        regions: Sequence[Graph],
    ) -> tuple[Type, ...]:
        plain = not attrs and variable is None and not regions
        if plain:
            key = (record, *[v.type for v in operands])
            known = self._inferred.get(key)
            if known is not None:
                return known
        try:
            declared = None if variable is None else self.variables.get(variable)
            types = result_types(record, operands, attrs, declared, regions)
        except SignatureError as problem:
            if problem.sizes and self._unify and self._unify(*problem.sizes):
                return self._judge(record, operands, attrs, variable, regions)
            raise error(
                problem.code,
                f"{record.name} {problem.summary}",
                place=self.place(),
                detail=problem.detail,
                hint=problem.hint,
                sizes=problem.sizes,
            ) from None
        if plain:
            self._inferred[key] = types
        return types

    def _canonical(
        self,
        record: OpDef,
        operands: tuple[Value, ...],
        attrs: Mapping[str, Any],
        name: str | Sequence[str] | None,
        device: str | None,
    ) -> Any:
        """The canonical form's value; nodes it makes get the name and device meant for this."""
        assert record.canonical is not None
        saved = self.hint, self.device
        self.hint = name if isinstance(name, str) or name is None else name[0]
        self.device = device or self.device
        try:
            return record.canonical(self, operands, attrs)
        finally:
            self.hint, self.device = saved

    def _make(
        self,
        record: OpDef,
        operands: tuple[Value, ...],
        attrs: Mapping[str, Any],
        types: tuple[Type, ...],
        after: Sequence[Value],
        device: str | None,
        variable: str | None,
        regions: Sequence[Graph],
    ) -> Node:
        place = self._locate() if self._locate is not None else self.location
        waits = tuple(after)
        if record.structure in _ORDERED:
            before = self._order.before(record, variable, types)
            waits = tuple(dict.fromkeys((*waits, *before)))
        device = device or self.device
        return Node(record, operands, attrs, place, device, waits, variable, tuple(regions))

    def _read_again(self, variable: str, type: Type, device: str | None) -> Value | None:
        """What the last read on this device has read, if this is a read with no write between."""
        reads = self._order.reads.get(variable)
        if not reads or isinstance(type, TokenType):
            return None
        last = reads[-1].node
        return reads[-1] if last is not None and last.device == device else None

    def _name(self, node: Node, types: tuple[Type, ...], name: str | Sequence[str] | None) -> None:
        claim = self.names.claim
        if len(types) == 1:
            hint = name if isinstance(name, str) else name[0] if name else self.hint
            node.results = (Value(claim(hint or node.op.name), types[0], node, 0),)
            return
        hint = name if isinstance(name, str) else None
        hints = [hint or self.hint or node.op.name] * len(types)
        if name and not isinstance(name, str):
            hints[: len(name)] = name
        node.results = tuple(
            Value(claim(hint), type, node, index)
            for index, (hint, type) in enumerate(zip(hints, types))
        )

    def _note(self, node: Node) -> None:
        if node.op.structure in _ORDERED:
            self._order.note(node)
        for result in node.results:
            if isinstance(result.type, TokenType):
                self.tokens.append(result)


def _emit_sugar(builder: Builder, record: OpDef, *operands: Any, **keywords: Any) -> Any:
    name = keywords.pop("name", None) if keywords else None
    return builder.emit(record, operands, keywords, name=name)


def _literal_first(values: Sequence[Value]) -> bool:
    """True where only the first of two operands is a literal."""
    left, right = values[0].node, values[1].node
    return (
        left is not None
        and left.op is constant_op
        and (right is None or right.op is not constant_op)
    )
