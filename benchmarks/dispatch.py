"""What a call costs, form by form, beside NumPy's own call in the same run.

`python -m benchmarks.dispatch`: rounds alternate between all forms; the least of each is shown
(nothing makes a call faster than it is).
"""

from __future__ import annotations

import timeit
from collections.abc import Callable, Mapping

import numpy as np

import tracemill as tm

from .workloads.calls import SUMS

CALLS, ROUNDS = 20_000, 15


def forms() -> Mapping[str, Callable[[], object]]:
    """Every form of call, as something to call without arguments."""
    x, y = np.arange(8.0), np.ones(8)
    narrow = np.ones(8, np.float32)
    w = tm.Variable(np.ones(8), name="dispatch benchmark")
    add = tm.jit(lambda a, b: a + b)
    mixed = tm.jit(lambda a, b: a + b)
    tree = tm.jit(lambda t: t["a"] + t["b"])
    scale = tm.jit(lambda a, t: a * t)
    read = tm.jit(lambda a: a + w)

    class Model:
        @tm.jit
        def apply(self, a: np.ndarray) -> np.ndarray:
            """Add one."""
            return a + 1.0

    model = Model()
    made: dict[str, Callable[[], object]] = {
        "nothing (the loop itself)": lambda: None,
        "NumPy x + y": lambda: x + y,
        "x + y": lambda: add(x, y),
        "keywords": lambda: add(a=x, b=y),
        "mixed dtypes": lambda: mixed(x, narrow),
        "a dict": lambda: tree({"a": x, "b": y}),
        "a Python float": lambda: scale(x, 2.5),
        "a Variable read": lambda: read(x),
        "a bound method": lambda: model.apply(x),
    }
    for count, function in SUMS.items():
        compiled, arguments = tm.jit(function), [x] * count
        made[f"{count} arguments"] = lambda f=compiled, a=arguments: f(*a)
    return made


def main() -> None:
    """Measure and print."""
    made = forms()
    best = dict.fromkeys(made, float("inf"))
    for call in made.values():
        call()
    for _ in range(ROUNDS):
        for name, call in made.items():
            best[name] = min(best[name], timeit.timeit(call, number=CALLS) / CALLS)
    loop = best["nothing (the loop itself)"]
    numpy = best["NumPy x + y"] - loop
    for name, seconds in best.items():
        net = seconds - loop
        print(f"{name:28s} {net * 1e9:7.0f} ns  {net / numpy:5.2f} of NumPy's x + y")


if __name__ == "__main__":
    main()
