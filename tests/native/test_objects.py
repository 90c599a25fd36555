"""Object code to blobs to running code."""

from __future__ import annotations

import ctypes
import gc

import llvmlite.binding as llvm
import pytest

from tracemill.backends.llvm.native.loader import load
from tracemill.backends.llvm.native.objects import CodeBlob, LinkError, link

_TABLES = """
@numbers = internal constant [4 x double] [double 1.0, double 2.0, double 3.5, double 4.0]
define i64 @triple(i64 %x) noinline {
  %r = mul i64 %x, 3
  ret i64 %r
}
define double @pick(i64 %i) {
  %j = call i64 @triple(i64 %i)
  %m = and i64 %j, 3
  %p = getelementptr [4 x double], ptr @numbers, i64 0, i64 %m
  %v = load double, ptr %p
  %w = fmul double %v, 1.7
  ret double %w
}
define ptr @where() { ret ptr @triple }
define i64 @switch(i64 %x) {
  switch i64 %x, label %d [ i64 0, label %a
    i64 1, label %b
    i64 2, label %c
    i64 3, label %e
    i64 4, label %f ]
a: %ra = call i64 @triple(i64 77)
  ret i64 %ra
b: ret i64 4
c: ret i64 93
e: %re = call i64 @triple(i64 5)
  ret i64 %re
f: ret i64 -1
d: ret i64 1234
}
"""


def object_code(text: str) -> bytes:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_default_triple()
    machine = target.create_target_machine(opt=2, codemodel="small", reloc="pic")
    module = llvm.parse_assembly(text)
    module.triple = machine.triple
    code: bytes = machine.emit_object(module)
    return code


def test_constants_calls_jump_tables_and_addresses_are_resolved() -> None:
    blob = link(object_code(_TABLES))
    loaded = load(CodeBlob.from_bytes(blob.to_bytes()))
    pick = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_int64)(loaded.address_of("pick"))
    switch = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(loaded.address_of("switch"))
    where = ctypes.CFUNCTYPE(ctypes.c_int64)(loaded.address_of("where"))
    assert [pick(i) for i in range(3)] == [1.0 * 1.7, 4.0 * 1.7, 3.5 * 1.7]
    assert [switch(i) for i in range(7)] == [231, 4, 93, 15, -1, 1234, 1234]
    assert where() == loaded.address_of("triple")
    assert set(loaded.names) == {"pick", "switch", "where", "triple"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("declare double @sin(double)\ndefine double @f(double %x) {\n"
         " %r = call double @sin(double %x)\n ret double %r }", "undefined symbol 'sin'"),
        ("@count = global i64 3\ndefine ptr @f() { ret ptr @count }", "writable"),
        ("define i64 @f() { ret i64 1 }\n"
         "@table = constant [1 x ptr] [ptr @f]", "writable"),
    ],
)  # fmt: skip
def test_what_needs_the_process_is_refused_by_name(text: str, message: str) -> None:
    with pytest.raises(LinkError, match=message):
        link(object_code(text))


@pytest.mark.parametrize("damage", [b"", b"junk", slice(0, -1), slice(0, 30)])
def test_damaged_stored_blobs_are_refused(damage: bytes | slice) -> None:
    stored = link(object_code(_TABLES)).to_bytes()
    with pytest.raises(LinkError):
        CodeBlob.from_bytes(stored[damage] if isinstance(damage, slice) else damage)
    with pytest.raises(LinkError, match="damaged head"):
        CodeBlob.from_bytes(stored.replace(b'"symbols"', b'"symbol?"'))


def test_code_is_never_writable_and_is_unmapped_when_dropped() -> None:
    loaded = load(link(object_code(_TABLES)))
    start = f"{loaded.base:x}-"

    def mapping() -> str | None:
        with open("/proc/self/maps") as maps:
            found = [line for line in maps if line.startswith(start)]
        return found[0].split()[1] if found else None

    assert mapping() == "r-xp"
    del loaded
    gc.collect()
    assert mapping() is None


def test_names_left_open_are_found_in_other_code() -> None:
    """Constants of both keep their alignment, and only the first code's names are offered."""
    outer = """
    declare double @"somewhere"(i64)
    define double @twice(i64 %i) {
      %v = call double @"somewhere"(i64 %i)
      %w = fadd double %v, %v
      ret double %w
    }
    """
    other = link(object_code(_TABLES))
    blob = link(object_code(outer), {"somewhere": (other, "pick")})
    assert set(blob.symbols) == {"twice"}
    loaded = load(CodeBlob.from_bytes(blob.to_bytes()))
    twice = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_int64)(loaded.address_of("twice"))
    assert [twice(i) for i in range(4)] == [2 * v * 1.7 for v in (1.0, 4.0, 3.5, 2.0)]
    with pytest.raises(LinkError, match="somewhere"):
        link(object_code(outer), {"elsewhere": (other, "pick")})
