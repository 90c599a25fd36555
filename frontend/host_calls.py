"""`host_call`: a Python function of arrays, called each time a compiled function runs.

    y = tm.host_call(bessel, 2, x, result=x)
    mean, worst = tm.host_call(judge, {"got": y, "want": z}, result=(0.0, tm.Spec(int, (3,))))

Inside a compiled function this is an op, ordered by tokens, whose row calls back into Python;
anywhere else it calls the function at once.

Invariants: calls are made in the order the program has them, as often as it says, none by a
branch that is not taken; the function gets arrays of its own, so that it may keep them and write
to them. What it returns has the declared dtypes and shapes, or the call raises.
Not here: the op (compiler/ops/host.py), the row (compiler/plan.py).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from .calls.trees import Tree, flatten
from .compiler.dims import Size
from .compiler.errors import error
from .compiler.ir.graph import Graph
from .compiler.ir.traversal import all_nodes
from .compiler.ops.definition import SignatureError
from .compiler.ops.host import HostFunction, check_shape, host_callback
from .compiler.records import dataclass
from .control.carried import kind_of, traced_result
from .lifted import read
from .numpy.axes import shape_argument
from .numpy.operands import is_traced, value_of, weak_type
from .spec import Spec
from .tracing.source import user_location
from .tracing.state import Trace, current, fail, require_dtype

_numbers = itertools.count()  # of the calls traced in this process


def host_call(function: Callable[..., Any], *args: Any, result: Any) -> Any:
    """``function(*args)``, a Python function that is called when the compiled function runs.

    args: nested dicts, lists, tuples and dataclasses of arrays, numbers and Variables, which the
    function gets as NumPy arrays and numbers; anything else in them it gets as it is.
    result: what the function returns, described: a nested structure whose leaves are arrays or
    numbers of the same dtype and shape, or `Spec`s; None where what it returns is of no interest.

    The result has exactly these dtypes and shapes; of a Python number the value must fit. It has
    no derivative: wrap the call in `custom_vjp` or `custom_jvp`. Under `vmap` the function is
    called once for each lane. The call cannot be exported.
    Raises TraceError where the function returns something else than was declared, and whatever
    the function raises; the compiled call has written nothing then.
    """
    declared, tree = flatten(result)
    types = [_described(leaf) for leaf in declared]
    returned = _Returned(function, [dtype for dtype, _ in types], tree, result is None)
    trace = current()
    if trace is not None:
        shapes = [shape_argument(shape) for _, shape in types]
        return tree.rebuild(_emit(trace, returned, args, declared, shapes))
    leaves, args_tree = flatten(args)
    try:
        made = returned.of(*args_tree.rebuild([read(leaf) for leaf in leaves]))
        for array, (_, shape) in zip(made, types):
            check_shape(array, shape_argument(shape))
    except SignatureError as problem:
        raise fail(problem.code, f"host_call of {returned.name}: {problem.summary}") from None
    return tree.rebuild([_as(leaf, array) for leaf, array in zip(declared, made)])


def callback(attributes: Mapping[str, Any], graph: Graph) -> Callable[..., object]:
    """The function of arrays that a host call of a plan stands for. graph: the traced one, whose
    functions are called: a plan that was kept has their names alone."""
    name = attributes["function"]
    named = next(found for found in _functions(graph) if found == name)
    call = host_callback({**attributes, "function": named})

    def run(*arrays: Any) -> None:
        try:
            call(*arrays)
        except SignatureError as problem:
            text = f"host_call of {name}: {problem.summary}"
            raise error(problem.code, text, place=named.place) from None
        except Exception as problem:
            problem.add_note(f"in the function that tm.host_call calls at {named.place}")
            raise

    return run


def _functions(graph: Graph) -> list[HostFunction]:
    found = [node.attrs.get("function") for node in all_nodes(graph)]
    return [name for name in found if isinstance(name, HostFunction)]


@dataclass(frozen=True, slots=True)
class _Returned:
    """What a function is to return. ignored: anything, which is dropped."""

    function: Callable[..., Any]
    dtypes: Sequence[np.dtype[Any]]
    tree: Tree
    ignored: bool

    @property
    def name(self) -> str:
        """Of the function, for people."""
        return getattr(self.function, "__qualname__", None) or repr(self.function)

    def of(self, *args: Any) -> list[np.ndarray[Any, Any]]:
        """Call it; arrays of the dtypes, their shapes unseen. Raises SignatureError."""
        returned = self.function(*args)
        if self.ignored:
            return []
        leaves, tree = flatten(returned)
        if tree != self.tree:
            got, wanted = _structure(tree), _structure(self.tree)
            raise SignatureError("TM268", f"it returned {got} where {wanted} is declared")
        return [_converted(leaf, dtype) for leaf, dtype in zip(leaves, self.dtypes)]


def _emit(
    trace: Trace,
    returned: _Returned,
    args: tuple[Any, ...],
    declared: Sequence[Any],
    shapes: Sequence[tuple[Size, ...]],
) -> list[Any]:
    leaves, tree = flatten(args)
    leaves = [read(leaf) for leaf in leaves]
    runs = [at for at, leaf in enumerate(leaves) if is_traced(leaf) or type(leaf) is np.ndarray]
    kinds = [kind_of(leaves[at]) for at in runs]
    values = [value_of(leaves[at]) for at in runs]
    known = [None if at in runs else leaf for at, leaf in enumerate(leaves)]

    def call(*arrays: Any) -> list[np.ndarray[Any, Any]]:
        given = list(known)
        for at, kind, array in zip(runs, kinds, arrays):
            given[at] = array if kind == "array" else array[()]
            if isinstance(kind, type):
                given[at] = array.item()
        return returned.of(*tree.rebuild(given))

    made = trace.emit(
        "host_call",
        *values,
        dtypes=tuple([require_dtype(dtype) for dtype in returned.dtypes]),
        function=HostFunction(f"{returned.name}#{next(_numbers)}", call, user_location()),
        shapes=tuple(shapes),
    )
    results = made[:-1] if isinstance(made, tuple) else ()
    return [traced_result(trace, value, like) for value, like in zip(results, declared)]


def _described(leaf: Any) -> tuple[np.dtype[Any], Any]:
    """Dtype and shape of what a declared result stands for."""
    if isinstance(leaf, Spec):
        if None in leaf.shape:
            hint = "sizes may be those of traced arrays, as in tm.Spec(float, x.shape)"
            raise fail("TM268", f"a result of host_call has sizes, not {leaf.shape}", hint=hint)
        return np.dtype(leaf.dtype), leaf.shape
    leaf = read(leaf)
    try:
        return np.result_type(weak_type(leaf)), np.shape(leaf)
    except TypeError:
        text = f"arrays, numbers and Specs describe the results of host_call, not {leaf!r:.60}"
        raise fail("TM268", text) from None


def _converted(leaf: Any, dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    found = dtype if _fits(leaf, dtype) else np.asarray(leaf).dtype
    if found != dtype:
        raise SignatureError("TM268", f"it returned {found} where {dtype} is declared")
    return np.asarray(leaf, dtype)


def _fits(leaf: Any, dtype: np.dtype[Any]) -> bool:
    """True for a Python number that is no more than one of this dtype."""
    return type(leaf) in (bool, int, float, complex) and np.result_type(leaf, dtype) == dtype


def _as(declared: Any, array: np.ndarray[Any, Any]) -> Any:
    return array if isinstance(declared, np.ndarray) else array[()]


def _structure(tree: Tree) -> str:
    return str(tree.spec).removeprefix("PyTreeSpec(").removesuffix(")").split(", NoneIsLeaf")[0]
