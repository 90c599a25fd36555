"""A description as an object file: its tables as constant data, and the C functions over them.

Invariants: equal descriptions, kernels and machines give equal bytes; no address of this process
and no path of this machine is in them.
Not here: LLVM's own constants (llvm/library), what the tables mean (`serving`). Importing this
loads LLVM.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...compiler.kernel.fingerprint import dims_in_order, fingerprint
from ...compiler.kernel.kernel import Kernel
from ..llvm.library import Entry, Library
from ..llvm.machine import host_machine, level_machine
from ..llvm.native.commit import JUMPS
from ..llvm.native.encoder import RowSpec, SizeSpec
from ..llvm.native.layout import NONE, Row, RowKind, SizeRow
from .description import Description
from .header import MEANINGS
from .interface import Interface
from .serving import FUNCTIONS, Incoming, Kept, Model, Produced

_UNKNOWN = "an unknown code"


def object_code(
    described: Description, interface: Interface, places: Sequence[str], features: str
) -> bytes:
    """The object file of a library. features: ``host``, or a level of the x86-64 ABI."""
    machine = host_machine() if features == "host" else level_machine(features)
    library = Library(machine, FUNCTIONS)
    tables = _Tables(described, library)
    model = library.table(Model, [tables.model(interface, places)])
    for entry in _entries(interface, model, bool(described.states)):
        library.entry(entry)
    return library.object_code()


class _Tables:
    """The tables of one description in a library."""

    def __init__(self, described: Description, library: Library) -> None:
        self.described = described
        self.library = library
        self.slots = described.slots
        self.frame = described.slots.frame
        self.zero = self.frame.constant(0)

    def model(self, interface: Interface, places: Sequence[str]) -> dict[str, Any]:
        described, library = self.described, self.library
        widest = max([len(row.words) for row in described.rows], default=0)
        text = [library.text(sentence) for sentence in (*MEANINGS.values(), _UNKNOWN)]
        return {
            "aligned_alloc": library.c_function("aligned_alloc", (Model, "aligned_alloc")),
            "free": library.c_function("free", (Model, "free")),
            "image": library.words(self.image()),
            "n_slots": self.frame.size,
            "frame_words": self.frame.size + widest,
            **self.table("incoming", Incoming, self.incoming(interface)),
            **self.table("produced", Produced, self.produced()),
            **self.states(),
            **self.table("sizes", SizeRow, map(self.size, described.sizes)),
            **self.table("addresses", SizeRow, map(self.size, described.addresses)),
            "later": library.table(SizeRow, [*map(self.size, described.later)] or [{}]),
            **self.table("rows", Row, self.rows()),
            "arena": self.frame.number(described.arena),
            "arena_bytes": self.frame.number(described.arena_bytes),
            "messages": library.words(text),
            "n_messages": len(MEANINGS),
            "places": library.words([library.text(place) for place in places] or [0]),
            "n_places": len(places),
        }

    def table(self, name: str, kind: Any, rows: Any) -> dict[str, Any]:
        listed = list(rows)
        return {name: self.library.table(kind, listed or [{}]), f"n_{name}": len(listed)}

    def image(self) -> list[Any]:
        """What the slots hold before the first call."""
        words: list[Any] = [*self.frame.constants]
        words += [0] * (self.frame.size - len(words))
        for handle, value in self.slots.values.items():
            words[self.frame.number(handle)] = value
        for handle, array in self.described.data.items():
            words[self.frame.number(handle)] = self.library.block(array.tobytes() or b"\0")
        return words

    def incoming(self, interface: Interface) -> list[dict[str, Any]]:
        return [{"kind": p.word, "slot": self.frame.number(p.slot)} for p in interface.call]

    def produced(self) -> list[dict[str, Any]]:
        return [
            {
                "room": self.frame.number(result.room),
                "rank": len(result.dims),
                "dims": self.numbers(result.dims),
            }
            for result in self.described.results
        ]

    def states(self) -> dict[str, Any]:
        rows, place = [], 0
        for state in self.described.states:
            data = state.value.tobytes()
            rows.append(
                {
                    "name": self.library.text(state.name),
                    "initial": self.library.block(data or b"\0"),
                    "size": len(data),
                    "place": place,
                    "slot": self.frame.number(state.slot),
                }
            )
            place += -(-len(data) // 64) * 64
        return {**self.table("kept", Kept, rows), "kept_bytes": place}

    def size(self, row: SizeSpec) -> dict[str, Any]:
        return {
            "op": row.op,
            "target": self.frame.number(row.target),
            "a": self.slot(row.a),
            "b": self.slot(row.b),
        }

    def rows(self) -> list[dict[str, Any]]:
        kernels = self.described.plan.kernels
        found = self.library.kernels(kernels, [_key(kernel) for kernel in kernels])
        return [self.row(row, found) for row in self.described.rows]

    def row(self, row: RowSpec, kernels: Sequence[Any]) -> dict[str, Any]:
        return {
            "kind": row.kind,
            "kernel": kernels[row.kernel] if row.kind is RowKind.LAUNCH else 0,
            "words": self.numbers(row.words),
            "count": row.length if row.kind is RowKind.COMPUTE else len(row.words),
            "first": row.first,
            "target": row.target if row.kind in JUMPS else 0,
            "extent": self.slot(row.extent),
            "errors": row.errors,
        }

    def slot(self, handle: int) -> int:
        return self.frame.number(self.zero if handle == NONE else handle)

    def numbers(self, handles: Sequence[int]) -> Any:
        return self.library.words([self.frame.number(handle) for handle in handles] or [0])


def _key(kernel: Kernel) -> str:
    """Equal for kernels that can share code."""
    order = [kernel.dims.index(name) for name in dims_in_order(kernel)]
    return f"{len(kernel.dims)} {order} {fingerprint(kernel)}"


def _entries(interface: Interface, model: Any, with_states: bool) -> list[Entry]:
    """The C functions, in the order of the header."""
    name, call = interface.name, tuple(p.kind for p in interface.call)
    sizes = tuple(p.kind for p in interface.sizes)
    made = [
        Entry(f"{name}_create", "create", "ptr", (), 0, (model,)),
        Entry(f"{name}_destroy", "destroy", "void", ("ptr",), 1),
        Entry(f"{name}_run", "run", "i32", ("ptr", *call), 1, packed=True),
        Entry(f"{name}_output_size", "output_size", "i64", ("ptr", "i32", *sizes), 2, packed=True),
        Entry(f"{name}_error_message", "error_message", "ptr", ("i32",), 1, (model,)),
    ]
    if with_states:
        whole = ("ptr", "ptr", "ptr", "i64")
        made.append(Entry(f"{name}_get", "read_variable", "i32", whole, 4))
        made.append(Entry(f"{name}_set", "write_variable", "i32", whole, 4))
    return made
