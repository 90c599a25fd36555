"""Inference workloads as ONNX graphs, for ONNX Runtime.

A session is made at the first call, with all arguments but the first as constants of the model:
so weights are packed once, which is the runtime's best form.

Not here: what the workloads are (workloads/).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .workload import Factory, Function

OPSET = 20  # the first with Gelu
IR = 10


def onnx_form(nodes: Sequence[tuple[str, Sequence[str], str, dict[str, Any]]]) -> Factory:
    """A graph of (op, inputs, output, attributes); arguments are named x, c0, c1, ... and the
    last output is the result."""

    def factory() -> Function:
        import onnxruntime

        sessions: list[Any] = []

        def run(x: Any, *constants: Any) -> Any:
            if not sessions:
                sessions.append(onnxruntime.InferenceSession(_model(nodes, x, constants)))
            return sessions[0].run(None, {"x": x})[0]

        return run

    return factory


def _model(nodes: Sequence[tuple[Any, ...]], x: Any, constants: Sequence[Any]) -> bytes:
    from onnx import TensorProto, helper, numpy_helper

    made = [
        helper.make_node(op, list(inputs), [output], **attributes)
        for op, inputs, output, attributes in nodes
    ]
    held = [numpy_helper.from_array(c, f"c{at}") for at, c in enumerate(constants)]
    graph = helper.make_graph(
        made, "workload",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, list(x.shape))],
        [helper.make_tensor_value_info(nodes[-1][2], TensorProto.FLOAT, None)],
        held,
    )  # fmt: skip
    opset = helper.make_opsetid("", OPSET)
    model = helper.make_model(graph, opset_imports=[opset], ir_version=IR)
    text: bytes = model.SerializeToString()
    return text


def dense_nodes(layers: int) -> list[tuple[str, Sequence[str], str, dict[str, Any]]]:
    """Dense layers over weights and biases c0, c1, ...; a rectifier after all but the last."""
    nodes: list[tuple[str, Sequence[str], str, dict[str, Any]]] = []
    value = "x"
    for at in range(layers):
        nodes.append(("Gemm", (value, f"c{2 * at}", f"c{2 * at + 1}"), f"z{at}", {}))
        value = f"z{at}"
        if at < layers - 1:
            nodes.append(("Relu", (value,), f"h{at}", {}))
            value = f"h{at}"
    return nodes
