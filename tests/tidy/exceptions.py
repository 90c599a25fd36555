"""Files that break a tidy rule for a good reason.

To add one: the rule's function name, the path, the reason as a sentence. An exception that is no
longer needed fails the tests, so the lists stay true.
"""

from __future__ import annotations

# path -> (how many lines it may have, why it is not split)
LONG_FILES: dict[str, tuple[int, str]] = {
    "dev.py": (480, "one file by design: it is run before anything is installed"),
}

# rule -> path -> reason
EXCEPTIONS: dict[str, dict[str, str]] = {
    "runtime_rim": {
        "runtime/clock.py": "the one file that reads the clock",
        "runtime/files.py": "the one file that touches files",
        "runtime/forks.py": "the one file that asks to be told of forks",
    },
    "imports_at_the_top": {
        "backends/cpu/backend.py": "kernels that are in the store must not load LLVM",
        "backends/llvm/native/build.py": "a warm start must not load LLVM",
        "backends/llvm/function.py": "plain statements must not load what products and sorts need",
        "compiler/types.py": "ml_dtypes is loaded by the first bfloat16",
        "frontend/loading.py": "the façade and the doors of calls/doors.py load through it",
        "frontend/export.py": "LLVM is loaded by an export, not by the decorator",
    },
    "line_length": {
        "tests/faults/programs.py": "a table of programs, one a line",
    },
    "no_machine_paths": {
        "tests/runtime/test_cache.py": "its paths lie on a disk held in memory",
    },
}
