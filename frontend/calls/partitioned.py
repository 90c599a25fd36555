"""Functions over several devices: placed, partitioned, run by the dataflow executor.

Invariants: each value crosses to a device at most once; results are those of one device.
Not here: the passes and the executor.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..compiler.device import parse_device
from ..compiler.dims import Dim, Size
from ..compiler.ir.traversal import devices
from ..compiler.passes import PIPELINE
from ..compiler.passes.base import run_passes
from ..compiler.passes.partition import partition
from ..compiler.passes.place import Place
from ..compiler.passes.segments import PartProgram, Segment, cut
from ..devices import HOME, devices_for, queue_of
from ..runtime.executor import run_step
from ..runtime.transport import LocalTransport
from ..tracing.result import InputOutput, StaticOutput, TensorOutput
from ..tracing.state import Input
from .graph_function import GraphFunction
from .rebinding import apply_all, container_at
from .specialise import Traced


class Partitioned:
    """A traced function compiled in parts. `transport` counts what crosses."""

    def __init__(self, traced: Traced) -> None:
        self.traced = traced
        graph = run_passes(traced.trace.graph, PIPELINE).graph
        placed = Place(devices_for(devices(graph))).run(graph)
        self.programs: tuple[PartProgram, ...] = tuple(
            cut(part) for part in partition(placed, str(HOME))
        )
        self.transport = LocalTransport()
        self._steps = itertools.count()
        self._runners = {
            program.device: _Runner(program, traced.trace.variables) for program in self.programs
        }

    def run(self, leaves: Sequence[Any], values: Sequence[Any]) -> Any:
        """One call. leaves: its flat arguments; values: the arguments as they were passed."""
        arguments = [
            np.asarray(
                item.value if item.leaf is None else leaves[item.leaf], param.tensor.dtype.numpy
            )
            for item, param in zip(
                self.traced.trace.inputs, self.traced.trace.graph.params, strict=True
            )
        ]
        made = run_step(
            self.programs,
            self._runners,
            self.transport,
            {program.device: queue_of(parse_device(program.device)) for program in self.programs},
            next(self._steps),
            arguments,
        )
        for place, result in self.traced.trace.writes.items():
            self._input(place, leaves)[...] = made[result]
        return self._returned(made, leaves, values)

    def _input(self, place: int, leaves: Sequence[Any]) -> Any:
        item = self.traced.trace.inputs[place]
        return item.value if item.leaf is None else leaves[item.leaf]

    def _returned(
        self, made: Mapping[int, Any], leaves: Sequence[Any], values: Sequence[Any]
    ) -> Any:
        flat: list[Any] = []
        for output in self.traced.trace.outputs:
            if isinstance(output, TensorOutput):
                again = output.same_as
                flat.append(_converted(output, made) if again is None else flat[again])
            elif isinstance(output, StaticOutput):
                flat.append(output.value)
            elif isinstance(output, InputOutput):
                flat.append(self._input(output.input, leaves))
            else:
                flat.append(self._size(output.size, leaves))
        found = self.traced.trace.structure.rebuild(flat)
        if not self.traced.rebound:
            return found
        apply_all(self.traced.rebound, found[1], lambda place: container_at(values, place))
        return found[0]

    def _size(self, size: Size, leaves: Sequence[Any]) -> int:
        if not isinstance(size, Dim):
            return size
        places = self.traced.symbol_places
        return size.evaluate({s: leaves[places[s][0]].shape[places[s][1]] for s in size.symbols()})


def _converted(output: TensorOutput, made: Mapping[int, Any]) -> Any:
    """A result as what the function returned: an array, a NumPy scalar or a Python number."""
    array = np.asarray(made[output.result])
    if output.kind == "array":
        return array
    return array[()] if output.kind == "scalar" else array.item()


class _Runner:
    """Runs the segments of one device's part."""

    def __init__(self, program: PartProgram, variables: Mapping[str, Any]) -> None:
        self._functions = [_function(segment, variables) for segment in program.segments]

    def __call__(self, index: int, inputs: Sequence[Any]) -> Sequence[Any]:
        return self._functions[index](
            *[np.ascontiguousarray(a).reshape(np.shape(a)) for a in inputs]
        )


def _function(segment: Segment, variables: Mapping[str, Any]) -> GraphFunction:
    inputs = [Input("argument", param.name) for param in segment.graph.params]
    return GraphFunction(
        segment.graph, inputs, [None] * len(inputs), len(segment.outputs), variables
    )
