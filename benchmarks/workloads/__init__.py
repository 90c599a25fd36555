"""All workloads, by name."""

from __future__ import annotations

from ..workload import collect
from .calls import CALLS
from .clusters import CLUSTERS
from .elementwise import ELEMENTWISE
from .networks import NETWORKS
from .order import ORDER
from .pairs import PAIRS
from .repeated import REPEATED
from .rows import ROWS
from .sequences import SEQUENCES

ALL = collect(ELEMENTWISE, ROWS, NETWORKS, SEQUENCES, PAIRS, REPEATED, CLUSTERS, ORDER, CALLS)
