"""The code of each intrinsic of the language.

Invariants: `EMITTERS` has one entry for each name in `intrinsics`.
Not here: ordinary expressions (`expressions`).
"""

from __future__ import annotations

import ast
from collections.abc import Callable

import llvmlite.ir as ir
from llvmlite.ir import instructions

from . import intrinsics
from .expressions import Emitter, Expressions
from .reader import layout_of, read_integer
from .types import (
    BOOL,
    F64,
    I64,
    RAW,
    VOID,
    InlineArray,
    Int,
    Pointer,
    Reference,
    Type,
    size_of,
)
from .values import BYTE, POINTER, TRUTH, WORD, Value, is_pointer, llvm_type, stored_type

_NOTHING = Value(VOID, ir.Constant(TRUTH, 0))


def _null(to: Expressions, call: ast.Call) -> Value:
    kind = to.type_argument(_args(to, call, 1)[0])
    return Value(kind, ir.Constant(POINTER, None))


def _is_null(to: Expressions, call: ast.Call) -> Value:
    value = _pointer_argument(to, _args(to, call, 1)[0])
    return Value(BOOL, to.builder.icmp_unsigned("==", value.code, ir.Constant(POINTER, None)))


def _cast(to: Expressions, call: ast.Call) -> Value:
    kind, source = _args(to, call, 2)
    return Value(to.type_argument(kind), _pointer_argument(to, source).code)


def _address(to: Expressions, call: ast.Call) -> Value:
    value = _pointer_argument(to, _args(to, call, 1)[0])
    return Value(I64, to.builder.ptrtoint(value.code, WORD))


def _pointer(to: Expressions, call: ast.Call) -> Value:
    kind, source = _args(to, call, 2)
    return Value(to.type_argument(kind), to.builder.inttoptr(to.value(source, I64).code, POINTER))


def _offset(to: Expressions, call: ast.Call) -> Value:
    base, count = _args(to, call, 2)
    start = _pointer_argument(to, base)
    return Value(RAW, to.moved(start.code, to.value(count, I64).code, 1))


def _at(to: Expressions, call: ast.Call) -> Value:
    base, index = _args(to, call, 2)
    first = to.value(base)
    if not isinstance(first.type, Reference):
        raise to.error(call, f"`at` steps over structures, got {first.type}")
    size = layout_of(first.type.struct).size
    return Value(first.type, to.moved(first.code, to.value(index, I64).code, size))


def _ref(to: Expressions, call: ast.Call) -> Value:
    kind, address = to.location(_args(to, call, 1)[0])
    return Value(Pointer(kind.element if isinstance(kind, InlineArray) else kind), address)


def _sizeof(to: Expressions, call: ast.Call) -> Value:
    kind = to.type_argument(_args(to, call, 1)[0])
    return Value(I64, ir.Constant(WORD, _whole_size(kind)))


def _stack(to: Expressions, call: ast.Call) -> Value:
    kind_node, count_node = _args(to, call, 2)
    kind = to.type_argument(kind_node)
    count = read_integer(count_node, to.place)
    return Value(Pointer(kind), _frame(to, stored_type(kind), count))


def _local(to: Expressions, call: ast.Call) -> Value:
    kind = to.type_argument(_args(to, call, 1)[0])
    if not isinstance(kind, Reference):
        raise to.error(call, f"`local` makes structures, got {kind}")
    return Value(kind, _frame(to, WORD, -(-layout_of(kind.struct).size // 8)))


def _function(to: Expressions, call: ast.Call) -> Value:
    found = to.place.constant(_args(to, call, 1)[0])
    target, kind = to.unit.address(found)
    return Value(kind, to.builder.bitcast(target, POINTER))


def _load_acquire(to: Expressions, call: ast.Call) -> Value:
    place, kind = _atomic_place(to, call, 1)
    align = size_of(kind)
    code = to.builder.load_atomic(place, "acquire", align, typ=llvm_type(kind))
    return Value(kind, code)


def _store_release(to: Expressions, call: ast.Call) -> Value:
    place, kind = _atomic_place(to, call, 2)
    value = to.value(call.args[1], kind)
    build = (
        to.builder
    )  # `IRBuilder.store_atomic` asks opaque pointers for a pointee: insert directly
    store = instructions.StoreAtomicInstr(build.block, value.code, place, "release", size_of(kind))
    build._insert(store)
    return _NOTHING


def _read_modify_write(operation: str) -> Emitter:
    def emit(to: Expressions, call: ast.Call) -> Value:
        place, kind = _atomic_place(to, call, 2)
        value = to.value(call.args[1], kind)
        return Value(kind, to.builder.atomic_rmw(operation, place, value.code, "seq_cst"))

    return emit


def _compare_exchange(to: Expressions, call: ast.Call) -> Value:
    place, kind = _atomic_place(to, call, 3)
    expected, desired = (to.value(argument, kind).code for argument in call.args[1:])
    pair = to.builder.cmpxchg(place, expected, desired, "seq_cst", "seq_cst")
    return Value(BOOL, to.builder.extract_value(pair, 1))


def _fence(to: Expressions, call: ast.Call) -> Value:
    _args(to, call, 0)
    to.builder.fence("seq_cst")
    return _NOTHING


def _assembly(
    to: Expressions, text: str, constraint: str, arguments: list[ir.Value], result: ir.Type
) -> ir.Value:
    kind = ir.FunctionType(result, [argument.type for argument in arguments])
    return to.builder.asm(kind, text, constraint, arguments, True)


def _pause(to: Expressions, call: ast.Call) -> Value:
    _args(to, call, 0)
    _assembly(to, "pause", "", [], ir.VoidType())
    return _NOTHING


def _thread_pointer(to: Expressions, call: ast.Call) -> Value:
    _args(to, call, 0)
    return Value(I64, _assembly(to, "mov %fs:0, $0", "=r", [], WORD))


def _copy_bytes(to: Expressions, call: ast.Call) -> Value:
    target, source, count = _args(to, call, 3)
    arguments = [
        _pointer_argument(to, target).code,
        _pointer_argument(to, source).code,
        to.value(count, I64).code,
    ]
    result = ir.LiteralStructType([POINTER, POINTER, WORD])
    constraint = "={di},={si},={cx},0,1,2,~{memory}"
    _assembly(to, "rep movsb", constraint, arguments, result)
    return _NOTHING


def _clear_bytes(to: Expressions, call: ast.Call) -> Value:
    target, count = _args(to, call, 2)
    zero = ir.Constant(BYTE, 0)
    arguments = [_pointer_argument(to, target).code, to.value(count, I64).code, zero]
    result = ir.LiteralStructType([POINTER, WORD])
    _assembly(to, "rep stosb", "={di},={cx},0,1,{al},~{memory}", arguments, result)
    return _NOTHING


def _bits_of(to: Expressions, call: ast.Call) -> Value:
    value = to.value(_args(to, call, 1)[0], F64)
    return Value(I64, to.builder.bitcast(value.code, WORD))


def _float_of(to: Expressions, call: ast.Call) -> Value:
    value = to.value(_args(to, call, 1)[0], I64)
    return Value(F64, to.builder.bitcast(value.code, ir.DoubleType()))


def _args(to: Expressions, call: ast.Call, count: int) -> list[ast.expr]:
    if len(call.args) != count:
        raise to.error(call, f"expected {count} arguments, got {len(call.args)}")
    return call.args


def _pointer_argument(to: Expressions, node: ast.expr) -> Value:
    value = to.value(node)
    if not is_pointer(value.type):
        raise to.error(node, f"expected a pointer, got {value.type}")
    return value


def _atomic_place(to: Expressions, call: ast.Call, count: int) -> tuple[ir.Value, Type]:
    place = to.value(_args(to, call, count)[0])
    if not isinstance(place.type, Pointer):
        raise to.error(call, f"atomics work on `ref(place)`, got {place.type}")
    if not isinstance(place.type.target, Int) and not is_pointer(place.type.target):
        raise to.error(call, f"{place.type.target} has no atomic operations")
    return place.code, place.type.target


def _whole_size(kind: Type) -> int:
    return layout_of(kind.struct).size if isinstance(kind, Reference) else size_of(kind)


def _frame(to: Expressions, element: ir.Type, count: int) -> ir.Value:
    """Storage in the function's frame: made at its start, so that loops do not grow the stack."""
    with to.builder.goto_entry_block():
        return to.builder.alloca(element, count)


EMITTERS: dict[Callable[..., object], Emitter] = {
    intrinsics.null: _null,
    intrinsics.is_null: _is_null,
    intrinsics.cast: _cast,
    intrinsics.address: _address,
    intrinsics.pointer: _pointer,
    intrinsics.offset: _offset,
    intrinsics.at: _at,
    intrinsics.ref: _ref,
    intrinsics.sizeof: _sizeof,
    intrinsics.stack: _stack,
    intrinsics.local: _local,
    intrinsics.function: _function,
    intrinsics.load_acquire: _load_acquire,
    intrinsics.store_release: _store_release,
    intrinsics.fetch_add: _read_modify_write("add"),
    intrinsics.exchange: _read_modify_write("xchg"),
    intrinsics.compare_exchange: _compare_exchange,
    intrinsics.fence: _fence,
    intrinsics.pause: _pause,
    intrinsics.thread_pointer: _thread_pointer,
    intrinsics.copy_bytes: _copy_bytes,
    intrinsics.clear_bytes: _clear_bytes,
    intrinsics.bits_of: _bits_of,
    intrinsics.float_of: _float_of,
}
