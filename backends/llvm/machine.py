"""The machine that code is generated for: triple, CPU, features, and LLVM's object emitter.

Invariants: a `Machine` is a value; two equal ones give the same code, so its `key` may stand in
the key of a code cache. LLVM's emitter is made once per machine and process.
Not here: the description that chooses schedules (backends/cpu/target.py).
"""

from __future__ import annotations

from functools import cache

import llvmlite
import llvmlite.binding as llvm

from ...compiler.records import dataclass
from .uninterrupted import uninterrupted


@dataclass(frozen=True, slots=True)
class Machine:
    """A code generation target. `features`: names that are on; all others named off."""

    triple: str
    cpu: str
    features: frozenset[str]
    switches: str = ""

    @property
    def is_x86(self) -> bool:
        """True for x86-64."""
        return self.triple.startswith("x86_64")

    @property
    def is_device(self) -> bool:
        """True for a GPU: aligned memory, one lane a thread, nobody to call."""
        return self.triple.startswith("nvptx")

    @property
    def has_fma(self) -> bool:
        """Whether fused multiply-add is an instruction and not a library call."""
        return not self.is_x86 or "fma" in self.features or self.has_avx512

    @property
    def has_half_conversion(self) -> bool:
        """Whether f16 <-> f32 are instructions."""
        return not self.is_x86 or "f16c" in self.features

    @property
    def has_avx512(self) -> bool:
        """The parts of AVX-512 that every server since Skylake has."""
        return {"avx512f", "avx512bw", "avx512dq", "avx512vl"} <= self.features

    @property
    def vector_bits(self) -> int:
        """Width of the widest vector register that is worth using."""
        if self.has_avx512:
            return 512
        if "avx2" in self.features:
            return 256
        return 128

    @property
    def has_masked_memory(self) -> bool:
        """Whether masked loads and stores of every element size are instructions."""
        return self.has_avx512

    @property
    def key(self) -> str:
        """What code depends on, for a cache's key: target, and the versions that made it."""
        version = ".".join(map(str, llvm.llvm_version_info))
        return f"{self.triple}/{self.cpu}/{self.switches}/llvmlite {llvmlite.__version__}/{version}"


@uninterrupted()
def host_machine(without: frozenset[str] = frozenset()) -> Machine:
    """The processor this process runs on, optionally with features switched off."""
    _initialize()
    features = dict(llvm.get_host_cpu_features())
    for name in features:
        if any(name.startswith(prefix) for prefix in without):
            features[name] = False
    switches = ",".join(f"{'+' if on else '-'}{name}" for name, on in sorted(features.items()))
    on = frozenset(name for name, enabled in features.items() if enabled)
    return Machine(llvm.get_process_triple(), llvm.get_host_cpu_name(), on, switches)


_LEVELS = {
    "x86-64-v2": frozenset({"sse4.2", "popcnt"}),
    "x86-64-v3": frozenset({"sse4.2", "popcnt", "avx2", "fma", "f16c", "bmi2"}),
    "x86-64-v4": frozenset(
        {"sse4.2", "popcnt", "avx2", "fma", "f16c", "bmi2"}
        | {"avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512cd"}
    ),
}


def level_machine(level: str) -> Machine:
    """A feature level of the x86-64 ABI, such as ``x86-64-v2``. Raises KeyError."""
    _initialize()
    return Machine(llvm.get_process_triple(), level, _LEVELS[level])


@cache
@uninterrupted()
def target_machine(machine: Machine, level: int = 2) -> llvm.TargetMachine:
    """LLVM's emitter for `machine` at optimisation `level`."""
    _initialize()
    target = llvm.Target.from_triple(machine.triple)
    return target.create_target_machine(
        cpu=machine.cpu, features=machine.switches, opt=level, codemodel="small", reloc="pic"
    )


@cache
def _initialize() -> None:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
