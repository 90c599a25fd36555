"""Compiled functions with ``*args`` or ``**kwargs``: one fixed-arity version per form of call.

Invariants: a form is (number of positional arguments, keyword names); each has its own native
function, whose parameters are just those.
Not here: anything about a form once its parameters are fixed (dispatch.py).
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
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

    def form_of(args: Sequence[Any], keywords: Mapping[str, Any]) -> Dispatcher:
        dispatcher.signature.bind(args, keywords)
        form: Form = (len(args), tuple(keywords))
        inner = dispatcher.forms.get(form)
        if inner is None:
            inner = dispatcher.forms[form] = _fixed(dispatcher, form)
            inner.make_native()
        return inner

    @for_users
    def slow(*args: Any, **keywords: Any) -> Any:
        return form_of(args, keywords).native(*args, **keywords)

    dispatcher.form_of = form_of
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
    return Dispatcher(
        dispatcher.function, fixed, dispatcher.static, is_ours=dispatcher.is_ours, history=history
    )
