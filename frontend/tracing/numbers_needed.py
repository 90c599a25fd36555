"""The errors for a traced value whose number Python code asks for.

Not here: numbers that can be known while tracing (concrete.py).
"""

from __future__ import annotations

import re
from typing import Any

from .source import source_line, user_location
from .state import fail

_STATEMENTS = ("if", "elif", "while", "assert")
_STAYS = ("this statement cannot be moved into the graph: what it stands in has `yield`, `await`, "
          "a class, `global` or locals() in it")  # fmt: skip
_WITHOUT_SOURCE = ("an `if` or `while` becomes one of the graph where the source of its function "
                   "can be read, which it cannot here")  # fmt: skip
_CALLS = "tm.cond(condition, f, g) and tm.while_loop(test, body, initial)"
_INSTEAD = {
    "if": f"it in a function without them, or {_CALLS}",
    "elif": f"it in a function without them, or {_CALLS}",
    "while": f"it in a function without them, or {_CALLS}",
    "assert": "a check of the arguments before the call, or return a flag beside the result",
    "": f"{_CALLS}",
}
# What a line has in it -> what does the same in the graph; the first that fits is said.
_BY_CALL: tuple[tuple[str, str], ...] = (
    (r"\b(?<!\.)(sum|len)\(.*\bfor\b.*\bif\b", "np.count_nonzero(condition) for the number of "
     "elements, np.sum(x, where=condition) for their sum"),
)  # fmt: skip
_FOR_OTHERS = (
    "np.where(condition, a, b), & and | for `and` and `or`, np.minimum and np.maximum for min() "
    "and max(), np.sort for sorted()"
)


def number_error(traced: Any, wanted: str) -> Exception:
    """The error for a traced value whose number Python code asks for."""
    line = source_line(user_location())
    shown = f"\n    {line}" if line else ""
    if wanted == "bool":
        return _truth_error(traced, line, shown)
    return fail(
        "TM102",
        f"{wanted}() needs the number of {traced!r} while the function is traced{shown}",
        "its value is known only when the compiled function runs",
        'show it with tm.print("{:.3f}", x)'
        if wanted == "format"
        else "keep it an array, or pass the number as a static argument",
    )


def _truth_error(traced: Any, line: str, shown: str) -> Exception:
    word = line.split(" ", 1)[0].rstrip(":(") if line else ""
    is_statement = word in _STATEMENTS
    what = f"`{word}`" if is_statement else "Python"
    detail = "its value is known only when the compiled function runs"
    if is_statement and word != "assert":
        detail += f"; {_STAYS}"
    elif not line:
        detail += f"; {_WITHOUT_SOURCE}"
    return fail(
        "TM101",
        f"{what} needs to know whether {traced!r} is true while the function is traced{shown}",
        detail,
        f"write {_INSTEAD[word if is_statement else '']}"
        if is_statement or not line
        else f"write {_instead_of(line)}",
    )


def _instead_of(line: str) -> str:
    return next((hint for pattern, hint in _BY_CALL if re.search(pattern, line)), _FOR_OTHERS)


def data_error(traced: Any) -> Exception:
    """The error for a traced array whose memory other code asks for."""
    return fail(
        "TM106",
        f"code that cannot be traced asked for the data of {traced!r}",
        hint="NumPy's functions can be traced, C code and other libraries cannot: call those "
        "outside the compiled function",
    )
