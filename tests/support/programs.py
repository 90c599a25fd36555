"""Programs that tests start: on the search path, or inside a package of this environment."""

from __future__ import annotations

import shutil
import sysconfig
from pathlib import Path


def find(name: str) -> str | None:
    """The path of a program, or None. NVIDIA's packages keep theirs beside their libraries."""
    found = shutil.which(name)
    if found is None:
        packages = Path(sysconfig.get_paths()["purelib"], "nvidia")
        suffix = ".exe" if sysconfig.get_platform().startswith("win") else ""
        found = next((str(p) for p in packages.glob(f"*/bin/{name}{suffix}")), None)
    return found
