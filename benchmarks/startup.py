"""Process-level figures: import time and the first call, each in fresh processes.

Every figure is the median over several processes of what the process itself measured between
two points, so interpreter start-up is not counted.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping

from .statistics import Estimate, median_of

_IMPORT = "import time, numpy; t = time.perf_counter(); import {0}; print(time.perf_counter() - t)"
_SMALL = """
import time, numpy as np
{setup}
x = np.linspace(0.0, 1.0, 1000)
f = {decorate}(lambda x: {lib}.sqrt({lib}.tanh(x) * 2.0 + 1.0) - x)
t = time.perf_counter(); {finish}(f({wrap}(x))); print(time.perf_counter() - t)
"""
_LAYERS = """
import time, numpy as np
{setup}
rng = np.random.default_rng(0)
x = {wrap}(rng.standard_normal((16, 32)).astype(np.float32))
w = {wrap}((rng.standard_normal((32, 32)) * 0.01).astype(np.float32))
def stack(x, w):
    for _ in range({layers}):
        x = x + {lib}.tanh(x @ w - {mean}(x))
    return x
f = {decorate}(stack)
t = time.perf_counter(); {finish}(f(x, w)); print(time.perf_counter() - t)
"""
_OWN = {
    "setup": "import tracemill as tm, llvmlite.binding",
    "decorate": "tm.jit",
    "lib": "np",
    "mean": "np.mean",
    "wrap": "",
    "finish": "",
}
_STYLES: Mapping[str, Mapping[str, str]] = {
    "tracemill": _OWN,
    "tracemill, no cache": {
        **_OWN,
        "setup": f"import os; os.environ['TRACEMILL_CACHE'] = 'off'\n{_OWN['setup']}",
    },
    "jax": {
        "setup": "import jax, jax.numpy as jnp\njnp.ones(2).block_until_ready()",
        "decorate": "jax.jit",
        "lib": "jnp",
        "mean": "jnp.mean",
        "wrap": "jnp.asarray",
        "finish": "jax.block_until_ready",
    },
    "torch.compile": {
        "setup": "import torch",
        "decorate": "torch.compile",
        "lib": "torch",
        "mean": "torch.mean",
        "wrap": "torch.from_numpy",
        "finish": "",
    },
    "tensorflow": {
        "setup": "import tensorflow as tf\ntf.function(lambda x: x + 1)(tf.ones(2))",
        "decorate": "tf.function(jit_compile=True)",
        "lib": "tf",
        "mean": "tf.reduce_mean",
        "wrap": "tf.constant",
        "finish": "",
    },
    "numba": {**_OWN, "setup": "import numba", "decorate": "numba.njit"},
}


def import_times(runs: int = 7) -> Mapping[str, Estimate | str]:
    """Seconds that importing each package adds after NumPy."""
    packages = ("tracemill", "jax", "torch", "numba", "tensorflow", "onnxruntime")
    return {package: _figure(_IMPORT.format(package), runs) for package in packages}


def first_calls(runs: int = 3) -> Mapping[str, Mapping[str, Estimate | str]]:
    """Seconds of the first call of a five-op function and of a deep stack of layers."""
    small = {name: _figure(_SMALL.format(**style), runs) for name, style in _STYLES.items()}
    deep = {
        name: _figure(_LAYERS.format(layers=1000, **style), 1)
        for name, style in _STYLES.items()
        if name in ("tracemill", "tracemill, no cache", "jax", "tensorflow")
    }
    return {"5 operations": small, "1000 layers": deep}


def _figure(program: str, runs: int) -> Estimate | str:
    samples = []
    for _ in range(runs):
        done = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, timeout=900
        )
        if done.returncode:
            return done.stderr.strip().splitlines()[-1][:200] if done.stderr else "failed"
        samples.append(float(done.stdout.split()[-1]))
    return median_of(samples)
