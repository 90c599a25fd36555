"""One object file of kernels, native functions, constant tables and the C functions over them.

Invariants: every symbol but those of `entry` is internal; everything but the kernels' own code is
constant, so that all processes that load the library share it.
Not here: what the tables say (backends/export), linking.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import llvmlite.binding as llvm
from llvmlite import ir

from ...compiler.kernel.kernel import Kernel
from ...compiler.records import dataclass
from .emission import parsed
from .function import KERNEL
from .machine import Machine, target_machine
from .module import build_module
from .native.language.reader import layout_of
from .native.language.types import FunctionPointer, Struct, size_of
from .native.language.unit import simplified
from .native.language.values import signature
from .types import I32, I64, POINTER, VOID
from .uninterrupted import uninterrupted

_BYTE = ir.IntType(8)
_KINDS = {
    "ptr": POINTER,
    "i64": I64,
    "i32": I32,
    "f64": ir.DoubleType(),
    "bool": _BYTE,
    "void": VOID,
}
ALIGNMENT = 64  # of constants that kernels read

Word = Any  # an int, or the address of something in the library


@dataclass(frozen=True, slots=True)
class Entry:
    """A C function: it hands its first `direct` parameters on, the others as a row of words.

    parameters, result: ``ptr i64 i32 f64 bool void``. leading: goes before the parameters.
    """

    symbol: str
    target: str
    result: str
    parameters: tuple[str, ...]
    direct: int
    leading: tuple[Word, ...] = ()
    packed: bool = False


class Library:
    """The module being made."""

    def __init__(self, machine: Machine, functions: Sequence[Callable[..., Any]]) -> None:
        self.machine = machine
        self._functions = functions
        self._module = ir.Module(name="library")
        self._module.triple = machine.triple
        self._public: set[str] = set()

    # -- constants

    def block(self, data: bytes) -> Word:
        """The address of these bytes."""
        content = ir.Constant(ir.ArrayType(_BYTE, len(data)), bytearray(data))
        return self._global(content, ALIGNMENT)

    def text(self, text: str) -> Word:
        """The address of a text as C has it."""
        data = bytearray(text.encode() + b"\0")
        return self._global(ir.Constant(ir.ArrayType(_BYTE, len(data)), data), 1)

    def words(self, words: Sequence[Word]) -> Word:
        """The address of a row of 64-bit words."""
        return self._global(_row([_word(word) for word in words]), 8)

    def table(self, kind: type[Struct], rows: Sequence[Mapping[str, Word]]) -> Word:
        """The address of a row of structures; fields that a row does not name are 0."""
        layout = layout_of(kind)
        if any(size_of(field.type) != 8 for field in layout.fields.values()):
            raise TypeError(f"{kind.__name__} has fields that are not words")
        return self.words([row.get(name, 0) for row in rows for name in layout.fields])

    def c_function(self, name: str, field: tuple[type[Struct], str]) -> Word:
        """The address of a function of the C library, of the type of a structure's field."""
        typ = layout_of(field[0]).fields[field[1]].type
        assert isinstance(typ, FunctionPointer), field
        return ir.Function(self._module, signature(typ.parameters, typ.result), name)

    def kernels(self, kernels: Sequence[Kernel], keys: Sequence[str]) -> list[Word]:
        """The address of each kernel; those of equal keys share code."""
        module, symbols = build_module(kernels, self.machine, keys)
        self._kernels = module
        found = {symbol: ir.Function(self._module, KERNEL, symbol) for symbol in set(symbols)}
        return [found[symbol] for symbol in symbols]

    def _global(self, content: ir.Constant, align: int) -> ir.GlobalVariable:
        name = self._module.get_unique_name("data")
        made = ir.GlobalVariable(self._module, content.type, name)
        made.initializer = content
        made.global_constant = True
        made.linkage = "internal"
        made.align = align
        return made

    # -- functions

    def entry(self, entry: Entry) -> None:
        """Add a function that C calls."""
        kinds = [_KINDS[kind] for kind in entry.parameters]
        typ = ir.FunctionType(_KINDS[entry.result], kinds)
        function = ir.Function(self._module, typ, entry.symbol)
        function.attributes.add("nounwind")
        for argument, kind in zip(function.args, entry.parameters):
            if kind == "bool":
                argument.add_attribute("zeroext")
        builder = ir.IRBuilder(function.append_basic_block("entry"))
        passed = [_word(word) for word in entry.leading] + list(function.args[: entry.direct])
        if entry.packed:
            passed.append(_packed(builder, function.args[entry.direct :]))
        target = self._target(entry.target, [value.type for value in passed], typ.return_type)
        made = builder.call(target, passed)
        if entry.result == "void":
            builder.ret_void()
        else:
            builder.ret(made)
        self._public.add(entry.symbol)

    def _target(self, name: str, kinds: list[ir.Type], result: ir.Type) -> ir.Function:
        found = self._module.globals.get(name)
        if found is None:
            kinds = [POINTER if isinstance(kind, ir.PointerType) else kind for kind in kinds]
            found = ir.Function(self._module, ir.FunctionType(result, kinds), name)
        return found

    # -- the object

    @uninterrupted()
    def object_code(self, level: int = 2) -> bytes:
        """Everything, as one object file."""
        whole = parsed(self._module, self.machine, level)
        native = simplified(self._functions)
        for part in (native, parsed(self._kernels, self.machine, level)):
            part.triple, part.data_layout = whole.triple, whole.data_layout
            whole.link_in(part)
        for function in whole.functions:
            if not function.is_declaration and function.name not in self._public:
                function.linkage = "internal"
        whole.verify()
        emitter = target_machine(self.machine, level)
        passes = llvm.create_new_module_pass_manager()
        passes.add_always_inliner_pass()
        passes.add_global_dead_code_eliminate_pass()
        passes.run(whole, llvm.create_pass_builder(emitter, llvm.create_pipeline_tuning_options()))
        code: bytes = emitter.emit_object(whole)
        return code


def _word(word: Word) -> ir.Constant:
    return ir.Constant(I64, word) if isinstance(word, int) else word


def _row(words: list[ir.Constant]) -> ir.Constant:
    """Words and addresses side by side."""
    if all(isinstance(word.type, ir.IntType) for word in words):
        return ir.Constant(ir.ArrayType(I64, len(words)), words)
    return ir.Constant(ir.LiteralStructType([word.type for word in words]), words)


def _packed(builder: ir.IRBuilder, values: Sequence[ir.Value]) -> ir.Value:
    """A row of words on the stack, one for each value."""
    row = builder.alloca(ir.ArrayType(I64, max(len(values), 1)))
    row.type = POINTER
    for number, value in enumerate(values):
        if isinstance(value.type, ir.DoubleType):
            value = builder.bitcast(value, I64)
        elif isinstance(value.type, ir.IntType) and value.type.width < 64:
            value = builder.zext(value, I64)
        place = builder.gep(row, [ir.Constant(I64, number)], source_etype=I64)
        builder.store(value, place)
    return row
