"""The command line: `tracemill info` and `tracemill cache stats|verify|clear`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence

from . import configuration
from .engine import compile_cache


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the exit status is 0 when it succeeded."""
    parser = argparse.ArgumentParser(prog="tracemill", description="NumPy code, compiled.")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("info", help="versions, processor, settings: what a bug report needs")
    cache = commands.add_parser("cache", help="the compile cache on disk")
    cache.add_argument("action", choices=tuple(_CACHE_ACTIONS))
    options = parser.parse_args(arguments)
    if options.command == "info":
        print(configuration.describe())
        return 0
    return _CACHE_ACTIONS[options.action]()


# What is counted in a process (hits, misses) says nothing in one that has just begun.
_ON_DISK = ("directory", "usable", "entries", "bytes", "limit")


def _stats() -> int:
    store = compile_cache()
    if store is None:
        print("the compile cache is off (TRACEMILL_CACHE=off)")
        return 0
    stats = store.stats()
    for name in _ON_DISK:
        print(f"{name:10s} {getattr(stats, name)}")
    return 0


def _verify() -> int:
    store = compile_cache()
    bad = store.verify() if store is not None else []
    print(f"{len(bad)} damaged entries removed" if bad else "all entries are whole")
    return 1 if bad else 0


def _clear() -> int:
    store = compile_cache()
    print(f"{store.clear() if store is not None else 0} files removed")
    return 0


_CACHE_ACTIONS: Mapping[str, Callable[[], int]] = {
    "stats": _stats,
    "verify": _verify,
    "clear": _clear,
}

if __name__ == "__main__":
    sys.exit(main())
