"""Filling in `Process`: where the C library, CPython and NumPy keep what native code needs.

Invariants: names are those of the functions themselves; NumPy's come from its published table by
number (numpy/__multiarray_api.h), which NumPy never renumbers. `unsupported_reason` has looked at
the running interpreter before an address is trusted.
Not here: the pool's threads (`pool`), the type of compiled functions (`python_type`).
"""

from __future__ import annotations

import ctypes
import platform
import sys

import numpy as np

from .cabi import PyArrayObject, PyFloatObject, PyListObject, PyTupleObject
from .control import Process
from .language import Struct, layout_of
from .memory import Record, address_of_function

_NUMPY_TABLE = {"PyArray_Scalar": 60, "PyArray_NewFromDescr": 94, "PyArray_EquivTypes": 182}
_C_LIBRARY = (
    "malloc",
    "free",
    "aligned_alloc",
    "syscall",
    "pthread_create",
    "pthread_detach",
    "clock_gettime",
    "mmap",
    "munmap",
    "madvise",
)
_OBJECTS: dict[str, object] = {
    "ndarray_type": np.ndarray,
    "float_type": float,
    "int_type": int,
    "bool_type": bool,
    "complex_type": complex,
    "tuple_type": tuple,
    "list_type": list,
    "dict_type": dict,
    "true": True,
    "none": None,
}


class LayoutUnsupported(RuntimeError):
    """This interpreter or this NumPy keeps objects in a layout native code was not written for."""


def layout_supported() -> bool:
    """Whether native code may read the objects of this process."""
    return unsupported_reason() is None


def unsupported_reason() -> str | None:
    """Why native code must not read the objects of this process; None if it may."""
    if sys.implementation.name != "cpython" or sys.maxsize != 2**63 - 1:
        return "expected 64-bit CPython"
    if sys.platform != "linux" or platform.machine() != "x86_64":
        return f"expected Linux on x86-64, got {sys.platform} on {platform.machine()}"
    if "t" in sys.abiflags:
        return "the free-threaded interpreter has another object layout"
    if int(np.__version__.partition(".")[0]) < 2:
        return f"expected NumPy 2, got {np.__version__}"
    return _probe_objects() or _probe_array()


def _field(thing: object, kind: type[Struct], name: str) -> int:
    place = id(thing) + layout_of(kind).fields[name].offset
    return ctypes.c_int64.from_address(place).value


def _probe_objects() -> str | None:
    number, pair, items = 1.5, (number_object := object(), None), [None, object()]
    if (
        ctypes.c_double.from_address(
            id(number) + layout_of(PyFloatObject).fields["ob_fval"].offset
        ).value
        != 1.5
    ):
        return "float keeps its value elsewhere"
    if _field(pair, PyTupleObject, "first_item") != id(number_object):
        return "tuple keeps its items elsewhere"
    place = _field(items, PyListObject, "items")
    if ctypes.c_int64.from_address(place + 8).value != id(items[1]):
        return "list keeps its items elsewhere"
    scalar = np.int64(0x123456789ABC)
    if ctypes.c_int64.from_address(id(scalar) + 16).value != 0x123456789ABC:
        return "NumPy scalars keep their value elsewhere"
    return None


def _probe_array() -> str | None:
    array = np.zeros((3, 5), np.int16)[:, ::2]
    array.flags.writeable = False
    fields = layout_of(PyArrayObject).fields
    expected = {
        "data": array.ctypes.data,
        "descr": id(array.dtype),
        "base": id(array.base),
    }
    for name, value in expected.items():
        if _field(array, PyArrayObject, name) != value:
            return f"ndarray keeps `{name}` elsewhere"
    words = ctypes.c_int32.from_address(id(array) + fields["nd"].offset).value
    flags = ctypes.c_int32.from_address(id(array) + fields["flags"].offset).value
    if words != array.ndim or flags != array.flags.num:
        return "ndarray keeps its rank or flags elsewhere"
    for name, row in (("dimensions", array.shape), ("strides", array.strides)):
        place = _field(array, PyArrayObject, name)
        if tuple((ctypes.c_int64 * 2).from_address(place)) != row:
            return f"ndarray keeps `{name}` elsewhere"
    return None


def fill_process(pool: int, memory: int) -> Record:
    """A `Process` for this process, with the pool and the memory at these addresses."""
    reason = unsupported_reason()
    if reason is not None:
        raise LayoutUnsupported(f"the native entry cannot be used here: {reason}")
    record = Record(Process)
    record["pool"] = pool
    record["memory"] = memory
    library = ctypes.CDLL(None)
    table = numpy_table()
    for name in layout_of(Process).fields:
        if name in _OBJECTS:
            record[name] = id(_OBJECTS[name])
        elif name in _C_LIBRARY:
            record[name] = address_of_function(getattr(library, name))
        elif name in _NUMPY_TABLE:
            record[name] = ctypes.c_int64.from_address(table + 8 * _NUMPY_TABLE[name]).value
        elif name.lstrip("_").startswith("Py"):
            record[name] = address_of_function(getattr(ctypes.pythonapi, name))
    return record


def numpy_table() -> int:
    """The address of NumPy's published table of functions."""
    capsule = np._core.multiarray._ARRAY_API  # type: ignore[attr-defined]
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    address: int = get(capsule, None)
    return address
