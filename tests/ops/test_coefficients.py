"""The committed coefficients are what the derivation gives."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

from tracemill.compiler.ops.math import coefficients


def test_the_coefficients_are_the_derived_ones():
    path = Path(__file__).with_name("derive_coefficients.py")
    spec = importlib.util.spec_from_file_location("derive_coefficients", path)
    derive = importlib.util.module_from_spec(spec)
    sys.modules["derive_coefficients"] = derive
    spec.loader.exec_module(derive)
    made: dict[str, object] = {"__package__": coefficients.__package__}
    exec(derive.module_text(), made)
    for fit in derive.FITS:
        assert made[fit.name] == getattr(coefficients, fit.name), fit.name
