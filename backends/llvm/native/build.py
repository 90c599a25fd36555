"""The code of this package as one blob: compiled once, kept in the caller's cache.

Invariants: the key covers every source file of the native language and of its translator, so a
changed source is another key (name, size and time: reading them all takes longer than mapping the
code); a cached blob that cannot be read is made again and stored again.
Not here: where the cache keeps bytes, and when LLVM may be imported otherwise.
"""

from __future__ import annotations

import hashlib
import importlib
import os
import threading
from collections.abc import MutableMapping
from typing import Any

from ....compiler.uncollected import uncollected
from ....runtime.forks import held_across_forks
from .objects import CodeBlob, LinkError, link

_MAKING = held_across_forks()  # a fork waits for LLVM, whose lock a child could not open


def native_key() -> str:
    """The cache key of the blob."""
    folder = os.path.dirname(os.path.abspath(__file__))
    found: list[str] = []
    for place in (folder, os.path.join(folder, "language")):
        with os.scandir(place) as entries:
            for entry in entries:
                if entry.name.endswith(".py"):
                    state = entry.stat()
                    name = entry.path[len(folder) :]
                    found.append(f"{name} {state.st_size} {state.st_mtime_ns}")
    return "native-" + hashlib.sha256("\n".join(sorted(found)).encode()).hexdigest()


class NativeCode:
    """The native code: there already, or being made.

    What Python has to do for it is done at once; LLVM's part, the larger one, by a thread, so that
    whoever needs the code can load or compute something else before asking for it.
    """

    def __init__(self, cache: MutableMapping[str, bytes]) -> None:
        self._cache = cache
        self._key = native_key()
        self._blob = self._stored()
        self._text = ""
        self._thread: threading.Thread | None = None
        if self._blob is None:
            with uncollected():
                exports = importlib.import_module(".exports", __package__)
                self._text = str(_unit().translate(exports.EXPORTS))
            self._thread = threading.Thread(target=self._try, name="tracemill native code")
            self._thread.start()

    @property
    def is_being_made(self) -> bool:
        """Whether the thread is at work."""
        return self._thread is not None and self._thread.is_alive()

    def blob(self) -> CodeBlob:
        """The code; waits for it where it is being made, and puts it into the cache."""
        if self._thread is not None:
            self._thread.join()
            self._thread = None
            made = self._compiled()  # by the thread, if nothing came between
            self._cache[self._key] = made.to_bytes()
        return self._compiled()

    def _stored(self) -> CodeBlob | None:
        stored = self._cache.get(self._key)
        if stored is not None:
            try:
                return CodeBlob.from_bytes(stored)
            except LinkError:
                del self._cache[self._key]
        return None

    def _try(self) -> None:
        try:
            self._compiled()
        except Exception:  # noqa: BLE001  raised again where the code is asked for
            return

    def _compiled(self) -> CodeBlob:
        with _MAKING:
            if self._blob is None:
                self._blob = link(_unit().compile_text(self._text))
            return self._blob


def native_blob(cache: MutableMapping[str, bytes]) -> CodeBlob:
    """The native code, from the cache or compiled (about a quarter of a second) and put there."""
    return NativeCode(cache).blob()


def _unit() -> Any:
    return importlib.import_module(".language.unit", __package__)  # with LLVM, only when needed
