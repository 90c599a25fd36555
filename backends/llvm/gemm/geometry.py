"""Sizes of blocks and tiles, by machine and element type.

A packed product walks blocks of `block_rows` x `block_columns` of the result; for each it packs
`depth` columns of the left operand at a time. Both blocks and the panels in use fit into the
second-level cache, the left block and the sums into 300 KiB of stack. The microkernel keeps
`rows` x `vectors` sums in registers.

Invariants: `rows` divides `STRIP`; vectors divide a panel; all blocks are whole tiles.
"""

from __future__ import annotations

from llvmlite import ir

from ....compiler.kernel.contraction import computed
from ....compiler.records import dataclass
from ....compiler.types import DType, real_part_of
from ..machine import Machine
from ..types import part_count, register_element

_LINE = 64
_DEPTH_BYTES, _WIDTH_BYTES, _BLOCK_ROWS = 2048, 4096, 48


@dataclass(frozen=True, slots=True)
class Geometry:
    """Shapes for one product. Complex numbers are two reals side by side, sums two planes."""

    dtype: DType  # of packed elements
    real: DType
    parts: int
    lanes: int  # reals in a register
    rows: int
    vectors: int
    depth: int
    block_rows: int
    block_columns: int
    direct: tuple[int, int]  # rows and vectors of a direct tile
    sum_row: int = 0  # bytes of a row of sums where tiles lie side by side, 0 where one by one

    @property
    def element(self) -> ir.Type:
        """The LLVM type of a real."""
        return register_element(self.real)

    @property
    def vector(self) -> ir.Type:
        """The LLVM type of a register of reals."""
        return ir.VectorType(self.element, self.lanes)

    @property
    def register_bytes(self) -> int:
        """Bytes of a register."""
        return self.lanes * self.real.itemsize

    @property
    def left_stride(self) -> int:
        """Bytes from row to row of the packed left block; rows do not share cache sets."""
        return self.depth * self.dtype.itemsize + _LINE

    @property
    def tile_columns(self) -> int:
        """Columns of a microkernel's tile."""
        return self.vectors * self.register_bytes // self.dtype.itemsize

    @property
    def sum_stride(self) -> int:
        """Bytes from row to row of a tile of sums (of one plane)."""
        return self.sum_row or self.vectors * self.register_bytes

    @property
    def plane(self) -> int:
        """Bytes of the sums of a block, of one plane."""
        return self.block_rows * self.block_columns * self.dtype.itemsize


def geometry_of(machine: Machine, dtype: DType) -> Geometry:
    """The geometry for products of `dtype`."""
    packed = computed(dtype)
    real = real_part_of(packed)
    parts = part_count(packed)
    bits = machine.vector_bits
    rows = {512: 12, 256: 6}.get(bits, 4) // parts
    return Geometry(
        dtype=packed,
        real=real,
        parts=parts,
        lanes=bits // real.bits,
        rows=rows,
        vectors=2,
        depth=_DEPTH_BYTES // packed.itemsize,
        block_rows=_BLOCK_ROWS,
        block_columns=_WIDTH_BYTES // packed.itemsize // parts,
        direct=((8 if bits == 512 else 4) // parts, 2),
    )
