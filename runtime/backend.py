"""What the runtime asks of a back end: kernels in, addresses of code out.

Invariants: `compile_kernels` keeps order; an address is valid as long as its `keep` lives.
Equal kernels give the same address. A back end works from several threads at once.
Not here: any back end (backends/), plans and their tables (backends/llvm/native).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from ..compiler.records import dataclass

if TYPE_CHECKING:
    from ..compiler.kernel.kernel import Kernel


class CodeStore(Protocol):
    """Where compiled bytes are kept between processes: the disk cache, or a dict in tests."""

    def get(self, key: str) -> bytes | None:
        """The bytes put under `key`, or None."""

    def put(self, key: str, payload: bytes) -> None:
        """Keep bytes under `key`; may fail silently."""


class StoredCode(NamedTuple):
    """Where a kernel's code is kept: enough to load it again without the kernel.

    kernel: the kernel's key. key: the entry of the store. words: what fills the entry's slots.
    """

    kernel: str
    key: str
    words: bytes = b""


@dataclass(frozen=True, slots=True)
class LoadedKernels:
    """Entry addresses, one per kernel asked for, and what must stay alive while they are used.

    compiled: how many of them had to be compiled now. stored: where their code is kept, one per
    kernel; empty where the back end keeps none.
    """

    addresses: tuple[int, ...]
    keep: tuple[object, ...]
    compiled: int
    stored: tuple[StoredCode, ...] = ()


class Backend(Protocol):
    """A place where kernels run."""

    @property
    def name(self) -> str:
        """Its name in device names, such as ``cpu``."""

    @property
    def key(self) -> str:
        """What compiled bytes depend on: processor, features, versions."""

    def compile_kernels(
        self,
        kernels: Sequence[Kernel],
        store: CodeStore | None = None,
        times: Sequence[int | None] | None = None,
    ) -> LoadedKernels:
        """Make kernels callable with the kernel ABI, from `store` where it has them.

        times: nanoseconds that each takes in the call at hand, as estimated, where that is known.
        """

    def texts(self, kernels: Sequence[Kernel]) -> Mapping[str, str]:
        """For people: representation name (``llvm``, ``asm``) to text."""
