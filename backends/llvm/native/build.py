"""The code of this package as one blob: compiled once, kept in the caller's cache.

Invariants: the key covers every source file of the native language and of its translator, so a
changed source is another key; a cached blob that cannot be read is made again and stored again.
Not here: where the cache keeps bytes, and when LLVM may be imported otherwise.
"""

from __future__ import annotations

import hashlib
import importlib
from collections.abc import MutableMapping
from pathlib import Path

from .objects import CodeBlob, LinkError, link


def native_key() -> str:
    """The cache key of the blob."""
    digest = hashlib.sha256()
    folder = Path(__file__).parent
    for path in sorted(folder.rglob("*.py")):
        digest.update(path.read_bytes())
    return "native-" + digest.hexdigest()


def native_blob(cache: MutableMapping[str, bytes]) -> CodeBlob:
    """The native code, from the cache or compiled (about a quarter of a second) and put there."""
    key = native_key()
    stored = cache.get(key)
    if stored is not None:
        try:
            return CodeBlob.from_bytes(stored)
        except LinkError:
            del cache[key]
    exports = importlib.import_module(".exports", __package__)  # with LLVM, only when needed
    unit = importlib.import_module(".language.unit", __package__)
    blob = link(unit.compile_unit(exports.EXPORTS))
    cache[key] = blob.to_bytes()
    return blob
