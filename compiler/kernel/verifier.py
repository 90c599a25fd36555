"""Judges kernels. What is checked:

* names: each scalar, axis and local is defined once; uses are in scope; buffers are parameters
  or locals; symbols of sizes are axes in scope or dims of the kernel;
* accesses: as many indices as axes; nothing is loaded from an ``out`` parameter that no earlier
  statement stores to, nothing is stored to an ``in`` parameter; values and masks have the
  dtypes of buffers and bools;
* reductions and scans: the monoid exists; names, yields and dtypes match its states;
* sorts: they are alone in their kernel, and what they use are buffers;
* schedules: threads only on the one outermost parallel axis; no vector axis inside another;
  an ordered loop has no marks.

Not checked: indices in range (lowering's proof), the meaning of ops (their records).
"""

from __future__ import annotations

from collections.abc import Sequence

from ..dims import Dim, Size
from ..errors import error
from ..types import BOOL, I64, DType
from .kernel import (
    Call,
    Check,
    Checked,
    Constant,
    For,
    If,
    Index,
    IndexValue,
    Kernel,
    Let,
    Load,
    Local,
    Loop,
    Parallel,
    Reduce,
    Scan,
    Search,
    Select,
    Sort,
    Statement,
    Store,
    Update,
    bodies,
)
from .monoids import MONOIDS, is_named, named
from .printer import kernel_text

Scope = dict[str, DType]


def verify_kernel(kernel: Kernel) -> None:
    """Raise BrokenGraph with all complaints and the kernel's text."""
    complaints = complaints_about(kernel)
    if complaints:
        raise error(
            "TM303",
            f"kernel @{kernel.name} is not well-formed",
            detail="\n".join([*complaints, "", kernel_text(kernel)]),
        )


def complaints_about(kernel: Kernel) -> list[str]:
    """Everything wrong with a kernel, in the order of its text."""
    judge = _Judge(kernel)
    judge.block(kernel.body, {}, frozenset(kernel.dims), 0, False)
    return judge.found


class _Judge:
    def __init__(self, kernel: Kernel) -> None:
        self.found: list[str] = []
        self.alone = len(kernel.body) == 1
        self.ranks = {p.name: (len(p.shape), p.dtype, p.mode) for p in kernel.params}
        self.defined: set[str] = set(self.ranks)
        self.stored: set[str] = set()
        for param in kernel.params:
            self.sizes(param.shape, frozenset(kernel.dims), f"parameter {param.name}")

    def say(self, text: str) -> None:
        self.found.append(text)

    def define(self, name: str) -> None:
        if name in self.defined:
            self.say(f"{name} is defined twice")
        self.defined.add(name)

    def block(
        self,
        body: Sequence[Statement],
        outer: Scope,
        symbols: frozenset[str],
        depth: int,
        vector: bool,
    ) -> Scope:
        scope = dict(outer)
        nests = sum(1 for s in body if bodies(s))
        for s in body:
            if bodies(s):
                self.loop(s, scope, symbols, depth, vector, nests)
            else:
                self.plain(s, scope, symbols)
        return scope

    def loop(
        self,
        s: Statement,
        scope: Scope,
        symbols: frozenset[str],
        depth: int,
        vector: bool,
        nests: int,
    ) -> None:
        inner = symbols
        if isinstance(s, If):
            self.use(s.condition, scope, BOOL)
        elif isinstance(s, Parallel | For | Loop | Reduce | Scan):
            self.define(s.axis)
            inner = symbols | {s.axis}
            if s.extent is not None:
                self.sizes((s.extent,), symbols, f"extent of {s.axis}")
        marked = getattr(s, "vector", 0) > 1
        if marked and vector:
            self.say(f"vector axis {getattr(s, 'axis', '')} is inside a vector axis")
        if getattr(s, "threads", False) and (depth or nests > 1):
            self.say(f"threads over {getattr(s, 'axis', '')}, which is not the only outer axis")
        start = dict(scope)
        if isinstance(s, Loop):
            for name, init, dtype in zip(s.names, s.init, s.dtypes):
                self.use(init, scope, dtype)
                start[name] = dtype
            if s.when is not None:
                self.use(s.when, scope, BOOL)
        last = scope
        for at, block in enumerate(bodies(s)):
            if isinstance(s, Scan) and at == 1:
                self.yields(s, last)
                start = {**scope, **dict(zip(s.names, s.dtypes))}
            last = self.block(block, start, inner, depth + 1, vector or marked)
            if isinstance(s, If):
                self.arm(s, (s.yields, s.others)[at], last)
        if isinstance(s, Reduce | Loop):
            self.yields(s, last)
        if isinstance(s, Reduce | Loop | Scan | If):
            for name, dtype in zip(s.names, s.dtypes):
                self.define(name)
                if not isinstance(s, Scan):
                    scope[name] = dtype

    def arm(self, s: If, made: tuple[str, ...], scope: Scope) -> None:
        if not len(s.names) == len(made) == len(s.dtypes):
            self.say(f"if {s.condition}: names, yields and dtypes differ in number")
        for name, dtype in zip(made, s.dtypes):
            self.use(name, scope, dtype)

    def yields(self, s: Reduce | Loop | Scan, scope: Scope) -> None:
        if not len(s.names) == len(s.yields) == len(s.dtypes):
            self.say(f"{', '.join(s.names)}: names, yields and dtypes differ in number")
        for name, dtype in zip(s.yields, s.dtypes):
            self.use(name, scope, dtype)
        if isinstance(s, Reduce | Scan):
            known = s.monoid in MONOIDS if isinstance(s, Reduce) else is_named(s.monoid)
            if not known:
                self.say(f"there is no monoid {s.monoid}")
            elif len(s.names) % (monoid := named(s.monoid)).arity:
                self.say(f"{s.monoid} folds states of {monoid.arity} values")
        elif s.until is not None:
            self.use(s.until, scope, BOOL)

    def plain(self, s: Statement, scope: Scope, symbols: frozenset[str]) -> None:
        if isinstance(s, Let):
            for arg in s.args:
                self.use(arg, scope)
        elif isinstance(s, Load | Store | Update):
            self.access(s, scope, symbols)
        elif isinstance(s, Check):
            self.use(s.condition, scope, BOOL)
            if s.mask is not None:
                self.use(s.mask, scope, BOOL)
        elif isinstance(s, IndexValue):
            self.sizes((s.index,), symbols, s.name)
        elif isinstance(s, Sort):
            self.lone(s.source, s.result, s.keys, s.other, s.moved, s.counts, s.ends)
        elif isinstance(s, Call):
            self.lone(s.table, *s.arguments)
        elif isinstance(s, Search):
            self.lone(s.source, s.wanted, s.result)
        elif isinstance(s, Select):
            self.lone(s.source, s.result)
        elif isinstance(s, Local):
            self.define(s.name)
            self.ranks[s.name] = (len(s.shape), s.dtype, "local")
        if isinstance(s, Let | Load | Constant):
            self.define(s.name)
            scope[s.name] = s.dtype
        elif isinstance(s, IndexValue):
            self.define(s.name)
            scope[s.name] = I64

    def lone(self, *buffers: str | None) -> None:
        """A statement that is a whole kernel."""
        if not self.alone:
            self.say("sort, search or call is not the only statement of its kernel")
        for name in buffers:
            if name is not None and name not in self.ranks:
                self.say(f"{name} is no buffer")

    def access(self, s: Load | Store | Update, scope: Scope, symbols: frozenset[str]) -> None:
        known = self.ranks.get(s.buffer)
        if known is None:
            self.say(f"{s.buffer} is no buffer")
            return
        rank, dtype, mode = known
        if len(s.index) != rank:
            self.say(f"{s.buffer} has {rank} axes, is indexed with {len(s.index)}")
        self.indices(s.index, scope, symbols, s.buffer)
        mask = None if isinstance(s, Update) else s.mask
        if mask is not None:
            self.use(mask, scope, BOOL)
        if isinstance(s, Load):
            if mode == "out" and s.buffer not in self.stored:
                self.say(f"{s.buffer} is loaded before anything is stored to it")
            if s.dtype is not dtype:
                self.say(f"{s.name} is {s.dtype}, {s.buffer} holds {dtype}")
            if (s.mask is None) != (s.other is None):
                self.say(f"{s.name}: a mask needs a value for the lanes it leaves out")
            elif s.other is not None:
                self.use(s.other, scope, dtype)
            return
        if mode == "in":
            self.say(f"{s.buffer} is an input and is stored to")
        self.stored.add(s.buffer)
        if not isinstance(s, Update):
            self.use(s.value, scope, dtype)
        elif is_named(s.monoid):
            self.use(s.value, scope, dtype if named(s.monoid).step is None else None)
        else:
            self.say(f"there is no monoid {s.monoid}")

    def indices(
        self, index: Sequence[Index], scope: Scope, symbols: frozenset[str], what: str
    ) -> None:
        for i in index:
            if isinstance(i, Checked):
                self.use(i.value, scope, I64)
                self.sizes((i.extent,), symbols, what)
            else:
                self.sizes((i,), symbols, what)

    def sizes(self, sizes: Sequence[Size], symbols: frozenset[str], what: str) -> None:
        for size in sizes:
            if isinstance(size, Dim) and not size.symbols() <= symbols:
                missing = ", ".join(sorted(size.symbols() - symbols))
                self.say(f"{what}: {missing} is not known here")

    def use(self, name: str, scope: Scope, dtype: DType | None = None) -> None:
        have = scope.get(name)
        if have is None:
            self.say(f"{name} is not defined here")
        elif dtype is not None and have is not dtype:
            self.say(f"{name} is {have}, {dtype} is needed")
