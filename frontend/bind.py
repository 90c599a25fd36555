"""From a traced version and its plan to the tables that the native entry tests and runs.

Invariants: an input comes after the container it is found in; every guard of the trace becomes a
native test, so what the tables accept is exactly what `Traced.mismatch` accepts.
Not here: the tables themselves (backends/llvm/native).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from .backends.llvm.native.constants import constant_input
from .backends.llvm.native.encoder import (
    Frame,
    Held,
    InputSpec,
    NativeSpecialisation,
    SizeSpec,
    Structure,
)
from .backends.llvm.native.from_plan import Leaf, SizeRelation, place, specialisation_of
from .backends.llvm.native.layout import Build, Kind, Source
from .compiler.plan import ExecutionPlan, Origin
from .specialise import ArraySpec, StaticSpec, Traced
from .tracing.guards import CaptureGuard, ScalarGuard, SizeGuard, StridesGuard
from .tracing.result import InputOutput, Output, StaticOutput, TensorOutput
from .trees import Path, flatten, paths

_CONTAINERS = {tuple: Kind.TUPLE, list: Kind.LIST, dict: Kind.DICT}
_PYTHON = {"bool": bool, "int": int, "float": float, "complex": complex}


def bind(
    traced: Traced,
    plan: ExecutionPlan,
    positions: Mapping[int, int],
    kernels: Sequence[int],
    cells: Mapping[str, int],
    keep: Sequence[object],
) -> NativeSpecialisation:
    """The native form of a version.

    positions: flat output -> position in ``plan.results``. kernels: addresses. cells: addresses
    of the variables' cells. keep: what the addresses need alive.
    """
    table = _Inputs(traced)
    table.add_leaves()
    table.add_captured()
    table.add_guards()
    return specialisation_of(
        plan,
        kernels,
        table.inputs,
        frame=table.frame,
        tests=table.tests,
        relations=table.relations,
        symbols={s: (table.leaf_at[leaf], axis) for s, (leaf, axis) in traced.symbol_places.items()},
        cells=cells,
        result=_result(traced, positions),
        keep=keep,
    )


class _Inputs:
    """The objects of a call in the order in which they are found, and the tests on them."""

    def __init__(self, traced: Traced) -> None:
        self.traced = traced
        self.frame = Frame()
        self.inputs: list[InputSpec | Leaf] = []
        self.tests: list[SizeSpec] = []
        self.relations: list[SizeRelation] = []
        self.leaf_at: dict[int, int] = {}
        self._containers: dict[Path, int] = {}
        self._params = {
            item.leaf: (position, item)
            for position, item in enumerate(traced.trace.inputs)
            if item.leaf is not None
        }
        self._fixed = {
            guard.leaf: guard.expected
            for guard in traced.trace.guards
            if isinstance(guard, ScalarGuard)
        }

    def add(self, entry: InputSpec | Leaf) -> int:
        """Append an input; its number."""
        self.inputs.append(entry)
        return len(self.inputs) - 1

    def add_leaves(self) -> None:
        """All flat arguments, with the containers they are found in."""
        for leaf, path in enumerate(paths(self.traced.tree)):
            self.leaf_at[leaf] = self._add_leaf(leaf, self._at(path))
        self._pin_empty_containers()

    def _add_leaf(self, leaf: int, where: InputSpec) -> int:
        spec = self.traced.specs[leaf]
        if isinstance(spec, StaticSpec):
            return self._constant(where, spec.value)
        position, item = self._params[leaf]
        if leaf in self._fixed:
            self._constant(where, self._fixed[leaf])
        if isinstance(spec, ArraySpec):
            return self.add(Leaf(Origin.ARGUMENT, position, where))
        if item.kind == "scalar":
            return self.add(Leaf(Origin.SCALAR, position, where))
        return self.add(Leaf(Origin.ARGUMENT, position, where, spec.type))

    def _constant(self, where: InputSpec, value: object) -> int:
        entry, tests = constant_input(self.frame, where, value)
        self.tests += tests
        return self.add(entry)

    def _at(self, path: Path) -> InputSpec:
        """Where a leaf is found; its containers become inputs first."""
        first = path[0].key
        if len(path) == 1:
            return place(Source.ARGUMENT, origin=first)
        parent = self._container(path[:-1], path[-1].container)
        return _found_in(parent, path)

    def _container(self, path: Path, kind: type) -> int:
        known = self._containers.get(path)
        if known is not None:
            return known
        if len(path) == 1:
            where = place(Source.ARGUMENT, origin=path[0].key)
        else:
            where = _found_in(self._container(path[:-1], path[-1].container), path)
        children = {p[len(path)].key for p in paths(self.traced.tree) if p[: len(path)] == path}
        count = len(children)
        test = _CONTAINERS.get(kind)
        if test is None:
            entry = replace(where, kind=Kind.CHECK, type=lambda thing: type(thing) is kind)
        else:
            entry = replace(where, kind=test, ndim=count)
        self._containers[path] = self.add(entry)
        return self._containers[path]

    def _pin_empty_containers(self) -> None:
        """Parts of the tree without leaves (None, empty containers) are compared as they are."""
        known = {path[0].key for path in paths(self.traced.tree)}
        for index, spec in enumerate(self.traced.tree.spec.children()):
            if index not in known:
                tree = spec
                self.add(
                    replace(
                        place(Source.ARGUMENT, origin=index),
                        kind=Kind.CHECK,
                        type=_structure_check(tree),
                    )
                )

    def add_captured(self) -> None:
        """Arrays from outside: read again at every call."""
        for position, item in enumerate(self.traced.trace.inputs):
            if item.kind == "captured":
                self.add(Leaf(Origin.CAPTURED, position, place(Source.OBJECT, key=item.value)))

    def add_guards(self) -> None:
        """What the trace took for granted."""
        for guard in self.traced.trace.guards:
            if isinstance(guard, SizeGuard):
                self.relations.append(SizeRelation(guard.left, guard.relation, guard.right))
            elif isinstance(guard, StridesGuard | CaptureGuard):
                self._check(guard)

    def _check(self, guard: StridesGuard | CaptureGuard) -> None:
        """A guard that Python tests: a predicate on the argument, or on what is outside."""
        if isinstance(guard, StridesGuard):
            where = self._at(paths(self.traced.tree)[guard.leaf])
            test = _strides_test(guard)
            self.add(replace(where, kind=Kind.CHECK, type=test))
            return
        statics = [s.value if isinstance(s, StaticSpec) else None for s in self.traced.specs]
        where = place(Source.OBJECT, key=guard.path)
        self.add(replace(where, kind=Kind.CHECK, type=lambda _: guard.holds(statics)))


def _found_in(parent: int, path: Path) -> InputSpec:
    step = path[-1]
    if step.attribute:
        return place(Source.ATTRIBUTE, origin=parent, key=step.key)
    if issubclass(step.container, tuple | list):
        return place(Source.SEQUENCE_ITEM, origin=parent, index=step.key)
    return place(Source.DICT_ITEM, origin=parent, key=step.key)


def _strides_test(guard: StridesGuard) -> Callable[[object], bool]:
    return lambda array: guard.holds({guard.leaf: array})  # type: ignore[arg-type]


def _structure_check(spec: Any) -> Callable[[object], bool]:
    return lambda thing: flatten(thing)[1].spec == spec


def _result(traced: Traced, positions: Mapping[int, int]) -> int | Structure | Held:
    """How the value returned is made of the plan's results."""
    outputs = traced.trace.outputs
    parts = tuple(_part(output, i, positions) for i, output in enumerate(outputs))
    tree = traced.trace.structure
    if len(parts) == 1 and tree.spec.is_leaf():
        return parts[0]
    kind = tree.spec.type
    if kind is tuple and all(child.is_leaf() for child in tree.spec.children()):
        return Structure(Build.TUPLE, parts)
    return Structure(Build.CALL, parts, lambda *leaves: tree.rebuild(leaves))


def _part(output: Output, index: int, positions: Mapping[int, int]) -> int | Structure | Held:
    if isinstance(output, StaticOutput):
        return Held(output.value)
    if isinstance(output, InputOutput):
        return positions[index]
    assert isinstance(output, TensorOutput), output
    if output.kind in _PYTHON:
        return Structure(Build.CALL, (positions[index],), _PYTHON[output.kind])
    return positions[index]


def copied(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A second array of the same content, for a result that is returned twice."""
    return array.copy()
