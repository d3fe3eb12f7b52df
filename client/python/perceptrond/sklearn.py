"""PerceptrondClassifier: a model on a perceptrond server as an estimator of scikit-learn. Needs scikit-learn.

    from perceptrond.sklearn import PerceptrondClassifier

    classifier = PerceptrondClassifier("127.0.0.1:7600", prediction="averaged").fit(X, y)
    classifier.predict(X)
    classifier.publish("spam")
"""

import importlib.util
import pickle
from typing import Any, Mapping, Optional, Union

import numpy
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state, column_or_1d
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_consistent_length, check_is_fitted

from .channels import default_server
from .columns import count
from .datasets import check_batch
from .errors import PerceptrondError
from .estimator_input import DICTS, FRAME, MATRIX, TEXTS, Input, class_numbers, find, plain_labels, read
from .frames import check_numbers
from .labels import number_of
from .linear import LinearModel
from .local import LocalModel, linear_model, local_model
from .progress import Progress, shown
from .rows import check_all_real
from .served import Answers, ServedModel, in_worker, shared_client
from .settings import api_name, model_settings
from .v1 import model_pb2, report_pb2

# Checks of scikit-learn's check_estimator that cannot hold, and why.
EXPECTED_FAILURES = {
    "check_sample_weights_invariance": "examples are learned one after the other: it shuffles those of weight 0 among the others, and so changes their order",
}
# And of some settings.
EXPECTED_OF_AVERAGES = {"check_estimators_pickle": "the server averages in float64, and a pickle has weights in float32: scores may differ in the seventh digit"}
EXPECTED_WITHOUT_SAMPLE_WEIGHTS = dict.fromkeys(("check_sample_weights_list", "check_sample_weights_not_overwritten"),
                                                "the learner takes no example weights: the server refuses those that are not 1")
_WITHOUT_SAMPLE_WEIGHTS = {"margin_perceptron", "passive_aggressive", "arow", "kernel_perceptron", "auto"}


def expected_failures(learner: str, prediction: Optional[str] = None) -> dict[str, str]:
    """The checks of check_estimator that an estimator with these settings fails, and why."""
    rule = api_name(learner)
    return {**EXPECTED_FAILURES, **(EXPECTED_WITHOUT_SAMPLE_WEIGHTS if rule in _WITHOUT_SAMPLE_WEIGHTS else {}),
            **(EXPECTED_OF_AVERAGES if prediction == "averaged" else {})}


class PerceptrondClassifier(ClassifierMixin, BaseEstimator):
    """A linear classifier that a perceptrond server learns and predicts, online.

    X: an array or sparse matrix, or a frame of numbers: a dense space. A frame with other columns, or dicts: a named space;
      a number is a feature of its name, any other value a feature "name=value" of 1; TypeError for times. Texts: a text
      space, which splits them on the server. y: labels of any type; ValueError if one is missing.

    fit() creates a model under a fresh name ("sklearn-..."), which is deleted with the estimator, when it is fitted again, at the
    end of the process, and by the server once it was not used for 7 days. So clones and folds never share a model. A pickle has the settings and
    what the scores are made of, and predicts without a server; of hashed names it needs the package xxhash. There is none of texts,
    whose models publish() keeps. Examples are learned exactly once a pass, also across restarts of the server.

    server: as Client's. Default: $PERCEPTROND_SERVER, else 127.0.0.1:7600.
    model: a name that partial_fit() and publish() use. Default: partial_fit() creates a model as fit() does.
    learner, learner_options: the rule and its settings, as model_settings() has them: "passive_aggressive_i",
      {"aggressiveness": 0.1}.
    prediction, prediction_options: None, "averaged", "pocket" or "voted".
    bias_input: what is appended to each example; 0: no bias. Default 1.
    max_iter: the most passes of fit(); at least 1. until_converged: stop after a pass without an update.
    shuffle: learn each pass in a random order, which random_state draws.
    features: "auto", as above; "hashed" for dicts. feature_options: of the space, as the API has them: {"bits": 20} of "hashed", its default;
      {"max_words": 2} of texts; {"max_features": 1000000} of names.
    batch_size: the most rows of a message, 1 to 65,536. verbose: show progress on standard error.
    tls_ca, token_file, give_up_after: as Client's.

    Raises PerceptrondError for what the server answers, and for one that cannot be reached. Threads: predict() and
    decision_function() from any number; the others from one at a time.
    """

    # Of fitted ones.
    _kind: str
    _served: Union[ServedModel, LocalModel]

    def __init__(self, server: Optional[str] = None, *, model: Optional[str] = None, learner: str = "perceptron",
                 learner_options: Optional[Mapping[str, Any]] = None, prediction: Optional[str] = None,
                 prediction_options: Optional[Mapping[str, Any]] = None, bias_input: Optional[float] = None, max_iter: int = 100,
                 until_converged: bool = True, shuffle: bool = True, random_state: Any = None, features: str = "auto",
                 feature_options: Optional[Mapping[str, Any]] = None, batch_size: int = 1000, verbose: bool = False,
                 tls_ca: Any = None, token_file: Any = None, give_up_after: float = 60):
        self.server = server
        self.model = model
        self.learner = learner
        self.learner_options = learner_options
        self.prediction = prediction
        self.prediction_options = prediction_options
        self.bias_input = bias_input
        self.max_iter = max_iter
        self.until_converged = until_converged
        self.shuffle = shuffle
        self.random_state = random_state
        self.features = features
        self.feature_options = feature_options
        self.batch_size = batch_size
        self.verbose = verbose
        self.tls_ca = tls_ca
        self.token_file = token_file
        self.give_up_after = give_up_after

    # ---- Learning ----

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "PerceptrondClassifier":
        """Learns X, y in a new model, pass after pass. sample_weight: at least 0, for rules that take weights; rows of 0 are left
        out. Raises ValueError for rows that the server refuses."""
        if not isinstance(self.max_iter, (int, numpy.integer)) or self.max_iter < 1:
            raise ValueError(f"max_iter={self.max_iter!r}: expected a whole number, at least 1")
        examples, y = self._read_to_learn(X, y, reset=True)
        self.classes_, labels = numpy.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(f"y has one class, {self.classes_[0]!r}; a classifier needs at least two")
        if len(self.classes_) > 2 and api_name(self.learner) == "kernel_perceptron":
            raise ValueError(f"Only binary classification is supported by the learner {self.learner!r}; y has {len(self.classes_)} classes")
        model = ServedModel.create(self._client(), self._settings(examples), in_fit=True)
        try:
            self.n_iter_ = self._learn(model, X, examples, labels, sample_weight, self.max_iter)
            model.finish_fit()
        except BaseException:
            model.discard()
            raise
        self._served = model
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> "PerceptrondClassifier":
        """Learns X, y once, in their order, in the model that this estimator has. The first call names all classes; it creates
        `model`, or goes on with the one that there is, whose learner and settings hold. Raises ValueError if that has other
        classes or features."""
        first = not hasattr(self, "_served")
        if first and classes is None:
            raise ValueError("classes must be passed on the first call to partial_fit")
        if classes is not None:
            found = numpy.unique(classes)
            if not first and not numpy.array_equal(found, self.classes_):
                raise ValueError(f"`classes={classes!r}` is not the same as on the last call to partial_fit, was: {self.classes_!r}")
            self.classes_ = found
        examples, y = self._read_to_learn(X, y, reset=first)
        labels = class_numbers(y, self.classes_)
        if first:
            self._served = self._bind(self._settings(examples))
            self.n_iter_ = 0
        if not isinstance(self._served, ServedModel):
            raise ValueError("an unpickled estimator has no model on a server that learns; " + (
                "publish() makes one" if isinstance(self._served, LinearModel) else "publish the estimator before it is pickled"))
        self.n_iter_ += self._learn(self._served, X, examples, labels, sample_weight, 1)
        return self

    def publish(self, model: Optional[str] = None) -> "PerceptrondClassifier":
        """Copies the model of this estimator under this name, by default the parameter `model`, with all that it has:
        vocabulary, counters and report. The estimator has the copy from now on: predictions are its, and partial_fit() teaches
        it. It is not deleted with the estimator. ALREADY_EXISTS if there is such a model.

        Of an unpickled estimator it makes a model that starts with the weights: its report begins anew, without the convergence
        theorem, since it does not begin at zero. ValueError if it predicts by votes or a kernel."""
        check_is_fitted(self)
        name = model or self.model
        if name is None:
            raise ValueError("publish() needs a name: give it, or the parameter `model`")
        if isinstance(self._served, ServedModel):
            self._served = self._served.copy(name)
            return self
        if not isinstance(self._served, LinearModel):
            raise ValueError("an unpickled estimator that predicts by votes or a kernel has no weights that a model could start with: "
                             "publish the estimator before it is pickled")
        settings = self._settings(None)
        settings.learner.starting_weights.CopyFrom(self._served.weights())
        client = self._client()
        revision = client.create(name, settings).revision
        self._served = ServedModel(client, name, owned=False)
        self._served.revision = revision
        return self

    # ---- Predictions ----

    def predict(self, X: Any) -> Any:
        """Returns the label of each row."""
        labels = self._answers(X, of_classes=False).labels
        return self.classes_[(labels > 0).astype(int) if len(self.classes_) == 2 else labels.astype(int)]

    def decision_function(self, X: Any) -> Any:
        """Returns the score of each row, that of classes_[1]; of several classes a column for each."""
        answers = self._answers(X, of_classes=True)
        return answers.scores if len(self.classes_) == 2 else answers.class_scores

    @available_if(lambda self: api_name(self.learner) == "logistic_regression")  # type: ignore[misc]
    def predict_proba(self, X: Any) -> Any:
        """Returns the probability of each class: of the learner "logistic_regression" alone."""
        scores = self.decision_function(X)
        if len(self.classes_) == 2:
            # Each from its own score, so that one near 0 keeps its digits.
            return _sigmoid(numpy.column_stack([-scores, scores]))
        exponentials = numpy.exp(scores - scores.max(axis=1, keepdims=True))
        return exponentials / exponentials.sum(axis=1, keepdims=True)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Returns the part of the rows whose predicted label is theirs."""
        return float(super().score(X, plain_labels(y), sample_weight))

    # ---- The model ----

    @property
    def model_name_(self) -> Optional[str]:
        """The name of the model on the server. None: this estimator was unpickled, and has weights alone."""
        check_is_fitted(self)
        return self._served.name if isinstance(self._served, ServedModel) else None

    def report(self) -> report_pb2.ConvergenceReport:
        """Returns how far the model is from convergence. ValueError for an estimator without a model on a server."""
        check_is_fitted(self)
        if not isinstance(self._served, ServedModel):
            raise ValueError("an unpickled estimator has weights, and no model on a server")
        return self._served.report()

    @property
    def coef_(self) -> Any:
        """The weights of each feature, of models of matrices: of the shape (1, features), or (classes, features)."""
        return self._exported().coef.toarray()

    @property
    def intercept_(self) -> Any:
        """The constants in the scores."""
        return self._exported().bias

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        served = state.get("_served")
        if isinstance(served, ServedModel):
            try:
                state["_served"] = self._pickled(served)
            except pickle.PicklingError:
                if in_worker():
                    served.discard()
                raise
        return state

    def _pickled(self, served: ServedModel) -> LocalModel:
        if self._kind == TEXTS:
            raise _unpicklable(f"of {self._kind}", "the server makes its features")
        found = served.client.get(served.name)
        if found.feature_space.HasField("map"):
            raise _unpicklable("of a model with a feature map", "the server makes its features")
        local = local_model(served, found, self._columns())
        if local.hashed and importlib.util.find_spec("xxhash") is None:
            raise _unpicklable("of hashed features", "the package xxhash (Debian's python3-xxhash), which predicts without a server, is not installed")
        return local

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_served")

    def _more_tags(self) -> dict[str, Any]:
        return {"X_types": ["2darray", "sparse", "dict", "string"], "binary_only": api_name(self.learner) == "kernel_perceptron",
                "_xfail_checks": expected_failures(self.learner, self.prediction)}

    # ----

    def _client(self) -> Any:
        return shared_client(server=self.server or default_server(), tls_ca=self.tls_ca, token_file=self.token_file, give_up_after=self.give_up_after)

    def _settings(self, examples: Optional[Input]) -> model_pb2.Model:
        kind = self._kind if examples is None else examples.kind
        if self.features not in ("auto", "hashed"):
            raise ValueError(f'features={self.features!r}: expected "auto" or "hashed"')
        if self.features == "hashed" and kind == TEXTS:
            raise ValueError('features="hashed" is not for texts, whose features are hashed anyway: leave it out')
        space: Any = self.features if self.features != "auto" else {MATRIX: 0, FRAME: "named", DICTS: "named", TEXTS: "text"}[kind]
        names = [str(label) for label in self.classes_]
        # Equal numbers, such as "2" and "2.0", are one name to the server.
        distinct = {name if number_of(name) is None else number_of(name) for name in names}
        named = len(distinct) == len(names) and all(0 < len(name.encode()) <= 1024 for name in names)
        return model_settings(space or self.n_features_in_, feature_options=self.feature_options if space else None, labels=names if named else (),
                              classes=len(self.classes_) if len(self.classes_) > 2 else 0, learner=self.learner,
                              learner_options=self.learner_options, prediction=self.prediction, prediction_options=self.prediction_options,
                              description="Made by PerceptrondClassifier of perceptrond.sklearn.",
                              **({} if self.bias_input is None else {"bias_input": self.bias_input}))

    def _bind(self, settings: model_pb2.Model) -> ServedModel:
        """Finds or creates the model for partial_fit()."""
        client = self._client()
        if self.model is None:
            return ServedModel.create(client, settings)
        found = client.create(self.model, settings, exist_ok=True)
        for what, ours, theirs in (("features", _space(settings), _space(found)),
                                   ("classes", settings.learner.classes.max_classes, found.learner.classes.max_classes),
                                   ("labels", list(settings.label_names), list(found.label_names) or list(settings.label_names))):
            if ours != theirs:
                raise ValueError(f"the model {self.model} has other {what}: {theirs}, not {ours}")
        return ServedModel(client, self.model, owned=False)

    def _validated(self, X: Any, *y: Any, reset: bool) -> Any:
        # Complex numbers scikit-learn refuses, in its own words.
        if getattr(getattr(X, "dtype", None), "kind", "") != "c":
            check_all_real(X, "value")
        try:
            return self._validate_data(X, *y, accept_sparse="csr", dtype=numpy.float32, reset=reset)
        except (OverflowError, ValueError):
            if hasattr(X, "columns"):
                # Says which column and row.
                check_numbers(X)
            raise

    def _read(self, X: Any, reset: bool, learned: bool = False) -> Input:
        kind = find(X, None if reset else self._kind)
        if reset:
            self._kind = kind
        if kind == MATRIX:
            return Input(kind, self._validated(X, reset=reset))
        if kind == FRAME:
            self._check_feature_names(X, reset=reset)
            self._check_n_features(X, reset=reset)
        return read(X, kind, learned)

    def _read_to_learn(self, X: Any, y: Any, reset: bool) -> tuple[Input, Any]:
        check_batch(self.batch_size, "batch_size")
        kind, y = find(X, None if reset else self._kind), plain_labels(y)
        if kind == MATRIX:
            X, y = self._validated(X, y, reset=reset)
            self._kind, examples = kind, Input(kind, X)
        else:
            check_consistent_length(X, y)
            if len(y) == 0:
                raise ValueError("Found array with 0 sample(s): X and y have no rows.")
            examples = self._read(X, reset, learned=True)
        y = column_or_1d(y, warn=True)
        check_classification_targets(y)
        return examples, y

    def _learn(self, model: ServedModel, X: Any, examples: Input, labels: Any, sample_weight: Any, passes: int) -> int:
        """Returns the number of passes."""
        check_all_real(sample_weight, "weight")
        weights = None if sample_weight is None else _check_sample_weight(sample_weight, X, dtype=numpy.float64, only_non_negative=True)
        everything = numpy.arange(len(labels))
        kept = everything if weights is None or weights.all() else numpy.flatnonzero(weights)
        sent_labels = 2 * labels - 1 if len(self.classes_) == 2 else labels
        random, say = check_random_state(self.random_state), shown(self.verbose)
        with model.client.learn_stream(model.name, model.producer) as stream:
            order, begin = kept, stream.next_offset
            # Errors name a row of X, of the pass that is sent.
            stream.number_rows(lambda offset: int(order[(offset - begin) % len(order)]))
            for number in range(1, passes + 1):
                order = random.permutation(kept) if self.shuffle and passes > 1 else kept
                sent = 0
                # In their own order they need no copy.
                for message in examples.messages(self.batch_size, None if order is everything else order, sent_labels, weights):
                    stream.send(message)
                    sent += count(message)
                    say(Progress(number, sent, len(kept), stream.totals.examples, stream.totals.mistakes, stream.totals.updates, None))
                summary = stream.end_pass()
                say(Progress(number, sent, len(kept), stream.totals.examples, stream.totals.mistakes, stream.totals.updates, summary))
                if stream.totals.row_errors or self.until_converged and summary.converged:
                    break
            totals = stream.finish()
        model.revision = stream.revision
        if totals.row_errors:
            raise ValueError(f"{totals.row_errors} of {len(order)} rows were refused; the first, {totals.first_row_error_position}: {totals.first_row_error}")
        return number

    def _answers(self, X: Any, of_classes: bool) -> Answers:
        check_is_fitted(self)
        check_batch(self.batch_size, "batch_size")
        examples = self._read(X, reset=False)
        classes = len(self.classes_) if of_classes and len(self.classes_) > 2 else 0
        if not isinstance(self._served, ServedModel):
            return self._served.answers(examples.examples, classes)
        batch = min(self.batch_size, 2**20 // classes) if classes else self.batch_size
        return self._served.answers(examples.messages(batch), classes)

    def _columns(self) -> int:
        return self.n_features_in_ if self._kind == MATRIX else 0

    def _exported(self) -> LinearModel:
        if not hasattr(self, "_served") or self._kind != MATRIX:
            raise AttributeError("only an estimator that was fitted on a matrix has coef_ and intercept_")
        try:
            local = linear_model(self._served, self._columns()) if isinstance(self._served, ServedModel) else self._served
        except PerceptrondError as error:
            if error.reason != "NOT_LINEAR":
                raise
            local = None
        if not isinstance(local, LinearModel):
            raise AttributeError("a model that predicts by votes or a kernel has no coef_ and intercept_")
        return local


def _unpicklable(which: str, why: str) -> pickle.PicklingError:
    return pickle.PicklingError(f"an estimator {which} cannot be pickled: {why}. Keep its model on the server by publish(\"name\"); other "
                                "processes predict by Client().predict(\"name\", X)")


def _sigmoid(scores: Any) -> Any:
    with numpy.errstate(over="ignore"):
        return 1 / (1 + numpy.exp(-scores))


def _space(model: model_pb2.Model) -> Any:
    space = model.feature_space
    return space.WhichOneof("space"), space.dense.dimension
