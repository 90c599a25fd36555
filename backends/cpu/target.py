"""The processor as schedules see it, and its name in cache keys, without loading LLVM.

Invariants: pure reading of the system, once per process; LLVM is not asked.
Not here: how code is generated for it (backends/llvm/machine.py).
"""

from __future__ import annotations

import hashlib
import importlib.util
import platform
from functools import cache
from pathlib import Path

from ...compiler.kernel.target import Target
from ...compiler.records import dataclass


@dataclass(frozen=True, slots=True)
class CpuTarget:
    """What a schedule may ask about a processor.

    vector_bits: the widest vectors worth using; registers: how many there are. masked: whether
    vectors of any element size load and store under a mask.
    """

    vector_bits: int = 512
    registers: int = 32
    masked: bool = True
    fma: bool = True
    features: frozenset[str] = frozenset()

    def for_schedules(self, threads: int) -> Target:
        """What the schedules of the compiler ask."""
        return Target(self.vector_bits, threads, self.features)


@cache
def host_target() -> CpuTarget:
    """The processor this process runs on."""
    flags = host_flags()
    wide = {"avx512f", "avx512bw", "avx512dq", "avx512vl"} <= flags
    bits = 512 if wide else 256 if "avx2" in flags else 128
    return CpuTarget(
        vector_bits=bits,
        registers=32 if wide or not flags else 16,
        masked=wide,
        fma="fma" in flags or not flags,
        features=flags,
    )


@cache
def host_flags() -> frozenset[str]:
    """The processor's feature flags as the system names them; empty where it does not."""
    return frozenset(_processor_lines().get("flags", "").split())


@cache
def host_key() -> str:
    """What code for this processor depends on: model, features, code generator's version."""
    lines = _processor_lines()
    words = [platform.machine(), platform.system(), _generator(), *sorted(lines.values())]
    return hashlib.sha256("\0".join(words).encode()).hexdigest()[:24]


def _generator() -> str:
    """The installed llvmlite, by the file that states its version: neither loading it nor asking
    the package's metadata, whose reader takes longer to load than kept code to run."""
    found = importlib.util.find_spec("llvmlite")
    for folder in (found and found.submodule_search_locations) or ():
        for name in ("_version.py", "__init__.py"):
            try:
                return (Path(folder) / name).read_text()
            except OSError:
                continue
    return "none"


@cache
def _processor_lines() -> dict[str, str]:
    """Model and flags of the first processor."""
    wanted = ("vendor_id", "cpu family", "model", "stepping", "flags", "Features")
    lines: dict[str, str] = {}
    try:
        with open("/proc/cpuinfo") as file:
            for line in file:  # the system writes the others' as they are read: stop in time
                name, _, value = line.partition(":")
                if not name.strip():
                    break
                if name.strip() in wanted:
                    lines[name.strip()] = value.strip()
    except OSError:
        return {"model name": platform.processor()}
    return lines
