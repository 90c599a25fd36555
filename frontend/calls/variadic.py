"""Compiled functions with ``*args`` or ``**kwargs``: one fixed-arity version per form of call.

Invariants: a form is (number of positional arguments, keyword names); each has its own native
function, whose parameters are just those.
Not here: anything about a form once its parameters are fixed (dispatch.py).
"""

from __future__ import annotations

import inspect
from typing import Any

from .. import engine
from ..backends.llvm.native.runtime import Parameter
from .arguments import Signature
from .dispatch import Dispatcher
from .recompiles import Compilation
from .tracebacks import for_users

Form = tuple[int, tuple[str, ...]]


def variadic(dispatcher: Dispatcher) -> Any:
    """The native callable of a variadic function."""
    forms: dict[Form, Dispatcher] = {}

    @for_users
    def slow(*args: Any, **keywords: Any) -> Any:
        dispatcher.signature.signature.bind(*args, **keywords)
        form = (len(args), tuple(keywords))
        inner = forms.get(form)
        if inner is None:
            inner = forms[form] = _fixed(dispatcher, form)
            inner.make_native()
        return inner.native(*args, **keywords)

    unused: list[Parameter] = []
    dispatcher.native = engine.native().new_function(unused, slow, dispatcher.fail, dispatcher)
    return dispatcher.native


def _fixed(dispatcher: Dispatcher, form: Form) -> Dispatcher:
    """A dispatcher for one form of call; it shares the history."""
    count, names = form
    positional = [
        inspect.Parameter(f"argument_{i}", inspect.Parameter.POSITIONAL_ONLY) for i in range(count)
    ]
    keyword = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY) for name in names]
    signature = inspect.Signature([*positional, *keyword])
    fixed = Signature(dispatcher.function, signature, tuple(signature.parameters))
    history: list[Compilation] = dispatcher.history
    return Dispatcher(dispatcher.function, fixed, dispatcher.static, history=history)
