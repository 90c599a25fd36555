"""How rows are sorted: one launch over short rows, four over the pieces of long ones.

Elements are sorted as keys: unsigned numbers in their order, of 4 or 8 bytes. Where places are
asked for and a key has 4 bytes, key and place are one number of 8 bytes; keys of 8 bytes move
with their places. Keys lie in the result where they fit there.

A row of `LONG` elements and more is cut into `PIECES`, for threads, and sorted in steps, each a
kernel over all rows:

    count     each piece: keys of its elements, and how many have each first digit
    spread    each piece: its keys to the buckets of their digits, in order
    buckets   each bucket: sorted by itself, and keys turned into elements or places again
    mend      each row: what keys do not tell apart (signs of zeros, kinds of NaN)

The first digit is taken from the range of a sample of the row: where one bucket holds nearly all, a
single thread sorts it, and the result is the same. As everywhere, it never depends on threads.

Selecting the greatest elements reads a row once and keeps those that may be among them, at most
`SELECTED`. Searching compares keys, too: a binary search of as many steps for each element, many
at a time.

Invariants: where sizes are symbols both ways stand in the plan, and the one not taken has extent 0.
Not here: the oracle of each step (sort_steps.py), machine code (backends/llvm/sorting).
"""

from __future__ import annotations

from ..dims import Size, minimum, product
from ..ir.graph import Node
from ..ops.definition import Structure
from ..records import dataclass, replace
from ..types import I64, U32, U64, DType
from .cost import GRAIN_WORK
from .kernel import Kernel, Parameter, Search, Select, Sort
from .products import Split, Stage
from .region import Lowered, Region
from .symbols import kernel_dims

PIECES = 16
DIGIT = 10  # bits of the first digit of a long row
BUCKETS = 1 << DIGIT
SAMPLE = 256  # elements whose range the first digit is taken from
LONG = 1 << 17  # elements of a row that is cut into pieces
SELECTED = 128  # elements that are selected in one pass; more are sorted
FEW = 32  # elements of a row that always is sorted in a network, which needs nothing between,
SHORT = 1024  # and of one that is where there are several
# Picoseconds for an element:
_ELEMENT = {"rows": 10_000, "count": 3_000, "spread": 4_000, "buckets": 10_000}
_NETWORK = 2_000  # of a row sorted in a network
_PASSED = 1_000  # of a row that some are selected of
_LOOK_UP = 10_000  # that is searched for
_GIVES = {"sort": "elements", "argsort": "places"}


@dataclass(frozen=True, slots=True)
class KeyForm:
    """How elements of a dtype are keys. packed: places are the low half of a key; carried: they
    move beside it. in_result: keys lie in the result's memory."""

    dtype: DType
    packed: bool
    carried: bool
    in_result: bool


def key_form(dtype: DType, gives: str) -> KeyForm:
    """The keys of elements of `dtype`."""
    places = gives == "places"
    wide = dtype.itemsize == 8
    packed = places and not wide
    key = U64 if wide or packed else U32
    in_result = packed or (dtype.itemsize == key.itemsize and not places)
    return KeyForm(key, packed, places and wide, in_result)


def is_sort(region: Region) -> bool:
    """True for a region that is one node, which puts rows in order."""
    return len(region.nodes) == 1 and region.nodes[0].op.structure is Structure.SORT


def lower_sort(region: Region) -> Lowered:
    """The kernel of such a region."""
    (node,) = region.nodes
    if "side" in node.attrs:
        return _lower_search(node)
    if "size" in node.attrs:
        return _lowered(node, Select("x", "out", node.attrs["size"]))
    return _lowered(node, Sort("x", "out", _GIVES[node.op.name]))


def _lowered(node: Node, statement: Sort | Select) -> Lowered:
    source, result = node.operands[0].tensor, node.result.tensor
    params = (
        Parameter("x", source.dtype, source.shape, "in"),
        Parameter("out", result.dtype, result.shape, "out"),
    )
    kernel = _kernel(node.op.name, params, statement)
    return Lowered(kernel, (0,), (0,), (None,), frozenset(), {})


def _lower_search(node: Node) -> Lowered:
    inputs = tuple(dict.fromkeys(node.operands))
    names = dict(zip(inputs, ("row", "wanted")))
    params = [Parameter(names[v], v.tensor.dtype, v.tensor.shape, "in") for v in inputs]
    result = node.result.tensor
    row, wanted = (names[v] for v in node.operands)
    params.append(Parameter("out", result.dtype, result.shape, "out"))
    search = Search(row, wanted, "out", node.attrs["side"])
    kernel = _kernel(node.op.name, tuple(params), search)
    return Lowered(kernel, tuple(range(len(inputs))), (0,), (None,), frozenset(), {})


def sorting_of(kernel: Kernel) -> Sort | Search | Select | None:
    """The one statement of a kernel that sorts, searches or selects; None for any other."""
    found = kernel.body[0] if kernel.body else None
    return found if isinstance(found, Sort | Search | Select) else None


def is_sorting(kernel: Kernel) -> bool:
    """True for a kernel that sorts, searches or selects."""
    return sorting_of(kernel) is not None


def split_sort(kernel: Kernel) -> Split | None:
    """The launches that sort, search or select; None for a kernel that does something else."""
    whole = sorting_of(kernel)
    if whole is None:
        return None
    if not isinstance(whole, Sort):
        return _in_one_launch(kernel, whole)
    source, result = kernel.params
    *outer, row = source.shape
    rows = product(tuple(outer))
    form = key_form(source.dtype, whole.gives)
    long = minimum(1, row // LONG)
    if isinstance(row, int) and row <= FEW:
        stage = Stage(kernel, (0, 1), rows, rows * row * _NETWORK, _grain(row * _NETWORK))
        return Split((), (stage,))
    temporaries = _between(source, form, rows, long)
    every = replace(
        whole,
        keys=None if form.in_result else "keys",
        other="other",
        moved="moved" if form.carried else None,
    )
    params = (source, result, *temporaries)
    stages: list[Stage] = []
    if long != 1:
        per = _NETWORK if isinstance(row, int) and row <= SHORT else _ELEMENT["rows"]
        mine = tuple(p for p in params if p.name not in ("counts", "ends"))
        stages.append(Stage(
            _kernel(kernel.name, mine, every), _places(params, mine), (1 - long) * rows,
            (1 - long) * rows * row * per, _grain(row * per),
        ))  # fmt: skip
    if long != 0:
        cut = replace(every, counts="counts", ends="ends")
        for step, times in (("count", PIECES), ("spread", PIECES), ("buckets", BUCKETS),
                            ("mend", 1)):  # fmt: skip
            if step == "mend" and not (source.dtype.is_float and whole.gives == "elements"):
                continue
            work = long * rows * row * _ELEMENT.get(step, 100)
            made = _kernel(kernel.name, params, replace(cut, stage=step))
            stages.append(Stage(made, _places(params, params), long * rows * times, work))
    return Split(temporaries, tuple(stages))


def _in_one_launch(kernel: Kernel, whole: Search | Select) -> Split:
    """Searches are launched over elements, selections over rows."""
    shape = kernel.params[-1].shape
    per: Size = _LOOK_UP
    if isinstance(whole, Select):
        *outer, row = kernel.params[0].shape
        shape, per = tuple(outer), row * _PASSED
    count = product(shape)
    every = tuple(range(len(kernel.params)))
    return Split((), (Stage(kernel, every, count, count * per, _grain(per)),))


def _between(source: Parameter, form: KeyForm, rows: Size, long: Size) -> tuple[Parameter, ...]:
    """The buffers that keys and places are moved through."""
    made = [Parameter("other", form.dtype, source.shape, "inout")]
    if not form.in_result:
        made.append(Parameter("keys", form.dtype, source.shape, "inout"))
    if form.carried:
        made.append(Parameter("moved", I64, source.shape, "inout"))
    if long != 0:
        made.append(Parameter("counts", I64, (long * rows, PIECES, BUCKETS + 1), "inout"))
        made.append(Parameter("ends", I64, (long * rows, BUCKETS), "inout"))
    return tuple(made)


def _kernel(name: str, params: tuple[Parameter, ...], statement: Sort | Search | Select) -> Kernel:
    made = Kernel(name, params, (), (statement,))
    return replace(made, dims=kernel_dims(made))


def _places(params: tuple[Parameter, ...], used: tuple[Parameter, ...]) -> tuple[int, ...]:
    return tuple(at for at, p in enumerate(params) if p in used)


def _grain(per: Size) -> int:
    """Iterations that are worth a chunk, each of so many picoseconds."""
    return max(1, GRAIN_WORK // max(per, 1)) if isinstance(per, int) else 1


def row_length(kernel: Kernel, sort: Sort) -> Size:
    """Elements of a row."""
    return next(p.shape[-1] for p in kernel.params if p.name == sort.source)


def source_dtype(kernel: Kernel, sort: Sort) -> DType:
    """The dtype of the elements."""
    return next(p.dtype for p in kernel.params if p.name == sort.source)
