"""Rows read and computed once: neighbouring reductions share a loop, a costly element is kept.

* `merge_reductions`: two reductions of one monoid over one extent, neither needing the other,
  fold in one loop; equal loads and ops in it are made once.
* `keep_elements`: an element that a reduction's loop computes and a later loop over the same
  row computes again is stored where that loop stores its own result, and loaded there (the
  exponentials of a softmax): each row of the output is written before it is final, which
  nobody sees.

Law: every value is the one it was, from the same operations.
Not here: which nodes share a kernel (fusion).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from ..dims import Dim
from ..ir.attrs import attrs_key
from ..ops import ALL
from ..records import replace
from ..types import DType
from .cost import words_of
from .kernel import (
    Check,
    Checked,
    Constant,
    IndexValue,
    Kernel,
    Let,
    Load,
    Parallel,
    Reduce,
    Statement,
    Store,
    bodies,
    value_dtypes,
    walk,
)
from .symbols import map_body, substitute_axes

COSTLY = 8  # words of an element worth a store and a load
Body = tuple[Statement, ...]
_PLAIN = Let | Load | IndexValue | Constant


def reuse(kernel: Kernel) -> Kernel:
    """Both steps, in every block."""
    kernel = replace(kernel, body=_merged(kernel.body))
    kernel = replace(
        kernel,
        body=map_body(
            kernel.body,
            lambda s: replace(s, body=_merged(s.body)) if isinstance(s, Parallel) else s,
        ),
    )
    for statement in walk(kernel.body):
        if isinstance(statement, Parallel) and any(isinstance(s, Reduce) for s in statement.body):
            kept = _kept(kernel, statement)
            if kept is not statement:
                return replace(
                    kernel,
                    body=map_body(
                        kernel.body,
                        lambda s, old=statement, new=kept: (  # type: ignore[misc]
                            new if isinstance(s, Parallel) and s.axis == old.axis else s
                        ),
                    ),
                )
    return kernel


# -- one loop for several reductions


def _merged(body: Body) -> Body:
    out: list[Statement] = []
    for statement in body:
        if isinstance(statement, Reduce):
            for at in range(len(out) - 1, -1, -1):
                first = out[at]
                if isinstance(first, Reduce) and _alike(first, statement):
                    before = _needed(out[at + 1 :], first, statement)
                    if before is not None:
                        rest = [s for s in out[at + 1 :] if s not in before]
                        out[at:] = [*before, _joined(first, statement), *rest]
                        break
            else:
                out.append(statement)
        else:
            out.append(statement)
    return tuple(out)


def _alike(first: Reduce, second: Reduce) -> bool:
    """True for reductions that could fold in one loop if neither needs the other."""
    return (
        first.monoid == second.monoid
        and first.extent == second.extent
        and first.loose == second.loose
        and first.tree == second.tree
        and first.monoid not in ("argmin", "argmax")
        and all(isinstance(s, _PLAIN) for s in (*first.body, *second.body))
    )


def _needed(between: Sequence[Statement], first: Reduce, second: Reduce) -> list[Statement] | None:
    """What `second` needs of the statements between; None where that needs `first`."""
    wanted = {name for s in second.body for name in _operands(s)} | set(second.yields)
    found: list[Statement] = []
    for statement in reversed(between):
        made = {getattr(statement, "name", "")} | set(getattr(statement, "names", ()))
        if wanted.isdisjoint(made):
            continue
        if not isinstance(statement, _PLAIN):
            return None
        found.append(statement)
        wanted |= _operands(statement)
    return None if not wanted.isdisjoint(first.names) else found[::-1]


def _joined(first: Reduce, second: Reduce) -> Reduce:
    moved = substitute_axes(second.body, {second.axis: Dim.symbol(first.axis)})
    known = {key: name for name, key in _keys(first.body, first.axis).items()}
    renamed: dict[str, str] = {}
    keys = dict(_keys(first.body, first.axis))
    body = list(first.body)
    for statement in moved:
        statement = _rename(statement, renamed)
        key = _key(statement, keys, first.axis)
        name: str = statement.name  # type: ignore[union-attr]
        if key in known:
            renamed[name] = known[key]
            continue
        known[key], keys[name] = name, key
        body.append(statement)
    yields = tuple(renamed.get(name, name) for name in second.yields)
    return replace(
        first,
        names=first.names + second.names,
        body=tuple(body),
        yields=first.yields + yields,
        dtypes=first.dtypes + second.dtypes,
    )


def _rename(statement: Statement, names: dict[str, str]) -> Statement:
    if isinstance(statement, Let):
        return replace(statement, args=tuple(names.get(a, a) for a in statement.args))
    if isinstance(statement, Load):
        return replace(
            statement,
            index=tuple(
                Checked(names.get(i.value, i.value), i.extent) if isinstance(i, Checked) else i
                for i in statement.index
            ),
            mask=names.get(statement.mask or "", statement.mask),
            other=names.get(statement.other or "", statement.other),
        )
    return statement


# -- a costly element kept


def _kept(kernel: Kernel, row: Parallel) -> Parallel:
    """The row loop with its costliest repeated element stored and loaded again."""
    for at, last in enumerate(row.body):
        if not isinstance(last, Parallel) or any(bodies(s) for s in last.body):
            continue
        target = _target(kernel, last)
        if target is None:
            continue
        mine = _keys(last.body, last.axis)
        dtypes = value_dtypes(kernel.body)
        for before, reduce in enumerate(row.body[:at]):
            if not isinstance(reduce, Reduce) or reduce.extent != last.extent:
                continue
            theirs = {key: name for name, key in _keys(reduce.body, reduce.axis).items()}
            found = [name for name in mine if mine[name] in theirs and dtypes[name] is target[1]]
            cost = {name: _cost(name, last.body, dtypes) for name in found}
            best = max(found, key=lambda name: cost[name], default=None)
            if best is None or cost[best] < COSTLY:
                continue
            body = list(row.body)
            body[before] = _storing(reduce, last, target[0], theirs[mine[best]])
            body[at] = _loading(last, target[0], best, target[1])
            return replace(row, body=tuple(body))
    return row


def _target(kernel: Kernel, loop: Parallel) -> tuple[Store, DType] | None:
    """A store of the loop to an output that nothing else touches, and its dtype."""
    params = {p.name: p for p in kernel.params}
    for statement in loop.body:
        if isinstance(statement, Store) and statement.mask is None:
            param = params.get(statement.buffer)
            touched = [
                s
                for s in walk(kernel.body)
                if isinstance(s, Load | Store) and s.buffer == statement.buffer
            ]
            along = any(isinstance(i, Dim) and loop.axis in i.symbols() for i in statement.index)
            if param is not None and param.mode == "out" and len(touched) == 1 and along:
                if not any(isinstance(i, Checked) for i in statement.index):
                    return statement, param.dtype
    return None


def _storing(reduce: Reduce, last: Parallel, store: Store, name: str) -> Reduce:
    (moved,) = substitute_axes((store,), {last.axis: Dim.symbol(reduce.axis)})
    assert isinstance(moved, Store)
    return replace(reduce, body=(*reduce.body, replace(moved, value=name)))


def _loading(last: Parallel, store: Store, name: str, dtype: DType) -> Parallel:
    index = tuple(i for i in store.index if not isinstance(i, Checked))
    loaded = Load(name, store.buffer, index, dtype)
    # before all else: the loop may store the target's final element ahead of where `name` stood
    body = [loaded, *(s for s in last.body if getattr(s, "name", None) != name)]
    wanted: set[str] = set()
    kept: list[Statement] = []
    for statement in reversed(body):
        if isinstance(statement, Store | Check) or getattr(statement, "name", "") in wanted:
            kept.append(statement)
            wanted |= _operands(statement)
    return replace(last, body=tuple(reversed(kept)))


def _cost(name: str, body: Body, dtypes: dict[str, DType]) -> int:
    """Words needed for a value, each once."""
    made = {s.name: s for s in body if isinstance(s, Let)}
    total = 0
    pending, seen = [name], set()
    while pending:
        let = made.get(pending.pop())
        if let is None or let.name in seen:
            continue
        seen.add(let.name)
        op = ALL.get(let.op)
        total += 1 if op is None else words_of(op, tuple(dtypes[a] for a in let.args), let.attrs)
        pending.extend(let.args)
    return total


# -- what is the same


def _keys(body: Body, axis: str) -> dict[str, Hashable]:
    """For each value of a loop's body a key that does not name the loop's axis."""
    keys: dict[str, Hashable] = {}
    for statement in body:
        if isinstance(statement, _PLAIN):
            keys[statement.name] = _key(statement, keys, axis)
    return keys


def _key(statement: Statement, keys: dict[str, Hashable], axis: str) -> Hashable:
    one = {axis: Dim.symbol("*")}

    def known(name: str | None) -> Hashable:
        return keys.get(name or "", name)

    if isinstance(statement, Let):
        args = tuple(known(a) for a in statement.args)
        return (statement.op, args, attrs_key(statement.attrs), statement.dtype, statement.result)
    if isinstance(statement, Load):
        index = tuple(
            (known(i.value), i.extent)
            if isinstance(i, Checked)
            else i.substitute(one)
            if isinstance(i, Dim)
            else i
            for i in statement.index
        )
        return ("load", statement.buffer, index, known(statement.mask), known(statement.other))
    if isinstance(statement, IndexValue):
        index_ = statement.index
        return ("index", index_.substitute(one) if isinstance(index_, Dim) else index_)
    return ("constant", repr(statement))


def _operands(statement: Statement) -> set[str]:
    found: set[str] = set(getattr(statement, "args", ()))
    for field in ("value", "mask", "other", "condition"):
        name = getattr(statement, field, None)
        if isinstance(name, str) and not isinstance(statement, Constant):
            found.add(name)
    if isinstance(statement, Load | Store):
        found |= {i.value for i in statement.index if isinstance(i, Checked)}
    return found
