"""Object code to position-independent bytes: read an ELF object, lay it out flat, resolve its
references.

Invariants: a `CodeBlob` is one read-only run of bytes that works at any address that is a multiple
of its alignment: no process address, no absolute relocation and no writable data is in it.
Whatever it needs of the process comes to it through the control block, so an undefined name is an
error here, by name.
Not here: making object code (the compilers do) and mapping it (`loader`). Nothing of LLVM is
imported.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from typing import NamedTuple

_MAGIC = b"TMBLOB1\n"

# ELF constants, System V ABI chapter 4.
_SHT_PROGBITS, _SHT_SYMTAB, _SHT_RELA, _SHT_NOBITS, _SHT_REL = 1, 2, 4, 8, 9
_SHF_WRITE, _SHF_ALLOC = 1, 2
_SHN_UNDEF, _SHN_ABS, _SHN_COMMON = 0, 0xFFF1, 0xFFF2
_STB_LOCAL, _STT_SECTION, _STT_FILE = 0, 3, 4
_EM_X86_64 = 62

# x86-64 psABI 4.4: the relocations LLVM emits for small, position-independent code.
_R_PC32, _R_PLT32, _R_GOTPCREL, _R_PC64 = 2, 4, 9, 24
_R_GOTPCRELX, _R_REX_GOTPCRELX = 41, 42
_PC_RELATIVE_32 = {_R_PC32, _R_PLT32}
_THROUGH_GOT = {_R_GOTPCREL, _R_GOTPCRELX, _R_REX_GOTPCRELX}


class LinkError(Exception):
    """Object code that cannot become a `CodeBlob`; the message names the symbol or section."""


class CodeBlob(NamedTuple):
    """Position-independent code and its constants, with the offsets of the names it offers."""

    code: bytes
    symbols: Mapping[str, int]
    alignment: int

    def to_bytes(self) -> bytes:
        """The blob as bytes for a cache; `from_bytes` is the inverse."""
        head = json.dumps({"symbols": dict(self.symbols), "alignment": self.alignment}).encode()
        return _MAGIC + struct.pack("<QQ", len(head), len(self.code)) + head + self.code

    @staticmethod
    def from_bytes(stored: bytes) -> CodeBlob:
        """Read what `to_bytes` wrote; anything else is a `LinkError`."""
        start = len(_MAGIC) + 16
        if len(stored) < start or not stored.startswith(_MAGIC):
            raise LinkError("these bytes are not a stored code blob")
        head_size, code_size = struct.unpack_from("<QQ", stored, len(_MAGIC))
        if len(stored) != start + head_size + code_size:
            raise LinkError("a stored code blob has the wrong length")
        try:
            head = json.loads(stored[start : start + head_size])
            return CodeBlob(stored[start + head_size :], head["symbols"], head["alignment"])
        except (ValueError, KeyError, TypeError) as error:
            raise LinkError("a stored code blob has a damaged head") from error


class _Section(NamedTuple):
    name: str
    kind: int
    flags: int
    offset: int
    size: int
    link: int
    info: int
    alignment: int


class _Symbol(NamedTuple):
    name: str
    section: int
    value: int
    binding: int
    kind: int


def link(object_code: bytes, others: Mapping[str, tuple[CodeBlob, str]] | None = None) -> CodeBlob:
    """Lay out the loaded sections of one ELF object and resolve every reference.

    others: for each name that the object may leave undefined, linked code and its entry there.
    Only what the object itself offers is offered.
    """
    _check_header(object_code)
    sections = _read_sections(object_code)
    symbols = _read_symbols(object_code, sections)
    places, image, alignment = _lay_out(object_code, sections)
    outside: dict[str, int] = {}
    for name, (blob, entry) in (others or {}).items():
        image.extend(bytes(-len(image) % blob.alignment))
        outside[name] = len(image) + blob.symbols[entry]
        image.extend(blob.code)
        alignment = max(alignment, blob.alignment)
    for section in sections:
        if section.kind == _SHT_REL and section.info in places:
            raise LinkError(f"section {section.name} holds relocations without addends")
        if section.kind == _SHT_RELA and section.info in places:
            _relocate(object_code, section, places, symbols, image, outside)
    offered = {
        symbol.name: places[symbol.section] + symbol.value
        for symbol in symbols
        if symbol.binding != _STB_LOCAL and symbol.section in places
    }
    return CodeBlob(bytes(image), offered, alignment)


def _check_header(data: bytes) -> None:
    if data[:6] != b"\x7fELF\x02\x01":
        raise LinkError("expected a 64-bit little-endian ELF object")
    (machine,) = struct.unpack_from("<H", data, 18)
    if machine != _EM_X86_64:
        raise LinkError(f"expected x86-64 object code, got ELF machine {machine}")


def _text(data: bytes, start: int) -> str:
    return data[start : data.index(b"\0", start)].decode()


def _read_sections(data: bytes) -> list[_Section]:
    (table,) = struct.unpack_from("<Q", data, 40)
    entry_size, count, names_index = struct.unpack_from("<HHH", data, 58)
    if count == 0:  # more than 65,279 sections: the true numbers stand in section 0
        (count,) = struct.unpack_from("<Q", data, table + 32)
    if names_index == 0xFFFF:
        (names_index,) = struct.unpack_from("<I", data, table + 40)
    (names,) = struct.unpack_from("<Q", data, table + entry_size * names_index + 24)
    found = []
    for index in range(count):
        name, kind, flags, _, offset, size, link_, info, alignment, _ = struct.unpack_from(
            "<IIQQQQIIQQ", data, table + entry_size * index
        )
        text = _text(data, names + name)
        found.append(_Section(text, kind, flags, offset, size, link_, info, max(alignment, 1)))
    return found


def _read_symbols(data: bytes, sections: list[_Section]) -> list[_Symbol]:
    tables = [section for section in sections if section.kind == _SHT_SYMTAB]
    if len(tables) != 1:
        raise LinkError(f"expected one symbol table, found {len(tables)}")
    names = sections[tables[0].link].offset
    found = []
    for at in range(tables[0].offset, tables[0].offset + tables[0].size, 24):
        name, info, _, section, value, _ = struct.unpack_from("<IBBHQQ", data, at)
        found.append(_Symbol(_text(data, names + name), section, value, info >> 4, info & 15))
    return found


def _is_loaded(section: _Section) -> bool:
    """Code and constants; unwinding tables are left out because this code never throws."""
    if not section.flags & _SHF_ALLOC or section.size == 0 or section.name == ".eh_frame":
        return False
    if section.kind == _SHT_NOBITS or section.flags & _SHF_WRITE:
        raise LinkError(f"section {section.name} is writable: generated code keeps no global state")
    return section.kind == _SHT_PROGBITS


def _lay_out(data: bytes, sections: list[_Section]) -> tuple[dict[int, int], bytearray, int]:
    """Section number to place in the image, the image itself, and the alignment it needs."""
    places: dict[int, int] = {}
    image = bytearray()
    alignment = 16
    for index, section in enumerate(sections):
        if not _is_loaded(section):
            continue
        image.extend(bytes(-len(image) % section.alignment))
        places[index] = len(image)
        image.extend(data[section.offset : section.offset + section.size])
        alignment = max(alignment, section.alignment)
    return places, image, alignment


def _relocate(
    data: bytes,
    relocations: _Section,
    places: dict[int, int],
    symbols: list[_Symbol],
    image: bytearray,
    outside: Mapping[str, int],
) -> None:
    for entry in range(relocations.offset, relocations.offset + relocations.size, 24):
        offset, info, addend = struct.unpack_from("<QQq", data, entry)
        symbol, kind = symbols[info >> 32], info & 0xFFFFFFFF
        target = _target(symbol, places, outside)
        at = places[relocations.info] + offset
        if kind in _THROUGH_GOT:
            _go_direct(image, at, symbol.name)
            kind = _R_PC32
        if kind in _PC_RELATIVE_32:
            _patch(image, at, "<i", target + addend - at, symbol.name)
        elif kind == _R_PC64:
            _patch(image, at, "<q", target + addend - at, symbol.name)
        else:
            raise LinkError(
                f"relocation {kind} against {symbol.name or 'a section'} "
                "is not position-independent"
            )


def _target(symbol: _Symbol, places: dict[int, int], outside: Mapping[str, int]) -> int:
    if symbol.section in places:
        return places[symbol.section] + symbol.value
    if symbol.section == _SHN_UNDEF:
        if symbol.name in outside:
            return outside[symbol.name]
        raise LinkError(
            f"undefined symbol {symbol.name!r}: process addresses come through the control block"
        )
    if symbol.section in (_SHN_ABS, _SHN_COMMON):
        raise LinkError(f"symbol {symbol.name!r} is absolute or common, not part of the code")
    raise LinkError(f"symbol {symbol.name!r} lies in a section that is not loaded")


def _patch(image: bytearray, at: int, form: str, value: int, name: str) -> None:
    try:
        struct.pack_into(form, image, at, value)
    except struct.error as error:
        raise LinkError(f"the reference to {name!r} does not fit its field") from error


def _go_direct(image: bytearray, at: int, name: str) -> None:
    """Turn a load from the global offset table into the address itself (psABI B.2).

    `mov name@GOTPCREL(%rip), reg` becomes `lea name(%rip), reg`; `call *name@GOTPCREL(%rip)`
    becomes a direct call behind a one-byte prefix, likewise `jmp`, whose length must stay 6 bytes.
    """
    opcode, modrm = image[at - 2], image[at - 1]
    if opcode == 0x8B:
        image[at - 2] = 0x8D
    elif (opcode, modrm) == (0xFF, 0x15):
        image[at - 2 : at] = b"\x67\xe8"
    elif (opcode, modrm) == (0xFF, 0x25):
        image[at - 2 : at] = (
            b"\x67\xe9"  # same length as the call form; 0x67 is ignored by jmp rel32
        )
    else:
        raise LinkError(f"{name!r} is reached through a table this loader does not build")
