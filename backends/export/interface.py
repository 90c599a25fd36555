"""The C functions of an exported library: names, parameters in order, the words behind them.

Invariants: the words of a call are in the order of the C parameters.
Not here: the header's text (`header`), the tables (`tables`).
"""

from __future__ import annotations

from collections.abc import Mapping

from ...compiler.records import dataclass
from .description import Description, Parameter, Result
from .names import NOTES, Names, c_type
from .serving import Word

INSTANCE = "instance"


@dataclass(frozen=True, slots=True)
class CParameter:
    """One parameter of a C function. kind: as the object file has it; note: for the reader."""

    declaration: str
    kind: str
    word: Word
    slot: int
    note: str


@dataclass(frozen=True, slots=True)
class Interface:
    """name: of the library. call: parameters of its `run` after the instance.

    outputs: names by number. remarks: on what is returned in Python and is no output.
    """

    name: str
    call: tuple[CParameter, ...]
    outputs: tuple[str, ...]
    remarks: tuple[str, ...] = ()

    @property
    def sizes(self) -> tuple[CParameter, ...]:
        """The sizes a call gives."""
        return tuple(p for p in self.call if p.word is Word.SIZE)


def interface_of(described: Description, name: str, returned: Mapping[int | str, str]) -> Interface:
    """The functions of a library called `name`.

    returned: the name of each output by buffer, and by name what else is returned.
    """
    names = Names({INSTANCE, name})
    call: list[CParameter] = []
    for parameter in described.parameters:
        call += _parameters(parameter, names)
    outputs = []
    for result in described.results:
        outputs.append(names.unique(returned.get(result.buffer, "out")))
        call += _output(result, outputs[-1], names)
    remarks = tuple(f"{key}: {what}" for key, what in returned.items() if isinstance(key, str))
    return Interface(name, tuple(call), tuple(outputs), remarks)


def _parameters(parameter: Parameter, names: Names) -> list[CParameter]:
    slot, dtype = parameter.slot, parameter.dtype
    if dtype is None:
        name = names.unique(parameter.name)
        note = f"{name}: a size"
        return [CParameter(f"int64_t {name}", "i64", Word.SIZE, slot, note)]
    if parameter.word is Word.POINTER:
        name = names.unique(parameter.name)
        const = "" if parameter.written else "const "
        note = f"{name}: {_array(dtype.numpy.name, parameter.shape, NOTES.get(dtype.name))}"
        if parameter.written:
            note += "; it is written"
        return [CParameter(f"{const}{c_type(dtype)} *{name}", "ptr", Word.POINTER, slot, note)]
    kind = {"i64": "i64", "bool": "bool"}.get(dtype.name, "f64")
    parts = ("_real", "_imag") if dtype.is_complex else ("",)
    found = []
    for at, part in enumerate(parts):
        name = names.unique(parameter.name + part)
        note = f"{name}: a number"
        declaration = f"{c_type(dtype)} {name}"
        found.append(CParameter(declaration, kind, Word.VALUE, slot + at, note))
    return found


def _output(result: Result, name: str, names: Names) -> list[CParameter]:
    array = _array(result.dtype.numpy.name, result.shape, NOTES.get(result.dtype.name))
    room = names.unique(f"{name}_room")
    return [
        CParameter(
            f"{c_type(result.dtype)} *{name}",
            "ptr",
            Word.POINTER,
            result.data,
            f"{name}: result, {array}",
        ),
        CParameter(
            f"int64_t {room}",
            "i64",
            Word.ROOM,
            result.room,
            f"{room}: elements {name} has room for",
        ),
    ]


def _array(dtype: str, shape: str, note: str | None) -> str:
    text = f"{dtype}[{shape}]" if shape else f"one {dtype}"
    return text if note is None else f"{text}, {note}"
