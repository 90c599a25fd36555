"""A function that a transform has traced: a graph over parameters of its own.

    inner = Inner(trace, regions, "jvp", f, arguments, places)
    values = pushforward(builder, inner.graph, inner.operands(values), ...)
    result = inner.finish(values)

It is traced as a body of control flow is (tracing/regions.py): values of the traces around it are
further parameters as they are met, and what it assigns, to Variables or to arrays around it, are
further results, which `finish` hands on. So its graph has neither reads nor writes, and can be made
again with another meaning.

Invariants: the function runs once, or once more for each set of Variables it is seen to assign.
Not here: what is made of the graph (the compiler's transforms), which leaves are parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..calls.trees import Tree, flatten
from ..compiler.ir.graph import Value
from ..control.carried import kind_of, traced_result
from ..intercept.callee import callee
from ..lifted import read
from ..numpy.operands import value_of
from ..tracing.memory import lifted_value
from ..tracing.regions import Handed, Region, Regions
from ..tracing.source import take_for_user_code
from ..tracing.state import Trace, fail
from ..tracing.tensor import fresh

Rebuild = Callable[[list[Any]], tuple[Sequence[Any], Mapping[str, Any]]]

_MOST_TRACES = 5  # Variables found by the way settle before that


class Inner:
    """See the module.

    leaves, rebuild: the arguments, and what makes (args, keywords) of their leaves. handed: what
    the parameters are, by the place of the leaf they stand for. further: parameters that the
    function does not see, which `begin` is given.
    """

    def __init__(
        self,
        trace: Trace,
        regions: Regions,
        name: str,
        function: Callable[..., Any],
        leaves: Sequence[Any],
        rebuild: Rebuild,
        handed: Mapping[int, Handed],
        further: Sequence[Handed] = (),
        begin: Callable[[Trace, list[Any]], None] | None = None,
    ) -> None:
        self.trace = trace
        self.leaves: list[Any] = []
        self.tree: Tree
        self.variables: dict[str, Any] = {}
        take_for_user_code(function)
        run = callee(function)

        def body(items: list[Any], inner: Trace) -> Sequence[Value]:
            given = [None if at in handed else _own(inner, leaf) for at, leaf in enumerate(leaves)]
            for place, item in zip(handed, items):
                given[place] = item
            if begin is not None:
                begin(inner, items[len(handed) :])
            args, keywords = rebuild(given)
            self.leaves, self.tree = flatten(run(*args, **keywords))
            return [value_of(read(leaf)) for leaf in self.leaves]

        for _ in range(_MOST_TRACES):
            known = list(self.variables.values())
            params = [_now(trace, item) for item in (*handed.values(), *further)]
            self.region: Region = regions.trace(name, params, body, known)
            found = {n: v for n, v in self.region.assigned.items() if n not in self.variables}
            self.variables.update(found)
            if not found:
                break
        else:
            raise fail("TM260", f"the function of {name} assigns other Variables on every trace")
        self.graph = self.region.graph

    def operands(self, values: Sequence[Value]) -> list[Value]:
        """Of the graph, around it: these for what it was handed, then what it uses."""
        held = [variable.get(self.trace) for variable in self.variables.values()]
        return [*values, *held, *self.region.captured]

    def operands_in(self, trace: Trace, values: Sequence[Value]) -> list[Value]:
        """The same for a trace inside the one that it was traced in."""
        return [lifted_value(trace, value, self.trace) for value in self.operands(values)]

    def finish(self, values: Sequence[Value]) -> Any:
        """What the function gives, of the values of the graph's results; what it assigned is
        assigned."""
        for variable, value in zip(self.variables.values(), values[len(self.leaves) :]):
            variable.put(self.trace, value)
        return self.rebuild(values[: len(self.leaves)])

    def rebuild(self, values: Sequence[Value]) -> Any:
        """These values, nested as what the function gives."""
        leaves = [traced_result(self.trace, v, like) for v, like in zip(values, self.leaves)]
        return self.tree.rebuild(leaves)


def _now(trace: Trace, item: Handed) -> Handed:
    """A parameter over the sizes that remain: an earlier run may have found some to be equal."""
    return replace(item, tensor=item.tensor.substitute(trace.sizes.replaced))


def handed(name: str, leaf: Any) -> Handed:
    """A parameter for an argument that the function sees as it is."""
    return Handed(name, value_of(leaf).tensor, kind_of(leaf))


def _own(trace: Trace, leaf: Any) -> Any:
    """An argument that is no parameter: an array of its own for an array."""
    kind = kind_of(leaf) if hasattr(leaf, "dtype") else None
    return fresh(trace, value_of(leaf)) if kind == "array" else leaf
