"""Machine code in this process: mapped from the store's bytes, found by the kernel's key.

What was compiled before is mapped without its kernel: a plan that is kept keeps, for each kernel,
where its code is stored (`runtime.backend.StoredCode`), so nothing that knows kernels is loaded.

Code that was made quickly is replaced when better code comes: whoever has the address of the
quick one in a word of memory has that word followed, and it is rewritten in one store.

Invariants: one address per distinct kernel and table, but for quick code, which stays mapped when
better code has come, as calls may be in it; safe from several threads; bytes that cannot be mapped
are a miss.
Not here: the key of a kernel and its compilation (`backend`), the words of a template
(`templates`).
"""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from ...runtime.backend import CodeStore, LoadedKernels, StoredCode
from ...runtime.forks import held_across_forks
from ..llvm.native.loader import Loaded, load
from ..llvm.native.objects import CodeBlob, LinkError
from ..llvm.slot import TABLE

_MAPPING = held_across_forks()


class Code(NamedTuple):
    """A kernel's code: its address, what keeps it mapped, where its bytes are stored.

    quick: better code may come.
    """

    address: int
    loaded: Loaded
    stored: StoredCode
    quick: bool = False


class _Quick:
    """Quick code: whose it is, and the words that hold its address, each with its owner."""

    def __init__(self, code: Code) -> None:
        self.code = code
        self.words: list[tuple[weakref.ref[Any], int]] = []


class MappedCode:
    """The table of one process."""

    def __init__(self) -> None:
        self._codes: dict[str, Code] = {}
        self._quick: dict[int, _Quick] = {}  # by address

    def __contains__(self, kernel: str) -> bool:
        return kernel in self._codes

    def map(self, stored: StoredCode, code: bytes) -> None:
        """Map what the store has for a kernel. Raises LinkError for bytes that are no code."""
        blob = filled(code, stored.words)
        with _MAPPING:
            if stored.kernel not in self._codes:
                loaded = load(blob)
                self._codes[stored.kernel] = Code(loaded.address_of("k0"), loaded, stored)

    def map_quick(self, stored: StoredCode, code: bytes) -> None:
        """The same for quick code. `stored` says where better code will be."""
        blob = filled(code, stored.words)
        with _MAPPING:
            if stored.kernel not in self._codes:
                loaded = load(blob)
                made = Code(loaded.address_of("k0"), loaded, stored, quick=True)
                self._codes[stored.kernel] = made
                self._quick[made.address] = _Quick(made)

    def improve(self, stored: StoredCode, code: bytes) -> int:
        """Put better code in the place of a kernel's quick code: how many words were rewritten.

        Raises LinkError for bytes that are no code.
        """
        with _MAPPING:
            before = self._codes.get(stored.kernel)
        if before is None or not before.quick:
            return 0
        loaded = load(filled(code, stored.words))
        with _MAPPING:
            better = Code(loaded.address_of("k0"), loaded, stored)
            self._codes[stored.kernel] = better
            words, self._quick[before.address].words = self._quick[before.address].words, []
            return sum(_rewrite(owner, word, better.address) for owner, word in words)

    def follow(self, owner: object, words: Iterable[int]) -> None:
        """Keep these words, each of which holds the address of a kernel, at its best code.

        words: addresses, multiples of 8, that are valid as long as `owner` lives.
        """
        if not self._quick:
            return
        reference = weakref.ref(owner)
        with _MAPPING:
            for word in words:
                quick = self._quick.get(ctypes.c_int64.from_address(word).value)
                if quick is not None:
                    now = self._codes[quick.code.stored.kernel]
                    if now.quick:
                        quick.words.append((reference, word))
                    else:
                        _rewrite(reference, word, now.address)

    def best(self, addresses: Sequence[int]) -> tuple[int, ...]:
        """For each of these addresses of kernels that of the best code there is now."""
        found = [self._quick.get(address) for address in addresses]
        return tuple(
            address if quick is None else self._codes[quick.code.stored.kernel].address
            for address, quick in zip(addresses, found, strict=True)
        )

    def restore(self, stored: Sequence[StoredCode], store: CodeStore) -> bool:
        """Map all of these that are not mapped yet; False as soon as the store lacks one."""
        for wanted in stored:
            if wanted.kernel not in self._codes:
                code = store.get(wanted.key)
                if code is None:
                    return False
                try:
                    self.map(wanted, code)
                except LinkError:
                    return False
        return True

    def loaded(self, kernels: Sequence[str], compiled: int) -> LoadedKernels:
        """Addresses of these kernels, in order, and what keeps them."""
        codes = [self._codes[key] for key in kernels]
        return LoadedKernels(
            tuple([code.address for code in codes]),
            (*(code.loaded for code in codes), self),
            compiled,
            tuple([code.stored for code in codes]),
        )


def _rewrite(owner: weakref.ref[Any], word: int, address: int) -> bool:
    """One aligned store, which calls under way see before or after."""
    alive = owner()
    if alive is None:
        return False
    ctypes.c_int64.from_address(word).value = address
    return True


def filled(code: bytes, words: bytes) -> CodeBlob:
    """Stored code with these words in its slots, if it has any."""
    blob = CodeBlob.from_bytes(code)
    if not words:
        return blob
    start = blob.symbols.get(TABLE)
    if start is None or start + len(words) > len(blob.code):
        raise LinkError("the code of a template has no table of constants")
    image = blob.code[:start] + words + blob.code[start + len(words) :]
    return CodeBlob(image, blob.symbols, blob.alignment)
