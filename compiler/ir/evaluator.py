"""Runs a graph by the ops' NumPy references: the oracle of every other way to run it.

Only what the results need is run, tokens included: an effect whose token the graph does not
return has not been kept.

Invariants: arguments and stored arrays are not changed; results are fresh arrays. Variables are
written, all or nothing, once every node has run. Every result is compared with its type.
Not here: speed; devices (a send hands its value to the recv of its key).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping, Sequence
from typing import Any

import numpy as np

from ..dims import Dim, Size, dim_text
from ..errors import error
from ..ops.definition import Structure
from ..raising import from_text
from ..types import TensorType, TokenType, dtype_of
from .attrs import has_dims, substitute_value
from .graph import Graph, Node, Value
from .traversal import last_uses, needed

Array = np.ndarray[Any, Any]
Store = MutableMapping[str, Array]


def evaluate(
    graph: Graph,
    args: Sequence[Any],
    store: Store | None = None,
    *,
    show: Callable[[str], None] = print,
    mailbox: MutableMapping[str, Array] | None = None,
    watch: Callable[[Value, Array], None] | None = None,
) -> tuple[Array, ...]:
    """The tensor results for `args`. Raises what a compiled call would raise.

    store: the variables' arrays, by name. show: prints a text. mailbox: values sent and not yet
    received, by key. watch: sees every value as it is made.
    """
    arrays = [np.asarray(arg) for arg in args]
    env = bind_sizes(graph, arrays)
    run = _Run(env, store if store is not None else {}, show, mailbox, watch)
    values = run.graph(graph, arrays)
    for name, array in run.written.items():
        run.store[name] = np.array(array)
    return tuple(
        np.array(value)
        for value, result in zip(values, graph.results)
        if isinstance(result.type, TensorType)
    )


def bind_sizes(graph: Graph, arrays: Sequence[Array]) -> dict[str, int]:
    """The value of each symbol in the parameters' shapes. Raises ShapeError, DTypeError."""
    if len(arrays) != len(graph.params):
        raise error("TM201", f"@{graph.name} takes {len(graph.params)} arrays, got {len(arrays)}")
    env: dict[str, int] = {}
    later: list[tuple[Value, int, Dim, int]] = []
    for param, array in zip(graph.params, arrays):
        type = param.tensor
        if array.dtype != type.dtype.numpy:
            raise error("TM202", f"%{param.name} is {type}, got an array of {array.dtype}")
        if array.ndim != type.rank:
            raise error("TM208", f"%{param.name} is {type}, got an array of shape {array.shape}")
        for axis, (size, extent) in enumerate(zip(type.shape, array.shape)):
            name = size.name if isinstance(size, Dim) else None
            if name is not None and name not in env:
                env[name] = extent
            elif isinstance(size, Dim):
                later.append((param, axis, size, extent))
            elif size != extent:
                raise _misfit(param, axis, size, extent)
    _solve(later, env)
    for param, axis, dim, extent in later:
        if dim.substitute(env) != extent:
            raise _misfit(param, axis, dim, extent)
    return env


def _solve(later: Sequence[tuple[Value, int, Dim, int]], env: dict[str, int]) -> None:
    """Find symbols that stand in no shape alone, from sizes linear in them."""
    for _, _, dim, extent in later:
        left = dim.substitute(env)
        if not isinstance(left, Dim) or len(left.symbols()) != 1:
            continue
        (symbol,) = left.symbols()
        factor = left.coefficient(symbol)
        rest = left.substitute({symbol: 0})
        if isinstance(factor, int) and factor and isinstance(rest, int):
            env[symbol] = (extent - rest) // factor


def _misfit(param: Value, axis: int, size: Size, extent: int) -> Exception:
    return error(
        "TM209",
        f"%{param.name} is {param.type}, got size {extent} in axis {axis}",
        detail=f"expected {dim_text(size)}",
        sizes=(size, extent),
    )


class _Run:
    def __init__(
        self,
        env: Mapping[str, int],
        store: Store,
        show: Callable[[str], None],
        mailbox: MutableMapping[str, Array] | None,
        watch: Callable[[Value, Array], None] | None,
    ) -> None:
        self.env = env
        self.store = store
        self.written: dict[str, Any] = {}
        self._show = show
        self._mailbox: MutableMapping[str, Array] = mailbox if mailbox is not None else {}
        self._watch = watch

    def graph(self, graph: Graph, args: Sequence[Any]) -> list[Any]:
        """The results, None for tokens."""
        values: dict[Value, Any] = dict(zip(graph.params, args))
        done, alive = last_uses(graph), needed(graph)
        for node in graph.nodes:
            if node not in alive:
                continue
            made = self._node(node, [values[v] for v in node.operands])
            for result, array in zip(node.results, made):
                values[result] = self._result(node, result, array)
            for value in done.get(node, ()):
                values.pop(value, None)
        return [values.get(result) for result in graph.results]

    def _node(self, node: Node, arrays: list[Any]) -> Sequence[Any]:
        op, attrs = node.op, node.attrs
        if has_dims(attrs):
            attrs = {key: substitute_value(value, self.env) for key, value in attrs.items()}
        if node.regions:
            return self._regions(node, arrays, attrs)
        if node.variable is not None:
            return self._state(node, arrays, attrs)
        if op.structure is Structure.TRANSFER:
            return self._transfer(node, arrays, attrs)
        with np.errstate(all="ignore"):
            made = op.reference(*arrays, **attrs)
        return _each(node, made)

    def _regions(self, node: Node, arrays: list[Any], attrs: Mapping[str, Any]) -> Sequence[Any]:
        if node.op.structure is not Structure.FLOW:
            regions = [_Region(self, region) for region in node.regions]
            return _each(node, node.op.reference(*arrays, regions=regions, **attrs))
        flows = [_Flow(self, region) for region in node.regions]
        made = node.op.reference(*arrays, regions=flows, **attrs)
        return [*made, *[None] * (len(node.results) - len(made))]

    def _state(self, node: Node, arrays: list[Any], attrs: Mapping[str, Any]) -> Sequence[Any]:
        name = node.variable or ""
        current = self.written.get(name, self.store.get(name))
        if current is None:
            raise error("TM130", f"the store has no variable @{name}", place=node.location)
        made = node.op.reference(current, *arrays, **attrs)
        if isinstance(node.results[0].type, TokenType):
            self.written[name] = made
            return [None]
        return [made]

    def _transfer(self, node: Node, arrays: list[Any], attrs: Mapping[str, Any]) -> Sequence[Any]:
        key = attrs["key"]
        if arrays:
            self._mailbox[key] = node.op.reference(*arrays, **attrs)
            return [None]
        if key not in self._mailbox:
            raise error("TM130", f"nothing was sent as {key!r}", place=node.location)
        return [node.op.reference(self._mailbox.pop(key), **attrs)]

    def _result(self, node: Node, result: Value, made: Any) -> Any:
        if isinstance(result.type, TokenType):
            self._token(node, made)
            return None
        array = np.asarray(made)
        shape = tuple(
            s.substitute(self.env) if isinstance(s, Dim) else s for s in result.type.shape
        )
        if array.shape != shape or array.dtype != result.type.dtype.numpy:
            raise error(
                "TM304",
                f"%{result.name} of {node.op.name} is {result.type}, its reference gave "
                f"{dtype_of(array.dtype) or array.dtype}{list(array.shape)}",
                place=node.location,
            )
        if self._watch is not None:
            self._watch(result, array)
        return array

    def _token(self, node: Node, made: Any) -> None:
        """None is success; a text is what to show, or of an op that can fail, its complaint."""
        if made is None:
            return
        if "raises" in node.attrs:
            raise from_text(node.attrs["raises"], node.attrs["arguments"], node.location)
        if node.op.facts.can_fail:
            raise error(node.attrs.get("code", node.op.failure), made, place=node.location)
        self._show(made)


class _Region:
    """A region that references call as a function of arrays."""

    def __init__(self, run: _Run, region: Graph) -> None:
        self._run = run
        self._region = region

    def __call__(self, *arrays: Any) -> Any:
        made = self._run.graph(self._region, arrays)
        return made[0] if len(made) == 1 else tuple(made)


class _Flow:
    """A region of control flow: a function of arrays that gives a tuple of its tensors.

    forms: their shapes and dtypes.
    """

    def __init__(self, run: _Run, region: Graph) -> None:
        self._run = run
        self._region = region
        tensors = [r.type for r in region.results if isinstance(r.type, TensorType)]
        self.forms = [
            (tuple([substitute_value(size, run.env) for size in t.shape]), t.dtype.numpy)
            for t in tensors
        ]

    def __call__(self, *arrays: Any) -> tuple[Any, ...]:
        made = self._run.graph(self._region, arrays)
        return tuple(np.asarray(array) for array, _ in zip(made, self.forms))


def _each(node: Node, made: Any) -> Sequence[Any]:
    return [made] if len(node.results) == 1 else made
