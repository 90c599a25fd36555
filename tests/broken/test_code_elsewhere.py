"""Functions whose source cannot be found, and those of installed packages."""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import tracemill as tm

pytestmark = pytest.mark.cpu

X = np.arange(3.0)
SOURCE = """
import numpy as np
import types
GAIN = 1.0
class Model:
    k = 5.0
    def __init__(self):
        self.w = np.ones(3)
        self.b = 2.0
        self.inner = types.SimpleNamespace(q=1.0, r=np.ones(3))
        self.layers = [np.ones(3), 2.0]
    def plain(self, x):
        return x * self.w + self.b
    def deep(self, x):
        return x * self.inner.q + self.inner.r * self.k
    def through_a_method(self, x):
        return self.plain(x) + self.scaled(x)
    def scaled(self, x):
        return x * self.b * GAIN
    @property
    def thrice(self):
        return self.b * 3
    def through_a_property(self, x):
        return x * self.thrice
    def one_element(self, x):
        return x * self.w[0] + self.layers[0][1]
    def in_place(self, x):
        self.w -= 0.1 * x
        return self.w.sum()
    def rebind(self, x):
        self.w = self.w - 0.1 * x
"""


def changes(models: list[Any], namespace: dict[str, Any]) -> Iterator[None]:
    """Change everything a model's methods may read, one thing after the other."""
    yield
    for attribute, value in (
        ("b", 7.0),
        ("w", np.full(3, 9.0)),
        ("inner", types.SimpleNamespace(q=8.0, r=np.full(3, 2.0))),
        ("k", 1.0),
    ):
        for model in models:
            setattr(model, attribute, value.copy() if attribute == "w" else value)
        yield
    for model in models:
        model.w[0] = 50.0
        model.inner.q = 3.0
        model.layers[0] = np.full(3, 4.0)
    yield
    for model in models:
        del model.k
    yield
    namespace["Model"].k = 2.0
    yield
    namespace["GAIN"] = 4.0
    yield


@pytest.mark.parametrize(
    "name",
    ["plain", "deep", "through_a_method", "through_a_property", "one_element", "in_place"],
)
def test_code_without_source_sees_what_its_objects_hold(name: str) -> None:
    namespace: dict[str, Any] = {}
    exec(SOURCE, namespace)
    mine, theirs = namespace["Model"](), namespace["Model"]()
    function = getattr(namespace["Model"], name)
    compiled = tm.jit(function)
    for _ in changes([mine, theirs], namespace):
        for _ in range(2):
            np.testing.assert_array_equal(compiled(mine, X), function(theirs, X))
            np.testing.assert_array_equal(mine.w, theirs.w)
    assert type(mine.w) is np.ndarray
    assert type(mine.layers[0]) is np.ndarray


def test_code_without_source_may_not_keep_traced_values() -> None:
    namespace: dict[str, Any] = {}
    exec(SOURCE, namespace)
    model = namespace["Model"]()
    with pytest.raises(TypeError, match=r"\[TM103\].*\n.*stored in the attribute 'w'"):
        tm.jit(namespace["Model"].rebind)(model, X)
    assert model.w.tolist() == [1, 1, 1]


INSTALLED = """
import numpy as np
import tracemill as tm
import types
from .parts import part
cfg = types.SimpleNamespace(a=1.0, w=np.ones(3))
K = 2.0
@tm.jit
def f(x):
    y = np.zeros(3)
    y[1:] = x[1:]
    return y * cfg.a + cfg.w * K + part(x)
class Model:
    def __init__(self):
        self.w = np.ones(3)
    @tm.jit
    def update(self, x):
        self.w -= 0.1 * x
        return self.w * 2
"""
PARTS = """
import numpy as np
SCALE = 1.0
def part(x):
    made = np.zeros(3)
    made[0] = x[1]
    return made * SCALE
"""
CALLS = """
import sys
import numpy as np
from tracemill.tracing import source
source._LIBRARY_FOLDERS = (*source._LIBRARY_FOLDERS, sys.path[0] + "/")
import pack, pack.parts
x = np.arange(3.0)
def check():
    for _ in range(2):
        assert np.array_equal(pack.f(x), pack.f.__wrapped__(x))
check()
pack.cfg.a = 3.0; check()
pack.cfg.w = np.zeros(3); check()
pack.K = 9.0; check()
pack.parts.SCALE = 4.0; check()
model = pack.Model()
for _ in range(3):
    model.update(x)
assert type(model.w) is np.ndarray and np.allclose(model.w, [1.0, 0.7, 0.4])
print("done")
"""


def test_an_installed_package_with_compiled_functions_is_the_user_s_code(
    run_python: Callable[..., str], tmp_path: Any
) -> None:
    place = tmp_path / "installed" / "pack"
    place.mkdir(parents=True)
    (place / "__init__.py").write_text(INSTALLED)
    (place / "parts.py").write_text(PARTS)
    code = f"import sys\nsys.path.insert(0, {str(place.parent)!r})\n{CALLS}"
    assert run_python(code) == "done\n"
