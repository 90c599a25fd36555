"""Making the Python type of compiled functions from its native slots.

Invariants: the type is mutable, so Python adds methods and properties with setattr; it cannot be
subclassed or instantiated from Python. It has METHOD_DESCRIPTOR, so `instance.method(...)` makes
no bound method.
Not here: the slots' code (`function_type`, `entry`).
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping

from .language import layout_of
from .layout import Function
from .memory import address_of_function

# Include/typeslots.h, Include/object.h and Include/structmember.h of CPython.
_TP_CALL, _TP_CLEAR, _TP_DEALLOC, _TP_DESCR_GET = 50, 51, 52, 54
_TP_TRAVERSE, _TP_MEMBERS, _TP_GETSET = 71, 72, 73
_DISALLOW_INSTANTIATION, _HAVE_VECTORCALL = 1 << 7, 1 << 11
_HAVE_GC, _METHOD_DESCRIPTOR, _DEFAULT = 1 << 14, 1 << 17, 1 << 18
_PY_SSIZE_T, _READ_ONLY = 19, 1


class _Member(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("type", ctypes.c_int),
        ("offset", ctypes.c_ssize_t),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    ]


class _GetSet(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("get", ctypes.c_void_p),
        ("set", ctypes.c_void_p),
        ("doc", ctypes.c_char_p),
        ("closure", ctypes.c_void_p),
    ]


class _Slot(ctypes.Structure):
    _fields_ = [("slot", ctypes.c_int), ("function", ctypes.c_void_p)]


class _Spec(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("basicsize", ctypes.c_int),
        ("itemsize", ctypes.c_int),
        ("flags", ctypes.c_uint),
        ("slots", ctypes.POINTER(_Slot)),
    ]


_KEPT: list[object] = []  # CPython keeps pointing into the spec's names, members and getters


def make_type(name: str, slots: Mapping[str, int]) -> type:
    """The type named `name`, from addresses: `traverse`, `clear`, `dealloc`, `descr_get`."""
    fields = layout_of(Function).fields
    api = ctypes.pythonapi
    members = (_Member * 4)(
        _Member(b"__vectorcalloffset__", _PY_SSIZE_T, fields["vectorcall"].offset, _READ_ONLY),
        _Member(b"__dictoffset__", _PY_SSIZE_T, fields["attributes"].offset, _READ_ONLY),
        _Member(b"__weaklistoffset__", _PY_SSIZE_T, fields["weak_references"].offset, _READ_ONLY),
        _Member(),
    )
    getters = (_GetSet * 2)(
        _GetSet(
            b"__dict__",
            address_of_function(api.PyObject_GenericGetDict),
            address_of_function(api.PyObject_GenericSetDict),
        ),
        _GetSet(),
    )
    table = (_Slot * 8)(
        _Slot(_TP_CALL, address_of_function(api.PyVectorcall_Call)),
        _Slot(_TP_TRAVERSE, slots["traverse"]),
        _Slot(_TP_CLEAR, slots["clear"]),
        _Slot(_TP_DEALLOC, slots["dealloc"]),
        _Slot(_TP_DESCR_GET, slots["descr_get"]),
        _Slot(_TP_MEMBERS, ctypes.addressof(members)),
        _Slot(_TP_GETSET, ctypes.addressof(getters)),
        _Slot(),
    )
    flags = _DEFAULT | _HAVE_GC | _HAVE_VECTORCALL | _METHOD_DESCRIPTOR | _DISALLOW_INSTANTIATION
    spec = _Spec(name.encode(), layout_of(Function).size, 0, flags, table)
    _KEPT.append((spec, members, getters, table))
    from_spec = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.POINTER(_Spec))(("PyType_FromSpec", api))
    made: type = from_spec(ctypes.byref(spec))
    return made
