"""Device names: values such as ``cpu:0``, never handles.

A name is ``kind:index``. Users may leave the index out where they constrain placement (``cpu``
means any CPU device); in a placed graph every name is full.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from .errors import error

_FORM = re.compile(r"([a-z][a-z0-9_]*)(?::(\d+|\*))?")


@dataclass(frozen=True, slots=True, order=True)
class DeviceName:
    """A device, or with `index` None any device of the kind."""

    kind: str
    index: int | None = None

    def __str__(self) -> str:
        return self.kind if self.index is None else f"{self.kind}:{self.index}"

    def matches(self, other: DeviceName) -> bool:
        """True when `other` is what this name asks for."""
        return self.kind == other.kind and self.index in (None, other.index)


def parse_device(text: str) -> DeviceName:
    """Read ``cpu:1``, ``cpu``, ``cpu:*`` or ``/device:cpu:1``. Raises ArgError."""
    found = _FORM.fullmatch(text.removeprefix("/").removeprefix("device:").lower())
    if found is None:
        raise error(
            "TM203", f"{text!r} is not a device name", hint="write a kind and an index: 'cpu:1'"
        )
    index = found.group(2)
    return DeviceName(found.group(1), None if index in (None, "*") else int(index))


def feasible(constraint: str | None, devices: Sequence[DeviceName]) -> tuple[DeviceName, ...]:
    """The devices a constraint admits, in order; all of them for no constraint."""
    if constraint is None:
        return tuple(devices)
    asked = parse_device(constraint)
    return tuple(device for device in devices if asked.matches(device))
