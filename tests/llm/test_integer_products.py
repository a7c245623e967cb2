"""A model that multiplies in integers says what the file it was made from says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
from numpy.typing import NDArray
from onnx import helper, numpy_helper

from flowrt.llm.integer_products import with_integer_products

WIDTH = 64
DRAW = np.random.default_rng(4)
STORED = DRAW.integers(-127, 128, (WIDTH, WIDTH), dtype=np.int8)
SCALE = DRAW.random((1, WIDTH), dtype=np.float32) / 100


def saved(path: Path) -> Path:
    """A model of one product, with weights as `float(stored) * scale`, and one that has none."""
    nodes = [
        helper.make_node("Cast", ["stored"], ["floats"], to=onnx.TensorProto.FLOAT),
        helper.make_node("Mul", ["floats", "scale"], ["weights"]),
        helper.make_node("MatMul", ["x", "weights"], ["y"]),
        helper.make_node("MatMul", ["y", "y"], ["squared"]),
    ]
    shape = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes,
        "product",
        [shape("x", onnx.TensorProto.FLOAT, [WIDTH, WIDTH])],
        [shape(name, onnx.TensorProto.FLOAT, [WIDTH, WIDTH]) for name in ("y", "squared")],
        [numpy_helper.from_array(STORED, "stored"), numpy_helper.from_array(SCALE, "scale")],
    )
    file = path / "model.onnx"
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)
    onnx.save(model, file)
    return file


def answers(model: str | bytes, given: NDArray[np.float32]) -> list[Any]:
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    answered: list[Any] = session.run(["y", "squared"], {"x": given})
    return answered


def test_products_with_stored_integers_are_made_of_integers_and_nearly_the_same(
    tmp_path: Path,
) -> None:
    file = saved(tmp_path)
    given = DRAW.standard_normal((WIDTH, WIDTH), dtype=np.float32)
    exact, near = answers(str(file), given)[0], answers(with_integer_products(file), given)[0]
    assert 0 < np.abs(exact - near).max() < 0.05 * np.abs(exact).max()
    kinds = [node.op_type for node in onnx.load_from_string(with_integer_products(file)).graph.node]
    assert ["DynamicQuantizeMatMul", "MatMul"] == [kind for kind in kinds if "MatMul" in kind]


def test_the_largest_integers_overflow_on_no_processor(tmp_path: Path) -> None:
    model = onnx.load_from_string(with_integer_products(saved(tmp_path)))
    stored = {known.name: numpy_helper.to_array(known) for known in model.graph.initializer}
    largest = int(np.abs(stored["weights_halved"].astype(np.int64)).max())
    # Processors without VNNI add two products of a byte and a weight in 16 bits.
    assert 2 * 255 * largest < 2**15
