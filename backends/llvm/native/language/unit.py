"""A unit of native code: the functions reachable from some roots, translated and compiled to an
object.

Invariants: exported functions keep their own names; all others are internal and named
module.function. The unit is a pure function of the source text and the target, so its object code
can be cached.
Not here: linking and loading (`objects`, `loader`).
"""

from __future__ import annotations

import ast
import inspect
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import llvmlite.binding as llvm
import llvmlite.ir as ir

from .expressions import Emitter
from .lowering import EMITTERS
from .reader import Source, read_function
from .statements import Statements
from .types import FunctionPointer
from .values import signature

Function = Callable[..., Any]

_INCLUDED = "native functions"  # the attribute of a module that has some
_SMALL = 7  # statements, the function's own and its docstring's included


class _Unit:
    """The module being built, with the functions still to translate."""

    def __init__(self, module: ir.Module) -> None:
        self.module = module
        self._declared: dict[Function, tuple[ir.Function, FunctionPointer]] = {}
        self._waiting: list[tuple[Source, ir.Function]] = []
        self._uses: Counter[Function] = Counter()
        self._small: set[Function] = set()

    def export(self, function: Function) -> None:
        self._add(read_function(function), function.__name__, internal=False)

    def declare(self, function: Function) -> tuple[ir.Function, FunctionPointer]:
        self._uses[function] += 1
        if function not in self._declared:
            source = read_function(function)
            self._add(source, source.name, internal=True)
        return self._declared[function]

    def emitter(self, function: object) -> Emitter | None:
        return EMITTERS.get(function) if inspect.isfunction(function) else None

    def address(self, function: Function) -> tuple[ir.Function, FunctionPointer]:
        """The function as a value: it must exist on its own."""
        self._uses[function] += 2
        return self.declare(function)

    def translate(self) -> ir.Module:
        while self._waiting:
            source, target = self._waiting.pop()
            Statements(self, source, target).translate()
        for function, (target, _) in self._declared.items():
            if target.linkage == "internal" and (
                self._uses[function] == 1 or function in self._small
            ):
                target.attributes.add("alwaysinline")  # the code does not grow, or hardly
        return self.module

    def _add(self, source: Source, name: str, internal: bool) -> None:
        kind = FunctionPointer(tuple(kind for _, kind in source.parameters), source.result)
        target = ir.Function(self.module, signature(kind.parameters, kind.result), name)
        target.linkage = "internal" if internal else "external"
        target.attributes.add("nounwind")
        self._declared[source.function] = (target, kind)
        self._waiting.append((source, target))
        if _is_small(source):
            self._small.add(source.function)


def _is_small(source: Source) -> bool:
    """A few statements without a loop."""
    if len(source.tree.body) > _SMALL:
        return False  # as most are, and without a walk
    statements = [node for node in ast.walk(source.tree) if isinstance(node, ast.stmt)]
    loops = any(isinstance(node, ast.For | ast.While) for node in statements)
    return len(statements) <= _SMALL and not loops


def translate(exports: Sequence[Function]) -> ir.Module:
    """The LLVM module of these functions and all they call."""
    unit = _Unit(ir.Module(name="native"))
    for function in exports:
        unit.export(function)
    return unit.translate()


def include(module: ir.Module, functions: Sequence[Function]) -> list[ir.Function]:
    """Add these functions, and all they call, to a module that calls them; as often as it asks.

    The module has to be simplified (`has_native`): translated code keeps its locals in memory.
    """
    units = module.__dict__.setdefault(_INCLUDED, _Unit(module))
    found = [units.declare(function)[0] for function in functions]
    units.translate()
    return found


def has_native(module: ir.Module) -> bool:
    """Whether a module includes native functions."""
    return _INCLUDED in module.__dict__


def compile_unit(exports: Sequence[Function]) -> bytes:
    """Object code of these functions and all they call, for any processor of the family."""
    return compile_text(str(translate(exports)))


def compile_text(text: str) -> bytes:
    """Object code of the text of a module: LLVM's part, which other threads of Python may run
    beside."""
    code: bytes = _machine().emit_object(_simplified(text))
    return code


def simplified(exports: Sequence[Function]) -> Any:
    """The same as LLVM's own module, to be linked with others."""
    return _simplified(str(translate(exports)))


def _simplified(text: str) -> Any:
    module = llvm.parse_assembly(text)
    machine = _machine()
    module.triple = machine.triple
    module.verify()
    simplify(module, machine)
    return module


def simplify(module: Any, machine: Any) -> None:
    """A short pipeline: some 30 ms, where the standard one took 500 at level 2 and 270 at level 1.

    The standard one also makes calls of memset out of loops, which no blob can resolve.
    """
    passes = llvm.create_new_module_pass_manager()
    passes.add_always_inliner_pass()
    passes.add_global_dead_code_eliminate_pass()
    passes.add_sroa_pass()
    passes.add_simplify_cfg_pass()
    passes.add_instruction_combine_pass()
    passes.add_new_gvn_pass()
    passes.add_simplify_cfg_pass()
    passes.run(module, llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options()))


@cache
def _machine() -> Any:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    llvm.initialize_native_asmparser()  # inline assembly
    target = llvm.Target.from_default_triple()
    return target.create_target_machine(opt=2, codemodel="small", reloc="pic")
