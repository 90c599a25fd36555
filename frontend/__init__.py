"""tracemill: plain NumPy functions, compiled into fused native code.

    import numpy as np
    import tracemill as tm

    @tm.jit
    def f(x, y):
        return np.tanh(x) * y + 1.0

Public names are loaded when first used, so that importing the package costs almost nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .loading import load

if TYPE_CHECKING:
    from .checkpoints import restore as restore
    from .checkpoints import save as save
    from .compiled import CompiledFunction as CompiledFunction
    from .compiled import jit as jit
    from .compiler.errors import TracemillError as TracemillError
    from .configuration import __version__ as __version__
    from .configuration import show_config as show_config
    from .control.functions import cond as cond
    from .control.functions import fori_loop as fori_loop
    from .control.functions import map as map
    from .control.functions import scan as scan
    from .control.functions import switch as switch
    from .control.functions import while_loop as while_loop
    from .devices import device as device
    from .differentiation import grad as grad
    from .differentiation import gradients as gradients
    from .differentiation import stop_gradient as stop_gradient
    from .differentiation import value_and_grad as value_and_grad
    from .engine import num_threads as num_threads
    from .engine import set_num_threads as set_num_threads
    from .host_calls import host_call as host_call
    from .locating import argwhere as argwhere
    from .locating import flatnonzero as flatnonzero
    from .locating import nonzero as nonzero
    from .ordering import top_k as top_k
    from .ordering import unique as unique
    from .printing import print as print
    from .program import Program as Program
    from .spec import Spec as Spec
    from .switches import disable_jit as disable_jit
    from .transforms.custom import checkpoint as checkpoint
    from .transforms.custom import custom_jvp as custom_jvp
    from .transforms.custom import custom_vjp as custom_vjp
    from .transforms.derivatives import hessian as hessian
    from .transforms.derivatives import jacobian as jacobian
    from .transforms.forward import jvp as jvp
    from .transforms.forward import linearize as linearize
    from .transforms.lanes import vmap as vmap
    from .transforms.reverse import vjp as vjp
    from .variable import Variable as Variable

_HOMES = {
    "jit": "compiled",
    "CompiledFunction": "compiled",
    "Variable": "variable",
    "print": "printing",
    "disable_jit": "switches",
    "show_config": "configuration",
    "set_num_threads": "engine",
    "num_threads": "engine",
    "cond": "control.functions",
    "while_loop": "control.functions",
    "fori_loop": "control.functions",
    "scan": "control.functions",
    "switch": "control.functions",
    "map": "control.functions",
    "host_call": "host_calls",
    "device": "devices",
    "save": "checkpoints",
    "restore": "checkpoints",
    "grad": "differentiation",
    "gradients": "differentiation",
    "stop_gradient": "differentiation",
    "value_and_grad": "differentiation",
    "jvp": "transforms.forward",
    "checkpoint": "transforms.custom",
    "custom_jvp": "transforms.custom",
    "custom_vjp": "transforms.custom",
    "jacobian": "transforms.derivatives",
    "hessian": "transforms.derivatives",
    "linearize": "transforms.forward",
    "vjp": "transforms.reverse",
    "vmap": "transforms.lanes",
    "top_k": "ordering",
    "unique": "ordering",
    "nonzero": "locating",
    "flatnonzero": "locating",
    "argwhere": "locating",
    "Program": "program",
    "Spec": "spec",
    "TracemillError": "compiler.errors",
    "__version__": "configuration",
}
_MODULES = ("nn", "optim", "special", "random")

# Names, computed from one table; two stay out: a star import must not hide Python's own.
_PYTHONS = ("print", "map")
__all__ = [*(n for n in _HOMES if n not in (*_PYTHONS, "__version__")), *_MODULES]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home == "compiled":
        load("engine").begin()
    if home is not None:
        value = getattr(load(home), name)
    elif name in _MODULES:
        value = load(name)
    else:
        raise AttributeError(f"module 'tracemill' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, *_PYTHONS, "__version__"])
