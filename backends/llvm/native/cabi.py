"""The C structures of CPython and NumPy that native code reads, as language structs.

Invariants: 64-bit CPython 3.11 with the GIL and NumPy 2; `numpy_layout` compares the array fields
with the running NumPy before anything trusts them.
Not here: functions of CPython and NumPy (`control.Process`).
"""

from __future__ import annotations

from .language import Ptr, Raw, Struct, f64, i32, i64


class PyObject(Struct):
    """Head of every Python object."""

    ob_refcnt: i64
    ob_type: PyObject


class PyVarObject(PyObject):
    """Head of objects with a length."""

    ob_size: i64


class PyFloatObject(PyObject):
    """A Python float."""

    ob_fval: f64


class PyComplexObject(PyObject):
    """A Python complex."""

    real: f64
    imag: f64


class PyTupleObject(PyVarObject):
    """A tuple; the items follow the head."""

    first_item: PyObject


class PyListObject(PyVarObject):
    """A list; the items lie elsewhere."""

    items: Ptr[PyObject]


class PyDictObject(PyObject):
    """The part of a dict that tells its size."""

    ma_used: i64


class PyCellObject(PyObject):
    """A closure cell."""

    contents: PyObject


class PyArrayObject(PyObject):
    """`PyArrayObject_fields` of NumPy."""

    data: Raw
    nd: i32
    dimensions: Ptr[i64]
    strides: Ptr[i64]
    base: PyObject
    descr: PyDescrObject
    flags: i32
    weakreflist: PyObject
    _buffer_info: Raw
    mem_handler: PyObject  # whoever frees the data of an array with OWNDATA


class PyDescrObject(PyObject):
    """`PyArray_Descr` of NumPy 2, as far as the item size."""

    typeobj: PyObject
    kind_and_order: i32
    type_num: i32
    flags: i64
    elsize: i64
    alignment: i64


NPY_C_CONTIGUOUS = 0x0001
NPY_OWNDATA = 0x0004
NPY_ALIGNED = 0x0100
NPY_WRITEABLE = 0x0400
