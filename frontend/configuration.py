"""What a bug report needs to know about this process, as text."""

from __future__ import annotations

import importlib.metadata
import platform
import sys

from .settings import settings

_PACKAGES = ("tracemill", "numpy", "llvmlite", "numba", "optree", "safetensors", "ml_dtypes")


def describe() -> str:
    """Versions, platform and settings, one a line."""
    chosen = settings()
    rows = [(name, _version(name)) for name in _PACKAGES]
    rows += [
        ("python", sys.version.split()[0]),
        ("platform", platform.platform()),
        ("processor", platform.processor() or platform.machine()),
        ("threads", str(chosen.threads)),
        ("features", chosen.features),
        ("cache", str(chosen.cache_dir) if chosen.cache_dir else "off"),
        ("log", ", ".join(sorted(chosen.log)) or "nothing"),
    ]
    return "\n".join(f"{name:12s} {value}" for name, value in rows)


def show_config() -> None:
    """Print what a bug report needs: versions, platform, settings."""
    print(describe())


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


__version__ = _version("tracemill")
