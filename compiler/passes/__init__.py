"""The passes that leave a graph's meaning as it is, in the one order in which they run.

Invariants: each pass is right alone and in any order; the order here only saves work.
Not here: placement and partition, which a graph for several devices needs besides.
"""

from __future__ import annotations

from collections.abc import Mapping

from .base import Pass
from .dedupe import Dedupe
from .fold import Fold
from .fuse import Fuse
from .inline import Inline
from .prune import Prune
from .simplify import Simplify

PIPELINE: tuple[Pass, ...] = (
    Inline(),  # first: all others look at nodes, and transforms are done
    Prune(),  # a trace records what its results never use: the rest should not be looked at
    Simplify(),  # before fold: numbers repeated over a shape become numbers
    Fold(),
    Simplify(),  # folded numbers may be identities
    Dedupe(),  # after simplify: more nodes are equal then
    Prune(),  # what was replaced is still there
)

# What the command line and the text cases may name.
PASSES: Mapping[str, Pass] = {step.name: step for step in (*PIPELINE, Fuse())}
