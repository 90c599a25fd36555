"""Looking inside works for whatever can be called: gradients, partials, methods, any arguments."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

import tracemill as tm

pytestmark = pytest.mark.cpu
X = np.arange(3.0)


class Scale:
    by = 2.0

    def method(self, x: Any) -> Any:
        return x * self.by

    @classmethod
    def of_class(cls, x: Any) -> Any:
        return x * cls.by

    def __call__(self, x: Any) -> Any:
        return x * self.by + 1

    @tm.jit
    def compiled(self, x: Any) -> Any:
        return x * self.by


def loss(x: Any) -> Any:
    return (x * x).sum()


def product(factor: Any, x: Any) -> Any:
    return factor * x


def variadic(*parts: Any, **named: Any) -> Any:
    return sum(parts) + sum(named.values())


CALLABLES = {
    "grad": (tm.grad(loss), (X,), {}),
    "value_and_grad": (tm.value_and_grad(loss), (X,), {}),
    "grad of grad": (tm.grad(tm.grad(lambda x: x * x * x)), (2.0,), {}),
    "partial": (partial(product, 2.0), (X,), {}),
    "method": (Scale().method, (X,), {}),
    "classmethod": (Scale.of_class, (X,), {}),
    "object": (Scale(), (X,), {}),
    "variadic": (variadic, (X, X), {"more": X}),
    "ufunc": (np.sin, (X,), {}),
}


@pytest.mark.parametrize("name", CALLABLES)
def test_a_wrapped_function_can_be_looked_at(name: str) -> None:
    function, args, named = CALLABLES[name]
    compiled = tm.jit(function)
    lowered = compiled.lower(*args, **named)
    assert "\n  return %" in lowered.text
    assert "<" in lowered._repr_html_()
    assert "kernel @" in lowered.kernels
    assert "define" in lowered.llvm
    assert str(compiled.profile(*args, **named))
    compiled(*args, **named)
    assert len(compiled.explain_recompiles()) == 1
    compiled.clear_cache()
    compiled(*args, **named)
    assert len(compiled.explain_recompiles()) == 2


@pytest.mark.tool("cc")
def test_a_gradient_can_be_exported(tmp_path: Any) -> None:
    made = tm.jit(tm.grad(loss)).export(tmp_path / "slope.so", X)
    assert made.header.exists()


def test_a_method_is_looked_at_with_its_object() -> None:
    scale = Scale()
    assert " = mul " in Scale.compiled.lower(scale, X).text
    with pytest.raises(TypeError, match="missing a required argument: 'x'") as caught:
        scale.compiled.lower(X)
    assert caught.value.__notes__ == [
        "what looks inside a method takes the object too: f.lower(self, x)"
    ]
