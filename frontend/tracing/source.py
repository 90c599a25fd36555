"""Where in the user's program we are: the nearest frame that is neither ours nor NumPy's.

Rewritten functions are compiled under the user's file name and lines, so their frames count as
the user's.

Not here: printing of errors.
"""

from __future__ import annotations

import contextlib
import functools
import linecache
import os
import site
import sys
from bisect import bisect_right
from collections.abc import Mapping
from types import CodeType, FrameType, FunctionType

import numpy as np

from tracemill.compiler.ir.graph import Location

_HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# The layers below are inside the package, or beside this one in a checkout.
_LAYERS = [
    os.path.join(os.path.dirname(_HERE), name) for name in ("compiler", "runtime", "backends")
]
OWN_FOLDERS = (
    os.path.join(_HERE, ""),
    *[os.path.join(folder, "") for folder in _LAYERS],
    os.path.join(os.path.dirname(np.__file__), ""),
)
# What `sysconfig` would say after reading the whole configuration of the interpreter's build.
_LIBRARY_FOLDERS = tuple(
    os.path.join(os.path.realpath(path), "")
    for path in (os.path.dirname(os.__file__), *site.getsitepackages())
)
_COMPILED_PACKAGES: set[str] = set()
_CALLING_BACK = frozenset((
    contextlib.__file__, functools.__file__, Mapping.get.__code__.co_filename,
))  # fmt: skip
_OF_NUMPY = os.path.dirname(np.__file__)
_WRITTEN_IN_NUMPY = (
    os.path.join(_OF_NUMPY, "polynomial", ""),
    os.path.join(_OF_NUMPY, "lib", "_polynomial_impl.py"),
    os.path.join(_OF_NUMPY, "lib", "_index_tricks_impl.py"),  # np.r_, np.c_
)
# Code objects of different files may be equal, so they are told apart by identity and kept alive.
_PLACES: dict[tuple[int, int], Location] = {}
_OURS: dict[int, tuple[bool, CodeType]] = {}
_LINES: dict[int, tuple[list[int], list[int | None], CodeType]] = {}
_LONG = 4096  # bytes of code


def user_frame(depth: int = 1) -> FrameType | None:
    """The nearest user frame, searched from `depth` callers up."""
    frame: FrameType | None = sys._getframe(depth)
    while frame is not None:
        code = frame.f_code
        known = _OURS.get(id(code))
        if known is None:
            name = code.co_filename
            ours = name.startswith((*OWN_FOLDERS, "<frozen")) or is_seen_through(name)
            known = _OURS[id(code)] = ours, code
        if not known[0]:
            return frame
        frame = frame.f_back
    return None


def user_location() -> Location | None:
    """The place of the nearest user frame."""
    frame = user_frame(2)
    if frame is None:
        return None
    key = (id(frame.f_code), frame.f_lasti)
    place = _PLACES.get(key)
    if place is None:
        if len(_PLACES) > 100_000:
            _PLACES.clear()
            _OURS.clear()
            _LINES.clear()
        code = frame.f_code
        _OURS.setdefault(id(code), (False, code))
        place = _PLACES[key] = Location(code.co_filename, _line(frame), code.co_name)
    return place


def _line(frame: FrameType) -> int:
    """The line a frame is at. Python looks it up from the beginning of the code, so the lines of
    a long function are kept in a table."""
    code = frame.f_code
    if len(code.co_code) < _LONG:
        return frame.f_lineno
    known = _LINES.get(id(code))
    if known is None:
        stretches = list(code.co_lines())
        known = [begin for begin, _, _ in stretches], [line for _, _, line in stretches], code
        _LINES[id(code)] = known
    begins, lines, _ = known
    return lines[bisect_right(begins, frame.f_lasti) - 1] or code.co_firstlineno


def source_line(location: Location | None) -> str:
    """The text of that line, stripped; empty where it cannot be read."""
    return "" if location is None else linecache.getline(location.file, location.line).strip()


@functools.lru_cache(maxsize=4096)
def is_library_file(filename: str) -> bool:
    """True for the standard library, tracemill itself, and installed packages but those that
    have functions to compile."""
    if filename.startswith(OWN_FOLDERS) or filename.startswith("<frozen"):
        return True
    place = os.path.realpath(filename)
    return place.startswith(_LIBRARY_FOLDERS) and not place.startswith(tuple(_COMPILED_PACKAGES))


def runs_intercepted(code: CodeType) -> bool:
    """Whether a function of Python is called as one of the user's: theirs, and those of the
    standard library that call the user's methods in their place (mixins of collections.abc,
    context managers made of generators, orders made of one comparison), and NumPy's polynomials,
    which are written in NumPy."""
    return is_seen_through(code.co_filename) or not is_library_file(code.co_filename)


def is_seen_through(filename: str) -> bool:
    """Whether functions of a file of a library run as if they were the user's."""
    return filename in _CALLING_BACK or filename.startswith(_WRITTEN_IN_NUMPY)


def take_for_user_code(function: object) -> None:
    """A function that is to be compiled, and the package it is in, are the user's wherever they
    are installed."""
    for name in ("func", "__func__", "__wrapped__"):
        inner = getattr(function, name, None)
        if inner is not None:
            take_for_user_code(inner)
    found = function if isinstance(function, FunctionType) else type(function).__call__
    if not isinstance(found, FunctionType):
        return
    filename = found.__code__.co_filename
    if filename.startswith((*OWN_FOLDERS, "<")) or not is_library_file(filename):
        return
    place = os.path.realpath(filename)
    folder = max((f for f in _LIBRARY_FOLDERS if place.startswith(f)), key=len)
    package = os.path.join(folder, place[len(folder) :].split(os.sep)[0])
    _COMPILED_PACKAGES.add(package if package == place else os.path.join(package, ""))
    is_library_file.cache_clear()
