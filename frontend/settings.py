"""The one place where environment variables are read; everything below is handed values.

| variable | meaning |
|---|---|
| `TRACEMILL_LOG` | topics for stderr, with commas: recompiles, graph, kernels, passes, cache, |
| | background |
| `TRACEMILL_CACHE` | `off`, or the folder of the compile cache |
| `TRACEMILL_THREADS` | number of threads kernels may use |
| `TRACEMILL_FEATURES` | `host` or a baseline such as `x86-64-v3`, `x86-64-v2` |

Invariants: read once, at first use; a bad value raises `SettingError` naming the variable and
what it may be.
Not here: acting on the settings.
"""

from __future__ import annotations

import functools
import os
import sys
from pathlib import Path

from .compiler.records import dataclass

LOG_TOPICS = ("recompiles", "graph", "kernels", "passes", "cache", "background")
FEATURE_SETS = ("host", "x86-64-v2", "x86-64-v3", "x86-64-v4")


class SettingError(ValueError):
    """An environment variable holds a value it may not have."""

    def __init__(self, variable: str, got: str, legal: str) -> None:
        super().__init__(f"{variable}={got!r} is not understood: use {legal}")


@dataclass(frozen=True, slots=True)
class Settings:
    """What the environment asks for. cache_dir is None when the cache is off."""

    log: frozenset[str]
    cache_dir: Path | None
    threads: int
    features: str


@functools.cache
def settings() -> Settings:
    """The settings of this process. Raises SettingError."""
    return Settings(_log(), _cache_dir(), _threads(), _features())


def logs(topic: str) -> bool:
    """Whether the topic is switched on."""
    return topic in settings().log


def log(topic: str, text: str) -> None:
    """Write `text` to stderr when the topic is switched on."""
    if logs(topic):
        gap = "" if text.startswith("\n") else " "
        sys.stderr.write(f"tracemill {topic}:{gap}{text}\n")


def _log() -> frozenset[str]:
    raw = os.environ.get("TRACEMILL_LOG", "")
    topics = frozenset(topic.strip() for topic in raw.split(",") if topic.strip())
    if not topics <= frozenset(LOG_TOPICS):
        legal = "a comma-separated list of " + ", ".join(LOG_TOPICS)
        raise SettingError("TRACEMILL_LOG", raw, legal)
    return topics


def _cache_dir() -> Path | None:
    raw = os.environ.get("TRACEMILL_CACHE", "")
    if raw == "off":
        return None
    if raw:
        return Path(raw)
    base = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA")
    try:
        return Path(base) / "tracemill" if base else Path.home() / ".cache" / "tracemill"
    except RuntimeError:  # no home folder: the documented answer is to work without a cache
        return None


def _threads() -> int:
    raw = os.environ.get("TRACEMILL_THREADS", "")
    if not raw:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else _cores()
    if not raw.isdigit() or not 1 <= int(raw) <= 1024:
        raise SettingError("TRACEMILL_THREADS", raw, "a whole number from 1 to 1024")
    return int(raw)


def _cores() -> int:
    return os.cpu_count() or 1


def _features() -> str:
    raw = os.environ.get("TRACEMILL_FEATURES", "host")
    if raw not in FEATURE_SETS:
        raise SettingError("TRACEMILL_FEATURES", raw, ", ".join(FEATURE_SETS))
    return raw
