"""What a variable holds that is not bound, or not of one type, on all ways to a line.

Control flow of the graph puts it there; nothing happens until it is used.

Not here: when that is so (control/).
"""

from __future__ import annotations

from typing import Any

from tracemill.compiler.errors import error

from .source import user_location


class Undefined:
    """Stands in a variable that is not bound, or not of one type, on all ways to it: whatever
    is done with it is an error at the statement that left it so."""

    __slots__ = ("_detail", "_hint", "_place", "_summary")

    def __init__(self, summary: str, detail: str, hint: str) -> None:
        object.__setattr__(self, "_summary", summary)
        object.__setattr__(self, "_detail", detail)
        object.__setattr__(self, "_hint", hint)
        object.__setattr__(self, "_place", user_location())

    def refuse(self, *_: Any, **__: Any) -> Any:
        """Raise the TraceError."""
        raise error("TM260", self._summary, detail=self._detail, place=self._place, hint=self._hint)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name != "__array_ufunc__":
            raise AttributeError(name)
        return self.refuse()

    def __array__(self, *_: Any, **__: Any) -> Any:
        return self.refuse()


def _install() -> None:
    operators = """add sub mul truediv floordiv mod pow matmul and or xor lshift rshift
                   divmod""".split()
    names = [f"{side}{name}" for name in operators for side in ("", "r", "i")]
    names += """lt le gt ge eq ne neg pos abs invert bool int float complex index iter len getitem
                setitem call contains hash round enter""".split()
    for name in names:
        setattr(Undefined, f"__{name}__", Undefined.refuse)


_install()
