"""Weights as ONNX graphs, of operators that the runtimes in browsers have too. perceptrond.weights has the functions to call.

Scores are sums in float64, as the server's: in float32, rows near the boundary would get other labels.
"""

from typing import Any

import numpy
import scipy.sparse
from onnx import ModelProto, NodeProto, TensorProto, checker, helper, numpy_helper

from .weights import LinearClassifier

PRODUCER = "perceptrond"
# A model is one Protobuf message.
MOST_WEIGHTS = 1 << 28
# What skl2onnx puts around a LinearClassifier.
_AROUND = {"Cast", "Identity", "LinearClassifier", "Normalizer", "ZipMap"}
_ACCEPTED = "expected a graph that perceptrond exported, or one LinearClassifier, as skl2onnx makes it of a linear classifier"


def write(linear: LinearClassifier) -> ModelProto:
    constants: dict[str, Any] = {"bias": numpy.asarray(linear.bias, numpy.float64), "zero": numpy.zeros(1)}
    constants["labels"] = numpy.array(linear.labels, object if isinstance(linear.labels[0], str) else numpy.int64)
    scores = _dense_scores if linear.space == "dense" else _sparse_scores
    inputs, nodes = scores(linear, constants)
    nodes.append(helper.make_node("Add", ["products", "bias"], ["sums"]))
    nodes += _decision(linear, constants)
    kind = TensorProto.STRING if isinstance(linear.labels[0], str) else TensorProto.INT64
    of_scores: list[Any] = ["rows"] if linear.two_labels else ["rows", len(linear.labels)]
    outputs = [helper.make_tensor_value_info("label", kind, ["rows"]), helper.make_tensor_value_info("scores", TensorProto.FLOAT, of_scores)]
    used = {name for node in nodes for name in node.input}
    graph = helper.make_graph(nodes, "linear_classifier", inputs, outputs, [_tensor(name, value) for name, value in constants.items() if name in used])
    model = helper.make_model(graph, producer_name=PRODUCER, ir_version=7,
                              opset_imports=[helper.make_opsetid("", 13), helper.make_opsetid("ai.onnx.ml", 2)])
    helper.set_model_props(model, {"space": linear.space, "size": str(linear.coef.shape[1]), "learner": linear.learner})
    checker.check_model(model)
    return model


def _dense_scores(linear: LinearClassifier, constants: dict[str, Any]) -> tuple[list[Any], list[NodeProto]]:
    _check_size(linear.coef.shape)
    constants["weights"] = linear.coef.toarray().T.astype(numpy.float32)
    return ([helper.make_tensor_value_info("X", TensorProto.FLOAT, ["rows", linear.coef.shape[1]])],
            [_cast("X", "x", TensorProto.DOUBLE), _cast("weights", "w", TensorProto.DOUBLE), helper.make_node("MatMul", ["x", "w"], ["products"])])


def _sparse_scores(linear: LinearClassifier, constants: dict[str, Any]) -> tuple[list[Any], list[NodeProto]]:
    """A table has the weights of a feature in a row, and zeros in row 0, for features without a weight."""
    used = numpy.unique(linear.coef.indices)
    _check_size((linear.coef.shape[0], len(used)))
    constants["weights"] = numpy.vstack([numpy.zeros((1, linear.coef.shape[0])), linear.coef[:, used].toarray().T]).astype(numpy.float32)
    named = linear.space == "named"
    keys = ["", *(linear.names[column] for column in used)] if named else [-1, *used.tolist()]
    constants["axis"], constants["last"] = numpy.array([1]), numpy.array([2])
    encoder = helper.make_node("LabelEncoder", ["features"], ["rows_of_table"], domain="ai.onnx.ml", values_int64s=range(len(keys)), default_int64=0,
                               **{"keys_strings" if named else "keys_int64s": keys})
    inputs = [helper.make_tensor_value_info("features", TensorProto.STRING if named else TensorProto.INT64, ["rows", "most_features"]),
              helper.make_tensor_value_info("values", TensorProto.FLOAT, ["rows", "most_features"])]
    return inputs, [encoder, helper.make_node("Gather", ["weights", "rows_of_table"], ["gathered"], axis=0), _cast("gathered", "w", TensorProto.DOUBLE),
                    _cast("values", "v", TensorProto.DOUBLE), helper.make_node("Unsqueeze", ["v", "last"], ["x"]),
                    helper.make_node("Mul", ["w", "x"], ["terms"]), helper.make_node("ReduceSum", ["terms", "axis"], ["products"], keepdims=0)]


def _decision(linear: LinearClassifier, constants: dict[str, Any]) -> list[NodeProto]:
    if not linear.two_labels:
        return [helper.make_node("ArgMax", ["sums"], ["number"], axis=1, keepdims=0, select_last_index=0),
                helper.make_node("Gather", ["labels", "number"], ["label"]), _cast("sums", "scores", TensorProto.FLOAT)]
    constants["axis"] = numpy.array([1])
    return [helper.make_node("Squeeze", ["sums", "axis"], ["sum"]),
            helper.make_node("GreaterOrEqual" if linear.positive_ties else "Greater", ["sum", "zero"], ["is_second"]),
            _cast("is_second", "number", TensorProto.INT64), helper.make_node("Gather", ["labels", "number"], ["label"]),
            _cast("sum", "scores", TensorProto.FLOAT)]


def _cast(before: str, after: str, kind: int) -> NodeProto:
    return helper.make_node("Cast", [before], [after], to=kind)


def _tensor(name: str, value: Any) -> TensorProto:
    if value.dtype == object:
        return helper.make_tensor(name, TensorProto.STRING, value.shape, [text.encode() for text in value])
    return numpy_helper.from_array(value, name)


def _check_size(shape: tuple[int, ...]) -> None:
    if shape[0] * shape[1] > MOST_WEIGHTS:
        raise ValueError(f"{shape[0]} vectors of {shape[1]} weights are too many for an ONNX model, which is one message of at most 2 GB")


# ---- Reading ----


def read(model: ModelProto) -> LinearClassifier:
    if model.producer_name == PRODUCER:
        try:
            return _read_own(model)
        except (KeyError, IndexError):
            raise ValueError(f"the graph was changed after perceptrond exported it; {_ACCEPTED}") from None
    operators = [node.op_type for node in model.graph.node]
    if operators.count("LinearClassifier") != 1 or not _AROUND.issuperset(operators):
        raise ValueError(f"{_ACCEPTED}; this one has {', '.join(sorted(set(operators)))}")
    return _read_classifier(next(node for node in model.graph.node if node.op_type == "LinearClassifier"))


def _read_own(model: ModelProto) -> LinearClassifier:
    constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    properties = {entry.key: entry.value for entry in model.metadata_props}
    labels = [label.decode() if isinstance(label, bytes) else label for label in constants["labels"].tolist()]
    weights = constants["weights"].T.astype(numpy.float64)
    names: list[str] = []
    if properties["space"] == "dense":
        coef = scipy.sparse.csr_matrix(weights)
    else:
        encoder = next(node for node in model.graph.node if node.op_type == "LabelEncoder")
        attributes = {attribute.name: helper.get_attribute_value(attribute) for attribute in encoder.attribute}
        if properties["space"] == "named":
            names = [name.decode() for name in attributes["keys_strings"][1:]]
            coef = scipy.sparse.csr_matrix(weights[:, 1:])
        else:
            by_row = scipy.sparse.coo_matrix(weights[:, 1:])
            columns = numpy.array(attributes["keys_int64s"][1:], numpy.int64)[by_row.col]
            coef = scipy.sparse.csr_matrix((by_row.data, (by_row.row, columns)), shape=(weights.shape[0], int(properties["size"])))
    operators = {node.op_type for node in model.graph.node}
    return LinearClassifier(properties["space"], names, labels, coef, constants["bias"], "GreaterOrEqual" in operators, properties.get("learner", "perceptron"))


def _read_classifier(node: NodeProto) -> LinearClassifier:
    attributes = {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}
    labels = [label.decode() for label in attributes.get("classlabels_strings", ())] or list(attributes.get("classlabels_ints", ()))
    bias = numpy.array(attributes["intercepts"], numpy.float64)
    rows = len(bias)
    coef = numpy.array(attributes["coefficients"], numpy.float64).reshape(rows, -1)
    if len(labels) == 2 and rows == 2:
        # The larger of two scores is the sign of their difference. skl2onnx has a score and its negative.
        half = 0.5 if (coef[0] == -coef[1]).all() and bias[0] == -bias[1] else 1.0
        coef, bias = half * (coef[1:] - coef[:1]), half * (bias[1:] - bias[:1])
    if len(labels) < 2 or len(bias) != (1 if len(labels) == 2 else len(labels)):
        raise ValueError(f"the LinearClassifier has {len(labels)} labels and {rows} rows of weights")
    return LinearClassifier("dense", [], labels, scipy.sparse.csr_matrix(coef), bias)
