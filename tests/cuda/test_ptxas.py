"""NVIDIA's assembler takes every kernel and keeps every value in registers."""

from __future__ import annotations

import re
import subprocess

import pytest

import programs
from digits_model import DigitsModel, batch
from grid_kernels import SUITE, plan_of
from tracemill.backends.cuda.ptx import compile_ptx

pytestmark = pytest.mark.tool("ptxas")

REGISTERS = 64  # of 65,536, so that four blocks of 256 threads fit on a multiprocessor


@pytest.mark.parametrize("architecture", ["sm_75", "sm_90", "sm_100"])
def test_every_kernel_is_assembled_without_spills(architecture, rng, seed, tmp_path):
    model = DigitsModel(seed)
    images, labels = batch(rng)
    kernels = [k for name in SUITE for k in plan_of(name).kernels]
    kernels += model.step.lower(images, labels).plan.data.kernels
    kernels += model.predict.lower(images).plan.data.kernels
    (tmp_path / "kernels.ptx").write_text(compile_ptx(kernels, architecture).text)
    ptxas = programs.find("ptxas")
    assert ptxas is not None
    done = subprocess.run(
        [ptxas, f"-arch={architecture}", "-v", "kernels.ptx", "-o", "kernels.cubin"],
        cwd=tmp_path, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    spills = re.findall(r"(\d+) bytes spill stores, (\d+) bytes spill loads", done.stderr)
    assert len(spills) >= len(kernels)
    assert set(spills) == {("0", "0")}, done.stderr
    used = [int(r) for r in re.findall(r"Used (\d+) registers", done.stderr)]
    assert len(used) == len(kernels)
    assert max(used) <= REGISTERS, done.stderr
