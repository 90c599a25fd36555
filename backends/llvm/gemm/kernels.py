"""Which kernels are products or packings, and the emitter of each.

Not here: the function around it (../function.py).
"""

from __future__ import annotations

from ....compiler.kernel.contraction import contraction_of
from ....compiler.kernel.packing import packing_of
from ....compiler.kernel.windows import windowed_of
from ..frame import Frame
from .direct import emit_direct
from .packed import emit_packed
from .panels import emit_packing
from .windowed import emit_windowed


def emit_product(frame: Frame, name: str) -> bool:
    """Emit the body of the frame's kernel, if it is a product or a packing; else do nothing.

    name: the function's, for the names of the functions it uses.
    """
    packing = packing_of(frame.kernel)
    if packing is not None:
        emit_packing(frame, packing, name)
        return True
    found = contraction_of(frame.kernel)
    if found is None:
        return False
    roles = windowed_of(found)
    if roles is not None:
        emit_windowed(frame, found, roles, name)
    elif found.right.panels:
        emit_packed(frame, found, name)
    else:
        emit_direct(frame, found)
    return True
