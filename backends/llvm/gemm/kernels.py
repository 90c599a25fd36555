"""The emitter of each kind of product, and of a packing.

Not here: which kernels they are (compiler/kernel), the function around them (../function.py).
"""

from __future__ import annotations

from ....compiler.kernel.contraction import Contraction
from ....compiler.kernel.packing import Packing
from ....compiler.kernel.windows import windowed_of
from ..frame import Frame
from .direct import emit_direct
from .packed import emit_packed
from .panels import emit_packing
from .windowed import emit_windowed


def emit_product(frame: Frame, found: Packing | Contraction, name: str) -> None:
    """Emit the body of the frame's kernel, which is `found`.

    name: the function's, for the names of the functions it uses.
    """
    if isinstance(found, Packing):
        emit_packing(frame, found, name)
        return
    roles = windowed_of(found)
    if roles is not None:
        emit_windowed(frame, found, roles, name)
    elif found.right.panels:
        emit_packed(frame, found, name)
    else:
        emit_direct(frame, found)
