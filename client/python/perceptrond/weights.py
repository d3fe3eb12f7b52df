"""The weights of a model for other programs, and theirs for a model: ONNX, scikit-learn, and Vowpal Wabbit's readable form.

    python3 -m perceptrond.weights export --format onnx spam spam.onnx
    python3 -m perceptrond.weights import --format sklearn spam-2 classifier.pickle

    from perceptrond import Client, weights

    with Client() as client:
        classifier = weights.to_sklearn(weights.get(client, "spam"))
        weights.create(client, "spam-2", weights.from_sklearn(classifier))

A file has what predicts: one vector, or one for each class. What a rule remembers besides (variances of AROW and SCW-I,
averages) and the counters stay with the model: `perceptronctl export` has them all. Models that predict by votes or a
kernel have no such weights (NOT_LINEAR). Those of texts, feature maps and compositions have weights of features that only
the server makes.

Needs NumPy and scipy; for ONNX the package onnx, for scikit-learn itself.
"""

import argparse
import pathlib
import sys
from typing import Any, Mapping, NamedTuple, Optional, Sequence

import numpy
import scipy.sparse

from .channels import content_of
from .client import Client
from .errors import PerceptrondError
from .linear import LinearModel
from .rows import Label, Row
from .v1 import learner_pb2, model_pb2

FORMATS = ("onnx", "sklearn", "vw")
# Of a file, but for pickles: as many as the largest message has.
MOST_BYTES = 1 << 30


class LinearClassifier(NamedTuple):
    """What predicts: s = coef x + bias for each row of coef. Of two labels the sign of s, of several the largest, of equal
    ones the first."""

    # "dense", "hashed" or "named".
    space: str
    # One a feature; its number is its column. Of a named space only.
    names: list[str]
    # Two labels: that of -1 first, and coef has one row. Several classes: one for each row of coef.
    labels: list[Label]
    # scipy.sparse, CSR. Of a hashed space it has a column for each slot.
    coef: Any
    bias: Any
    # Of two labels: a score of 0 is the second.
    positive_ties: bool = False
    # Learner.rule: "perceptron", ...
    learner: str = "perceptron"

    @property
    def two_labels(self) -> bool:
        return len(self.labels) == 2 and self.coef.shape[0] == 1


def get(client: Client, model: str) -> LinearClassifier:
    """Returns the weights that predict. Raises ValueError for a model whose features only the server makes, PerceptrondError
    (NOT_LINEAR) for votes and kernels; ABORTED (REVISION_MISMATCH) if the model learns meanwhile."""
    found = client.get(model)
    _check_space(found)
    # Of one model, though an alias is moved meanwhile.
    model = found.name
    exported = client.weights(model)
    # After the weights: it has the names of all their classes.
    found = client.get(model)
    space = str(found.feature_space.WhichOneof("space"))
    size = {"dense": found.feature_space.dense.dimension, "hashed": 1 << found.feature_space.hashed.bits, "named": 0}[space]
    linear = LinearModel(exported, size)
    coef, bias, labels = linear.coef, linear.bias, _labels(found, len(exported.vectors))
    if found.learner.HasField("classes"):
        exist = _existing(client, model, found, len(labels))
        coef, bias, labels = coef[exist], bias[exist], [labels[row] for row in exist]
    if len(labels) < 2:
        raise ValueError(f"{model} has fewer than two classes yet: let it learn first")
    return LinearClassifier(space, list(linear.names), labels, coef, bias,
                            positive_ties=found.learner.tie_rule == learner_pb2.TIE_RULE_POSITIVE,
                            learner=found.learner.WhichOneof("rule") or "perceptron")


def create(client: Client, model: str, linear: LinearClassifier, **settings: Any) -> model_pb2.Model:
    """Creates a model that starts from these weights, rounded to float32, and returns it. settings: as model_settings() has
    them, such as learner. ALREADY_EXISTS (MODEL_EXISTS)."""
    coef = scipy.sparse.csr_matrix(linear.coef)
    with numpy.errstate(over="ignore"):
        coef.data = coef.data.astype(numpy.float32).astype(numpy.float64)
    if linear.space != "named":
        coef.sort_indices()
    start = learner_pb2.Weights()
    for row, bias in enumerate(numpy.asarray(linear.bias, numpy.float64).tolist()):
        of_row = slice(coef.indptr[row], coef.indptr[row + 1])
        columns = coef.indices[of_row].tolist()
        positions = {"names": [linear.names[column] for column in columns]} if linear.space == "named" else {"indices": columns}
        start.vectors.add(values=coef.data[of_row].tolist(), bias=bias, **positions)
    features: Any = coef.shape[1] if linear.space == "dense" else linear.space
    options = {"bits": max(coef.shape[1] - 1, 1).bit_length()} if linear.space == "hashed" else None
    numbers = [-1, 1] if linear.two_labels else list(range(len(linear.labels)))
    ties: dict[str, Any] = {"tie_rule": learner_pb2.TIE_RULE_POSITIVE} if linear.positive_ties else {}
    return client.create(model, features=features, feature_options=options, starting_weights=start,
                         labels=[] if linear.labels == numbers else [str(label) for label in linear.labels],
                         classes=0 if linear.two_labels else len(linear.labels), **{**ties, **settings})


# ---- Formats ----


def to_onnx(linear: LinearClassifier) -> Any:
    """Returns an onnx.ModelProto that predicts the same labels, computed in float64. Outputs: `label`, and `scores` in float32.
    Its weights are float32. Where the server's are not (averages), or sums are not exact (such as AROW's), labels may differ
    within rounding of a tie: where |s|, or the two largest scores' difference, is at most 2^-23 sum |w_i x_i|, bias included,
    of the scores compared.

    Dense: input `X`, float [rows, features]. Named and hashed: `features`, names (string) or slots (int64), and `values`
    (float), both [rows, most features of a row], filled up with "" or -1, and 0. Features without a weight add nothing."""
    from . import onnx_weights
    return onnx_weights.write(linear)


def from_onnx(model: Any) -> LinearClassifier:
    """Reads what to_onnx() makes, and graphs of one LinearClassifier, as skl2onnx makes them. ValueError for others."""
    from . import onnx_weights
    return onnx_weights.read(model)


def to_sklearn(linear: LinearClassifier) -> Any:
    """Returns a fitted LogisticRegression if the model's rule is that, else a Perceptron. Named spaces: a Pipeline with a
    DictVectorizer before it. Hashed: X has a column for each slot. A score of 0 is the first label there; a model that
    predicts +1 (TIE_RULE_POSITIVE) raises ValueError."""
    from . import sklearn_weights
    return sklearn_weights.write(linear)


def from_sklearn(estimator: Any) -> LinearClassifier:
    """Reads any fitted linear classifier of scikit-learn, alone or after a DictVectorizer. ValueError for others."""
    from . import sklearn_weights
    return sklearn_weights.read(estimator)


def to_vw(linear: LinearClassifier) -> str:
    """Returns what `vw --readable_model` writes, for named spaces `--invert_hash`. It is for people and tools: vw itself reads
    no readable model."""
    from . import vw_weights
    return vw_weights.write(linear)


def from_vw(text: str) -> LinearClassifier:
    """Reads what `vw --invert_hash` (a named space) or `--readable_model` (a hashed space, by vw's indices) wrote, for two
    labels or --oaa. ValueError for models with interactions and other reductions."""
    from . import vw_weights
    return vw_weights.read(text)


def write_file(path: pathlib.Path, linear: LinearClassifier, form: str) -> None:
    if form == "onnx":
        path.write_bytes(to_onnx(linear).SerializeToString())
    elif form == "vw":
        path.write_text(to_vw(linear), encoding="utf-8")
    else:
        import joblib
        joblib.dump(to_sklearn(linear), path)


def read_file(path: pathlib.Path, form: str) -> LinearClassifier:
    if form == "onnx":
        import onnx
        from google.protobuf.message import DecodeError
        try:
            model = onnx.load_model_from_string(content_of(path, MOST_BYTES))
        except DecodeError:
            raise ValueError("it is no ONNX model") from None
        if not model.HasField("graph"):
            raise ValueError("it is no ONNX model")
        return from_onnx(model)
    if form == "vw":
        try:
            return from_vw(content_of(path, MOST_BYTES).decode())
        except UnicodeDecodeError:
            raise ValueError("it is no text: write it by `vw --readable_model` or `--invert_hash`") from None
    import joblib
    try:
        estimator = joblib.load(path)
    except (OSError, ImportError):
        raise
    except Exception as error:
        # Bytes that are no pickle may raise anything.
        raise ValueError(f"it is no estimator that pickle or joblib wrote: {type(error).__name__} {error}".rstrip()) from None
    return from_sklearn(estimator)


# ----


def _check_space(model: model_pb2.Model) -> None:
    space = model.feature_space
    kind = space.WhichOneof("space")
    if kind not in ("dense", "hashed", "named"):
        raise ValueError(f"{model.name} cannot be exported: its weights are of features that the server makes of "
                         + ("texts" if kind == "text" else "other models' answers"))
    if space.HasField("map"):
        raise ValueError(f"{model.name} cannot be exported: its weights are of features that the server makes by the map "
                         f"\"{space.map.WhichOneof('map')}\"")


def _labels(model: model_pb2.Model, vectors: int) -> list[Label]:
    if model.label_names:
        return list(model.label_names)[:vectors if model.learner.HasField("classes") else 2]
    return list(range(vectors)) if model.learner.HasField("classes") else [-1, 1]


def _existing(client: Client, model: str, found: model_pb2.Model, classes: int) -> list[int]:
    """The classes that exist: those with a score."""
    if found.learner.classes.new_classes != learner_pb2.Classes.NEW_CLASSES_NUMBERED or classes == 0:
        return list(range(classes))
    nothing: Mapping[str, float] = {}
    scores = client.predict(model, [Row(nothing)], class_scores=True).class_scores
    return [number for number, score in enumerate(scores[0][:classes]) if score == score]


def _say_what_vw_has_for(labels: Sequence[Label], two_labels: bool) -> None:
    theirs = ["-1", "1"] if two_labels else [str(number) for number in range(1, len(labels) + 1)]
    ours = [str(label) for label in labels]
    if ours == theirs:
        return
    shown = ",".join(ours)
    print(f"Vowpal Wabbit's labels are {'-1 and 1' if two_labels else f'1 to {len(ours)}'}: to import the file with its own, give --labels "
          f"{shown if len(shown) <= 200 else f'with the {len(ours)} names, in the order of the classes'}", file=sys.stderr)


def _labelled(linear: LinearClassifier, labels: list[str]) -> LinearClassifier:
    if len(labels) != len(linear.labels):
        raise ValueError(f"--labels has {len(labels)} names, and the model {len(linear.labels)} labels")
    numbers = ["-1", "1"] if linear.two_labels else [str(number) for number in range(len(labels))]
    return linear._replace(labels=[int(label) for label in labels] if labels == numbers else list(labels))


def _run(arguments: argparse.Namespace) -> None:
    with Client(arguments.server, tls_ca=arguments.tls_ca, token_file=arguments.token_file, give_up_after=10) as client:
        if arguments.action == "export":
            linear = get(client, arguments.model)
            write_file(arguments.file, linear, arguments.format)
            if arguments.format == "vw":
                _say_what_vw_has_for(linear.labels, linear.two_labels)
        else:
            linear = read_file(arguments.file, arguments.format)
            if arguments.labels is not None:
                linear = _labelled(linear, arguments.labels.split(","))
            create(client, arguments.model, linear, learner=arguments.learner)
    features = len(linear.names) if linear.space == "named" else linear.coef.shape[1]
    print(f"{arguments.model}: {'two labels' if linear.two_labels else f'{len(linear.labels)} classes'}, {features} {linear.space} features")


def main(arguments: Optional[Sequence[str]] = None) -> int:
    parser = argparse.ArgumentParser(prog="python3 -m perceptrond.weights", description="Weights to and from other programs.")
    for name, default, text in (("--server", None, "host:port; default: $PERCEPTROND_SERVER, else 127.0.0.1:7600"),
                                ("--tls-ca", None, "certificate authorities to trust (PEM)"),
                                ("--token-file", None, "file with a token; default: $PERCEPTRONCTL_TOKEN_FILE")):
        parser.add_argument(name, default=default, help=text)
    actions = parser.add_subparsers(dest="action", required=True)
    for action, text in (("export", "write a model's weights to a file"), ("import", "create a model that starts from a file's weights")):
        command = actions.add_parser(action, help=text, description=text)
        command.add_argument("--format", choices=FORMATS, required=True,
                             help="ONNX; an estimator of scikit-learn, pickled (reading one runs its code: trust it); Vowpal Wabbit's readable form")
        command.add_argument("model")
        command.add_argument("file", type=pathlib.Path)
        if action == "import":
            command.add_argument("--labels", help="names of the labels, that of -1 first, or of the classes in order, separated by commas; "
                                                  "default: those in the file, of Vowpal Wabbit -1 and 1, or 1, 2, ...")
            command.add_argument("--learner", default="perceptron", help="the rule that learns on, as the API names it; default: perceptron")
    parsed = parser.parse_args(arguments)
    try:
        _run(parsed)
    except PerceptrondError as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return 1
    except (OSError, ValueError, ImportError) as error:
        print(f"{parser.prog}: {parsed.file}: {error}" if parsed.action == "import" else f"{parser.prog}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
