"""`import tracemill` stays light: counted in modules, not in a machine's seconds."""

from __future__ import annotations

from collections.abc import Callable

# Modules that `import tracemill` may add to what `import numpy` has loaded.
BUDGET = 120
HEAVY = {
    "llvmlite",
    "numba",
    "scipy",
    "asyncio",
    "multiprocessing",
    "concurrent",
    "unittest",
    "cuda",
}

COUNT = """
import sys, numpy
before = set(sys.modules)
import tracemill
print(*sorted(set(sys.modules) - before))
"""


def test_import_adds_few_modules_and_none_of_the_heavy_ones(
    run_python: Callable[..., str],
) -> None:
    added = run_python(COUNT).split()
    assert "tracemill" in added
    heavy = sorted({name.split(".")[0] for name in added} & HEAVY)
    assert not heavy, f"import tracemill loads {', '.join(heavy)}"
    assert len(added) <= BUDGET, f"{len(added)} modules, at most {BUDGET}:\n" + "\n".join(added)


def test_the_compiler_loads_neither_the_runtime_nor_a_backend(
    run_python: Callable[..., str],
) -> None:
    loaded = run_python("import sys, tracemill.compiler; print(*sys.modules)").split()
    assert "tracemill.compiler" in loaded
    assert not [name for name in loaded if name.startswith("tracemill.backends.")]
