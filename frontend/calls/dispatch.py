"""The slow path of a compiled function: what runs when no native test accepts a call.

It finds out why, traces and compiles a new version (at most one thread at a time), installs it
and calls again. Calls made while another function is traced are inlined; under `disable_jit` the
plain function runs.

Invariants: the table holds at most `LIMIT` versions, the oldest goes first; a version that was
just installed for a call must accept it.
Not here: the fast path (native), tracing, code generation.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any

from .. import engine
from ..backends.llvm.native.encoder import Encoded, encode
from ..backends.llvm.native.launches import kernel_words
from ..backends.llvm.native.runtime import Parameter
from ..compiler.errors import error
from ..compiler.ir.traversal import devices
from ..compiler.records import dataclass
from ..progress import compiling, phase
from ..runtime.forks import tell_after_forks
from ..settings import log
from ..switches import jit_disabled
from ..tracing.state import current
from . import doors
from .arguments import FlatCall, Signature, flat_call
from .bind import bind
from .built import Built, build
from .copied import Replaced
from .failures import raise_failure
from .rebinding import Watch, apply_all, container_at
from .recompiles import Compilation, Recompiles
from .specialise import Traced, freed_axes, shape_text, trace_call
from .tracebacks import for_users, shorten
from .trees import paths

if TYPE_CHECKING:
    from .build import Optimisation
    from .partitioned import Partitioned

LIMIT = 64  # versions kept per function


@dataclass(slots=True)
class Version:
    """An installed specialisation, or one over several devices that Python runs."""

    traced: Traced
    built: Built | None = None
    encoded: Encoded | None = None
    partitioned: Partitioned | None = None


@dataclass(slots=True, eq=False, weakref_slot=True)
class Dispatcher:
    """The state behind one compiled function (with a fixed list of parameters)."""

    function: Callable[..., Any]
    signature: Signature
    static: frozenset[str] = frozenset()
    optimisation: Optimisation | None = None
    is_ours: bool = False  # of the library: compiled whatever the user switches off
    native: Any = None
    versions: list[Version] = field(default_factory=list)
    history: list[Compilation] = field(default_factory=list)
    forms: dict[Any, Dispatcher] = field(default_factory=dict)  # see variadic.py
    form_of: Callable[[Sequence[Any], Mapping[str, Any]], Dispatcher] | None = None
    _freed: set[tuple[int, int]] = field(default_factory=set)
    _changed: str = ""  # what the last version was given up for
    _lock: threading.RLock = field(default_factory=threading.RLock)
    _tracing: threading.local = field(default_factory=threading.local)

    def __post_init__(self) -> None:
        tell_after_forks(self)

    def after_fork(self) -> None:
        """Forget that a thread of the parent was compiling."""
        self._lock = threading.RLock()

    @property
    def name(self) -> str:
        """The function's name, for messages; a partial goes by the function it wraps."""
        function = getattr(self.function, "func", self.function)
        return str(getattr(function, "__name__", type(function).__name__))

    def make_native(self) -> Any:
        """The callable whose fast path is native."""
        parameters = [
            Parameter(
                p.name,
                None if p.default is p.empty else (p.default,),
                p.kind is p.KEYWORD_ONLY,
            )
            for p in self.signature.signature.parameters.values()
        ]
        self.native = engine.native().new_function(parameters, self.slow, self.fail, self)
        return self.native

    def serving(self, args: Sequence[Any], keywords: Mapping[str, Any]) -> Dispatcher:
        """The dispatcher of these arguments: itself, or that of their form where it is variadic."""
        return self if self.form_of is None else self.form_of(args, keywords)

    def slow(self, *args: Any, **keywords: Any) -> Any:
        """What the native entry calls when no version accepts the arguments."""
        if current() is not None or (jit_disabled() and not self.is_ours):
            return self.function(*args, **keywords)
        try:
            return self._call_new(args, keywords)
        except BaseException as problem:
            shorten(problem)
            raise

    def _call_new(self, args: Sequence[Any], keywords: dict[str, Any]) -> Any:
        """A call that no version accepts as it is."""
        values = self.signature.bind(args, keywords)
        call = flat_call(values, self.signature.names)
        with self._lock:
            if getattr(self._tracing, "active", False):
                raise error(
                    "TM104",
                    f"{self.name} called itself while it was being compiled",
                    hint="write the recursion as a loop",
                )
            version = self._accepted(call)
            if version is None:
                self._tracing.active = True
                try:
                    with compiling(self.name):
                        version = self.compile(call)
                finally:
                    self._tracing.active = False
        try:
            return self._run(version, call, values)
        finally:
            if version.traced.changed:
                self.give_up(version)

    def _run(self, version: Version, call: FlatCall, values: Sequence[Any]) -> Any:
        """Call with a version that accepts the arguments."""
        if call.changed:
            return self._call_normal(call, values, version.traced)
        again, names = self.signature.call(values)
        if version.partitioned is not None:
            return version.partitioned.run(call.leaves, values)
        return self._call_compiled(again, names)

    def _call_normal(self, call: FlatCall, values: Sequence[Any], traced: Traced) -> Any:
        """Call with the leaves in normal form. They are in containers of their own: what happens
        to those is done to the caller's."""
        replaced = Replaced(values, call)
        replaced.refuse_missed_writes(traced.arrays(call))
        made = call.values()
        watch = Watch(made)
        args, names = self.signature.call(made)
        result = engine.native().call(self.native, args, names)
        replaced.write_back(traced, call)
        rebound, changes = watch.changes()
        apply_all(rebound, replaced.given_back(changes), lambda place: container_at(values, place))
        return replaced.given_back(result)

    def _call_compiled(self, args: Sequence[Any], names: dict[str, Any]) -> Any:
        if getattr(self._tracing, "retried", False):
            self._tracing.retried = False
            raise error(
                "TM402",
                f"the native tests of {self.name} refuse a call they were made for",
                hint="please report this",
            )
        self._tracing.retried = True
        try:
            return engine.native().call(self.native, args, names)
        finally:
            self._tracing.retried = False

    @for_users
    def fail(self, owner: Any, code: int, node: int, *payload: int) -> Any:
        """Called by native code when a kernel reported an error."""
        version = next((v for v in self.versions if v.encoded is owner), None)
        built = None if version is None else version.built
        raise_failure(None if built is None else built.plan, code, node, payload)

    def compile(self, call: FlatCall) -> Version:
        """Trace, compile and install a version for `call`."""
        began = time.perf_counter()
        reason = self._reason(call)
        self._freed |= freed_axes([v.traced for v in self.versions], call)
        names = self.leaf_names(call)
        phase("tracing")
        traced = trace_call(
            self.function, self.signature, call, names, frozenset(self._freed), self._statics(call)
        )
        version = self._made(traced)
        self._changed = ""
        self.versions.append(version)
        self._evict()
        signature = ", ".join(
            f"{name}: {shape_text(spec)}" for name, spec in zip(names, traced.specs, strict=True)
        )
        built = version.built
        made = Compilation(
            len(self.history) + 1,
            f"({signature})",
            reason,
            time.perf_counter() - began,
            0 if built is None else len(built.plan.kernel_names),
            0 if built is None else built.loaded.compiled,
        )
        self.history.append(made)
        log("recompiles", f"{self.name} {made}")
        return version

    def _made(self, traced: Traced) -> Version:
        """Compile a traced version and install it."""
        if devices(traced.trace.graph):
            return Version(traced, partitioned=doors.partitioned(traced))
        built = build(traced, self.optimisation)
        native = bind(
            traced, built.plan, built.positions, built.loaded.addresses, built.cells, built.keep
        )
        encoded = encode(native)
        engine.codes().follow(encoded, kernel_words(encoded))
        engine.native().install(self.native, encoded)
        return Version(traced, built, encoded)

    def trace_only(self, args: Sequence[Any], keywords: dict[str, Any]) -> Traced:
        """A fresh trace for these arguments, nothing compiled or installed."""
        call = flat_call(self.signature.bind(args, keywords), self.signature.names)
        names = self.leaf_names(call)
        return trace_call(
            self.function, self.signature, call, names, frozenset(self._freed), self._statics(call)
        )

    def recompiles(self) -> Recompiles:
        """What was compiled so far, and why."""
        return Recompiles(tuple(self.history))

    def clear(self) -> None:
        """Forget all versions; calls in flight finish undisturbed."""
        with self._lock:
            while self.versions:
                self._drop(self.versions.pop())
            for form in self.forms.values():
                form.clear()

    def leaf_names(self, call: FlatCall) -> list[str]:
        """A name for each leaf, such as ``params['w'][0]``."""
        found = []
        for path in paths(call.tree):
            name = self.signature.names[path[0].key]
            found.append(name + "".join(map(repr, path[1:])))
        return found

    def _statics(self, call: FlatCall) -> frozenset[int]:
        names = self.signature.names
        steps = paths(call.tree)
        return frozenset(i for i, p in enumerate(steps) if names[p[0].key] in self.static)

    def _accepted(self, call: FlatCall) -> Version | None:
        return next((v for v in self.versions if v.traced.mismatch(call) is None), None)

    def _reason(self, call: FlatCall) -> str:
        if self._changed:
            return f"{self._changed} was changed by the function, which looks at it"
        if not self.versions:
            return "first call"
        return self.versions[-1].traced.mismatch(call) or "evicted before"

    def give_up(self, version: Version) -> None:
        """Drop a version whose function has changed what it looked at: the next call sees that."""
        with self._lock:
            if version in self.versions:
                self.versions.remove(version)
                self._drop(version)
            self._changed = version.traced.changed

    def _evict(self) -> None:
        while len(self.versions) > LIMIT:
            self._drop(self.versions.pop(0))

    def _drop(self, version: Version) -> None:
        if version.encoded is not None:
            engine.native().remove(self.native, version.encoded)
