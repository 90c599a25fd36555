"""Train the digits model, export its prediction as a C library, and ask it from a C program.

Writes ``libdigits.so``, ``digits.h`` and the program ``digits`` to the folder given (default
``out``), runs the program on a held-out digit and compares what it says with Python. Needs a C
compiler.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
from digits import predict, train
from digits_data import load


def main() -> int:
    """Train, export, compile, run, compare."""
    out = Path(sys.argv[1] if len(sys.argv) > 1 else "out")
    out.mkdir(parents=True, exist_ok=True)
    data = load()
    train(data)
    made = predict.export(out / "libdigits.so", data.test_x, features="host")
    source = Path(__file__).with_name("export_digits.c")
    command = ["cc", "-std=c11", "-Wall", "-Wextra", "-Werror", f"-I{out}", "-o", out / "digits"]
    subprocess.run([*command, source, made.library, "-Wl,-rpath,$ORIGIN"], check=True)
    image = data.test_x[:1]
    pixels = " ".join(str(value) for value in image[0] * 16)
    told = subprocess.run(
        [(out / "digits").resolve()], input=pixels, capture_output=True, text=True, check=True
    ).stdout
    print(told, end="")
    print(f"{made.library}: {made.library.stat().st_size} bytes")
    lines = [line.split(": ") for line in told.splitlines() if line[:1].isdigit()]
    found = np.array([value for _, value in lines], np.float32)
    if not np.array_equal(found, predict(image)[0]):
        sys.exit("the C program and Python disagree")
    print("Python says the same, bit for bit")
    return 0


if __name__ == "__main__":
    sys.exit(main())
