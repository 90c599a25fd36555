"""Constant tables: one element, or one per lane, of a table in the code's read-only data."""

from __future__ import annotations

from hashlib import sha256

from llvmlite import ir

from .site import Site
from .types import I1, I32, I64, POINTER, constant_of, intrinsic, vector_of, width_of


def lookup(site: Site, index: ir.Value, entries: list[ir.Constant]) -> ir.Value:
    """entries[index] for an index in range."""
    builder = site.builder
    table = _table(builder.module, entries)
    element = entries[0].type
    width = width_of(index)
    typ = vector_of(I64, width)
    wide = index if index.type == typ else builder.sext(index, typ)
    if width == 1:
        return builder.load(builder.gep(table, [wide], source_etype=element), typ=element)
    pointers = builder.gep(table, [wide], source_etype=element)
    pointers.type = ir.VectorType(POINTER, width)
    typ = ir.VectorType(element, width)
    args = [
        pointers,
        ir.Constant(I32, _size(element)),
        constant_of(ir.VectorType(I1, width), 1),
        constant_of(typ, 0 if isinstance(element, ir.IntType) else 0.0),
    ]
    return intrinsic(builder, "llvm.masked.gather", typ, args, typ, pointers.type)


def _size(element: ir.Type) -> int:
    if isinstance(element, ir.IntType):
        return max(1, int(element.width) // 8)
    return 4 if isinstance(element, ir.FloatType) else 8


def _table(module: ir.Module, entries: list[ir.Constant]) -> ir.GlobalVariable:
    """The table as a private constant, shared by equal ones."""
    text = ",".join(map(str, entries))
    name = f"table.{sha256(text.encode()).hexdigest()[:16]}"
    if name in module.globals:
        return module.globals[name]
    typ = ir.ArrayType(entries[0].type, len(entries))
    table = ir.GlobalVariable(module, typ, name)
    table.global_constant = True
    table.linkage = "private"
    table.align, table.type = 64, POINTER
    table.initializer = ir.Constant(typ, entries)
    return table
