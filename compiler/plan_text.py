"""The text of a plan: what a person reads to see what a call does, and in how much memory.

Sizes are written as they are computed, e.g. ``n * 4``, long ones once; rows name their buffers.

Invariants: deterministic.
Not here: kernels' text (kernel/printer.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .kernel.kernel import Kernel
from .plan import (
    Branch,
    BufferSpec,
    CommitPoint,
    Copy,
    ExecutionPlan,
    HostCall,
    Launch,
    Loop,
    Origin,
    Row,
    SizeRow,
)

LONG = 24  # characters of a size that gets a line of its own
_SIGNS = {"add": "+", "sub": "-", "mul": "*", "floordiv": "//", "mod": "%"}


def plan_text(plan: ExecutionPlan) -> str:
    """Buffers, rows, results and the arena of a plan."""
    writer = _Writer(plan)
    lines = [f"plan @{plan.name} {{"]
    lines += [f"  {line}" for line in writer.lines]
    lines += [f"  {writer.buffer(at)}" for at in range(len(plan.buffers))]
    lines += [f"  {line}" for line in writer.rows(plan.rows)]
    results = ", ".join(
        writer.names[r.buffer] + (" as scalar" if r.as_scalar else "") for r in plan.results
    )
    lines += [f"  return {results}", "}", f"arena: {writer.sizes[plan.arena_bytes]} bytes"]
    return "\n".join(lines) + "\n"


class _Writer:
    def __init__(self, plan: ExecutionPlan) -> None:
        self.plan = plan
        self.names = _names(plan.buffers)
        self.sizes: list[str] = []
        self.lines: list[str] = []
        for at, row in enumerate(plan.sizes):
            text = self._size(at, row)
            if len(text) > LONG:
                self.lines.append(f"size s{at} = {text}")
                text = f"s{at}"
            self.sizes.append(text)

    def _size(self, at: int, row: SizeRow) -> str:
        for name, slot in self.plan.size_symbols.items():
            if slot == at:
                return name
        if row.op == "const":
            return str(row.a)
        if row.op == "extent":
            return f"{self.names[row.a]}.shape[{row.b}]"
        a = self.sizes[row.a]
        if row.op == "align":
            return f"align({a})"
        b = self.sizes[row.b]
        if row.op in _SIGNS:
            return f"{_wrapped(a, row.op)} {_SIGNS[row.op]} {_wrapped(b, row.op)}"
        return f"{row.op}({a}, {b})"

    def buffer(self, at: int) -> str:
        """The line of one buffer."""
        spec = self.plan.buffers[at]
        shape = ", ".join(self.sizes[s] for s in spec.shape)
        text = f"buffer {self.names[at]}: {spec.dtype.name}[{shape}] {spec.origin.value}"
        if spec.origin is Origin.TEMPORARY and spec.offset is not None:
            return f"{text} at {self.sizes[spec.offset]}"
        if spec.origin is Origin.VIEW:
            return text
        if spec.origin is not Origin.VARIABLE:
            text += f" {spec.index}"
        marks = [m for m, on in (("strided", spec.strided), ("written", spec.written)) if on]
        if spec.origin is Origin.OUTPUT:
            marks.remove("written")
        return " ".join([text, *marks])

    def rows(self, rows: Sequence[Row]) -> Iterator[str]:
        """The lines of rows; those of a loop or branch stand inside its braces."""
        for row in rows:
            match row:
                case Branch():
                    yield f"if {self.names[row.test]} {{{_place(row)}"
                    yield from self._inside(row.then)
                    if row.otherwise:
                        yield "} else {"
                        yield from self._inside(row.otherwise)
                    yield "}"
                case Loop():
                    yield f"{self._head(row)} {{{_place(row)}"
                    yield from self._inside(row.body)
                    yield "}"
                case _:
                    yield self.row(row)

    def _inside(self, rows: Sequence[Row]) -> Iterator[str]:
        return (f"  {line}" for line in self.rows(rows))

    def _head(self, row: Loop) -> str:
        """How often a loop runs, and what moves from trip to trip."""
        names = self.names
        if row.condition is not None:
            text = f"while {names[row.condition]}"
        elif row.bounds is not None and row.index is not None:
            begin, end = row.bounds
            text = f"for {names[row.index]} from {names[begin]} below {names[end]}"
        else:
            assert row.length is not None
            text = f"repeat {self.sizes[row.length]}{' backwards' if row.reverse else ''}"
        moving = [f"{names[s.view]} in {names[s.whole]}" for s in row.slices]
        moving += [
            f"{names[t.current]}, {names[t.following]} turn in {names[t.result]}, {names[t.other]}"
            f" from {names[t.first]}"
            for t in row.turns
        ]
        return f"{text} with {'; '.join(moving)}" if moving else text

    def row(self, row: Launch | Copy | HostCall | CommitPoint) -> str:
        """The line of one row."""
        match row:
            case Launch():
                return self._launch(row, self.plan.kernels[row.kernel])
            case Copy():
                return f"copy {self.names[row.source]} to {self.names[row.target]}"
            case HostCall():
                return f"host {row.callback}({', '.join(self.names[b] for b in row.buffers)})"
            case CommitPoint():
                return "commit"

    def _launch(self, row: Launch, kernel: Kernel) -> str:
        args = [self.names[b] for b in row.buffers] + [self.sizes[s] for s in row.sizes]
        call = f"launch {row.kernel} @{kernel.name}({', '.join(args)})"
        return f"{call} over {self.sizes[row.extent]}{_place(row)}"


def _place(row: Launch | Branch | Loop) -> str:
    return "" if row.location is None else f"  // {row.location}"


def _wrapped(text: str, op: str) -> str:
    return f"({text})" if " " in text and op != "add" else text


def _names(buffers: tuple[BufferSpec, ...]) -> list[str]:
    """A name for each buffer: its own, with a number behind it where that is taken."""
    taken: dict[str, int] = {}
    found: list[str] = []
    for spec in buffers:
        name = spec.name or "t"
        count = taken.get(name, 0)
        taken[name] = count + 1
        found.append(name if not count else f"{name}.{count}")
    return found
