"""One contender's process: reads requests from stdin, answers on stdout, one JSON a line.

Requests: ``prepare`` (build the function, first call, accuracy), ``block`` (timed calls for a
given span), ``version``. The harness decides who runs when.

Invariants: nothing else is written to the answer stream (what libraries print goes to stderr);
an exception of the contender is an answer, never the end of the process.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from .workload import Function, Workload
from .workloads import ALL

MIN_SAMPLE_SECONDS = 2e-5


def tracemill_form(workload: Workload) -> Function:
    """The NumPy form under one decorator, unchanged."""
    import tracemill

    return tracemill.jit(workload.numpy)


def numpy_form(workload: Workload) -> Function:
    """The NumPy form as it is."""
    return workload.numpy


OWN_FORMS: Mapping[str, Callable[[Workload], Function]] = {
    "tracemill": tracemill_form,
    "numpy": numpy_form,
}
PACKAGES = {
    "tracemill": "tracemill", "numpy": "numpy", "jax": "jax", "torch": "torch",
    "torch.compile": "torch", "numba": "numba", "numexpr": "numexpr",
    "torch.autotuned": "torch", "tensorflow": "tensorflow-cpu", "onnxruntime": "onnxruntime",
    "numba fastmath": "numba",
}  # fmt: skip


class Session:
    """The function and inputs under measurement."""

    def __init__(self, contender: str) -> None:
        self.contender = contender
        self.call: Callable[[], Any] | None = None
        self.repeats = 1

    def version(self, _: Mapping[str, Any]) -> Mapping[str, Any]:
        """The package's version."""
        return {"version": importlib.metadata.version(PACKAGES[self.contender])}

    def prepare(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        """Build the function on fresh inputs; time the first call; compare with NumPy."""
        workload = ALL[request["workload"]]
        rng = np.random.default_rng(request["seed"])
        inputs = workload.inputs(rng, request["sizes"])
        form = OWN_FORMS.get(self.contender)
        forms = {**workload.peers, **workload.unequal}
        function = form(workload) if form else forms[self.contender]()
        arguments = own_arrays(self.contender, inputs)
        began = time.perf_counter()
        result = finished(function(*arguments))
        first_call = time.perf_counter() - began
        error = relative_error(result, workload.numpy(*widened(inputs)))
        for _ in range(3):
            finished(function(*arguments))
        self.call = lambda: finished(function(*arguments))
        self.repeats = max(1, int(MIN_SAMPLE_SECONDS / max(self._one(), 1e-9)))
        return {"first_call": first_call, "error": error, "accurate": error <= workload.tolerance}

    def block(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        """Samples (seconds per call) for about `seconds`, at least three."""
        samples: list[float] = []
        end = time.perf_counter() + request["seconds"]
        while len(samples) < 3 or (time.perf_counter() < end and len(samples) < 1000):
            samples.append(self._one())
        return {"samples": samples}

    def _one(self) -> float:
        call = self.call
        if call is None:
            raise RuntimeError("block before prepare")
        repeats = self.repeats
        began = time.perf_counter()
        for _ in range(repeats):
            call()
        return (time.perf_counter() - began) / repeats


def own_arrays(contender: str, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """Inputs as the contender's own arrays, so that no conversion is timed."""
    if contender == "jax":
        import jax

        return tuple(jax.numpy.asarray(x) if isinstance(x, np.ndarray) else x for x in inputs)
    if contender.startswith("torch"):
        import torch

        return tuple(torch.from_numpy(x) if isinstance(x, np.ndarray) else x for x in inputs)
    if contender == "tensorflow":
        import tensorflow

        return tuple(tensorflow.constant(x) if isinstance(x, np.ndarray) else x for x in inputs)
    return inputs


def finished(result: Any) -> Any:
    """Wait for asynchronous results."""
    block = getattr(result, "block_until_ready", None)
    if block is not None:
        return block()
    if isinstance(result, tuple | list):
        for part in result:
            finished(part)
    return result


def leaves(result: Any) -> Iterator[np.ndarray[Any, Any]]:
    """All arrays of a result, in order."""
    if isinstance(result, tuple | list):
        for part in result:
            yield from leaves(part)
    else:
        yield np.asarray(result)


def widened(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """Inputs in double precision, for the reference; integers and bools as they are."""
    wide = {np.dtype(np.float32): np.float64}
    return tuple(
        x.astype(wide[x.dtype]) if isinstance(x, np.ndarray) and x.dtype in wide else x
        for x in inputs
    )


def relative_error(result: Any, reference: Any) -> float:
    """Largest error over all results, relative to the largest magnitude of each."""
    worst = 0.0
    for got, want in zip(leaves(result), leaves(reference), strict=True):
        if got.shape != want.shape:
            raise ValueError(f"shape {got.shape} instead of {want.shape}")
        scale = float(np.max(np.abs(want), initial=0.0)) or 1.0
        difference = np.abs(got.astype(np.float64) - want.astype(np.float64))
        worst = max(worst, float(np.max(difference, initial=0.0)) / scale)
    return worst


def main() -> None:
    """Serve requests until stdin closes."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print to stdout must not mix with the answers
    session = Session(sys.argv[1])
    actions = {"prepare": session.prepare, "block": session.block, "version": session.version}
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = dict(actions[request["action"]](request))
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            answer = {"failed": f"{type(error).__name__}: {error}"[:500]}
            traceback.print_exc(file=sys.stderr)
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
