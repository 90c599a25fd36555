"""Kernels to PTX: mapped to a grid, then through the llvm core.

Invariants: entries are in the order of the kernels; equal kernels give equal text.
Not here: assembling, the driver, launches (no GPU is needed for anything here).
"""

from __future__ import annotations

from collections.abc import Sequence

from ...compiler.dims import Size
from ...compiler.kernel.grid import GridKernel, map_to_grid
from ...compiler.kernel.kernel import Kernel
from ...compiler.records import dataclass
from ..llvm.nvptx.module import ARCHITECTURES, ptx_text

__all__ = ["ARCHITECTURES", "Entry", "PtxCode", "compile_mapped", "compile_ptx"]


@dataclass(frozen=True, slots=True)
class Entry:
    """How one kernel is launched: `blocks` have work (fewer do it too), each of `threads`.

    Arguments: the address of the failure word (the least number of a failure; all ones before),
    each parameter's address and, if it is strided, its byte strides, then the dims.
    """

    symbol: str
    blocks: Size
    threads: int


@dataclass(frozen=True, slots=True)
class PtxCode:
    """A module's text and its entries."""

    text: str
    entries: tuple[Entry, ...]


def compile_ptx(kernels: Sequence[Kernel], architecture: str = "sm_90") -> PtxCode:
    """Code for kernels, however they were scheduled. Raises ValueError for the architecture."""
    return compile_mapped([map_to_grid(kernel) for kernel in kernels], architecture)


def compile_mapped(kernels: Sequence[GridKernel], architecture: str = "sm_90") -> PtxCode:
    """Code for kernels that are mapped already."""
    entries = [Entry(f"k{at}", k.blocks, k.threads) for at, k in enumerate(kernels)]
    return PtxCode(ptx_text(kernels, architecture), tuple(entries))
