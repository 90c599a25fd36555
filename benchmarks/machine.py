"""What the machine can do, measured in the same run: copy bandwidth and FMA peak.

Copy bandwidth: a thread per core copies its part of a buffer far larger than the last cache;
bytes read and written are counted. FMA peak: fused multiply-adds of whole vectors in registers,
on every core; the loop is made with llvmlite, so that no compiler decides how much of it is left.
"""

from __future__ import annotations

import ctypes
import os
import platform
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import llvmlite.binding as llvm
import numpy as np
from llvmlite import ir

COPY_BYTES = 256 << 20
CHAINS = 12  # independent sums: they hide the latency of a multiply-add
ROUNDS = 2_000_000


@dataclass(frozen=True)
class Machine:
    """name: processor. vector: bits. copy: bytes/s read plus written. fma32: float32
    operations/s."""

    name: str
    cores: int
    vector: int
    copy: float
    fma32: float

    @property
    def described(self) -> str:
        """In one line."""
        return (
            f"{self.name}, {self.cores} cores, {self.vector}-bit vectors, "
            f"copy {self.copy / 1e9:.1f} GB/s, float32 FMA {self.fma32 / 1e9:.0f} GF/s"
        )


def measure() -> Machine:
    """Measure both limits; takes about two seconds."""
    cores = len(os.sched_getaffinity(0))
    name = platform.processor() or platform.machine()
    vector = _vector_bits()
    return Machine(name, cores, vector, _copy(cores), _fma(cores, vector))


def _copy(cores: int) -> float:
    source = np.ones(COPY_BYTES // 8)
    target = np.empty_like(source)
    parts = list(zip(np.array_split(source, cores), np.array_split(target, cores), strict=True))
    best = _best(cores, lambda at: np.copyto(parts[at][1], parts[at][0]), 7)
    return 2 * source.nbytes / best


def _best(cores: int, work: Callable[[int], object], times: int) -> float:
    """Seconds of the quickest of several runs of `work` on every core at once."""
    best = float("inf")
    with ThreadPoolExecutor(cores) as pool:
        for _ in range(times):
            began = time.perf_counter()
            list(pool.map(work, range(cores)))
            best = min(best, time.perf_counter() - began)
    return best


def _vector_bits() -> int:
    features = llvm.get_host_cpu_features()
    for bits, feature in ((512, "avx512f"), (256, "avx2")):
        if features.get(feature):
            return bits
    return 128


def _fma(cores: int, vector: int) -> float:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), opt=2
    )
    module = llvm.parse_assembly(str(_spinning(vector // 32)))
    engine = llvm.create_mcjit_compiler(module, target)
    engine.finalize_object()
    spin = ctypes.CFUNCTYPE(ctypes.c_float, ctypes.c_int64, ctypes.c_float)(
        engine.get_function_address("spin")
    )
    best = _best(cores, lambda _: spin(ROUNDS, 0.999), 5)
    return 2.0 * (vector // 32) * CHAINS * ROUNDS * cores / best


def _spinning(lanes: int) -> ir.Module:
    """``spin(rounds, factor)``: sums in registers, each multiplied and added to again and again."""
    module = ir.Module("peak")
    number, count = ir.FloatType(), ir.IntType(64)
    vector = ir.VectorType(number, lanes)
    function = ir.Function(module, ir.FunctionType(number, [count, number]), "spin")
    fma = ir.Function(module, ir.FunctionType(vector, [vector] * 3), f"llvm.fma.v{lanes}f32")
    entry, top, done = map(function.append_basic_block, ("entry", "top", "done"))
    builder = ir.IRBuilder(entry)
    factor = ir.Constant(vector, ir.Undefined)
    for lane in range(lanes):
        factor = builder.insert_element(factor, function.args[1], ir.Constant(ir.IntType(32), lane))
    builder.branch(top)
    builder.position_at_end(top)
    round_ = builder.phi(count)
    sums = [builder.phi(vector) for _ in range(CHAINS)]
    made = [builder.call(fma, [total, factor, factor]) for total in sums]
    following = builder.add(round_, ir.Constant(count, 1))
    builder.cbranch(builder.icmp_signed("<", following, function.args[0]), top, done)
    round_.add_incoming(ir.Constant(count, 0), entry)
    round_.add_incoming(following, top)
    for at, (total, value) in enumerate(zip(sums, made)):
        total.add_incoming(ir.Constant(vector, [float(at)] * lanes), entry)
        total.add_incoming(value, top)
    builder.position_at_end(done)
    whole = made[0]
    for value in made[1:]:
        whole = builder.fadd(whole, value)
    builder.ret(builder.extract_element(whole, ir.Constant(ir.IntType(32), 0)))
    return module
