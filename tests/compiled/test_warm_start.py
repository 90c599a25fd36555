"""The cache between processes, and what equal layers share."""

from __future__ import annotations

import numpy as np

import tracemill as tm

PROGRAM = """
import sys, warnings
import numpy as np, tracemill as tm
w = tm.Variable(np.ones(5, np.float32), name="w")
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    f = tm.jit(lambda x: (np.tanh(x) * w).sum(axis=1) @ np.ones(3, np.float32))
    value = float(f(np.arange(15, dtype=np.float32).reshape(3, 5)))
print(value, sum(c.compiled for c in f.explain_recompiles()), "llvmlite.binding" in sys.modules,
      "numba" in sys.modules, [str(w.message) for w in caught])
"""


def test_a_warm_process_computes_without_loading_llvm(run_python, tmp_path):
    cold = run_python(PROGRAM, TRACEMILL_CACHE=str(tmp_path / "cache")).split()
    warm = run_python(PROGRAM, TRACEMILL_CACHE=str(tmp_path / "cache")).split()
    assert cold[0] == warm[0]
    assert int(cold[1]) > 0
    assert warm[1:] == ["0", "False", "False", "[]"]


def test_a_damaged_cache_is_a_warning_and_the_right_answer(run_python, tmp_path):
    cold = run_python(PROGRAM, TRACEMILL_CACHE=str(tmp_path / "cache")).split()
    for entry in (tmp_path / "cache").iterdir():
        data = bytearray(entry.read_bytes())
        data[len(data) // 2] ^= 1
        entry.write_bytes(bytes(data))
    damaged = run_python(PROGRAM, TRACEMILL_CACHE=str(tmp_path / "cache"))
    assert damaged.split()[0] == cold[0]
    assert "is damaged" in damaged
    again = run_python(PROGRAM, TRACEMILL_CACHE=str(tmp_path / "cache")).split()
    assert again[1:] == ["0", "False", "False", "[]"]


def test_without_a_cache_everything_works(run_python, tmp_path):
    (tmp_path / "file").write_text("")
    off = run_python(PROGRAM, TRACEMILL_CACHE="off").split()
    unusable = run_python(PROGRAM, TRACEMILL_CACHE=str(tmp_path / "file" / "below"))
    assert unusable.split()[0] == off[0]
    assert unusable.count("going on without it") == 1


def test_equal_layers_share_their_kernels():
    def stack(x, w, layers):
        for _ in [None] * layers:  # a list's loop runs while it is traced
            x = x + np.tanh(x @ w - x.mean())
        return x

    f = tm.jit(stack, static_argnames="layers")
    x = np.random.default_rng(0).standard_normal((16, 32))
    w = np.random.default_rng(1).standard_normal((32, 32)) * 0.01
    few, many = (len(f.lower(x, w, n).plan.data.kernels) for n in (3, 300))
    assert many == few
    np.testing.assert_allclose(f(x, w, 300), stack(x, w, 300), rtol=1e-9, atol=1e-9)
