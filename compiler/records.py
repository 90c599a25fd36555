"""`dataclass` for the many records of this package, at a tenth of the making.

A first call makes some hundred of these classes before it runs. For each, the standard library
compiles six functions and looks at every field; here `__init__` is compiled, the rest is shared,
and the fields are looked at when somebody asks for them.

Invariants: to `fields`, `replace`, `is_dataclass`, `copy`, pickle and match statements the classes
are the standard library's `dataclass(frozen=True, slots=True)`, or `dataclass(slots=True)`;
equality, hash and repr are, too. What this does not know (inheritance, `__post_init__`, options
of fields, other options) the standard library makes.
Not here: any record.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import MISSING, Field, FrozenInstanceError
from inspect import get_annotations
from operator import attrgetter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
    from dataclasses import replace as replace
else:

    def dataclass(cls: type | None = None, /, **options: bool) -> Any:
        """`dataclasses.dataclass`."""
        if {name: value for name, value in options.items() if name != "eq"} not in _KNOWN:
            return dataclasses.dataclass(cls, **options)
        return lambda made: _record(made, options)

    def replace(record: Any, /, **changes: Any) -> Any:
        """`dataclasses.replace`."""
        given = {name: getattr(record, name) for name in record.__match_args__}
        return type(record)(**(given | changes))


_KNOWN = ({"frozen": True, "slots": True}, {"slots": True})


def _record(cls: type, options: dict[str, bool]) -> type:
    """The class with slots, `__init__` and the shared methods."""
    names = tuple(get_annotations(cls))
    if not _is_simple(cls, names):
        return _standard(cls, options)
    defaults = {name: cls.__dict__[name] for name in names if name in cls.__dict__}
    frozen = "frozen" in options
    body: dict[str, Any] = {"__repr__": _repr, **(_FROZEN if frozen else {})}
    if options.get("eq", True):
        body |= _comparison(names, frozen)
    aside = {*defaults, "__dict__", "__weakref__"}
    if frozen and cls.__dict__.get("__hash__", 0) is None:
        aside.add("__hash__")  # Python's, because the class has an `__eq__`
    body |= {name: value for name, value in cls.__dict__.items() if name not in aside}
    body |= {"__slots__": names, "__match_args__": names}
    twin = {"__annotations__": cls.__annotations__, **defaults}
    for name in ("__dataclass_fields__", "__dataclass_params__"):
        body[name] = _Twin(name, twin, options)
    made = type(cls)(cls.__name__, cls.__bases__, body)
    made.__qualname__ = cls.__qualname__
    made.__init__ = _init(made, names, defaults)  # type: ignore[misc]
    return made


_OWN = ("__init__", "__post_init__", "__slots__", "__getstate__", "__setstate__", "__setattr__")
_PLAIN = (True, True, True, None, MISSING)


def _is_simple(cls: type, names: tuple[str, ...]) -> bool:
    """Whether all that was asked for is what `_record` does."""
    if cls.__bases__ != (object,) or any(name in cls.__dict__ for name in _OWN):
        return False
    for name in names:
        kind, value = cls.__annotations__[name], cls.__dict__.get(name)
        if not isinstance(kind, str) or "ClassVar" in kind or "InitVar" in kind:
            return False
        if isinstance(value, Field):
            asked = (value.init, value.repr, value.compare, value.hash, value.kw_only)
            if asked != _PLAIN:
                return False
        elif type(value).__hash__ is None:  # a mutable default, which it has words for
            return False
    return True


def _standard(cls: type, options: dict[str, bool]) -> type:
    """What the standard library makes of it."""
    decorate: Callable[[type], type] = dataclasses.dataclass(**options)
    return decorate(cls)


def _init(cls: type, names: tuple[str, ...], defaults: dict[str, Any]) -> Callable[..., None]:
    space: dict[str, Any] = {"_missing": MISSING}
    head, lines = ["self"], []
    for name in names:
        space[f"_set_{name}"] = cls.__dict__[name].__set__
        given, value = defaults.get(name, MISSING), name
        if isinstance(given, Field) and given.default_factory is not MISSING:
            space[f"_make_{name}"] = given.default_factory
            head.append(f"{name}=_missing")
            value = f"_make_{name}() if {name} is _missing else {name}"
        else:
            default = given.default if isinstance(given, Field) else given
            space[f"_default_{name}"] = default
            head.append(name if default is MISSING else f"{name}=_default_{name}")
        lines.append(f"    _set_{name}(self, {value})")
    exec(f"def __init__({', '.join(head)}):\n" + ("\n".join(lines) or "    pass"), space)
    made: Callable[..., None] = space["__init__"]
    made.__qualname__ = f"{cls.__qualname__}.__init__"
    made.__annotations__ = {**cls.__annotations__, "return": None}
    return made


def _comparison(names: tuple[str, ...], frozen: bool) -> dict[str, Any]:
    """`__eq__` over the tuple of all fields, and `__hash__` where they do not change."""
    if len(names) > 1:
        key: Callable[[Any], Any] = attrgetter(*names)
    else:
        key = lambda self: tuple([getattr(self, name) for name in names])

    def __eq__(self: Any, other: object) -> Any:
        return key(self) == key(other) if other.__class__ is self.__class__ else NotImplemented

    def __hash__(self: Any) -> int:
        return hash(key(self))

    return {"__eq__": __eq__, "__hash__": __hash__ if frozen else None}


def _repr(self: Any) -> str:
    shown = [f"{name}={getattr(self, name)!r}" for name in self.__match_args__]
    return f"{self.__class__.__qualname__}({', '.join(shown)})"


def _setattr(self: Any, name: str, value: object) -> None:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _delattr(self: Any, name: str) -> None:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _getstate(self: Any) -> list[Any]:
    return [getattr(self, name) for name in self.__match_args__]


def _setstate(self: Any, state: list[Any]) -> None:
    for name, value in zip(self.__match_args__, state, strict=True):
        object.__setattr__(self, name, value)


_FROZEN = {
    "__setattr__": _setattr,
    "__delattr__": _delattr,
    "__getstate__": _getstate,
    "__setstate__": _setstate,
}


class _Twin:
    """An attribute that the standard library gives its classes, until somebody asks for it: then
    one is made of the same annotations, and what it has takes this place."""

    def __init__(self, name: str, body: dict[str, Any], options: dict[str, bool]) -> None:
        self._name = name
        self._body = body
        self._options = options

    def __get__(self, instance: object, owner: type) -> Any:
        plain = type(owner.__name__, (), {"__doc__": owner.__doc__, **self._body})
        found = getattr(_standard(plain, self._options), self._name)
        setattr(owner, self._name, found)
        return found
