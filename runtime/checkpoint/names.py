"""Keys of tensors inside data files: any name as text that every tool can hold.

Invariants: plain names are their own keys; keys of different names differ; a key is never the
reserved ``__metadata__``, has no control characters and at most 400 characters.
Not here: paths. No name or key is ever part of one.
"""

from __future__ import annotations

import hashlib
import string

_LONGEST = 400
_PLAIN = frozenset(string.ascii_letters + string.digits + "/:.-_~ ")


def key_of(name: str) -> str:
    """The key of the tensor called `name`: other characters as ``%`` and two digits a byte."""
    key = "".join(c if c in _PLAIN else _escaped(c) for c in name)
    if key == "__metadata__" or not key:
        key = "%" + key
    if len(key) > _LONGEST:
        digest = hashlib.sha256(key.encode()).hexdigest()
        key = f"{key[:100]}%%{digest}"
    return key


def _escaped(character: str) -> str:
    return "".join(f"%{byte:02X}" for byte in character.encode("utf-8", "surrogatepass"))
