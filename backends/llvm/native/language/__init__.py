"""The native language: a typed subset of Python, translated to LLVM.

    def total(task: Task, count: i64) -> i64:
        result: i64 = 0
        for index in range(count):
            result += task.weights[index]
        return result

    loaded = load(link(compile_unit([total])))

Types are in `types`, what Python cannot say in `intrinsics`; both are re-exported here for native
code to import. A native function is Python: the type checker checks it, and where it uses no
pointer it also runs.

Invariants: this package's own import does not load LLVM; `unit.compile_unit` does.
Not here: any function of the system; the language knows nothing of plans, pools or CPython.
"""

from .intrinsics import (
    address,
    at,
    bits_of,
    cast,
    clear_bytes,
    compare_exchange,
    copy_bytes,
    exchange,
    fence,
    fetch_add,
    float_of,
    function,
    is_null,
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
)
from .reader import LanguageError, Layout, layout_of
from .types import Ptr, Raw, Struct, f64, i8, i16, i32, i64, u8, u32, u64

__all__ = [
    "LanguageError",
    "Layout",
    "Ptr",
    "Raw",
    "Struct",
    "address",
    "at",
    "bits_of",
    "cast",
    "clear_bytes",
    "compare_exchange",
    "copy_bytes",
    "exchange",
    "f64",
    "fence",
    "fetch_add",
    "float_of",
    "function",
    "i8",
    "i16",
    "i32",
    "i64",
    "is_null",
    "layout_of",
    "load_acquire",
    "local",
    "null",
    "offset",
    "pause",
    "pointer",
    "ref",
    "sizeof",
    "stack",
    "store_release",
    "thread_pointer",
    "u8",
    "u32",
    "u64",
]
