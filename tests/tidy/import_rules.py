"""Who may import whom.

Invariants: `compiler <- runtime <- backends <- frontend`, an import only points left; inside the
compiler the order is that of ORDER; the compiler is pure; LLVM and Numba stay behind their doors.

Not here: exceptions and their reasons (exceptions.py).
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass

from .checkout import PACKAGES, Rule, Source, Violation

LAYERS = ("compiler", "runtime", "backends", "frontend")

# Inside the compiler a module may import from earlier rows, and from its own file or folder.
# The first row is the vocabulary; its files may know each other.
ORDER = (
    ("records", "uncollected", "types", "dims", "device", "errors", "error_help", "raising"),
    ("ops",),
    ("ir",),
    ("kernel",),
    ("transforms", "passes"),
    ("plan",),
    ("sizes", "kernels", "plan_text", "plan_bytes", "plan_times"),
    ("jobs",),
    ("rows",),
    ("turns",),
    ("assemble_region",),
    ("assemble_nest",),
    ("assemble_branch",),
    ("assemble_flow",),
    ("assemble",),
    ("compile",),
    ("mill",),
)

# What would make the compiler depend on more than its arguments.
IMPURE = frozenset(
    "asyncio concurrent ctypes datetime fcntl glob http importlib io logging mmap multiprocessing"
    " os pathlib pickle platform queue random sched secrets select selectors shelve shutil signal"
    " socket socketserver sqlite3 ssl subprocess tempfile threading time urllib uuid".split()
)
COMPILER_PACKAGES = {"numpy", "ml_dtypes", "tracemill"}

# The runtime reaches files, clocks and peers through one injectable file each.
RIM = frozenset(
    "datetime fcntl glob http io pathlib secrets select selectors shutil socket ssl tempfile time"
    " urllib uuid".split()
)
# Of these modules it may use the parts that only compute.
MIXED = {"os", "random"}
HARMLESS = frozenset(
    "os.name os.sep os.strerror os.fspath os.path.join os.path.isabs os.path.dirname"
    " os.path.basename os.path.split os.path.normpath random.Random".split()
)


@dataclass(frozen=True)
class Import:
    """One imported name, resolved: `from ..ir import graph` in compiler/passes/ is
    `tracemill.compiler.ir.graph`."""

    target: str
    line: int
    inside: str  # the function it stands in, or empty

    @property
    def package(self) -> str:
        return self.target.split(".")[0]


def module_name(path: str) -> str:
    """The dotted name under which a file of the four folders is installed."""
    folder, *rest = path.removesuffix(".py").split("/")
    parts = [PACKAGES.get(folder, folder), *rest]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(source: Source) -> Iterator[Import]:
    """Every import of a file, wherever it stands."""
    package = module_name(source.path).split(".")
    if not source.path.endswith("/__init__.py"):
        package.pop()
    stack: list[tuple[ast.AST, str]] = [(source.tree, "")]
    while stack:
        node, inside = stack.pop()
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(alias.name, node.lineno, inside)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            base = [*base, node.module] if node.module else base
            for alias in node.names:
                yield Import(".".join([*base, alias.name]), node.lineno, inside)
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in DYNAMIC and inside:
            yield Import("", node.lineno, inside)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            inside = node.name
        stack += [(child, inside) for child in ast.iter_child_nodes(node)]


DYNAMIC = {"importlib.import_module", "import_module", "__import__"}


def layer_of(target: str) -> str | None:
    """The layer an imported name belongs to; None outside tracemill."""
    parts = target.split(".")
    if parts[0] != "tracemill":
        return None
    return parts[1] if len(parts) > 1 and parts[1] in LAYERS[:-1] else "frontend"


def layers(source: Source) -> Iterator[Violation]:
    """An import points left in compiler <- runtime <- backends <- frontend."""
    if not source.in_package:
        return
    for item in imports(source):
        layer = layer_of(item.target)
        if layer is not None and LAYERS.index(layer) > LAYERS.index(source.folder):
            yield Violation(source.path, item.line, f"{source.folder} may not import {layer}")


def rank(place: str) -> int | None:
    """The row of ORDER that names a file or folder of the compiler."""
    return next((row for row, names in enumerate(ORDER) if place in names), None)


def compiler_order(source: Source) -> Iterator[Violation]:
    """Inside the compiler an import points to an earlier row of ORDER."""
    if not source.in_package or source.folder != "compiler":
        return
    place = source.path.split("/")[1].removesuffix(".py")
    if place == "__init__":
        return
    own = rank(place)
    if own is None:
        yield Violation(
            source.path, 1, f"compiler/{place} has no row in ORDER of tests/tidy/import_rules.py"
        )
        return
    for item in imports(source):
        if not item.target.startswith("tracemill.compiler."):
            continue
        other = item.target.split(".")[2]
        row = rank(other)
        if row is None:
            sentence = f"the compiler may not import its own façade for {other}"
            yield Violation(source.path, item.line, sentence)
        elif other != place and row >= own and (row, own) != (0, 0):
            yield Violation(source.path, item.line, f"compiler/{place} may not import {other}")


def compiler_purity(source: Source) -> Iterator[Violation]:
    """The compiler knows the standard library's pure part, NumPy and ml_dtypes; no files."""
    if not source.in_package or source.folder != "compiler":
        return
    for item in imports(source):
        known = item.package in sys.stdlib_module_names or item.package in COMPILER_PACKAGES
        if item.target and (not known or item.package in IMPURE):
            yield Violation(source.path, item.line, f"the compiler may not import {item.package}")
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in {"open", "input"}:
            yield Violation(source.path, node.lineno, "the compiler may not open files")


def runtime_rim(source: Source) -> Iterator[Violation]:
    """Files, clocks, randomness and sockets are touched in the files named for them."""
    if not source.in_package or source.folder != "runtime":
        return
    for item in imports(source):
        mixed = item.package in MIXED and "." in item.target and item.target not in HARMLESS
        if item.package in RIM or mixed:
            sentence = f"{item.target} belongs at the rim of the runtime"
            yield Violation(source.path, item.line, sentence)
    for dotted, line in attributes(source.tree):
        if dotted.split(".")[0] in MIXED and not harmless(dotted):
            yield Violation(source.path, line, f"{dotted} belongs at the rim of the runtime")
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "open":
            yield Violation(source.path, node.lineno, "open() belongs at the rim of the runtime")


def attributes(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Every chain of names such as `os.path.join`, at its full length, with its line."""
    chains = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
    inner = {id(node.value) for node in chains}
    for node in chains:
        if id(node) not in inner:
            yield ast.unparse(node), node.lineno


def harmless(dotted: str) -> bool:
    """Whether a chain of names starts with one that only computes."""
    return any(dotted == name or dotted.startswith(name + ".") for name in HARMLESS)


def llvmlite_door(source: Source) -> Iterator[Violation]:
    """llvmlite is imported below backends/llvm and nowhere else."""
    if not source.in_package or source.path.startswith("backends/llvm/"):
        return
    for item in imports(source):
        if item.package == "llvmlite":
            yield Violation(
                source.path, item.line, "llvmlite may be imported below backends/llvm only"
            )


def numba_door(source: Source) -> Iterator[Violation]:
    """Numba is imported where user code is bridged, when it is used."""
    if not source.in_package:
        return
    for item in imports(source):
        if item.package == "numba":
            yield Violation(
                source.path, item.line, "numba may be imported by the listed bridges only"
            )


def imports_at_the_top(source: Source) -> Iterator[Violation]:
    """An import inside a function hides an arrow that points the wrong way."""
    if not source.in_package:
        return
    for item in imports(source):
        if item.inside:
            sentence = f"import inside {item.inside}(): move it to the top of the file"
            yield Violation(source.path, item.line, sentence)


def environment_variables(source: Source) -> Iterator[Violation]:
    """Options are read from the environment in the frontend and handed down as arguments."""
    if not source.in_package or source.folder == "frontend":
        return
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Attribute) and ast.unparse(node) in {"os.environ", "os.getenv"}:
            sentence = "environment variables are read in the frontend and handed down"
            yield Violation(source.path, node.lineno, sentence)


RULES: tuple[Rule, ...] = (
    layers,
    compiler_order,
    compiler_purity,
    runtime_rim,
    llvmlite_door,
    numba_door,
    imports_at_the_top,
    environment_variables,
)
