"""Write the reference pages from the tables that the code itself works with.

    python dev.py docs            writes errors.md, operations.md and numpy-support.md
    python dev.py docs --check    says which of them are not up to date, and fails

Invariants: a page is a function of the installed package (and, for numpy-support.md, of NumPy's
version, which it names); nothing on it is written by hand here but its introduction.
Not here: the guides (written by hand), the texts about errors (compiler/error_help.py) and the
programs beside them (error_programs.py).
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import tracemill as tm
from tracemill.compiler.errors import CODES
from tracemill.compiler.ops import ALL
from tracemill.compiler.ops.definition import OpDef, SignatureError, Structure
from tracemill.compiler.types import DTYPES, DType, TensorType
from tracemill.numpy.attributes import ATTRIBUTES
from tracemill.numpy.dispatch import METHODS, handler_of
from tracemill.numpy.linear import GUFUNCS
from tracemill.tracing.tensor import TracedArray

FOLDER = Path(__file__).resolve().parent
sys.path.insert(0, str(FOLDER))  # where this file is imported by a test

from error_programs import PROGRAMS  # noqa: E402

# Handled, by an error unless the data is known while tracing:
REFUSED = frozenset(
    "argwhere byteswap flatnonzero intersect1d nonzero polydiv polymul setdiff1d setxor1d tolist "
    "trim_zeros union1d unique unique_all unique_counts unique_inverse unique_values".split()
)

MADE = "<!-- Made by docs/generate.py: run `python dev.py docs`. -->"


# -- errors.md


def errors_page() -> str:
    """Every code: class, sentence, what to do; programs for the most frequent ones."""
    families = {
        "TM1": "While a function is traced",
        "TM2": "Operands: shapes, types, axes, indices",
        "TM3": "Graphs",
        "TM4": "Code generation",
        "TM5": "The world: files, devices, time",
    }
    lines = [
        "# Errors",
        "",
        MADE,
        "",
        "Every error says your line first, then what happened and what to do, and has a stable",
        "code: the part in brackets of `ShapeError [TM204] at train.py:31, in loss`. All classes",
        "are subclasses of `tm.TracemillError` and of what NumPy would raise in the same place, so",
        "`except ValueError` goes on working. A call that is refused for its operands has written",
        "nothing that was there before it: no argument, no Variable.",
        "",
        "The programs below begin with",
        "",
        "```python",
        "import numpy as np",
        "import tracemill as tm",
        "```",
        "",
        "| code | class | also a | meaning |",
        "|---|---|---|---|",
    ]
    for code, row in CODES.items():
        name, also = row.error.__name__, _foreign(row.error)
        lines.append(f"| [{code}](#{code.lower()}) | `{name}` | {also} | {row.title} |")
    for prefix, title in families.items():
        lines += ["", f"## {title}"]
        for code, row in CODES.items():
            if code.startswith(prefix):
                lines += _error_entry(code, row.error.__name__, row.title, row.help)
    return "\n".join(lines) + "\n"


def _foreign(kind: type) -> str:
    """The nearest base class that is not ours; NumPy's with its module."""
    bases = [base for base in kind.__mro__ if not base.__module__.startswith("tracemill")]
    nearest = bases[0]
    module = "" if nearest.__module__ == "builtins" else "np.exceptions."
    return f"`{module}{nearest.__name__}`"


def _error_entry(code: str, name: str, title: str, help: str) -> Iterator[str]:
    yield from ("", f'<a id="{code.lower()}"></a>', "", f"### {code} {name}", "")
    yield from (f"**{title}** {help}",)
    if code in PROGRAMS:
        failing, repaired = PROGRAMS[code]
        yield from ("", "This fails:", "", f"```python raises={code}", failing, "```")
        yield from ("", "This does not:", "", "```python", repaired, "```")


# -- operations.md

FAMILIES = {
    Structure.ELEMENTWISE: "Elementwise: one result element from one element of each operand",
    Structure.CREATION: "Creation",
    Structure.MOVEMENT: "Movement: every result element is an operand's element or a fill",
    Structure.REDUCTION: "Reductions",
    Structure.SCAN: "Scans",
    Structure.CONTRACTION: "Contraction",
    Structure.GATHER: "Gather",
    Structure.SCATTER: "Scatter",
    Structure.SORT: "Sorting",
    Structure.RANDOM: "Random numbers",
    Structure.STATE: "State",
    Structure.EFFECT: "Effects",
    Structure.CONTROL: "Control",
    Structure.FLOW: "Control flow",
    Structure.TRANSFER: "Transfer",
    Structure.LIBRARY: "Libraries",
}

# Values of attributes to try an op's signature with on vectors of length 2, by attribute.
ATTRIBUTE_SETS: tuple[Mapping[str, Any], ...] = (
    {},
    *({"dtype": dtype} for dtype in DTYPES),
    {"axes": (0,)},
    {"axis": 0},
    {"axis": 0, "step": "maximum"},
    {"axes": (0,), "step": "maximum"},
    {"shape": (2,)},
    {"perm": (0,)},
    {"size": (2,), "start": (0,), "step": (1,)},
    {"low": (0,), "high": (0,)},
    {"start": (0,), "step": (1,)},
    {"axes": ((0, 0),), "batch": ()},
    {"axes": (), "batch": (), "windows": ((0, 0, 1, 1),)},
    {"code": "TM244"},
    {"text": "{}"},
)
GROUPS = {"bool": "b", "int": "i", "uint": "u", "float": "f", "complex": "c"}


def operations_page() -> str:
    """Every op of the graph: what users call for it, dtypes, gradient, meaning."""
    lines = [
        "# Operations",
        "",
        MADE,
        "",
        "The ops that graphs consist of, as `f.lower(...).text` shows them. What users write is",
        "NumPy; numpy-support.md lists which functions. Types: int stands for i8 to i64, uint for",
        "u8 to u64, float for f16, bf16, f32 and f64, complex for c64 and c128, any for all of",
        "these and bool; a semicolon separates operands whose types differ. Gradient: whether",
        "`tm.grad` goes through the op; through the others nothing flows back, their slope is",
        "taken as zero.",
    ]
    for structure, title in FAMILIES.items():
        ops = [op for op in ALL.values() if op.structure is structure]
        if ops:
            lines += ["", f"## {title}", "", "| op | call | types | gradient | meaning |"]
            lines += ["|---|---|---|---|---|", *map(_op_row, ops)]
    return "\n".join(lines) + "\n"


def _op_row(op: OpDef) -> str:
    gradient = "yes" if op.gradient is not None and op.facts.differentiable else "no"
    doc = op.doc.replace("|", "\\|")
    return f"| `{op.name}` | {_call(op)} | {_types(op)} | {gradient} | {doc} |"


def _call(op: OpDef) -> str:
    if op.ufunc is not None:
        return f"`np.{op.ufunc}`"
    homes = {"tm": dir(tm), "tm.special": tm.special.__all__}
    return next((f"`{home}.{op.name}`" for home, names in homes.items() if op.name in names), "")


def _types(op: OpDef) -> str:
    """The element types admitted, found by asking the op's signature."""
    for arity in (1, 2, 3):
        rows = set()
        for dtypes in itertools.product(DTYPES, repeat=arity):
            if any(_takes(op, dtypes, attributes) for attributes in ATTRIBUTE_SETS):
                rows.add(dtypes)
        if rows:
            columns = [{row[place] for row in rows} for place in range(arity)]
            if all(column == columns[0] for column in columns):
                return _dtypes_text(columns[0])
            return "; ".join(map(_dtypes_text, columns))
    return ""


def _takes(op: OpDef, dtypes: Sequence[DType], attributes: Mapping[str, Any]) -> bool:
    for last in ((2,), ()):
        shapes = [(2,)] * (len(dtypes) - 1) + [last]
        try:
            op.signature([TensorType(d, s) for d, s in zip(dtypes, shapes)], attributes)
        except (SignatureError, KeyError):  # ops with regions or variables ask for those
            continue
        return True
    return False


def _dtypes_text(dtypes: Iterable[DType]) -> str:
    """Types as words where a whole group is there."""
    left = set(dtypes)
    if left == set(DTYPES):
        return "any"
    words = []
    for word, kind in GROUPS.items():
        group = {dtype for dtype in DTYPES if dtype.kind == kind}
        if group <= left:
            words.append(word)
        else:
            words += [dtype.name for dtype in DTYPES if dtype in left & group]
    return ", ".join(words)


# -- numpy-support.md


def numpy_page() -> str:
    """Every public function of NumPy: compiled or not."""
    modules = {"np": np, "np.linalg": np.linalg, "np.fft": np.fft}
    tables = {title: list(statuses(module)) for title, module in modules.items()}
    methods = [(name, is_method(name)) for name in dir(np.ndarray) if not name.startswith("_")]
    lines = [
        "# NumPy support",
        "",
        MADE,
        "",
        f"{numpy_line()} `python dev.py docs` writes the page for another.",
        "",
        "*Compiled* functions may be called on arrays inside a compiled function. The others raise",
        "`UnsupportedError` there (errors.md, TM110), and work",
        "before and after it as ever. On plain Python values any function runs while the",
        "function is traced. Types such as `np.float32` may be called, and constants used.",
        "An option that is not supported raises TM111. `np.random` inside a compiled function:",
        "generators draw what they draw outside (docs/state-and-training.md).",
        "",
        "Every ufunc has its methods: `reduce`, `accumulate`, `reduceat`, `outer`, `at`; of two",
        "types, `np.ldexp` has `outer` alone.",
        "",
        "`numpy.polynomial` (values, bases, derivatives and integrals of all six, `Polynomial` and",
        "its kin), `np.poly1d` objects, `np.r_`, `np.c_`, `np.mgrid` and `np.ogrid` are written in",
        "NumPy, and are traced as your own functions are. What cuts off zero coefficients",
        "(`polyadd`, `polymul`) has a size that data decide, and is refused.",
        "",
        "| | compiled | not | share |",
        "|---|---|---|---|",
    ]
    for title, rows in [*tables.items(), ("ndarray", methods)]:
        compiled = sum(supported for _, supported in rows)
        share = f"{compiled / len(rows):.0%}"
        lines.append(f"| {title} | {compiled} | {len(rows) - compiled} | {share} |")
    for title, rows in tables.items():
        lines += ["", f"## {title}", "", "| function | status |", "|---|---|"]
        lines += [f"| `{title}.{name}` | {_word(ok)} |" for name, ok in rows]
    lines += ["", "## Methods and attributes of arrays", "", "| name | status |", "|---|---|"]
    lines += [f"| `ndarray.{name}` | {_word(ok)} |" for name, ok in methods]
    return "\n".join(lines) + "\n"


def numpy_line() -> str:
    """The sentence that names the version of NumPy."""
    return f"For NumPy {'.'.join(np.__version__.split('.')[:2])}."


def statuses(module: Any) -> Iterator[tuple[str, bool]]:
    """(name, compiled) of the module's public functions."""
    for name in sorted(module.__all__):
        function = getattr(module, name)
        if callable(function) and not isinstance(function, type):
            yield name, is_compiled(function)


def is_compiled(function: Any) -> bool:
    """Whether a compiled function may call it on arrays."""
    if isinstance(function, np.ufunc):
        known = {op.ufunc for op in ALL.values()}
        return function in GUFUNCS or function.__name__ in known or handler_of(function) is not None
    return handler_of(function) is not None and function.__name__ not in REFUSED


def is_method(name: str) -> bool:
    """Whether traced arrays have this method or attribute."""
    if name in REFUSED:
        return False
    return name in METHODS or name in ATTRIBUTES or hasattr(TracedArray, name)


def _word(supported: bool) -> str:
    return "compiled" if supported else "no"


PAGES: Mapping[str, Callable[[], str]] = {
    "errors.md": errors_page,
    "operations.md": operations_page,
    "numpy-support.md": numpy_page,
}


def main(arguments: Sequence[str]) -> int:
    """Write the pages, or check them; the exit status."""
    stale = []
    for name, made in PAGES.items():
        path = FOLDER / name
        text = made()
        if path.exists() and path.read_text(encoding="utf-8") == text:
            continue
        stale.append(name)
        if "--check" not in arguments:
            path.write_text(text, encoding="utf-8")
            print(f"docs/{name} written")
    if "--check" in arguments and stale:
        print(f"not up to date: {', '.join(stale)}; run `python dev.py docs`")
        return 1
    if not stale:
        print("all pages are up to date")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
