"""The native language computes what Python computes; what it lacks is named with its line."""

from __future__ import annotations

import ctypes
import inspect
import random
from collections.abc import Callable
from typing import Annotated, Any

import pytest

from tracemill.backends.llvm.native.language import (
    LanguageError,
    Ptr,
    Raw,
    Struct,
    address,
    at,
    bits_of,
    cast,
    clear_bytes,
    compare_exchange,
    copy_bytes,
    exchange,
    f64,
    fence,
    fetch_add,
    float_of,
    function,
    i8,
    i32,
    i64,
    intrinsics,
    is_null,
    layout_of,
    load_acquire,
    local,
    null,
    offset,
    pause,
    pointer,
    ref,
    sizeof,
    stack,
    store_release,
    thread_pointer,
    u8,
    u64,
)
from tracemill.backends.llvm.native.language.lowering import EMITTERS
from tracemill.backends.llvm.native.language.unit import compile_unit

LIMIT = 10


class Node(Struct):
    flag: bool
    small: i32
    value: i64
    next: Node
    words: Annotated[Ptr[i64], 4]
    call: Callable[[Raw, i64], i64]
    tail: u8


def gcd(a: i64, b: i64) -> i64:
    while b != 0:
        rest = a % b
        a = b
        b = rest
    return a


def floor_divide(a: i64, b: i64) -> i64:
    return a // b


def modulo(a: i64, b: i64) -> i64:
    return a % b


def shifts(a: i64, b: i64) -> i64:
    return (a << 3) ^ (a >> 2) | (b & 255) - ~a


def branches(a: i64, b: i64) -> i64:
    result: i64 = 0
    for index in range(a % LIMIT, LIMIT):
        if index == 7:
            continue
        if b > 50 and index > 5 or a == -3:
            break
        elif not b < 0:
            result += index
        else:
            result -= 1 if index > 4 else 2
    while True:
        result += 1
        if result > 20:
            return result
        if result % 2 == 0 and a > 0:
            break
    return -result


def recursive(a: i64, b: i64) -> i64:
    if a <= 0:
        return b
    return recursive(a - 1, b + a)


def narrow(a: i64, b: i64) -> i64:
    return i64(i8(a)) + i64(u8(b)) + i64(i32(a * b))


@pytest.mark.parametrize("native", [gcd, floor_divide, modulo, shifts, branches, narrow])
def test_native_code_computes_what_python_computes(native: Any, compiled: Any) -> None:
    code = compiled(gcd, floor_divide, modulo, shifts, branches, narrow, recursive)
    run = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)(
        code.address_of(native.__name__)
    )
    numbers = random.Random(native.__name__)
    pairs = [(numbers.randint(-99, 99), numbers.randint(1, 99)) for _ in range(200)]
    pairs += [(a, -b) for a, b in pairs if native in (floor_divide, modulo)]
    for a, b in pairs:
        assert run(a, b) == native(a, b), (a, b)


def test_functions_may_call_themselves(compiled: Any) -> None:
    code = compiled(gcd, floor_divide, modulo, shifts, branches, narrow, recursive)
    run = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)(
        code.address_of("recursive")
    )
    assert run(10, 0) == 55


def twice(place: Raw, count: i64) -> i64:
    return 2 * count


def structures(count: i64) -> i64:
    node = local(Node)
    node.small = 7
    node.flag = count > 3 and count < 100
    node.next = null(Node)
    node.call = function(twice)
    words = node.words
    for index in range(4):
        words[index] = index * count
    words[1] += 5
    total = node.words[1] + ref(node.words)[2]
    if node.flag and is_null(node.next) and not is_null(node):
        total += node.call(node, 1000)
    return total + node.small


def test_structures_arrays_and_function_pointers(compiled: Any) -> None:
    run = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(
        compiled(structures).address_of("structures")
    )
    assert run(4) == (4 + 5) + 8 + 2000 + 7
    assert run(1) == (1 + 5) + 2 + 7


def test_structures_have_the_layout_of_c() -> None:
    class C(ctypes.Structure):
        _fields_ = [
            ("flag", ctypes.c_bool),
            ("small", ctypes.c_int32),
            ("value", ctypes.c_int64),
            ("next", ctypes.c_void_p),
            ("words", ctypes.c_int64 * 4),
            ("call", ctypes.c_void_p),
            ("tail", ctypes.c_uint8),
        ]

    layout = layout_of(Node)
    assert layout.size == ctypes.sizeof(C)
    for name, field in layout.fields.items():
        assert field.offset == getattr(C, name).offset, name


def atomics(place: Ptr[i64]) -> i64:
    before = fetch_add(place, 3)
    swapped = exchange(place, 40)
    store_release(place + 1, 7)
    fence()
    pause()
    taken = compare_exchange(place, 40, 41)
    refused = compare_exchange(place, 40, 42)
    return before * 1000 + swapped * 100 + i64(taken) * 10 + i64(refused) + load_acquire(place + 1)


def memory(source: Ptr[i64], target: Ptr[i64]) -> i64:
    clear_bytes(target, 32)
    copy_bytes(offset(target, 8), source, 16)
    second = pointer(Ptr[i64], address(target) + 16)
    first = at(cast(Node, source), 1)
    numbers = stack(f64, 2)
    numbers[1] = float_of(bits_of(1.5)) * 2.0
    distance = address(first) - address(source) - sizeof(Node)
    return second[0] + i64(numbers[1]) + distance + i64(thread_pointer() == 0)


def test_atomics_and_memory(compiled: Any) -> None:
    code = compiled(atomics, memory)
    one = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)
    two = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p)
    cells = (ctypes.c_int64 * 2)(5, 0)
    assert one(code.address_of("atomics"))(cells) == 5 * 1000 + 8 * 100 + 10 + 0 + 7
    assert list(cells) == [41, 7]
    source, target = (ctypes.c_int64 * 2)(11, 12), (ctypes.c_int64 * 4)(1, 2, 3, 4)
    assert two(code.address_of("memory"))(source, target) == 12 + 3
    assert list(target) == [0, 11, 12, 0]


def unsigned_compare(a: u64, b: u64) -> bool:
    return a < b and a // b == 0


def test_unsigned_numbers_compare_as_such(compiled: Any) -> None:
    run = ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.c_uint64, ctypes.c_uint64)(
        compiled(unsigned_compare).address_of("unsigned_compare")
    )
    assert run(1, 2**63 + 5)
    assert not run(2**63 + 5, 1)


def no_result_type(a: i64):  # type: ignore[no-untyped-def]
    return a


def a_list(a: i64) -> i64:
    return [a][0]


def number_as_condition(a: i64) -> i64:
    if a:
        return 1
    return 0


def mixed_pointer(a: i64, place: Raw) -> i64:
    return a + place  # type: ignore[operator, no-any-return]


def falls_off(a: i64) -> i64:
    if a > 0:
        return 1


def lossy(a: i64) -> i32:
    return a


def unreachable(a: i64) -> i64:
    return a
    a = 2


def calls_python(a: i64) -> i64:
    return len(str(a))


@pytest.mark.parametrize(
    ("native", "line", "message"),
    [
        (no_result_type, 0, "no result type"),
        (a_list, 1, "List is not part"),
        (number_as_condition, 1, "a condition must be bool, got i64"),
        (mixed_pointer, 1, "do not mix"),
        (falls_off, 0, "can end without `return`"),
        (lossy, 1, "expected i32, got i64"),
        (unreachable, 2, "never reached"),
        (calls_python, 1, "cannot be called from native code"),
    ],
)
def test_what_the_language_lacks_is_named_with_its_line(
    native: Any, line: int, message: str
) -> None:
    with pytest.raises(LanguageError) as caught:
        compile_unit([native])
    first = inspect.getsourcelines(native)[1]
    assert str(caught.value).startswith(f"{__file__}:{first + line}: ")
    assert message in str(caught.value)


def test_each_intrinsic_has_one_emitter() -> None:
    declared = {
        thing
        for name, thing in vars(intrinsics).items()
        if inspect.isfunction(thing) and not name.startswith("_")
    }
    assert declared == set(EMITTERS)
