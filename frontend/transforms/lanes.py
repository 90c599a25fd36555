"""`vmap`: a function of one element as a function of many.

    rows = tm.vmap(f)(xs)                                  # np.stack([f(x) for x in xs])
    tm.vmap(f, in_axes=(0, None), out_axes=1)(xs, w)       # w is the same for all

Invariants: what lanes share is computed once; how many lanes there are stays open.
Not here: the transform of the graph (compiler/transforms/vmap.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..calls.trees import Path, Tree, flatten, paths
from ..compiler.dims import Size
from ..compiler.ir.graph import Value
from ..compiler.ops.batching import Each, Lanes, moved_axis
from ..compiler.transforms.vmap import batched
from ..compiler.types import I64, TensorType
from ..control.carried import path_text
from ..lifted import lifted, read
from ..numpy.operands import value_of
from ..tracing.lanes import Lane, lane_of
from ..tracing.regions import Handed, Regions
from ..tracing.state import Trace, fail, running
from .inner import Inner

Axis = int | None


def vmap(function: Callable[..., Any], in_axes: Any = 0, out_axes: Any = 0) -> Callable[..., Any]:
    """A function of lanes: `function` for each element along an axis of its arguments.

    in_axes: the axis of lanes in each array of an argument, None where all lanes get it as it is:
    one for all arguments, or a tuple with one for each; instead of one axis a nest of them, as the
    argument is nested. Keyword arguments have lanes along their first axis. out_axes: where the
    axis goes in each result, likewise; None for a result that is the same in all lanes.

    Branches that lanes take differently are all computed, and loops run until the last lane is
    done. Each lane draws random numbers of its own: those that drawing an array with the axis of
    lanes first would give it.

    Raises ArgError (TM122) for axes that are out of range, missing, or of different sizes;
    UnsupportedError (TM123) for what has no meaning for several lanes, such as assigning
    different values to one Variable.
    """

    def inner(*args: Any, **keywords: Any) -> Any:
        return _mapped(function, in_axes, out_axes, args, keywords)

    inner.__name__ = f"vmap_of_{getattr(function, '__name__', 'function')}"
    return lifted(inner)


def _mapped(
    function: Callable[..., Any],
    in_axes: Any,
    out_axes: Any,
    args: tuple[Any, ...],
    keywords: dict[str, Any],
) -> Any:
    trace = running()
    leaves, tree = flatten((args, keywords))
    axes = _axes((_by_argument(in_axes, args), 0), tree, "in_axes")
    ways = paths(tree)
    rows = {
        at: _in_front(trace, read(leaf), axis, ways[at])
        for at, (leaf, axis) in enumerate(zip(leaves, axes))
        if axis is not None
    }
    size = _size(trace, rows, ways)
    given = [None if at in rows else leaf for at, leaf in enumerate(leaves)]
    handed = {at: _row(value, ways[at]) for at, value in rows.items()}
    with Regions(trace, one_device=False) as regions:
        inner = Inner(
            trace, regions, "vmap", function, given, tree.rebuild, handed, _LANE, _enter_lane
        )
        size = trace.sizes.normal(size)
        number, count = _lane(trace, size)
        values = inner.operands([*rows.values(), number, count])
        operands = [Each(value, at <= len(rows)) for at, value in enumerate(values)]
        found = batched(trace.builder, inner.graph, operands, Lanes(size))
    own = found[: len(inner.leaves)]
    _check_state(inner, found[len(own) :])
    out = _axes(out_axes, inner.tree, "out_axes")
    places = paths(inner.tree)
    made = [_out(trace, *parts, size) for parts in zip(own, out, places, strict=True)]
    return inner.finish([*made, *[each.value for each in found[len(own) :]]])


def _row(value: Value, path: Path) -> Handed:
    """What one lane gets of a value whose first axis is that of lanes."""
    tensor = value.tensor
    name = path_text(path).strip(".[]'") or "x"
    return Handed(name, TensorType(tensor.dtype, tensor.shape[1:]))


# -- axes


def _by_argument(in_axes: Any, args: tuple[Any, ...]) -> Any:
    """One entry for each positional argument, where there is not one for all."""
    if not isinstance(in_axes, tuple | list):
        return in_axes
    if len(in_axes) != len(args):
        raise fail(
            "TM122", f"in_axes has {len(in_axes)} entries for {len(args)} positional arguments"
        )
    return tuple(in_axes)


def _axes(given: Any, tree: Tree, name: str) -> list[Axis]:
    """The axis of each leaf: `given` is nested as far as axes differ."""
    found: list[Axis] = []
    for path in paths(tree):
        at = given
        try:
            for step in path:
                if at is None or _is_axis(at):
                    break
                at = step.take(at)
        except (LookupError, AttributeError, TypeError):
            at = given
        if at is not None and not _is_axis(at):
            raise fail(
                "TM122", f"{name} is an axis, None, or a nest of these as what it is for: {given!r}"
            )
        found.append(at)
    return found


def _is_axis(item: Any) -> bool:
    return isinstance(item, int | np.integer) and not isinstance(item, bool)


def _in_front(trace: Trace, leaf: Any, axis: int, path: Path) -> Value:
    value = value_of(leaf)
    rank = value.tensor.rank
    if not -rank <= axis < rank:
        what = f"the argument at {path_text(path[1:])}"
        raise fail(
            "TM122",
            f"in_axes has the axis {axis} for {what}, a {value.type!r}",
            hint="None is for arguments that all lanes get as they are",
        )
    moved: Value = moved_axis(trace.builder, value, axis % rank, 0)
    return moved


def _size(trace: Trace, values: dict[int, Value], ways: Sequence[Path]) -> Size:
    """How many lanes there are."""
    if not values:
        raise fail("TM122", "vmap needs an argument with lanes, in_axes is None for all of them")
    (first, value), *others = values.items()
    size: Size = value.tensor.shape[0]
    for at, other in others:
        if not trace.sizes.equal(size, other.tensor.shape[0], "vmap goes over these axes together"):
            raise fail(
                "TM122",
                f"vmap goes over {_counted(trace, size)} lanes of the argument at "
                f"{path_text(ways[first][1:])} and {_counted(trace, other.tensor.shape[0])} of the "
                f"one at {path_text(ways[at][1:])}",
            )
    return size


def _counted(trace: Trace, size: Size) -> int:
    return trace.sizes.hint(size)


# -- what differs between lanes


_LANE = (Handed("lane", TensorType(I64, ())), Handed("lanes", TensorType(I64, ())))


def _enter_lane(inner: Trace, items: list[Any]) -> None:
    inner.lanes = Lane(inner, *[item.value for item in items])


def _lane(trace: Trace, size: Size) -> tuple[Value, Value]:
    """The number of each lane, and how many there are, those of mapped functions around among
    them."""
    builder = trace.builder
    numbers: Value = builder.emit("iota", (), {"size": size})
    count = trace.size_value(size)
    around = lane_of(trace)
    if around is not None:
        number, others = around
        numbers = builder.emit("add", (numbers, builder.emit("mul", (number, count))))
        count = builder.emit("mul", (count, others))
    return numbers, count


def _check_state(inner: Inner, found: Sequence[Each]) -> None:
    for variable, each in zip(inner.variables.values(), found):
        if each.own:
            name = getattr(variable, "name", "")
            what = "an array around it" if name.startswith("memory ") else f"the Variable {name!r}"
            raise fail(
                "TM123",
                f"a function that is mapped over lanes writes another value to {what} in each",
                hint="return it, and reduce it outside of vmap",
            )


def _out(trace: Trace, each: Each, axis: Axis, path: Path, size: Size) -> Value:
    if axis is None:
        if each.own:
            raise fail(
                "TM122",
                f"out_axes is None for the result{path_text(path)}, which differs between lanes",
            )
        shared: Value = each.value
        return shared
    rank = each.rank + 1
    if not -rank <= axis < rank:
        raise fail(
            "TM122",
            f"out_axes has the axis {axis} for the result{path_text(path)}, which has {rank} with "
            "that of lanes",
        )
    rows = Lanes(size).spread(trace.builder, each)
    moved: Value = moved_axis(trace.builder, rows, 0, axis % rank)
    return moved
