"""All ops: one read-only table from name to record.

Invariants: `ALL` is complete when imported; nothing is added later (ops from outside are handed
to the builder as records).
Not here: what each op is (one file per family).
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from .contraction import CONTRACTION
from .convolution import CONVOLUTION
from .creation import CREATION
from .definition import OpDef, collect
from .derivative import DERIVATIVE
from .effect import EFFECT
from .elementwise import ELEMENTWISE
from .flow import FLOW
from .gather import GATHER
from .host import HOST
from .library import LIBRARY
from .movement import MOVEMENT
from .reduction import REDUCTION
from .running import RUNNING
from .sliding import SLIDING
from .sorting import SORTING
from .state import STATE
from .stepping import STEPPING
from .structural import STRUCTURAL
from .transfer import TRANSFER

ALL: Mapping[str, OpDef] = MappingProxyType(
    dict(
        collect(
            ELEMENTWISE,
            CREATION,
            MOVEMENT,
            SLIDING,
            REDUCTION,
            RUNNING,
            CONTRACTION,
            CONVOLUTION,
            GATHER,
            STEPPING,
            SORTING,
            LIBRARY,
            STATE,
            EFFECT,
            HOST,
            STRUCTURAL,
            FLOW,
            DERIVATIVE,
            TRANSFER,
        )
    )
)
