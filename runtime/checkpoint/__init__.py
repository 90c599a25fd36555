"""Checkpoints: a directory that holds one saved state, whole, or the one before it.

    manifest.json                        the commit record: what there is, where, with checksums
    data-<16 hex>-<number>.safetensors   the tensors, in files that other tools read too
    .lock                                held while somebody saves

A save writes new data files and a new manifest, syncs them, and gives the manifest its name with
one rename: before it the old state loads, after it the new one.

Invariants: what `save` returned from survives kill -9 and loss of power; every byte that `restore`
gives was checked; no code from a file runs, no name from a file becomes a path.
Not here: when to save and what to keep (the frontend), the variables (store.py).
"""

from .reader import Checkpoint, Report, compare, restore
from .writer import save

__all__ = ["Checkpoint", "Report", "compare", "restore", "save"]
