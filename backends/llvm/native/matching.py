"""Does a specialisation accept these objects? Its table of inputs, tested in machine code.

Invariants: nothing is changed but slots of the frame and the list of objects; a test that raises
(a comparison of static values) counts as a miss and leaves no exception. A dtype that is not the
very object is compared by NumPy's equivalence, so byte order counts and aliases do not.
Not here: tests between sizes (`sizes`).
"""

from __future__ import annotations

from .cabi import (
    PyArrayObject,
    PyCellObject,
    PyComplexObject,
    PyDescrObject,
    PyDictObject,
    PyFloatObject,
    PyListObject,
    PyObject,
    PyTupleObject,
    PyVarObject,
)
from .control import Process
from .counting import drop, take
from .language import (
    Ptr,
    address,
    at,
    bits_of,
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
from .layout import Input, Kind, Source, Specialisation

_EQUAL = 2  # Py_EQ
_SCALAR_PAYLOAD = 16
_TUPLE_ITEMS = 24


def match_inputs(
    process: Process, spec: Specialisation, slots: Ptr[i64], objects: Ptr[i64], args: Ptr[PyObject]
) -> bool:
    """Find every input's object, test it and fill its slots."""
    for number in range(spec.n_inputs):
        entry = at(spec.inputs, number)
        if entry.source == Source.ARGUMENT:
            thing = args[entry.origin]
        elif entry.source == Source.ARGUMENTS:
            thing = _all_of(process, args, entry.index)
        else:
            thing = _find(process, entry, objects)
        if is_null(thing):
            return False
        objects[number] = address(thing)
        if entry.kind == Kind.ARRAY:
            if not _match_array(process, entry, slots, thing):
                return False
        elif not _match_other(process, entry, slots, thing):
            return False
    return True


def _find(process: Process, entry: Input, objects: Ptr[i64]) -> PyObject:
    """The object of an input that is not an argument, null if there is none.

    All but the plan's own objects are new references: another thread may replace an item or a
    global while the call runs.
    """
    if entry.source == Source.OBJECT:
        return entry.key
    if entry.source == Source.CELL:
        return _reference(cast(PyCellObject, entry.key).contents)
    parent = pointer(PyObject, objects[entry.origin])
    if entry.source == Source.ATTRIBUTE:
        found = process.PyObject_GetAttr(parent, entry.key)
        if is_null(found):
            process.PyErr_Clear()
        return found
    if entry.source == Source.DICT_ITEM:
        item = process.PyDict_GetItemWithError(parent, entry.key)
        if is_null(item):
            process.PyErr_Clear()
        return _reference(item)
    if parent.ob_type is process.tuple_type:
        return take(ref(cast(PyTupleObject, parent).first_item)[entry.index])
    return take(cast(PyListObject, parent).items[entry.index])


def _reference(thing: PyObject) -> PyObject:
    return thing if is_null(thing) else take(thing)


def _all_of(process: Process, args: Ptr[PyObject], count: i64) -> PyObject:
    """A new tuple of the bound arguments, for tests only Python can make."""
    made = process.PyTuple_New(count)
    if is_null(made):
        process.PyErr_Clear()
        return made
    items = ref(cast(PyTupleObject, made).first_item)
    for index in range(count):
        items[index] = take(args[index])
    return made


def _match_array(process: Process, entry: Input, slots: Ptr[i64], thing: PyObject) -> bool:
    if thing.ob_type is not process.ndarray_type:
        return False
    array = cast(PyArrayObject, thing)
    if array.nd != i32(entry.ndim) or (i64(array.flags) & entry.flags) != entry.flags:
        return False
    if array.descr is not cast(PyDescrObject, entry.type):
        if process.PyArray_EquivTypes(array.descr, cast(PyDescrObject, entry.type)) == 0:
            return False
    slots[entry.data] = address(array.data)
    for axis in range(entry.ndim):
        slots[entry.dims + axis] = array.dimensions[axis]
    if entry.strides >= 0:
        for axis in range(entry.ndim):
            slots[entry.strides + axis] = array.strides[axis]
    return True


def _match_other(process: Process, entry: Input, slots: Ptr[i64], thing: PyObject) -> bool:
    kind = entry.kind
    if kind == Kind.FLOAT:
        if thing.ob_type is not process.float_type:
            return False
        slots[entry.value] = bits_of(cast(PyFloatObject, thing).ob_fval)
        return True
    if kind == Kind.INT:
        return thing.ob_type is process.int_type and _read_int(process, entry, slots, thing)
    if kind == Kind.BOOL:
        slots[entry.value] = i64(thing is process.true)
        return thing.ob_type is process.bool_type
    if kind == Kind.COMPLEX:
        if thing.ob_type is not process.complex_type:
            return False
        slots[entry.value] = bits_of(cast(PyComplexObject, thing).real)
        slots[entry.value + 1] = bits_of(cast(PyComplexObject, thing).imag)
        return True
    if kind == Kind.SCALAR:
        slots[entry.data] = address(offset(thing, _SCALAR_PAYLOAD))
        return thing.ob_type is entry.type
    if kind == Kind.SAME:
        return _same(process, thing, entry.type)
    if kind == Kind.IDENTICAL:
        return thing is entry.type
    if kind == Kind.CHECK:
        return _checked(process, thing, entry.type)
    return _match_container(process, entry, thing)


def _match_container(process: Process, entry: Input, thing: PyObject) -> bool:
    if entry.kind == Kind.ANY:
        return True
    if entry.kind == Kind.DICT:
        return (
            thing.ob_type is process.dict_type and cast(PyDictObject, thing).ma_used == entry.ndim
        )
    wanted = process.tuple_type if entry.kind == Kind.TUPLE else process.list_type
    return thing.ob_type is wanted and cast(PyVarObject, thing).ob_size == entry.ndim


def _read_int(process: Process, entry: Input, slots: Ptr[i64], thing: PyObject) -> bool:
    overflow = stack(i32, 1)
    slots[entry.value] = process.PyLong_AsLongLongAndOverflow(thing, overflow)
    return overflow[0] == 0


def _same(process: Process, thing: PyObject, wanted: PyObject) -> bool:
    if thing is wanted:
        return True
    if thing.ob_type is not wanted.ob_type:
        return False
    answer = process.PyObject_RichCompareBool(thing, wanted, _EQUAL)
    if answer < 0:
        process.PyErr_Clear()
    return answer == 1


def _checked(process: Process, thing: PyObject, check: PyObject) -> bool:
    """Ask Python; an exception counts as no."""
    args = stack(PyObject, 1)
    args[0] = thing
    answer = process.PyObject_Vectorcall(check, args, 1, null(PyObject))
    if is_null(answer):
        process.PyErr_Clear()
        return False
    held = answer is process.true
    drop(process, answer)
    return held


def match_overlaps(spec: Specialisation, objects: Ptr[i64]) -> bool:
    """Whether no two arrays that must be apart touch the same range of addresses."""
    left = stack(i64, 2)
    right = stack(i64, 2)
    for number in range(spec.n_overlaps):
        pair = at(spec.overlaps, number)
        _bounds(pointer(PyArrayObject, objects[pair.left]), left)
        _bounds(pointer(PyArrayObject, objects[pair.right]), right)
        if left[0] < right[1] and right[0] < left[1]:
            return False
    return True


def _bounds(array: PyArrayObject, bounds: Ptr[i64]) -> None:
    """First address of an array's elements and the one after the last; (0, 0) if it is empty."""
    low = address(array.data)
    high = low + array.descr.elsize
    for axis in range(i64(array.nd)):
        count = array.dimensions[axis]
        if count == 0:
            bounds[0] = 0
            bounds[1] = 0
            return
        reach = (count - 1) * array.strides[axis]
        if reach > 0:
            high += reach
        else:
            low += reach
    bounds[0] = low
    bounds[1] = high
