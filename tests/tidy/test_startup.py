"""`import tracemill` stays light: counted in modules, not in a machine's seconds."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path

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


# What only compiling, or looking at what was compiled, needs: a first call whose plan and code are
# in the cache loads none of it. A name stands for what is below it, too.
COMPILING = """
    tracemill.calls.build tracemill.reports tracemill.lowered tracemill.profile tracemill.export
    tracemill.calls.partitioned tracemill.program tracemill.differentiation tracemill.calls.nested
    tracemill.compiler.compile tracemill.compiler.assemble tracemill.compiler.jobs
    tracemill.compiler.kernels tracemill.compiler.rows tracemill.compiler.plan_text
    tracemill.compiler.passes tracemill.compiler.transforms tracemill.compiler.ir.evaluator
    tracemill.compiler.ir.verifier tracemill.compiler.ir.rewriter tracemill.compiler.ir.parser
    tracemill.compiler.ir.printer tracemill.compiler.ops.scalar_reference
    tracemill.compiler.kernel.kernel tracemill.compiler.kernel.lowering
    tracemill.compiler.kernel.schedule tracemill.compiler.kernel.fingerprint
    tracemill.backends.cpu.backend tracemill.backends.cpu.templates tracemill.backends.cpu.worker
    tracemill.backends.cpu.crew tracemill.backends.cuda tracemill.backends.export
    tracemill.backends.llvm.module tracemill.backends.llvm.gemm tracemill.backends.llvm.types
    tracemill.backends.llvm.native.language.lowering tracemill.backends.llvm.native.exports
""".split()
# Parts of other packages that are loaded with them by mistake, for one name or one number.
DRAGGED_IN = """
    llvmlite numba optree ml_dtypes sysconfig scipy numpy.f2py numpy.ma numpy.testing numpy.random
    numpy.polynomial numpy.fft importlib.metadata email zipfile socket logging subprocess unittest
    asyncio multiprocessing concurrent
""".split()
FIRST_CALL_BUDGET = 295  # modules that a first call may add to those of `import numpy`

FIRST_CALL = """
import sys, numpy as np
before = set(sys.modules)
import tracemill as tm
@tm.jit
def f(x, y):
    return np.tanh(x @ y) + x.sum(axis=0) * 2.0
result = f(np.ones((8, 8)), np.ones((8, 8)))
assert np.allclose(result, np.tanh(8.0) + 16.0)
print(*sorted(set(sys.modules) - before))
"""


def test_a_first_call_of_kept_code_loads_nothing_that_compiles(
    run_python: Callable[..., str], tmp_path: Path
) -> None:
    cache = str(tmp_path / "cache")
    compiling = run_python(FIRST_CALL, TRACEMILL_CACHE=cache).split()
    kept = run_python(FIRST_CALL, TRACEMILL_CACHE=cache).split()
    for part in ("tracemill.calls.build", "tracemill.compiler.kernel.lowering", "llvmlite"):
        assert part in compiling, f"{part} is not what compiling loads any more: name another"
    found = [m for m in kept if any(f"{m}.".startswith(f"{p}.") for p in COMPILING + DRAGGED_IN)]
    assert not found, f"a first call of kept code loads {', '.join(found)}"
    assert len(kept) <= FIRST_CALL_BUDGET, f"{len(kept)} modules, at most {FIRST_CALL_BUDGET}"


def test_plain_statements_load_no_emitters_of_products_and_sorts(
    run_python: Callable[..., str],
) -> None:
    plain = FIRST_CALL.replace("x @ y", "x * y").replace("tanh(8.0)", "tanh(1.0)")
    loaded = run_python(plain, TRACEMILL_CACHE="off").split()
    assert "tracemill.backends.llvm.function" in loaded
    below = ("tracemill.backends.llvm.gemm", "tracemill.backends.llvm.sorting")
    assert not [name for name in loaded if name.startswith(below)]


def test_every_module_that_a_first_call_must_not_load_exists() -> None:
    """A name that means nothing would forbid nothing."""
    missing = [name for name in COMPILING if importlib.util.find_spec(name) is None]
    assert not missing
