"""Results: fresh arrays before the rows, NumPy scalars and the returned structure after them.

Invariants: `objects` hold one reference to each output made so far and null elsewhere; whoever
made them drops them, also when a later one fails. All are ordinary arrays that own their data;
that of large ones comes from `output_memory`, through NumPy's interface for memory handlers.
Not here: copies of arguments returned (the plan has rows for those).
"""

from __future__ import annotations

from .cabi import (
    NPY_ALIGNED,
    NPY_C_CONTIGUOUS,
    NPY_OWNDATA,
    NPY_WRITEABLE,
    PyArrayObject,
    PyDescrObject,
    PyListObject,
    PyObject,
    PyTupleObject,
)
from .control import Process
from .counting import drop, take
from .language import (
    Ptr,
    Raw,
    address,
    at,
    cast,
    i32,
    i64,
    is_null,
    null,
    offset,
    pointer,
    ref,
    stack,
)
from .layout import Build, BuildRow, Output, OutputKind, Specialisation
from .output_memory import LARGE, allocate, release

_MAX_DIMS = 64
_POOLED_BITS = 31  # larger arrays, and those of longer axes, are NumPy's own affair
_NEVER = 1 << _POOLED_BITS
_NUMPY_DOMAIN = 389047  # of tracemalloc, as in numpy/core/include/numpy/ndarraytypes.h


def make_outputs(
    process: Process, spec: Specialisation, slots: Ptr[i64], inputs: Ptr[i64], outputs: Ptr[i64]
) -> bool:
    """Make the flat results; false with an exception set if NumPy refuses."""
    for number in range(spec.n_outputs):
        output = at(spec.outputs, number)
        if output.kind == OutputKind.ARRAY:
            array = _new_array(process, output, slots)
            if is_null(array):
                return False
            slots[output.data] = address(array.data)
            outputs[number] = address(array)
        elif output.kind == OutputKind.SCALAR:
            slots[output.data] = address(offset(slots, output.value * 8))
        else:
            outputs[number] = address(take(pointer(PyObject, inputs[output.input])))
    return True


def _new_array(process: Process, output: Output, slots: Ptr[i64]) -> PyArrayObject:
    dims = stack(i64, _MAX_DIMS)
    size = output.descr.elsize
    for axis in range(output.ndim):
        extent = slots[output.dims[axis]]
        dims[axis] = extent
        # past either bound NumPy takes over, so that the product cannot wrap
        size = size * extent if (size | extent) >> _POOLED_BITS == 0 else _NEVER
    if size >= LARGE and size >> _POOLED_BITS == 0 and not is_null(process.mem_handler):
        return _large_array(process, output, dims, size)
    return process.PyArray_NewFromDescr(
        process.ndarray_type,
        cast(PyDescrObject, take(output.descr)),
        i32(output.ndim),
        dims,
        null(Ptr[i64]),
        null(Raw),
        0,
        null(PyObject),
    )


def _large_array(process: Process, output: Output, dims: Ptr[i64], size: i64) -> PyArrayObject:
    """An array that owns memory of ours, as if NumPy had got it from our handler."""
    data = allocate(process.memory, size)
    if is_null(data):
        process.PyErr_NoMemory()
        return null(PyArrayObject)
    array = process.PyArray_NewFromDescr(
        process.ndarray_type,
        cast(PyDescrObject, take(output.descr)),
        i32(output.ndim),
        dims,
        null(Ptr[i64]),
        data,
        NPY_C_CONTIGUOUS | NPY_ALIGNED | NPY_WRITEABLE,
        null(PyObject),
    )
    if is_null(array):
        release(process.memory, data)
        return array
    array.mem_handler = take(process.mem_handler)
    array.flags = array.flags | NPY_OWNDATA
    process.PyTraceMalloc_Track(_NUMPY_DOMAIN, address(data), size)
    return array


def make_scalars(
    process: Process, spec: Specialisation, slots: Ptr[i64], outputs: Ptr[i64]
) -> bool:
    """After the rows: NumPy scalars from the values the kernels stored."""
    for number in range(spec.n_outputs):
        output = at(spec.outputs, number)
        if output.kind == OutputKind.SCALAR:
            place = pointer(Raw, slots[output.data])
            made = process.PyArray_Scalar(place, output.descr, null(PyObject))
            if is_null(made):
                return False
            outputs[number] = address(made)
    return True


def drop_outputs(process: Process, spec: Specialisation, outputs: Ptr[i64]) -> None:
    """Give up the references to the flat results."""
    for number in range(spec.n_outputs):
        drop(process, pointer(PyObject, outputs[number]))


def build_result(
    process: Process, spec: Specialisation, outputs: Ptr[i64], stack_words: Ptr[i64]
) -> PyObject:
    """The value returned, a new reference; null with an exception set if something fails."""
    items = cast(Ptr[PyObject], stack_words)
    top: i64 = 0
    for number in range(spec.n_build):
        row = at(spec.build, number)
        if row.op == Build.PUSH:
            items[top] = take(pointer(PyObject, outputs[row.count]))
            top += 1
            continue
        if row.op == Build.OBJECT:
            items[top] = take(row.operand)
            top += 1
            continue
        first = top - row.count
        made = _combine(process, row, items + first)
        for index in range(first, top):
            drop(process, items[index])
        if is_null(made):
            for index in range(first):
                drop(process, items[index])
            return made
        items[first] = made
        top = first + 1
    return items[0]


def _combine(process: Process, row: BuildRow, items: Ptr[PyObject]) -> PyObject:
    if row.op == Build.CALL:
        return process.PyObject_Vectorcall(row.operand, items, row.count, null(PyObject))
    if row.op == Build.DICT:
        return _dict_of(process, row, items)
    made = (
        process.PyTuple_New(row.count) if row.op == Build.TUPLE else process.PyList_New(row.count)
    )
    if is_null(made):
        return made
    places = ref(cast(PyTupleObject, made).first_item)
    if row.op == Build.LIST:
        places = cast(PyListObject, made).items
    for index in range(row.count):
        places[index] = take(items[index])
    return made


def _dict_of(process: Process, row: BuildRow, items: Ptr[PyObject]) -> PyObject:
    made = process.PyDict_New()
    if is_null(made):
        return made
    keys = ref(cast(PyTupleObject, row.operand).first_item)
    for index in range(row.count):
        if process.PyDict_SetItem(made, keys[index], items[index]) != 0:
            drop(process, made)
            return null(PyObject)
    return made
