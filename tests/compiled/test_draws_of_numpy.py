"""Draws of NumPy's generators in compiled functions are NumPy's: bit for bit, of its types, in
order, and the generator stands afterwards where NumPy leaves it.

Not here: how a generator is reached (tests/broken/test_chance.py), tm.random (tests/training).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracemill as tm

pytestmark = pytest.mark.cpu

PARAMETERS: dict[str, tuple[float, ...]] = {
    "beta": (1.0, 2.0), "binomial": (5, 0.3), "chisquare": (2.0,), "exponential": (),
    "f": (2.0, 3.0), "gamma": (2.0,), "geometric": (0.3,), "gumbel": (),
    "hypergeometric": (3, 4, 5), "integers": (9,), "laplace": (), "logistic": (), "lognormal": (),
    "logseries": (0.3,), "negative_binomial": (3, 0.4), "noncentral_chisquare": (2.0, 1.0),
    "noncentral_f": (2.0, 3.0, 1.0), "normal": (), "pareto": (2.0,), "poisson": (),
    "power": (2.0,), "random": (), "rayleigh": (), "standard_cauchy": (),
    "standard_exponential": (), "standard_gamma": (2.0,), "standard_normal": (),
    "standard_t": (3.0,), "triangular": (1, 2, 3), "uniform": (), "vonmises": (1.0, 2.0),
    "wald": (1.0, 2.0), "weibull": (2.0,), "zipf": (2.0,),
}  # fmt: skip


def shuffled(x: Any, rng: Any) -> Any:
    rng.shuffle(x)
    return x


def looped(x: Any, rng: Any) -> Any:
    total = 0.0
    for _ in range(20):
        step = rng.normal()
        if step > 0:
            total += step * x.sum()
        else:
            total -= rng.random()
    return total


def waited(x: Any, rng: Any) -> Any:
    count = 0
    while rng.random() < 0.8:
        count += 1
    return x * count


CASES: dict[str, Callable[[Any, Any], Any]] = {
    "of arrays": lambda x, rng: rng.normal(x, 0.1),
    "keywords": lambda x, rng: rng.normal(loc=x.mean(), scale=x.std() + 1, size=(3, len(x))),
    "broadcast": lambda x, rng: rng.uniform(x[:, None] * 0.1, x + 5.0),
    "float32": lambda x, rng: rng.random(x.shape, dtype=np.float32),
    "one float32": lambda x, rng: x.astype(np.float32) * rng.random(dtype=np.float32),
    "weak": lambda x, rng: x.astype(np.float32) * rng.normal(),
    "int8": lambda x, rng: rng.integers(0, 10, size=5, dtype=np.int8),
    "one int32": lambda x, rng: rng.integers(0, 10, dtype=np.int32),
    "int": lambda x, rng: rng.integers(10, dtype=int),
    "bool": lambda x, rng: rng.integers(2, dtype=bool),
    "bounds": lambda x, rng: rng.integers(x.astype(int) + 1),
    "an index": lambda x, rng: x[rng.integers(len(x))],
    "permutation": lambda x, rng: rng.permutation(x),
    "permutation of a size": lambda x, rng: rng.permutation(len(x)),
    "permutation of a number": lambda x, rng: rng.permutation(5),
    "permutation of a list": lambda x, rng: rng.permutation([1, 2, 3]),
    "permuted": lambda x, rng: rng.permuted(x[:, None] + x, axis=1),
    "shuffle": shuffled,
    "choice": lambda x, rng: rng.choice(x, 3),
    "one choice": lambda x, rng: rng.choice(x),
    "choice of a size": lambda x, rng: rng.choice(len(x), size=(2, 3)),
    "one choice of a number": lambda x, rng: rng.choice(9),
    "weighed": lambda x, rng: rng.choice(x, 2, replace=False, p=np.ones(len(x)) / len(x)),
    "choice of columns": lambda x, rng: rng.choice(x[:, None] + x, 2, axis=1),
    "vectors": lambda x, rng: rng.multivariate_normal(x, np.eye(len(x)), size=2),
    "a vector": lambda x, rng: rng.multivariate_normal([1.0, 2.0], np.eye(2)),
    "dirichlet": lambda x, rng: rng.dirichlet([1.0, 2.0, 3.0], 4),
    "loop": looped,
    "while": waited,
}
OLD: dict[str, Callable[[Any, Any], Any]] = {
    "rand": lambda x, rng: rng.rand(3, 2) + rng.randn(2)[0],
    "one": lambda x, rng: x.astype(np.float32) * rng.rand(),
    "randint": lambda x, rng: rng.randint(0, 5),
    "randints": lambda x, rng: rng.randint(0, 5, size=len(x)) + rng.random_sample(len(x)),
    "normal": lambda x, rng: rng.normal(x, 2.0),
    "choice": lambda x, rng: rng.choice(x, 2) + rng.permutation(3)[0],
}


def check(function: Callable[[Any, Any], Any], make: Callable[[int], Any]) -> None:
    compiled = tm.jit(function)
    mine, numpys = make(3), make(3)
    for _ in range(2):
        for size in (4, 7):
            x = np.arange(float(size))
            want, got = function(x.copy(), numpys), compiled(x.copy(), mine)
            assert type(got) is type(want)
            assert np.asarray(got).dtype == np.asarray(want).dtype
            np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("name", PARAMETERS)
def test_distributions(name: str) -> None:
    parameters = PARAMETERS[name]
    check(lambda x, rng: x + getattr(rng, name)(*parameters, size=x.shape), np.random.default_rng)
    check(lambda x, rng: getattr(rng, name)(*parameters), np.random.default_rng)


@pytest.mark.parametrize("name", CASES)
def test_methods_of_generators(name: str) -> None:
    check(CASES[name], np.random.default_rng)


@pytest.mark.parametrize("name", OLD)
def test_methods_of_random_states(name: str) -> None:
    check(OLD[name], np.random.RandomState)


def pi(count: int, rng: Any) -> Any:
    hits = 0
    for _ in range(count):
        x, y = rng.random(), rng.random()
        if x * x + y * y < 1:
            hits += 1
    return 4 * hits / count


def test_loops_around_draws_stay_loops() -> None:
    compiled = tm.jit(pi)
    mine, numpys = np.random.default_rng(3), np.random.default_rng(3)
    for count in (500, 1001, 3, 20_000):
        assert compiled(count, mine) == pi(count, numpys)
    assert len(compiled.explain_recompiles()) == 1


def test_no_size_is_compiled_again() -> None:
    rng = np.random.default_rng(0)
    compiled = tm.jit(lambda x: x + rng.normal(size=x.shape))
    for size in range(2, 30):
        compiled(np.ones(size))
    assert len(compiled.explain_recompiles()) == 1


def test_gradients_flow_around_draws() -> None:
    rng, again = np.random.default_rng(5), np.random.default_rng(5)
    gradient = tm.jit(tm.grad(lambda x: (x * x * rng.normal(size=x.shape)).sum()))
    for _ in range(2):
        x = np.arange(3.0)
        np.testing.assert_allclose(gradient(x), 2 * x * again.normal(size=3), rtol=1e-15)


@pytest.mark.parametrize(
    "function",
    [
        lambda x, rng: rng.normal(size=-1), lambda x, rng: rng.normal(scale=-x),
        lambda x, rng: rng.normal(1, 2, 3, 4), lambda x, rng: rng.integers(5, 3),
        lambda x, rng: rng.normal(size=(2, int)), lambda x, rng: rng.choice(x, p=[1.0]),
    ],
)  # fmt: skip
def test_what_numpy_refuses(function: Callable[[Any, Any], Any]) -> None:
    with pytest.raises(Exception) as wanted:
        function(np.ones(3), np.random.default_rng(0))
    with pytest.raises(wanted.type):
        tm.jit(function)(np.ones(3), np.random.default_rng(0))


@pytest.mark.parametrize(
    ("function", "code"),
    [
        (lambda x, rng: rng.bytes(3), "TM106"), (lambda x, rng: rng.random(out=x), "TM111"),
        (lambda x, rng: rng.shuffle([1, 2]), "TM111"),
    ],
)  # fmt: skip
def test_what_is_refused(function: Callable[[Any, Any], Any], code: str) -> None:
    with pytest.raises(tm.TracemillError, match=code):
        tm.jit(function)(np.ones(3), np.random.default_rng(0))
