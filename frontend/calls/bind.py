"""From a traced version and its plan to the tables that the native entry tests and runs.

Invariants: an input comes after the container it is found in; every guard of the trace becomes a
native test, so what the tables accept is exactly what `Traced.mismatch` accepts.
Not here: the tables themselves (backends/llvm/native).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..backends.llvm.native.constants import constant_input
from ..backends.llvm.native.encoder import (
    Frame,
    Given,
    Held,
    InputSpec,
    NativeSpecialisation,
    Part,
    SizeSpec,
    Structure,
)
from ..backends.llvm.native.from_plan import Leaf, SizeRelation, place, specialisation_of
from ..backends.llvm.native.layout import Build, Kind, Source
from ..compiler.dims import Dim, Size
from ..compiler.plan import ExecutionPlan, Origin
from ..compiler.records import replace
from ..printing import callback
from ..tracing.access import Access, AttributeStep, CellContent, FlatArgument, GlobalName, Root
from ..tracing.guards import (
    AxesGuard,
    CaptureGuard,
    ScalarGuard,
    SizeGuard,
    StridesGuard,
    has_length,
    is_identical,
    is_same,
)
from ..tracing.result import InputOutput, Output, SizeOutput, StaticOutput, TensorOutput
from .overlap import by_place
from .rebinding import Original, Place, apply_all
from .specialise import ArraySpec, StaticSpec, Traced

_CONTAINERS: Mapping[type, Kind] = {tuple: Kind.TUPLE, list: Kind.LIST, dict: Kind.DICT}
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
    table.add_sharings()
    return specialisation_of(
        plan,
        kernels,
        table.inputs,
        frame=table.frame,
        tests=table.tests,
        relations=table.relations,
        measures=table.measures,
        together=table.together,
        symbols={
            s: (table.leaf_at[leaf], axis) for s, (leaf, axis) in traced.symbol_places.items()
        },
        cells=cells,
        callbacks=[callback(attributes, traced.trace.graph) for attributes in plan.callbacks],
        result=_result(traced, positions, table.container_at),
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
        self.measures: dict[str, tuple[int, str, int]] = {}
        self.together: list[list[int]] = []
        self.leaf_at: dict[int, int] = {}
        self._captured_at: dict[int, int] = {}
        self.leaf_places: list[InputSpec] = []
        self.container_at: dict[Place, int] = {}
        self._parts: dict[object, int] = {}
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
        """All flat arguments, each after the containers it is found in."""
        for index, spec in enumerate(self.traced.tree.spec.children()):
            self._add_tree(spec, place(Source.ARGUMENT, origin=index), (index,))

    def _add_tree(self, spec: Any, where: InputSpec, keys: Place) -> None:
        """An argument or a part of one: a leaf, or a container and then its parts."""
        if spec.is_leaf():
            leaf = len(self.leaf_at)
            self.leaf_places.append(where)
            self.leaf_at[leaf] = self._add_leaf(leaf, where)
            return
        if spec.type is type(None):
            self._constant(where, None)
            return
        kind = _CONTAINERS.get(spec.type)
        if kind is None:
            entry = replace(where, kind=Kind.CHECK, type=_type_test(spec.type))
        else:
            entry = replace(where, kind=kind, ndim=spec.num_children)
        parent = self.container_at[keys] = self.add(entry)
        for key, part in zip(spec.entries(), spec.children(), strict=True):
            self._add_tree(part, _found_in(parent, spec.type, key), (*keys, key))

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

    def add_captured(self) -> None:
        """Arrays from outside: read again at every call."""
        for position, item in enumerate(self.traced.trace.inputs):
            if item.kind == "captured":
                held = Leaf(Origin.CAPTURED, position, place(Source.OBJECT, key=item.value))
                self._captured_at[position] = self.add(held)

    def add_guards(self) -> None:
        """What the trace took for granted."""
        for guard in self.traced.trace.guards:
            if isinstance(guard, SizeGuard):
                self.relations.append(SizeRelation(guard.left, guard.relation, guard.right))
            elif isinstance(guard, StridesGuard | AxesGuard | CaptureGuard):
                self._check(guard)

    def add_sharings(self) -> None:
        """How arrays lie in memory that they share."""
        places = self.traced.places()
        for number, sharing in enumerate(self.traced.sharings):
            inputs = [self._input_at(position) for position in by_place(sharing, places)]
            self.together.append(inputs)
            names = {name: f"{name}.{number}" for name in sharing.measures}
            for name, (member, what, axis) in sharing.measures.items():
                self.measures[names[name]] = inputs[member], what, axis
            self.relations += [
                SizeRelation(_renamed(t.left, names), t.relation, _renamed(t.right, names))
                for t in sharing.tests
            ]

    def _input_at(self, position: int) -> int:
        """The input that a parameter of the graph is."""
        leaf = self.traced.trace.inputs[position].leaf
        return self._captured_at[position] if leaf is None else self.leaf_at[leaf]

    def _check(self, guard: StridesGuard | AxesGuard | CaptureGuard) -> None:
        """A guard that Python tests: a predicate on the argument, or on what is outside."""
        if isinstance(guard, StridesGuard | AxesGuard):
            where = self.leaf_places[guard.leaf]
            test = _strides_test(guard)
            self.add(replace(where, kind=Kind.CHECK, type=test))
            return
        place_of = self._read(guard.read)
        if guard.check is is_identical:
            self.add(replace(place_of, kind=Kind.IDENTICAL, type=guard.expected))
        elif guard.check is is_same:
            self._constant(place_of, guard.expected)
        elif guard.check is has_length:
            container, length = guard.expected
            kind = _CONTAINERS[container]
            key = (_identity(guard.read.root), guard.read.steps, kind)
            self._part(key, place_of, kind, length)
        else:
            self.add(replace(place_of, kind=Kind.CHECK, type=_capture_test(guard)))

    def _read(self, access: Access) -> InputSpec:
        """Where something outside is found; what it is found in becomes inputs first."""
        where = self._root(access.root)
        for count, step in enumerate(access.steps):
            done = (_identity(access.root), access.steps[:count])
            if isinstance(step, AttributeStep):
                parent = self._part((*done, Kind.ANY), where, Kind.ANY)
                where = place(Source.ATTRIBUTE, origin=parent, key=step.name)
            else:
                kind = _CONTAINERS.get(step.container, Kind.CHECK)
                parent = self._part((*done, kind), where, kind, step.length, step.container)
                where = _found_in(parent, step.container, step.key)
        return where

    def _root(self, root: Root) -> InputSpec:
        if isinstance(root, GlobalName):
            held = place(Source.OBJECT, key=root.namespace)
            space = self._part(id(root.namespace), held, Kind.ANY)
            return place(Source.DICT_ITEM, origin=space, key=root.name)
        if isinstance(root, CellContent):
            return place(Source.CELL, key=root.cell)
        if isinstance(root, FlatArgument):
            return self.leaf_places[root.leaf]
        return place(Source.OBJECT, key=root.thing)

    def _part(
        self, key: object, where: InputSpec, kind: Kind, length: int = 0, container: Any = None
    ) -> int:
        """The input that is something other inputs are found in, made once."""
        known = self._parts.get(key)
        if known is None:
            test = _type_test(container) if kind is Kind.CHECK else None
            entry = replace(where, kind=kind, ndim=length, type=test)
            known = self._parts[key] = self.add(entry)
        return known


def _renamed(size: Size, names: Mapping[str, str]) -> Size:
    if not isinstance(size, Dim):
        return size
    return size.substitute({old: Dim.symbol(new) for old, new in names.items()})


def _identity(root: Root) -> object:
    """A key for a root: the identities of what it names."""
    if isinstance(root, GlobalName):
        return id(root.namespace), root.name
    if isinstance(root, FlatArgument):
        return root
    return id(root.cell if isinstance(root, CellContent) else root.thing)


def _capture_test(guard: CaptureGuard) -> Callable[[object], bool]:
    return lambda now: guard.check(now, guard.expected)


def _found_in(parent: int, container: type, key: Any) -> InputSpec:
    """Where a part of a container is found; optree's entries of dataclasses are their names."""
    if container in (tuple, list):
        return place(Source.SEQUENCE_ITEM, origin=parent, index=key)
    if issubclass(container, dict):
        return place(Source.DICT_ITEM, origin=parent, key=key)
    if issubclass(container, tuple):  # a named tuple
        fields: tuple[str, ...] = container._fields  # type: ignore[attr-defined]
        return place(Source.ATTRIBUTE, origin=parent, key=fields[key])
    return place(Source.ATTRIBUTE, origin=parent, key=key)


def _type_test(kind: type) -> Callable[[object], bool]:
    return lambda thing: type(thing) is kind


def _strides_test(guard: StridesGuard | AxesGuard) -> Callable[[object], bool]:
    return lambda array: guard.holds({guard.leaf: array})  # type: ignore[arg-type]


def _result(traced: Traced, positions: Mapping[int, int], containers: Mapping[Place, int]) -> Part:
    """How the value returned is made of the plan's results."""
    outputs = traced.trace.outputs
    parts = tuple(_part(traced, output, i, positions) for i, output in enumerate(outputs))
    tree = traced.trace.structure
    if traced.rebound:
        return _rebinding(traced, parts, containers)
    if len(parts) == 1 and tree.spec.is_leaf():
        return parts[0]
    kind = tree.spec.type
    if kind is tuple and all(child.is_leaf() for child in tree.spec.children()):
        return Structure(Build.TUPLE, parts)
    return Structure(Build.CALL, parts, lambda *leaves: tree.rebuild(leaves))


def _rebinding(traced: Traced, parts: tuple[Part, ...], containers: Mapping[Place, int]) -> Part:
    """The result of a function that rebinds entries of its arguments, which are its last act."""
    tree, rebound = traced.trace.structure, traced.rebound
    statics = [o.value for o in traced.trace.outputs if isinstance(o, StaticOutput)]
    originals = [thing.place for thing in statics if isinstance(thing, Original)]
    places = list(dict.fromkeys([*originals, *(change.place for change in rebound)]))
    count = len(places)

    def finish(*items: Any) -> Any:
        results, values = tree.rebuild(items[count:])
        apply_all(rebound, values, dict(zip(places, items[:count], strict=True)).__getitem__)
        return results

    given = tuple(Given(containers[place]) for place in places)
    return Structure(Build.CALL, (*given, *parts), finish)


def _part(traced: Traced, output: Output, index: int, positions: Mapping[int, int]) -> Part:
    if isinstance(output, StaticOutput):
        return Held(output.value)
    if isinstance(output, SizeOutput):
        return _size(traced, output.size, positions)
    if isinstance(output, InputOutput):
        return positions[index]
    assert isinstance(output, TensorOutput), output
    if output.kind in _PYTHON:
        return Structure(Build.CALL, (positions[index],), _PYTHON[output.kind])
    if output.kind == "array" and not traced.trace.graph.results[output.result].tensor.shape:
        first = index if output.same_as is None else output.same_as
        return Structure(Build.CALL, (positions[first],), np.asarray)  # rank 0, but no scalar
    return positions[index]


def _size(traced: Traced, size: Size, positions: Mapping[int, int]) -> Structure | Held:
    """A size as a Python int, from the arrays it is the size of."""
    if not isinstance(size, Dim):
        return Held(size)
    places = traced.size_places(size)
    parts = tuple(positions[-1 - parameter] for parameter, _ in places.values())

    def evaluate(*arrays: Any) -> int:
        extents = zip(places.items(), arrays, strict=True)
        return size.evaluate({s: array.shape[axis] for (s, (_, axis)), array in extents})

    return Structure(Build.CALL, parts, evaluate)
