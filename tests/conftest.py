"""What every test may rely on: tiers by need, one seed per run, fixtures to reach the checkout.

Invariants: a marker says what a test needs, and the decision to skip is taken here alone;
randomness comes from `--seed`, printed at the top of every run; with `--installed` a run against
anything but the installed package stops at once.

Not here: the judgement of what did not run (tests/support/accounting.py).
"""

from __future__ import annotations

import ctypes
import os
import random
import signal
import subprocess
import sys
import zlib
from collections.abc import Callable
from functools import cache
from pathlib import Path

import hypothesis
import numpy as np
import pytest

import accounting
import programs

CHECKOUT = Path(__file__).resolve().parent.parent


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("tracemill")
    group.addoption("--tier", choices=accounting.TIERS, default="test", help="how much to run")
    group.addoption("--seed", type=int, help="repeat the random choices of an earlier run")
    group.addoption("--bless", action="store_true", help="rewrite golden text with today's output")
    group.addoption(
        "--installed", action="store_true", help="stop unless tracemill is an installed package"
    )


def pytest_configure(config: pytest.Config) -> None:
    option = config.option
    # A shell's background job ignores Ctrl-C, and so would every process that tests send it to.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if option.seed is None:
        option.seed = random.SystemRandom().randrange(2**32)  # xdist hands it to the workers
    if option.installed:
        require_installed()
    config.pluginmanager.register(
        accounting.Accounting(CHECKOUT / "tests" / "not_run.txt", option.tier), "accounting"
    )
    hypothesis.settings.register_profile("test", deadline=None, print_blob=True)
    hypothesis.settings.register_profile("test-all", parent=hypothesis.settings.get_profile("test"))
    hypothesis.settings.register_profile(
        "nightly", parent=hypothesis.settings.get_profile("test"), max_examples=2000
    )
    hypothesis.settings.load_profile(option.tier)


def require_installed() -> None:
    """Stop the run if `import tracemill` would find the checkout."""
    import tracemill

    places = [Path(place).resolve() for place in tracemill.__path__]
    if any(place == CHECKOUT / "frontend" for place in places):
        raise pytest.UsageError(f"tracemill is imported from the checkout: {places[0]}")


def pytest_report_header(config: pytest.Config) -> str:
    return f"tracemill: tier {config.option.tier}, seed {config.option.seed} (repeat with --seed)"


@cache
def gpu_present() -> bool:
    """Whether the NVIDIA driver finds a device."""
    count = ctypes.c_int()
    try:
        driver = ctypes.CDLL("nvcuda.dll" if os.name == "nt" else "libcuda.so.1")
        return (
            driver.cuInit(0) == 0
            and driver.cuDeviceGetCount(ctypes.byref(count)) == 0
            and count.value > 0
        )
    except OSError:
        return False


def missing_need(item: pytest.Item, tier: str) -> str | None:
    """Why this test cannot run here, or None."""
    if item.get_closest_marker("slow") and tier != "nightly":
        return "slow: runs in `make nightly`"
    if item.get_closest_marker("gpu") and not gpu_present():
        return "needs an NVIDIA GPU"
    for marker in item.iter_markers("tool"):
        if programs.find(marker.args[0]) is None:
            return f"needs the program {marker.args[0]}"
    return None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        reason = missing_need(item, config.option.tier)
        if reason is not None:
            item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(scope="session")
def checkout() -> Path:
    """The repository's root folder."""
    return CHECKOUT


@pytest.fixture(scope="session")
def bless(pytestconfig: pytest.Config) -> bool:
    """Whether golden text is to be rewritten (`--bless`)."""
    return bool(pytestconfig.option.bless)


@pytest.fixture
def seed(pytestconfig: pytest.Config, request: pytest.FixtureRequest) -> int:
    """A number that differs by run and by test, and is the same again with `--seed`."""
    return zlib.crc32(f"{pytestconfig.option.seed} {request.node.nodeid}".encode())


@pytest.fixture
def rng(seed: int) -> np.random.Generator:
    """A random generator seeded by `seed`."""
    return np.random.default_rng(seed)


@pytest.fixture
def run_python(tmp_path: Path) -> Callable[..., str]:
    """Run a piece of code in a fresh process, away from the checkout; give what it printed."""

    def run(code: str, **environment: str) -> str:
        done = subprocess.run(
            [sys.executable, "-P", "-c", code],
            cwd=tmp_path,
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    return run
