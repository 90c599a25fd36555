"""Programs: several traced functions over one state; any named value can be fed or fetched.

    program = tm.Program(train=train_step, predict=predict)
    loss, hidden = program.run(fetch=["train/loss", "train/hidden"], feed={"x": x, "y": y})

A name is ``entry/value``; values are named after the variables of the user's function they were
assigned to, parameters after the parameters. An entry's own name fetches what the function
returns and performs its effects; fetching single values performs no effect that they do not need.

Invariants: a step computes only what its fetches need and its feeds do not give; steps are cached
by (feeds with their types, fetches).
Not here: how a step is compiled (calls/).
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from .calls.arguments import Signature, flat_call
from .calls.graph_function import GraphFunction
from .calls.specialise import Traced, trace_call
from .calls.tracebacks import for_users
from .calls.trees import flatten
from .compiler.errors import error
from .compiler.ir.graph import Value
from .compiler.passes.extract import extract
from .compiler.types import TensorType, TokenType
from .spec import Spec
from .tracing.result import TensorOutput, TraceResult
from .tracing.state import Input

Feed = Mapping[str, Any]


class Program:
    """Entries (compiled functions) over shared variables.

    entries: name -> compiled function. An entry's arguments are described by the first feed that
    gives them all, or by `describe`.
    """

    def __init__(self, **entries: Callable[..., Any]) -> None:
        self._entries = {name: _Entry(name, function) for name, function in entries.items()}

    def __getattr__(self, name: str) -> Callable[..., Any]:
        entries = self.__dict__.get("_entries", {})
        if name not in entries:
            raise AttributeError(f"the program has no entry {name!r}")
        function: Callable[..., Any] = entries[name].function
        return function

    @for_users
    def describe(self, entry: str, **arguments: Spec | Any) -> None:
        """Say what the arguments of an entry are (`Spec`s or example arrays), to feed fewer."""
        self._entry(entry).describe(arguments)

    @for_users
    def names(self, entry: str) -> list[str]:
        """The names that can be fed and fetched of a described entry."""
        return [f"{entry}/{name}" for name in self._entry(entry).values]

    @for_users
    def run(self, fetch: str | Sequence[str], feed: Feed | None = None) -> Any:
        """Compute the fetches; one value for a string, else a list.

        feed: name -> value; names without an entry belong to every entry that has them.
        Raises UnknownName for a name that does not exist, ArgError for a parameter that a fetch
        needs and `feed` does not give.
        """
        if feed is not None and not isinstance(feed, Mapping):
            raise TypeError(f"values are fed by name, as in {{'x': x}}, got {type(feed).__name__}")
        names = [fetch] if isinstance(fetch, str) else list(fetch)
        results: dict[str, Any] = {}
        by_entry: dict[str, list[str]] = {}
        for name in names:
            entry, _, value = name.partition("/")
            by_entry.setdefault(entry, []).append(value)
        for entry, values in by_entry.items():
            step = self._entry(entry)
            made = step.run(values, self._feeds_of(entry, feed or {}))
            results.update(zip((f"{entry}/{v}" if v else entry for v in values), made, strict=True))
        return results[fetch] if isinstance(fetch, str) else [results[name] for name in names]

    def _feeds_of(self, entry: str, feed: Feed) -> dict[str, Any]:
        found = {}
        for name, value in feed.items():
            prefix, slash, rest = name.partition("/")
            if not slash:
                found[name] = value
            elif prefix == entry:
                found[rest] = value
            elif prefix not in self._entries:
                self._entry(prefix)
        return found

    def _entry(self, name: str) -> _Entry:
        found = self._entries.get(name)
        if found is None:
            raise _unknown("entry", name, self._entries)
        return found


class _Entry:
    """One function of a program: its trace, and the steps made of it."""

    def __init__(self, name: str, function: Callable[..., Any]) -> None:
        self.name = name
        self.function = function
        self._plain = getattr(function, "__wrapped__", function)
        self._signature = Signature(
            self._plain,
            inspect.signature(self._plain),
            tuple(inspect.signature(self._plain).parameters),
        )
        self._traced: Traced | None = None
        self._values: dict[str, Value] = {}
        self._steps: dict[Any, _Step] = {}

    @property
    def values(self) -> Mapping[str, Value]:
        """Every named tensor of the traced function."""
        self._need_trace({})
        return self._values

    def describe(self, arguments: Mapping[str, Any]) -> None:
        """Trace for these arguments."""
        leaves, tree = flatten(dict(arguments))
        examples = tree.rebuild([a.example() if isinstance(a, Spec) else a for a in leaves])
        values = self._signature.bind((), examples)
        call = flat_call(values, self._signature.names)
        names = [str(i) for i in range(len(call.leaves))]
        if len(call.leaves) == len(self._signature.names):
            names = list(self._signature.names)
        traced = trace_call(self._plain, self._signature, call, names, frozenset(), frozenset())
        if traced.rebound or traced.trace.writes:
            raise error(
                "TM105",
                f"{self.name!r} changes an array, dict or list it is given, which a step of a "
                "Program does not have",
                hint="return the new value instead, or keep it in a tm.Variable",
            )
        self._traced = traced
        self._values = {
            v.name: v for v in traced.trace.graph.values() if isinstance(v.type, TensorType)
        }
        self._steps.clear()

    def run(self, fetches: Sequence[str], feed: dict[str, Any]) -> list[Any]:
        """Values of `fetches`; "" stands for what the function returns, and its effects."""
        self._need_trace(feed)
        for name in (*feed, *(f for f in fetches if f)):
            if name not in self._values and name not in self._signature.names:
                raise _unknown("value", f"{self.name}/{name}", self._values)
        names = sorted(name for name in feed if name in self._values)
        arrays = [_as_fed(self._values[name], feed[name], name) for name in names]
        types = tuple((a.dtype, a.ndim) if isinstance(a, np.ndarray) else type(a) for a in arrays)
        key = (tuple(fetches), tuple(names), types)
        step = self._steps.get(key)
        if step is None:
            assert self._traced is not None
            step = self._steps[key] = _Step(self, self._traced, fetches, names)
        return step.run(dict(zip(names, arrays, strict=True)))

    def _need_trace(self, feed: Mapping[str, Any]) -> None:
        if self._traced is not None:
            return
        missing = [n for n in self._signature.names if n not in feed]
        if missing:
            raise error(
                "TM201",
                f"the arguments of {self.name!r} are not known yet: {', '.join(missing)} missing",
                hint=f"feed them all once, or call program.describe({self.name!r}, ...)",
            )
        self.describe({name: feed[name] for name in self._signature.names})


class _Step:
    """One pruned, compiled step: a native function of the values it is fed."""

    def __init__(
        self, entry: _Entry, traced: Traced, fetches: Sequence[str], feeds: Sequence[str]
    ) -> None:
        result = traced.trace
        values = {v.name: v for v in result.graph.values()}
        wanted = [values[name] for name in fetches if name]
        own = [
            result.graph.results[o.result] for o in result.outputs if isinstance(o, TensorOutput)
        ]
        whole = "" in fetches
        tokens = [v for v in result.graph.results if isinstance(v.type, TokenType)] if whole else []
        targets = list(dict.fromkeys([*wanted, *(own if whole else [])]))
        graph, sources = extract(
            result.graph, [*targets, *tokens], [values[name] for name in feeds]
        )
        self._entry = entry
        self._fetches = fetches
        self._targets = targets
        self._own = own
        self._wanted = [values[name] if name else None for name in fetches]
        self._whole = traced.trace
        self._missing = [
            s.name
            for s, item in zip(sources, _inputs_of(result, sources), strict=True)
            if item.kind != "captured" and s.name not in feeds
        ]
        inputs = _inputs_of(result, sources)
        specs = [None if item.leaf is None else traced.specs[item.leaf] for item in inputs]
        self._function = GraphFunction(
            graph, inputs, specs, len(targets), result.variables, result.guards
        )

    def run(self, fed: Mapping[str, Any]) -> list[Any]:
        """One value per fetch."""
        if self._missing:
            raise error(
                "TM201",
                f"{self._missing[0]!r} must be fed to compute "
                f"{', '.join(self._fetches) or self._entry.name}",
            )
        made = self._function(*[fed[name] for name in self._function.names])
        by_value = dict(zip(self._targets, made, strict=True))
        return [self._returned(by_value) if v is None else by_value[v] for v in self._wanted]

    def _returned(self, by_value: Mapping[Value, Any]) -> Any:
        leaves = [
            by_value[self._whole.graph.results[o.result]]
            if isinstance(o, TensorOutput)
            else getattr(o, "value", None)
            for o in self._whole.outputs
        ]
        return self._whole.structure.rebuild(leaves)


def _inputs_of(result: TraceResult, sources: Sequence[Value]) -> list[Input]:
    """Where each parameter of a step comes from."""
    known = dict(zip(result.graph.params, result.inputs, strict=True))
    return [known.get(v) or Input("argument", v.name) for v in sources]


def _as_fed(value: Value, given: Any, name: str) -> Any:
    """The fed value as an array of the value's dtype. Raises for one of another type."""
    if value.node is None and not isinstance(given, np.ndarray | list | tuple):
        return given
    array = np.ascontiguousarray(given).reshape(np.shape(given))
    if array.dtype != value.tensor.dtype.numpy or array.ndim != value.tensor.rank:
        raise error(
            "TM202",
            f"{name!r} is {value.type!r}, got {array.dtype} of shape {array.shape}",
        )
    return array


def _unknown(what: str, name: str, known: Mapping[str, Any]) -> Exception:
    last = name.rpartition("/")[2]
    near = difflib.get_close_matches(last, list(known), n=3)
    hint = (
        f"did you mean {' or '.join(near)}?" if near else f"there is {', '.join(list(known)[:8])}"
    )
    return error("TM130", f"the program has no {what} named {name!r}", hint=hint)
