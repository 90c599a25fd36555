"""The flat arguments of a trace, described without their data.

The caller flattens its arguments and describes each leaf; the trace makes a traced value of it.

Invariants: immutable. A shape holds integers and bare symbols (`shapes.choose_shapes` makes
them); the size of each symbol in the example call is its hint.
Not here: flattening of containers, checking of later calls.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tracemill.compiler.dims import Size
from tracemill.compiler.records import dataclass
from tracemill.compiler.types import DType


@dataclass(frozen=True, slots=True)
class ArrayLeaf:
    """An array argument.

    strides: strides in elements where the array is not C-contiguous, None where it is.
    same_as: index of an earlier leaf that is the very same array object.
    """

    dtype: DType
    shape: tuple[Size, ...]
    name: str = ""
    strides: tuple[int, ...] | None = None
    writeable: bool = True
    same_as: int | None = None


@dataclass(frozen=True, slots=True)
class ScalarLeaf:
    """A Python bool, int, float or complex: a weak run-time input."""

    value: bool | int | float | complex
    name: str = ""


@dataclass(frozen=True, slots=True)
class NumpyScalarLeaf:
    """A NumPy scalar, `value` as in the example call: a run-time input of its own dtype."""

    value: Any
    name: str = ""


@dataclass(frozen=True, slots=True)
class StaticLeaf:
    """Anything else: handed to the function as it is; the caller guards it."""

    value: Any
    name: str = ""


@dataclass(frozen=True, slots=True)
class MadeLeaf:
    """A leaf that makes its own traced value (variables and the like)."""

    make: Callable[[Any], Any]
    name: str = ""


Leaf = ArrayLeaf | ScalarLeaf | NumpyScalarLeaf | StaticLeaf | MadeLeaf
