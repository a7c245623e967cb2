"""A model whose weights are stored in eight bits, made to multiply in eight bits too.

Such a file turns its weights into floats before it uses them: four times the memory to read, and
reading it is what a short text waits for. Here the products themselves are of integers.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto

_OPERATORS = "com.microsoft"
"""The domain of the runtime's own operators."""


def with_integer_products(path: Path) -> bytes:
    """The model of a file, each product with stored integers as one of integers."""
    import onnx

    model = onnx.load(path)
    made_by = {node.output[0]: node for node in model.graph.node}
    nodes = [_integer_product(model, made_by, node) or node for node in model.graph.node]
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    model.opset_import.append(onnx.helper.make_opsetid(_OPERATORS, 1))
    data: bytes = model.SerializeToString()
    return data


def _integer_product(
    model: ModelProto, made_by: dict[str, NodeProto], node: NodeProto
) -> NodeProto | None:
    """`x @ (float(integers) * scale)` as one node; None for any other node."""
    import numpy as np
    import onnx

    if node.op_type != "MatMul":
        return None
    scaled = made_by.get(node.input[1])
    floats = made_by.get(scaled.input[0]) if scaled is not None else None
    if scaled is None or floats is None or (scaled.op_type, floats.op_type) != ("Mul", "Cast"):
        return None
    stored = {known.name: known for known in model.graph.initializer}
    integers = onnx.numpy_helper.to_array(stored[floats.input[0]])
    scale = onnx.numpy_helper.to_array(stored[scaled.input[1]])
    # Seven bits: processors without VNNI add two products in 16 bits, which eight would overflow.
    # One replica's vectors are searched by another, so all of them round alike.
    halved = np.rint(integers.astype(np.float32) / 2).astype(np.int8)
    names = [f"{node.input[1]}_{part}" for part in ("halved", "doubled")]
    for name, values in zip(names, (halved, scale.reshape(-1) * 2), strict=True):
        model.graph.initializer.append(onnx.numpy_helper.from_array(values, name))
    return onnx.helper.make_node(
        "DynamicQuantizeMatMul", [node.input[0], *names], node.output, node.name, domain=_OPERATORS
    )
