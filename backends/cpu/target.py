"""The processor as schedules see it, and its name in cache keys, without loading LLVM.

Invariants: pure reading of the system, once per process; LLVM is not asked.
Not here: how code is generated for it (backends/llvm/machine.py).
"""

from __future__ import annotations

import hashlib
import platform
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path

from ...compiler.kernel.schedule import Target

_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")


@dataclass(frozen=True, slots=True)
class CpuTarget:
    """What a schedule may ask about a processor.

    vector_bits: the widest vectors worth using; registers: how many there are.
    l1, l2, l3: data cache sizes in bytes (l3 shared). masked: whether vectors of any element
    size load and store under a mask.
    """

    vector_bits: int = 512
    registers: int = 32
    l1: int = 32 << 10
    l2: int = 1 << 20
    l3: int = 16 << 20
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
    sizes = _cache_sizes()
    return CpuTarget(
        vector_bits=bits,
        registers=32 if wide or not flags else 16,
        l1=sizes.get(1, 32 << 10),
        l2=sizes.get(2, 1 << 20),
        l3=sizes.get(3, 16 << 20),
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
    words = [platform.machine(), platform.system(), version("llvmlite"), *sorted(lines.values())]
    return hashlib.sha256("\0".join(words).encode()).hexdigest()[:24]


@cache
def _processor_lines() -> dict[str, str]:
    """Model and flags of the first processor."""
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return {"model name": platform.processor()}
    wanted = ("vendor_id", "cpu family", "model", "stepping", "flags", "Features")
    lines: dict[str, str] = {}
    for line in text.split("\n\n")[0].splitlines():
        name, _, value = line.partition(":")
        if name.strip() in wanted:
            lines[name.strip()] = value.strip()
    return lines


def _cache_sizes() -> dict[int, int]:
    """Bytes of the data caches by level."""
    sizes: dict[int, int] = {}
    try:
        for entry in sorted(_CACHES.glob("index*")):
            if (entry / "type").read_text().strip() != "Instruction":
                text = (entry / "size").read_text().strip()
                scale = {"K": 1 << 10, "M": 1 << 20}.get(text[-1], 1)
                digits = text[:-1] if scale > 1 else text
                sizes[int((entry / "level").read_text())] = int(digits) * scale
    except (OSError, ValueError):
        return {}
    return sizes
