"""The dataflow executor: runs the segments of a step as their inputs arrive.

`StepState` is the decision half: events in (a segment is done, a value arrived), actions out
(run this segment, send that value). It knows no threads, clocks or transports, so a simulator
can drive it as well as `run_step`, the half that acts.

Invariants: a segment runs once, after all its inputs and awaited tokens; a failed step aborts
its transfers, so nothing waits for ever; steps share nothing but the transport and the store.
Not here: what a segment is (compiler/passes/segments.py), how one computes (`Runner`).
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import field
from typing import Any

from ..compiler.passes.segments import PartProgram, Send
from ..compiler.records import dataclass
from .transport import Continuation, Key, Transport

# Runs segment `index` of a part on its inputs and returns its outputs.
Runner = Callable[[int, Sequence[Any]], Sequence[Any]]


@dataclass(frozen=True, slots=True)
class Run:
    """Run segment `index` on these inputs."""

    index: int
    inputs: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Deliver:
    """Send `value` under `key`."""

    key: str
    value: Any


Action = Run | Deliver


@dataclass(slots=True)
class StepState:
    """One device's share of one step: what is known, what still waits."""

    program: PartProgram
    values: dict[str, Any] = field(default_factory=dict)
    _users: dict[str, list[int]] = field(default_factory=dict)
    _missing: list[int] = field(default_factory=list)
    _sends: dict[str, list[Send]] = field(default_factory=dict)
    _running: int = 0

    def start(self, arguments: Sequence[Any]) -> list[Action]:
        """Index the program; what can run with the arguments alone."""
        for index, segment in enumerate(self.program.segments):
            names = {*segment.inputs, *segment.waits}
            self._missing.append(len(names))
            for name in names:
                self._users.setdefault(name, []).append(index)
        for send in self.program.sends:
            self._sends.setdefault(send.value, []).append(send)
        actions: list[Action] = [
            self._run(i) for i, count in enumerate(self._missing) if count == 0
        ]
        for position, name in self.program.params:
            actions += self.arrived(name, arguments[position])
        return actions

    def arrived(self, name: str, value: Any) -> list[Action]:
        """A value is there: received, an argument, or made by a segment."""
        self.values[name] = value
        actions: list[Action] = [Deliver(send.key, value) for send in self._sends.get(name, ())]
        for index in self._users.get(name, ()):
            self._missing[index] -= 1
            if self._missing[index] == 0:
                actions.append(self._run(index))
        return actions

    def done(self, index: int, outputs: Sequence[Any]) -> list[Action]:
        """A segment has run."""
        segment = self.program.segments[index]
        self._running += 1
        actions: list[Action] = []
        for name, value in zip(segment.outputs, outputs, strict=True):
            actions += self.arrived(name, value)
        for name in segment.marks:
            actions += self.arrived(name, None)
        return actions

    @property
    def finished(self) -> bool:
        """All segments have run and all results are there."""
        outputs = all(name in self.values for _, name in self.program.outputs)
        return self._running == len(self.program.segments) and outputs

    def _run(self, index: int) -> Run:
        inputs = tuple(self.values[name] for name in self.program.segments[index].inputs)
        return Run(index, inputs)


def run_step(
    programs: Sequence[PartProgram],
    runners: Mapping[str, Runner],
    transport: Transport,
    queues: Mapping[str, Executor],
    step: int,
    arguments: Sequence[Any],
) -> dict[int, Any]:
    """Run one step over all parts, each on its device's queue; returns results by position.

    Raises what a segment raises.
    """
    part_runs = [
        _PartRun(p, runners[p.device], transport, queues[p.device], step) for p in programs
    ]
    try:
        for part in part_runs:
            part.begin(arguments)
        return {at: value for part in part_runs for at, value in part.wait().items()}
    except BaseException as failure:
        transport.abort(step, failure)
        raise
    finally:
        transport.finish(step)


class _PartRun:
    """Acts for one part: one thread at a time takes events and performs their actions."""

    def __init__(
        self,
        program: PartProgram,
        runner: Runner,
        transport: Transport,
        pool: Executor,
        step: int,
    ) -> None:
        self.state = StepState(program)
        self.runner = runner
        self.transport = transport
        self.pool = pool
        self.step = step
        self.events: queue.SimpleQueue[Callable[[], list[Action]]] = queue.SimpleQueue()
        self.over = threading.Event()
        self.failure: BaseException | None = None

    def begin(self, arguments: Sequence[Any]) -> None:
        """Start the loop on the pool and ask for everything that will be received."""
        self.events.put(lambda: self.state.start(arguments))
        for receive in self.state.program.receives:
            key = Key(receive.key, self.step)
            self.transport.receive_then(key, self._arrival(receive.value))
        self.pool.submit(self._loop)

    def wait(self) -> dict[int, Any]:
        """Block until the part is done; its results by position."""
        self.over.wait()
        if self.failure is not None:
            raise self.failure
        return {at: self.state.values[name] for at, name in self.state.program.outputs}

    def _arrival(self, name: str) -> Continuation:
        """What is to happen when the value `name`, or the step's failure, has come."""

        def arrived(value: Any, failure: BaseException | None) -> None:
            self.events.put(lambda: self._received(name, value, failure))

        return arrived

    def _received(self, name: str, value: Any, failure: BaseException | None) -> list[Action]:
        if failure is not None:
            raise failure
        return self.state.arrived(name, value)

    def _loop(self) -> None:
        try:
            while not self.state.finished:
                for action in self.events.get()():
                    self._perform(action)
        except BaseException as failure:  # noqa: BLE001  the caller raises it
            self.failure = failure
            self.transport.abort(self.step, failure)
        finally:
            self.over.set()

    def _perform(self, action: Action) -> None:
        if isinstance(action, Deliver):
            self.transport.send(Key(action.key, self.step), action.value)
        else:
            outputs = self.runner(action.index, action.inputs)
            self.events.put(lambda: self.state.done(action.index, outputs))
