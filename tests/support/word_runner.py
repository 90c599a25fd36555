"""Run a scalar body as machine code over arrays, in vectors of a given width."""

from __future__ import annotations

import ctypes

import numpy as np
from llvmlite import ir

from tracemill.backends.llvm import memory
from tracemill.backends.llvm.access import Access
from tracemill.backends.llvm.emission import parsed
from tracemill.backends.llvm.machine import Machine, target_machine
from tracemill.backends.llvm.native.loader import load
from tracemill.backends.llvm.native.objects import link
from tracemill.backends.llvm.scalar import emit_body
from tracemill.backends.llvm.site import Site
from tracemill.backends.llvm.types import I64, POINTER, VOID


class _Frame:
    """What memory.load and memory.store ask of a frame."""

    def __init__(self, site, width):
        self.site = site
        self.builder = site.builder
        self.machine = site.machine
        self.lanes = type("Lanes", (), {"mask": None, "width": width})()


def build(functions, width: int, machine: Machine):
    """A module with one function ``f{i}(words, count)`` per scalar function."""
    module = ir.Module("words")
    module.triple = machine.triple
    for number, body in enumerate(functions):
        function = ir.Function(module, ir.FunctionType(VOID, [POINTER, I64]), f"f{number}")
        words, count = function.args
        entry = function.append_basic_block("entry")
        builder = ir.IRBuilder(entry)
        frame = _Frame(Site(builder, machine), width)
        dtypes = [p.dtype for p in body.params] + [r.dtype for r in body.results]
        pointers = [
            builder.load(builder.gep(words, [ir.Constant(I64, i)], source_etype=I64), typ=POINTER)
            for i in range(len(dtypes))
        ]
        top, done = map(function.append_basic_block, ("top", "done"))
        builder.branch(top)
        builder.position_at_end(top)
        index = builder.phi(I64)
        index.add_incoming(ir.Constant(I64, 0), entry)

        def place(pointer, dtype, builder=builder, index=index):
            step = builder.mul(index, ir.Constant(I64, dtype.itemsize))
            here = builder.gep(pointer, [step], source_etype=ir.IntType(8))
            return Access(dtype, here, dtype.itemsize, None, width, None)

        args = [
            memory.load(frame, place(p, d), None)
            for p, d in zip(pointers, dtypes[: len(body.params)])
        ]
        results = emit_body(frame.site, body, args)
        for pointer, lane in zip(pointers[len(body.params) :], results):
            wide = memory.widen(builder, lane, width)
            memory.store(frame, place(pointer, lane.dtype), wide)
        following = builder.add(index, ir.Constant(I64, width))
        index.add_incoming(following, builder.block)
        builder.cbranch(builder.icmp_signed("<", following, count), top, done)
        builder.position_at_end(done)
        builder.ret_void()
    return module


class Words:
    """Compiled scalar functions of one width."""

    def __init__(self, functions, width: int, machine: Machine) -> None:
        module = build(functions, width, machine)
        code = target_machine(machine).emit_object(parsed(module, machine))
        self.functions = functions
        self.width = width
        self.loaded = load(link(code))

    def run(self, number: int, operands) -> list[np.ndarray]:
        """The results of function `number` for arrays of lanes."""
        body = self.functions[number]
        count = len(operands[0])
        padded = -(-count // self.width) * self.width
        inputs = [np.resize(np.ascontiguousarray(x), padded) for x in operands]
        outputs = [np.empty(padded, r.dtype.numpy) for r in body.results]
        words = (ctypes.c_void_p * (len(inputs) + len(outputs)))(
            *(a.ctypes.data for a in (*inputs, *outputs))
        )
        call = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)
        call(self.loaded.address_of(f"f{number}"))(ctypes.addressof(words), padded)
        return [o[:count] for o in outputs]
