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

_SMALL = 7  # statements, the function's own and its docstring's included


class _Unit:
    """The module being built, with the functions still to translate."""

    def __init__(self, exports: Sequence[Function]) -> None:
        self.module = ir.Module(name="native")
        self._declared: dict[Function, tuple[ir.Function, FunctionPointer]] = {}
        self._waiting: list[tuple[Source, ir.Function]] = []
        self._uses: Counter[Function] = Counter()
        self._small: set[Function] = set()
        for function in exports:
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
    statements = [node for node in ast.walk(source.tree) if isinstance(node, ast.stmt)]
    loops = any(isinstance(node, ast.For | ast.While) for node in statements)
    return len(statements) <= _SMALL and not loops


def translate(exports: Sequence[Function]) -> ir.Module:
    """The LLVM module of these functions and all they call."""
    return _Unit(exports).translate()


def compile_unit(exports: Sequence[Function]) -> bytes:
    """Object code of these functions and all they call, for any processor of the family."""
    code: bytes = _machine().emit_object(simplified(exports))
    return code


def simplified(exports: Sequence[Function]) -> Any:
    """The same as LLVM's own module, to be linked with others."""
    module = llvm.parse_assembly(str(translate(exports)))
    machine = _machine()
    module.triple = machine.triple
    module.verify()
    _simplify(module, machine)
    return module


def _simplify(module: Any, machine: Any) -> None:
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
