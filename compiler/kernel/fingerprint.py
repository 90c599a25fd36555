"""Which kernels and regions are the same: keys without names and places.

`region_key` finds regions that need no lowering again; `fingerprint` finds kernels that need no
compilation again, also where their dims have other names.

Invariants: equal keys mean the same machine code; keys hold no object identities, except ops.
Not here: caches.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from ..dims import Dim, Size
from ..ir.attrs import attrs_key
from ..ir.graph import Location, Value
from ..records import replace
from .kernel import (
    Checked,
    For,
    If,
    Kernel,
    Local,
    Loop,
    Parallel,
    Reduce,
    Scan,
    Statement,
    body_fields,
    walk,
)
from .region import Region
from .symbols import sizes_in

# Fields that hold no names of the kernel, whatever they are called.
_WORDS = frozenset(("op", "monoid", "memory", "bind", "value", "gives", "stage", "side", "core"))


def region_key(region: Region) -> Hashable:
    """Equal for regions that lower to the same kernel, names aside."""
    number: dict[Value, int] = {}
    rows: list[Hashable] = [region.strided, region.strided_results]
    for value in region.params:
        number[value] = len(number)
        rows.append(value.type)
    for node in region.nodes:
        attrs = node.attrs
        rows.append(
            (
                node.op,
                tuple([number[v] for v in node.operands]),
                attrs_key(attrs) if attrs else None,
                tuple([r.type for r in node.results]),
                tuple([region_key(Region(r.params, r.nodes, r.results)) for r in node.regions]),
            )
        )
        for result in node.results:
            number[result] = len(number)
    rows.append(tuple([number[r] for r in region.results]))
    return tuple(rows)


def canonical(kernel: Kernel) -> Kernel:
    """The kernel with all names in order of appearance and without places."""
    return _canonical(kernel, _dims_in_order(kernel))


def _canonical(kernel: Kernel, order: list[str]) -> Kernel:
    names: dict[str, str] = {name: f"d{at}" for at, name in enumerate(order)}
    for at, param in enumerate(kernel.params):
        names[param.name] = f"p{at}"
    for statement in walk(kernel.body):
        if isinstance(statement, Parallel | For | Loop | Reduce | Scan):
            names.setdefault(statement.axis, f"a{len(names)}")
        if isinstance(statement, Local):
            names.setdefault(statement.name, f"l{len(names)}")
        for name in _defined(statement):
            names.setdefault(name, f"v{len(names)}")
    return _Renaming(names).kernel(kernel, order)


def fingerprint(kernel: Kernel) -> str:
    """The text that two kernels share exactly when one's code serves for the other."""
    return repr(canonical(kernel))


def identity(kernel: Kernel) -> tuple[str, tuple[int, ...]]:
    """The fingerprint, and where the kernel takes each dim of it: equal for kernels whose code is
    called in the same way, too."""
    order = _dims_in_order(kernel)
    return repr(_canonical(kernel, order)), tuple([kernel.dims.index(name) for name in order])


def dims_in_order(kernel: Kernel) -> tuple[str, ...]:
    """The kernel's dims in order of appearance: the order in which equal kernels take them."""
    return tuple(_dims_in_order(kernel))


def _dims_in_order(kernel: Kernel) -> list[str]:
    found: dict[str, None] = {}
    wanted = set(kernel.dims)
    sizes: list[Size] = [size for param in kernel.params for size in param.shape]
    for statement in walk(kernel.body):
        sizes.extend(sizes_in(statement))
    for size in sizes:
        if isinstance(size, Dim):
            for symbol in sorted(size.symbols() & wanted):
                found.setdefault(symbol)
    return list(found)


def _defined(statement: Statement) -> tuple[str, ...]:
    if isinstance(statement, Reduce | Scan | Loop | If):
        return statement.names
    name = getattr(statement, "name", None)
    return () if name is None else (name,)


class _Renaming:
    """Applies a map of names to every field of every statement."""

    def __init__(self, names: dict[str, str]) -> None:
        self.names = names
        self.sizes: dict[str, Size] = {old: Dim.symbol(new) for old, new in names.items()}

    def kernel(self, kernel: Kernel, order: list[str]) -> Kernel:
        params = tuple(
            replace(p, name=self.names[p.name], shape=self.value(p.shape)) for p in kernel.params
        )
        dims = tuple([self.names[d] for d in order])
        return Kernel("", params, dims, self.body(kernel.body))

    def body(self, body: tuple[Statement, ...]) -> tuple[Statement, ...]:
        return tuple([self.statement(s) for s in body])

    def statement(self, statement: Statement) -> Statement:
        return type(statement)(*[self.field(statement, name) for name in statement.__match_args__])

    def field(self, statement: Statement, name: str) -> Any:
        value = getattr(statement, name)
        kind = type(value)
        if kind is str:
            return value if name in _WORDS and name != "value" else self.names.get(value, value)
        if kind is tuple:
            if name in body_fields(statement):
                return self.body(value)
            return value if name in _WORDS else tuple([self.value(item) for item in value])
        if kind is Location:
            return None
        return value.substitute(self.sizes) if kind is Dim else value

    def value(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.names.get(value, value)
        if isinstance(value, Dim):
            return value.substitute(self.sizes)
        if isinstance(value, Checked):
            return Checked(self.names[value.value], self.value(value.extent))
        if isinstance(value, tuple):
            return tuple([self.value(item) for item in value])
        return value
