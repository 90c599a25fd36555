"""A graph as a native function: arrays in, a tuple of arrays out.

What steps of a program and segments of a partitioned function are made of.

Invariants: arguments are the graph's parameters in order, but for captured arrays, which are read
at each call; a call that does not fit raises, it never compiles.
Not here: tracing, choosing versions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .. import engine
from ..backends.llvm.native.encoder import encode
from ..backends.llvm.native.launches import kernel_words
from ..backends.llvm.native.runtime import Parameter
from ..compiler.errors import error
from ..compiler.ir.graph import Graph
from ..compiler.records import replace
from ..progress import compiling
from ..tracing.guards import Guard, SizeGuard
from ..tracing.result import TensorOutput, TraceResult
from ..tracing.state import Input
from .arguments import flat_call
from .bind import bind
from .built import build
from .failures import raise_failure
from .specialise import ArraySpec, LeafSpec, Traced
from .tracebacks import for_users
from .trees import flatten


class GraphFunction:
    """See the module. names: the arguments; what they must be is in `traced`."""

    def __init__(
        self,
        graph: Graph,
        inputs: Sequence[Input],
        specs: Sequence[LeafSpec | None],
        count: int,
        variables: Mapping[str, Any],
        guards: Sequence[Guard] = (),
    ) -> None:
        """inputs, specs: one per parameter; a spec of None follows from the parameter's type.

        count: how many of the results are returned; the others are tokens. variables: of the
        trace. guards: those over sizes that the parameters show are kept.
        """
        self.traced = _traced(graph, inputs, specs, count, guards, variables)
        self.names = self.traced.names
        with compiling(graph.name):
            self._built = build(self.traced)
        built = self._built
        native = bind(
            self.traced,
            built.plan,
            built.positions,
            built.loaded.addresses,
            built.cells,
            built.keep,
        )
        self._encoded = encode(native)
        engine.codes().follow(self._encoded, kernel_words(self._encoded))
        parameters = [Parameter(name) for name in self.names]
        self._native = engine.native().new_function(parameters, self._refused, self._fail, self)
        engine.native().install(self._native, self._encoded)

    def __call__(self, *arguments: Any) -> tuple[Any, ...]:
        """Run it. Raises ShapeError for arguments that do not fit."""
        results: tuple[Any, ...] = self._native(*arguments)
        return results

    @for_users
    def _refused(self, *arguments: Any) -> Any:
        reason = self.traced.mismatch(flat_call(arguments))
        raise error("TM209", f"a value does not fit the compiled step: {reason}")

    @for_users
    def _fail(self, owner: Any, code: int, node: int, *payload: int) -> Any:
        raise_failure(self._built.plan, code, node, payload)


def _traced(
    graph: Graph,
    inputs: Sequence[Input],
    specs: Sequence[LeafSpec | None],
    count: int,
    guards: Sequence[Guard],
    variables: Mapping[str, Any],
) -> Traced:
    """The graph dressed as a traced function of its parameters."""
    placed: list[Input] = []
    kept: list[LeafSpec] = []
    names: list[str] = []
    places: dict[str, tuple[int, int]] = {}
    for value, item, given in zip(graph.params, inputs, specs, strict=True):
        if item.kind == "captured":
            placed.append(item)
            continue
        spec = given or ArraySpec(value.tensor.dtype, value.tensor.shape, False)
        placed.append(replace(item, leaf=len(names)))
        if isinstance(spec, ArraySpec):
            for axis, size in enumerate(spec.shape):
                symbol = getattr(size, "name", None)
                if symbol is not None:
                    places.setdefault(symbol, (len(names), axis))
        kept.append(spec)
        names.append(value.name)
    sizes = tuple(g for g in guards if isinstance(g, SizeGuard) and _symbols(g) <= places.keys())
    outputs = tuple(
        TensorOutput(i, "array" if v.tensor.rank else "scalar")
        for i, v in enumerate(graph.results[:count])
    )
    _, structure = flatten(tuple(range(count)))
    _, tree = flatten(tuple(range(len(names))))
    result = TraceResult(
        graph, tuple(placed), outputs, structure, {}, sizes, graph.hints, {}, variables
    )
    return Traced(tree, tuple(kept), tuple(names), places, result)


def _symbols(guard: SizeGuard) -> set[str]:
    sides = (guard.left, guard.right)
    return {s for side in sides for s in (() if isinstance(side, int) else side.symbols())}
