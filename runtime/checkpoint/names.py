"""Keys of tensors inside data files: any name as text that every tool can hold.

Invariants: plain names are their own keys; keys of different names differ; a key is never the
reserved ``__metadata__``, has no control characters and at most 400 characters.
Not here: paths. No name or key is ever part of one.
"""

from __future__ import annotations

import hashlib
from urllib.parse import quote

_LONGEST = 400


def key_of(name: str) -> str:
    """The key of the tensor called `name`."""
    key = quote(name, safe="/:.-_~ ", errors="surrogatepass")
    if key == "__metadata__" or not key:
        key = "%" + key
    if len(key) > _LONGEST:
        digest = hashlib.sha256(key.encode()).hexdigest()
        key = f"{key[:100]}%%{digest}"
    return key
