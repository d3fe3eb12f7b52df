"""Pictures of models, drawn by matplotlib: each function returns the Axes, for a program to change or to save.

    from perceptrond import Client, plot

    with Client() as client:
        axes = plot.boundary(client, "and", separator=client.analyze("and"))
        axes.figure.savefig("and.png", bbox_inches="tight")
        plot.learning_curve(client, "and", by="examples")

    python3 -m perceptrond.plot and -o and.svg

examples, labels: as Client.learn() takes them; default: those that the model stores, the sample if it keeps one, else those that caused
updates. dark: for a dark background. ax, figure: where to draw; default: a new figure of pyplot. The functions raise ValueError for what
cannot be drawn, PerceptrondError for what the server answers.

Needs NumPy, scipy and matplotlib; for CSV files and frames pandas.
"""

import argparse
import contextlib
import inspect
import io
import pathlib
import re
import sys
import textwrap
import warnings
from typing import Any, Callable, Iterable, Iterator, Mapping, NamedTuple, Optional, Sequence, Union

try:
    import matplotlib
except ImportError:
    _MISSING = "perceptrond.plot needs matplotlib: install Debian's python3-matplotlib, or pip install 'perceptrond[plot]'"
    if __name__ == "__main__":
        sys.exit(_MISSING)
    raise ImportError(_MISSING) from None
import numpy
import scipy.sparse
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from .client import Client
from .errors import PerceptrondError
from .labels import Labels
from .linear import LinearModel
from .matrices import MOST_FLOAT32, NamedMatrix, as_array
from .rows import Label, as_row, is_missing
from .v1 import analysis_service_pb2, example_pb2, learner_pb2, model_pb2

Feature = Union[int, str]
Range = Sequence[float]

# The first examples are drawn, the lines of weight space that are nearest to the model, and the largest weights.
MOST_EXAMPLES, MOST_LINES, MOST_BARS = 2000, 150, 20
# Points along an axis where the score is not linear, fewer if examples have many features: the numbers of a request.
POINTS, MOST_NUMBERS = 201, 1 << 22

# Light and dark. Classes differ in shape and in colours that readers who do not see red and green tell apart (Okabe, Ito 2008); text has a
# contrast of at least 4.5 to its background, marks of at least 3 (WCAG 2.1).
_COLOURS = {"paper": ("#ffffff", "#0d1117"), "panel": ("#fbfcfd", "#131922"), "text": ("#1f2933", "#e6edf3"), "soft": ("#52606d", "#a3aeb9"),
            "axis": ("#7b8794", "#8b96a1"), "grid": ("#e4e7eb", "#262e38"), "best": ("#2f7d4f", "#57c785")}
_CLASS_COLOURS = (("#0067a5", "#58b4f0"), ("#c2500a", "#f5923e"), ("#007d5a", "#3cc99b"), ("#a63d86", "#e58fcb"),
                  ("#857000", "#d8c341"), ("#2b8cc4", "#a5dcff"), ("#5b45b0", "#ad98f5"), ("#9c2f2f", "#ff8f8f"))
_SHAPES = "os^v"
_DASHED = (0, (5, 2))


class _Palette:
    def __init__(self, dark: bool):
        self.paper, self.panel, self.text, self.soft, self.axis, self.grid, self.best = (pair[dark] for pair in _COLOURS.values())
        self.classes = [pair[dark] for pair in _CLASS_COLOURS]


@contextlib.contextmanager
def _background(dark: bool) -> Iterator[_Palette]:
    """Sets matplotlib's settings for a light or dark background."""
    palette = _Palette(dark)
    with matplotlib.rc_context({
            "figure.facecolor": palette.paper, "savefig.facecolor": palette.paper, "axes.facecolor": palette.panel, "axes.edgecolor": palette.axis,
            "text.color": palette.text, "axes.labelcolor": palette.text, "xtick.color": palette.axis, "ytick.color": palette.axis,
            "xtick.labelcolor": palette.soft, "ytick.labelcolor": palette.soft, "axes.grid": True, "grid.color": palette.grid, "axes.axisbelow": True,
            "axes.spines.top": False, "axes.spines.right": False, "legend.frameon": False, "axes.formatter.use_mathtext": True}):
        yield palette


def boundary(client: Client, model: str, examples: Any = None, labels: Optional[Sequence[Any]] = None, *, x: Optional[Feature] = None,
             y: Optional[Feature] = None, at: Optional[Mapping[Feature, float]] = None, x_range: Optional[Range] = None, y_range: Optional[Range] = None,
             separator: Optional[analysis_service_pb2.AnalysisResult] = None, title: str = "", dark: bool = False, ax: Any = None) -> Any:
    """Draws what a model predicts in the plane of the features x and y, or with x alone its score along that feature; default: the
    examples' features, if those are one or two. Misclassified examples are ringed.

    at: values of other features; default: their means over the examples. The picture names them. x_range, y_range: what is shown;
      default: where the examples are. separator: of client.analyze(), drawn too.

    A margin is drawn only where there is one: the score is linear, and all examples lie in the plane and are classified correctly."""
    with _background(dark) as palette:
        subject = _Subject(client, model, examples, labels)
        picture = _Boundary(subject, subject.axes(x, y), at or {}, palette, ax or _new_figure().subplots())
        picture.draw(_checked(x_range, "x"), _checked(y_range, "y"))
        if separator is not None:
            picture.draw_separator(separator)
        return _finished(picture.ax, palette, title or f"{subject.id}: decision boundary", subject.summary(), picture.handles, picture.notes + subject.notes)


def weight_space(client: Client, model: str, examples: Any = None, labels: Optional[Sequence[Any]] = None, *, x: Optional[Feature] = None,
                 y: Optional[Feature] = None, label: Any = None, title: str = "", dark: bool = False, ax: Any = None) -> Any:
    """Draws the plane of the weights of the features x and y, or with x alone of its weight θ and the bias θ₀; the others are the model's.
    A point is a model, and an example a line: its tick points to the weights that classify it correctly.

    label: of several classes, the one whose weights are drawn while those of the others stay."""
    with _background(dark) as palette:
        subject = _Subject(client, model, examples, labels)
        if why := subject.not_linear():
            raise ValueError(f"{why}, so that an example is no line in a plane of weights: draw the boundary")
        picture = _WeightSpace(subject, subject.axes(x, y), subject.class_number(label), palette, ax or _new_figure().subplots())
        picture.draw()
        of_class = f" of {subject.labels.name(picture.number)}" if subject.several else ""
        return _finished(picture.ax, palette, title or f"{subject.id}: weight space{of_class}", subject.summary(), picture.handles, picture.notes + subject.notes)


def weights(client: Client, model: str, *, label: Any = None, title: str = "", dark: bool = False, ax: Any = None) -> Any:
    """Draws the largest weights, and the bias θ₀, as bars. label: of several classes, the one whose weights are drawn. PerceptrondError
    (NOT_LINEAR): the model predicts by votes or a kernel."""
    with _background(dark) as palette:
        subject = _Subject(client, model, [], None)
        number = subject.class_number(label)
        vectors = client.weights(model).vectors
        vector = vectors[number if subject.several else 0] if not subject.several or number < len(vectors) else learner_pb2.WeightVector()
        names = vector.names or [_title_of(index) for index in vector.indices]
        bars = sorted(zip(vector.values, names), key=lambda bar: (-abs(bar[0]), bar[1]))[:MOST_BARS] + [(vector.bias, "bias θ₀")]
        ax = ax or _new_figure().subplots()
        ax.barh(range(len(bars)), [value for value, _ in bars], color=[palette.classes[0 if value > 0 else 1] for value, _ in bars], height=0.7)
        ax.axvline(0, color=palette.axis, linewidth=1)
        ax.set_yticks(range(len(bars)), [_wrapped(name) for _, name in bars])
        ax.grid(axis="y", visible=False)
        ax.set(ylim=(max(len(bars), 8) - 0.5, -0.5), xlabel="weight")
        shown = f"the {MOST_BARS} largest of {len(names):,} weights" if len(names) > MOST_BARS else _counted(len(names), "weight is", "weights are") + " not 0"
        of_class = f" of {subject.labels.name(number)}" if subject.several else ""
        sides = (subject.labels.name(number), "the other classes") if subject.several else (subject.labels.name(1), subject.labels.name(-1))
        handles = [Patch(color=colour, label=_wrapped(f"for {name}")) for colour, name in zip(palette.classes, sides)]
        return _finished(ax, palette, title or f"{subject.id}: weights{of_class}",
                         f"{subject.learner} at revision {subject.model.revision:,}, {shown}", handles, [])


def learning_curve(client: Client, model: str, *, by: str = "updates", log: bool = False, title: str = "", dark: bool = False, figure: Any = None) -> Any:
    """Draws norm, margin, error and, by examples, mistakes over the model's life, and returns an array of Axes, one below the other.

    by: "updates", the revisions, or "examples". log: a logarithmic scale of these. A figure that is not known leaves a gap."""
    if by not in ("updates", "examples"):
        raise ValueError(f"by={by!r}: a learning curve is by updates or by examples")
    found = client.get(model, learning_curve=True)
    points = [point for point in found.learning_curve if not log or (point.revision if by == "updates" else point.examples) > 0]
    if not found.report.examples:
        raise ValueError("there is no learning curve yet: let the model learn first")

    def figures(name: str) -> Any:
        return numpy.array([getattr(point, name) if name not in _MAY_LACK or point.HasField(name) else numpy.nan for point in points], float)

    over, mistakes, seen = figures("revision" if by == "updates" else "examples"), figures("mistakes"), figures("examples")
    error = numpy.divide(100 * mistakes, seen, out=numpy.full(len(points), numpy.nan), where=seen > 0)
    # Over updates the mistakes of a perceptron are a diagonal.
    panels = [*([("mistakes", {"mistakes": mistakes})] if by == "examples" else []),
              ("norm", {"norm of the weights": figures("weight_norm")}),
              ("margin", {"at most (ceiling), of all data": figures("margin_ceiling"), "at least (floor), of the last clean pass": figures("margin_floor")}),
              ("error, %", {"of the last 1,000 examples": 100 * figures("window_error"), "of all examples": error})]
    panels = [(name, series) for name, series in panels if any(numpy.isfinite(values).any() for values in series.values())]
    with _background(dark) as palette:
        figure = figure or _new_figure()
        figure.set_size_inches(6.4, 0.8 + 1.7 * len(panels))
        axes = numpy.atleast_1d(figure.subplots(len(panels), sharex=True))
        report = found.report
        summary = f"{_learner_of(found)}: {report.examples:,} examples, {report.mistakes:,} mistakes, {report.updates:,} updates"
        for ax, (name, series) in zip(axes, panels):
            first = ax is axes[0]
            _finished(ax, palette, (title or f"{_id_of(found)}: learning curve") if first else "", summary if first else "",
                      _draw_series(ax, name, series, over, palette), [])
        axes[-1].set_xlabel("updates (revision)" if by == "updates" else "examples evaluated")
        axes[-1].set_xscale("log" if log else "linear")
        if not log and over.max() > 0:
            axes[-1].set_xlim(0, over.max())
    return axes


_MAY_LACK = ("margin_ceiling", "margin_floor", "window_error")


def _draw_series(ax: Any, name: str, series: Mapping[str, Any], over: Any, palette: _Palette) -> list[Any]:
    handles = []
    for (text, values), colour, style in zip(series.items(), palette.classes, ("solid", _DASHED)):
        known = numpy.isfinite(values)
        # A figure between two gaps is a point.
        alone = known & ~numpy.append(False, known[:-1]) & ~numpy.append(known[1:], False)
        line, = ax.plot(over, values, color=colour, linestyle=style, linewidth=1.8, label=_wrapped(text))
        dots = ax.plot(over[alone], values[alone], "o", color=colour, markersize=5, clip_on=False, label=_wrapped(text)) if alone.any() else []
        handles += (dots if (alone == known).all() else [line]) if known.any() else []
    every = numpy.concatenate(list(series.values()))
    low, high = numpy.nanmin(every), numpy.nanmax(every)
    if name == "margin" and low > 0 and high > 30 * low:
        ax.set_yscale("log")
    else:
        ax.set_ylim(0, 1.06 * high or 1)
    ax.set_ylabel(name)
    return handles


# ---- A model and its examples ----

# The label of an example whose class the model does not have.
_UNKNOWN = -2


class _Subject:
    """A model, and its examples by the features that a user knows."""

    def __init__(self, client: Client, model: str, examples: Any, labels: Optional[Sequence[Any]]):
        self._client, self._name = client, model
        self.model = client.get(model)
        self.id, self.learner, self.labels = _id_of(self.model), _learner_of(self.model), Labels(self.model)
        self.several = self.model.learner.HasField("classes")
        space = self.model.feature_space
        self.space = space.composition.example_space if space.HasField("composition") else space
        self.notes: list[str] = []
        self.rows: list[dict[Feature, float]] = []
        # Labels: -1 and +1, or the class; None for an example without one.
        self.targets: list[Optional[int]] = []
        # Where the examples are from, as the summary says it.
        self._source = ""
        if examples is None:
            self._read_stored()
        else:
            self._read(examples, labels)
        self.by_name = self.space.HasField("named") or self.space.HasField("hashed") and any(isinstance(name, str) for row in self.rows for name in row)
        self.scores, self.revision = self.predict(self.rows)
        self.margins = self.margins_of(self.scores)

    def _read(self, examples: Any, labels: Optional[Sequence[Any]]) -> None:
        rows, own = _dicts(examples, by_name=not self.space.HasField("dense"))
        given = own if labels is None else labels.tolist() if hasattr(labels, "tolist") else list(labels)
        if len(given) != len(rows):
            raise ValueError(f"{len(rows)} examples and {len(given)} labels: expected as many")
        self.rows, self.targets = rows[:MOST_EXAMPLES], [self._number(label) for label in given[:MOST_EXAMPLES]]
        if len(rows) > MOST_EXAMPLES:
            self._source = f", the first of {len(rows):,}"

    def _number(self, label: Any) -> Optional[int]:
        if is_missing(label):
            return None
        found = self.labels.number(self.labels.read_value(label))
        return _UNKNOWN if found is None else found

    def _read_stored(self) -> None:
        if self.space.HasField("text"):
            return
        if self.model.feature_space.HasField("composition") or self.space.map.HasField("fourier") or (
                self.space.HasField("map") and self.space.HasField("hashed")):
            self.notes.append("the stored examples have other features than the model takes: give examples")
            return
        found: dict[Any, Optional[int]] = {}
        self._source = " that caused updates"
        sampled = False
        for stored in self._client.stored_examples(self._name):
            if stored.update_revision == 0 and not sampled:
                # The sample has the examples of updates too.
                sampled, self._source = True, " of the sample"
                found.clear()
            if len(found) < MOST_EXAMPLES:
                label: Label = stored.example.label_name if stored.example.HasField("label_name") else stored.example.label
                found.setdefault((frozenset(self.unmapped(stored.example).items()), label), self.labels.number(label))
            elif sampled:
                break
        self.rows = [dict(sorted(row)) for row, _ in found]
        self.targets = [_UNKNOWN if target is None else target for target in found.values()]
        if sampled and self.model.stored_examples.complete and len(found) < MOST_EXAMPLES:
            self._source = ", all that were seen"

    def unmapped(self, example: example_pb2.Example) -> dict[Feature, float]:
        """The features of a stored example but for those that the model's map made."""
        kind = example.WhichOneof("features")
        if kind is None:
            return {}
        part = getattr(example, kind)
        features: Sequence[Feature] = range(len(part.values)) if kind == "dense" else part.names if kind == "named" else part.indices
        row = dict(zip(features, part.values or [1.0] * len(features)))
        if not self.space.HasField("map"):
            return row
        if kind != "named":
            return {feature: value for feature, value in row.items() if feature < self.space.dense.dimension}  # type: ignore[operator]
        return {factors[0]: value for feature, value in row.items() if len(factors := _factors(str(feature))) == 1}

    # ---- Features ----

    def axes(self, x: Optional[Feature], y: Optional[Feature]) -> list[Feature]:
        """The one or two features that a picture is of. Raises ValueError."""
        if self.space.HasField("text"):
            raise ValueError("the examples are texts, without features to draw: draw the learning curve, or use perceptronctl explain")
        if x is None and y is not None:
            raise ValueError("y is given without x: give both, or x alone for a picture along one feature")
        if x is not None:
            chosen = [self.feature(feature) for feature in (x, y) if feature is not None]
            if len(set(chosen)) < len(chosen):
                raise ValueError(f"x and y are the same feature, {_quoted(x)}: choose two, or x alone")
            return chosen
        known: list[Any] = [*range(self.space.dense.dimension)] or sorted({feature for row in self.rows for feature in row})
        if len(known) not in (1, 2):
            raise ValueError((f"the examples have {len(known)} features" if known else "there are no examples to take features from")
                             + f": choose two, x and y, or one, x{_list(known)}")
        return known

    def feature(self, given: Feature) -> Feature:
        """Raises ValueError for a feature that neither model nor examples have."""
        if not self.by_name:
            size = self.space.dense.dimension or 1 << self.space.hashed.bits
            if not str(given).isdecimal():
                raise ValueError(f"{_quoted(given)} is not an index: the model's features are 0 to {size - 1}")
            if int(given) >= size:
                raise ValueError(f"the index {given} is out of range: the model's features are 0 to {size - 1}")
            return int(given)
        name = str(given)
        known = {str(feature) for row in self.rows for feature in row}
        if name in known:
            return name
        products = set()
        # A model that predicts by votes or a kernel has no weights with names.
        if self.model.feature_space.HasField("named") and not self.space.map.HasField("fourier") and not self._has_no_weights():
            for weight in {name for vector in self._client.weights(self._name).vectors for name in vector.names}:
                factors = _factors(weight) if self.space.HasField("map") else [weight]
                known.update(factors)
                products |= {weight} if len(factors) > 1 else set()
        if known and name not in known:
            raise ValueError(f"{_quoted(name)} is {'a product that the feature map makes' if name in products else 'no feature of the examples or the model'}"
                             + _list(sorted(known)))
        return name

    def values(self, feature: Feature) -> Any:
        return numpy.array([row.get(feature, 0) for row in self.rows], float)

    def class_number(self, label: Any) -> int:
        """The class whose weights are drawn; 1 for a model of two labels. Raises ValueError."""
        if not self.several:
            if label is not None:
                raise ValueError("label chooses a class, and the model has two labels: leave it out")
            return 1
        number = None if label is None else self._number(label)
        if number is None or number < 0:
            raise ValueError(("each class has weights: choose one by its label" if label is None else f"the model has no class {_quoted(str(label))}")
                             + _list(self.model.label_names))
        return number

    # ---- Scores ----

    def _has_no_weights(self) -> bool:
        learner = self.model.learner
        return learner.HasField("kernel_perceptron") or learner.HasField("auto") or learner.HasField("voted")

    def not_linear(self) -> str:
        """Why a score is no linear function of the examples' features; empty: it is."""
        if self.model.feature_space.HasField("composition"):
            return "the model's features are the outputs of its component models"
        if self.space.HasField("map"):
            return f"the model has the feature map {self.space.map.WhichOneof('map')}"
        return f"the score of a {self.learner} model is no sum over features" if self._has_no_weights() else ""

    def predict(self, rows: Sequence[Mapping[Feature, float]]) -> tuple[Any, int]:
        """Returns scores, a column for each class, -inf while it does not exist; of two labels one column. And the revision."""
        if not rows:
            return numpy.empty((0, self.model.learner.classes.max_classes if self.several else 1)), self.model.revision
        found = self._client.predict(self._name, rows, class_scores=self.several)
        scores = numpy.array(found.class_scores if self.several else [[score] for score in found.scores])
        return numpy.nan_to_num(scores, nan=-numpy.inf), found.revision

    def margins_of(self, scores: Any) -> Any:
        """By how much the score of each class is larger than the others; of two labels the columns are -1 and +1."""
        if not self.several:
            return numpy.concatenate([-scores, scores], axis=-1)
        ordered = numpy.sort(scores, axis=-1)
        best, second = ordered[..., -1:], ordered[..., -2:-1]
        with numpy.errstate(invalid="ignore"):
            return numpy.nan_to_num(scores - numpy.where(scores == best, second, best), nan=-1, posinf=1, neginf=-1)

    def column(self, number: int) -> int:
        """The column of a class, or of -1 or +1, in the margins."""
        return number if self.several else (number + 1) // 2

    def wrong(self) -> Any:
        """Tells which examples the model misclassifies. Equal scores count as in learning."""
        rule = self.model.learner.tie_rule

        def is_wrong(row: int, target: Optional[int]) -> bool:
            margin = 0 if target is None else -1 if target == _UNKNOWN else self.margins[row, self.column(target)]
            if margin != 0 or target is None or rule not in (learner_pb2.TIE_RULE_POSITIVE, learner_pb2.TIE_RULE_CORRECT):
                return target is not None and bool(margin <= 0)
            return bool(self.scores[row].argmax() != target) if self.several else rule == learner_pb2.TIE_RULE_POSITIVE and target < 0

        return numpy.array([is_wrong(row, target) for row, target in enumerate(self.targets)], bool)

    def affine(self, axes: Sequence[Feature], base: Mapping[Feature, float], reach: Sequence[float]) -> tuple[Any, list[Any]]:
        """Linear scores over these features, the others as in the base: where they are 0, and their slopes. reach: how far from 0 they
        are measured."""
        zero = {**base, **{feature: 0.0 for feature in axes}}
        scores, _ = self.predict([zero, *({**zero, feature: far} for feature, far in zip(axes, reach))])
        with numpy.errstate(invalid="ignore"):
            return scores[0], [numpy.nan_to_num((score - scores[0]) / far) for score, far in zip(scores[1:], reach)]

    def scores_by(self, other: learner_pb2.Weights, rows: Sequence[Mapping[Feature, float]]) -> Any:
        """Scores of two labels by other weights."""
        size = self.space.dense.dimension or (1 << self.space.hashed.bits if self.space.HasField("hashed") else 0)
        linear = LinearModel(other, size, hashed=self.by_name and self.space.HasField("hashed"))
        given: Any = rows
        if not self.by_name:
            number, feature, value = numpy.array([(number, *item) for number, row in enumerate(rows) for item in row.items()]).T
            given = scipy.sparse.csr_matrix((value, (number.astype(int), feature.astype(int))), shape=(len(rows), size))
        return numpy.concatenate([products.dots for products in linear.products(given)])[:, 0] + linear.bias[0]

    def summary(self) -> str:
        text = f"{self.learner} at revision {self.revision:,}"
        return f"{text}, {_counted(len(self.rows), 'example')}{self._source}, {int(self.wrong().sum()) or 'none'} misclassified" if self.rows else text


# ---- The boundary ----


class _Kind(NamedTuple):
    """A label, as it is drawn."""

    number: Optional[int]
    name: str
    colour: str
    shape: str


class _Boundary:
    def __init__(self, subject: _Subject, axes: Sequence[Feature], at: Mapping[Feature, float], palette: _Palette, ax: Any):
        self._subject, self._axes, self._palette, self.ax = subject, axes, palette, ax
        self.handles: list[Any] = []
        self.notes: list[str] = []
        self._linear, self._wrong = not subject.not_linear(), subject.wrong()
        self._fix({subject.feature(feature): float(value) for feature, value in at.items()})

    def _fix(self, at: Mapping[Feature, float]) -> None:
        """Fixes the features that are no axes, and notes their values."""
        subject = self._subject
        for feature, value in at.items():
            if feature in self._axes:
                raise ValueError(f"at: {_quoted(feature)} is an axis; give values of other features")
            if not abs(value) <= MOST_FLOAT32:
                raise ValueError(f"at: the value of {_quoted(feature)} must be a finite float32")
        columns = {feature: subject.values(feature) for feature in sorted({*at, *(feature for row in subject.rows for feature in row)} - {*self._axes}, key=str)}
        varied = {feature for feature, column in columns.items() if len(column) and column.min() < column.max()}
        self._base = {feature: at.get(feature, column.mean() if feature in varied else column[0] if len(column) else 0.0) for feature, column in columns.items()}
        self._projected = any((column != self._base[feature]).any() for feature, column in columns.items())
        said = [f"{_title_of(feature)} = {value:.4g}{' (mean)' if feature in varied and feature not in at else ''}"
                for feature, value in self._base.items() if feature in varied or value != 0]
        self.notes += said if len(said) <= 4 else [*(f"{_title_of(feature)} = {value:.4g}" for feature, value in at.items()),
                                                   f"the {len(said) - len(at)} other features at their means"]
        if self._projected:
            self.notes.append("marks are where the examples' own values of the axes are, and rings are of whole examples")

    def draw(self, x_range: Optional[Range], y_range: Optional[Range]) -> None:
        subject, plane = self._subject, len(self._axes) == 2
        values = [subject.values(feature) for feature in self._axes]
        ranges = [_padded(column) if len(column) else (-2.0, 2.0) for column in values]
        ranges = [given or own for given, own in zip((x_range, y_range), _equal_units(*ranges) if plane else ranges)]
        points = [numpy.linspace(low, high, self._points()) for low, high in ranges]
        scores = self._score(numpy.meshgrid(*points))
        margins = subject.margins_of(scores)
        kinds = self._kinds(margins)
        # A drawn class is predicted where its field is above 0.
        fields = [(kind, margins[..., subject.column(kind.number)]) for kind in kinds if kind.number is not None]
        margin, slope = self._margin()
        exists = self._draw_plane(points, fields, scores, margin) if plane else self._draw_line(points[0], fields, scores, margin / slope)
        areas = [kind for kind, field in fields if field.max() > 0]
        self._draw_examples(values[0], values[1] if plane else subject.scores.max(axis=1, initial=-numpy.inf), kinds, areas)
        if exists:
            self.handles.append(self._line("boundary" + exists, linewidth=2))
        else:
            self.notes.append("no boundary crosses this picture")
        if margin > 0:
            self.handles.append(self._line(f"margin {margin / slope:.4g}", linewidth=1.2, linestyle="dashed"))
        self.ax.set(xlim=ranges[0], xlabel=_wrapped(_title_of(self._axes[0])), ylabel=_wrapped(_title_of(self._axes[1])) if plane else "score")
        if plane or y_range:
            self.ax.set_ylim(ranges[1] if plane else y_range)
        if plane:
            self.ax.set_box_aspect(1)

    def _line(self, label: str, **look: Any) -> Line2D:
        return Line2D([], [], label=_wrapped(label), **{"color": self._palette.text, **look})

    def _draw_plane(self, points: Sequence[Any], fields: Sequence[tuple[_Kind, Any]], scores: Any, margin: float) -> str:
        for kind, field in fields:
            if field.max() > 0:
                self.ax.contourf(*points, field, [0, 2 * field.max()], colors=[kind.colour], alpha=0.14)
        crossed = [field for _, field in fields if field.min() < 0 < field.max()]
        # Two labels have one boundary.
        for field in crossed if self._subject.several else crossed[:1]:
            self.ax.contour(*points, field, [0], colors=[self._palette.text], linewidths=2)
        if margin > 0:
            self.ax.contour(*points, scores[..., 0], [-margin, margin], colors=[self._palette.text], linewidths=1.2, linestyles="dashed")
        return (": equal scores" if self._subject.several else ": score 0") if crossed else ""

    def _draw_line(self, xs: Any, fields: Sequence[tuple[_Kind, Any]], scores: Any, away: float) -> str:
        ends: set[float] = set()
        for kind, field in fields:
            change = numpy.flatnonzero((field[:-1] > 0) != (field[1:] > 0))
            crossings = xs[change] + (xs[change + 1] - xs[change]) * field[change] / (field[change] - field[change + 1])
            for begin, end in zip([xs[0], *crossings], [*crossings, xs[-1]]):
                if numpy.interp((begin + end) / 2, xs, field) > 0:
                    self.ax.axvspan(begin, end, color=kind.colour, alpha=0.14, linewidth=0)
            ends.update(float(f"{end:.6g}") for end in crossings)
            if self._subject.several:
                self.ax.plot(xs, scores[..., kind.number], color=kind.colour, linewidth=1.4)
        for end in ends:
            self.ax.axvline(end, color=self._palette.text, linewidth=2)
            for side in (end - away, end + away) if away > 0 else ():
                self.ax.axvline(side, color=self._palette.text, linewidth=1.2, linestyle="dashed")
        if not self._subject.several:
            self.handles += self.ax.plot(xs, scores[..., 0], color=self._palette.soft, linewidth=1.4, label="score")
            self.ax.axhline(0, color=self._palette.axis, linewidth=1)
        return f" at {', '.join(f'{end:.4g}' for end in sorted(ends))}" if 0 < len(ends) <= 4 else ":" if ends else ""

    def draw_separator(self, result: analysis_service_pb2.AnalysisResult) -> None:
        """After draw(). Raises ValueError."""
        subject = self._subject
        if not result.HasField("separator"):
            raise ValueError(f"the analysis found no separator to draw: {result.end_reason}")
        if subject.several:
            raise ValueError("a separator is drawn for models of two labels, and this one has several classes")
        if not self._linear:
            raise ValueError(f"{subject.not_linear()}, so that the separator has weights of features that the server makes")
        zero = {**self._base, **{feature: 0.0 for feature in self._axes}}
        start, *ends = subject.scores_by(result.separator, [zero, *({**zero, feature: 1.0} for feature in self._axes)])
        slopes = [end - start for end in ends]
        # The separator is scaled so that the least score is 1.
        for level in (0, -1, 1) if not self._projected else (0,):
            width, style = (1.2, "dashed") if level else (2, "solid")
            if len(slopes) == 2:
                grid = numpy.meshgrid(self.ax.get_xlim(), self.ax.get_ylim())
                field = start + slopes[0] * grid[0] + slopes[1] * grid[1] - level
                if field.min() < 0 < field.max():
                    self.ax.contour(*grid, field, [0], colors=[self._palette.best], linewidths=width, linestyles=style)
            elif slopes[0] != 0:
                self.ax.axvline((level - start) / slopes[0], color=self._palette.best, linewidth=width, linestyle=style)
        self.handles.append(self._line("separator of the analysis", color=self._palette.best, linewidth=2))
        if not self._projected and any(slopes):
            self.handles.append(self._line(f"its margin {1 / numpy.hypot.reduce(slopes):.4g}", color=self._palette.best, linewidth=1.2, linestyle="dashed"))
        rows = [subject.unmapped(one.example.example) for one in result.support_vectors]
        places = [[row.get(feature, 0) for row in rows] for feature in self._axes]
        self.handles += self.ax.plot(*places, *([] if len(slopes) == 2 else [subject.predict(rows)[0][:, 0]]), "D", markersize=13, markerfacecolor="none",
                                     markeredgecolor=self._palette.best, markeredgewidth=1.6, label=f"{_counted(len(rows), 'support vector')} of it")

    # ----

    def _points(self) -> int:
        """Along an axis: where scores are linear, as many as the picture needs."""
        if self._linear:
            return POINTS if self._subject.several else 2
        return int(max(41, min(POINTS, (MOST_NUMBERS / (len(self._base) + 2)) ** 0.5)))

    def _score(self, grid: Sequence[Any]) -> Any:
        """Scores where the axes have these values; the last dimension is a column for each score."""
        if self._linear:
            self._start, self._slopes = self._subject.affine(self._axes, self._base, [float(abs(values).max()) or 1.0 for values in grid])
            return self._start + sum(values[..., None] * slope for values, slope in zip(grid, self._slopes))
        rows = [{**self._base, **dict(zip(self._axes, point))} for point in zip(*(values.ravel().tolist() for values in grid))]
        return self._subject.predict(rows)[0].reshape(*grid[0].shape, -1)

    def _margin(self) -> tuple[float, float]:
        """The least score of the examples, and what a distance of 1 adds to a score; 0 and 1 if there is no margin."""
        labelled = [row for row, target in enumerate(self._subject.targets) if target is not None]
        if self._subject.several or not self._linear or self._projected or self._wrong.any() or not labelled:
            return 0.0, 1.0
        slope = float(numpy.hypot.reduce([slope[0] for slope in self._slopes]))
        return (float(abs(self._subject.scores[labelled]).min()), slope) if slope > 0 else (0.0, 1.0)

    def _kinds(self, margins: Any) -> list[_Kind]:
        """The labels; of several classes those with the most of the picture, as many as there are colours."""
        colours, labels = self._palette.classes, self._subject.labels
        if not self._subject.several:
            return [_Kind(1, labels.name(1), colours[0], "o"), _Kind(-1, labels.name(-1), colours[1], "s")]
        presence = (margins > 0).reshape(-1, margins.shape[-1]).sum(axis=0) + 0.0
        for target in self._subject.targets:
            presence[target if target is not None and target >= 0 else []] += 1 / MOST_EXAMPLES
        present = sorted(numpy.flatnonzero(presence).tolist(), key=lambda number: -presence[number])
        if len(present) > len(colours):
            self.notes.append(f"{_counted(len(present) - len(colours), 'other class has', 'other classes have')} no colour")
        return [_Kind(number, labels.name(number), colour, shape) for number, colour, shape in zip(sorted(present[:len(colours)]), colours, 2 * _SHAPES)]

    def _draw_examples(self, xs: Any, ys: Any, kinds: Sequence[_Kind], areas: Sequence[_Kind]) -> None:
        targets, few = self._subject.targets, len(xs) <= 400
        size = 7.5 if len(xs) <= 60 else 6 if few else 4
        drawn = {kind.number for kind in kinds}
        grey = [_Kind(None, "without a label", self._palette.axis, "D"), _Kind(_UNKNOWN, "another class", self._palette.axis, "X")]
        for kind in [*kinds, *grey]:
            chosen = numpy.array([(_UNKNOWN if target not in {*drawn, None} else target) == kind.number for target in targets], bool)
            if chosen.any():
                self.handles += self.ax.plot(xs[chosen], ys[chosen], kind.shape, color=kind.colour, markersize=size, markeredgecolor=self._palette.paper,
                                             markeredgewidth=0.7, zorder=3, label=_wrapped(kind.name))
            if kind in areas and (not self._subject.several or not chosen.any()):
                self.handles.append(Patch(color=kind.colour, alpha=0.3, linewidth=0, label=_wrapped(f"{kind.name} is predicted")))
        if self._wrong.any():
            self.handles += self.ax.plot(xs[self._wrong], ys[self._wrong], "o", markersize=size + 6, markerfacecolor="none", markeredgecolor=self._palette.text,
                                         markeredgewidth=1.5 if few else 0.8, alpha=1 if few else 0.3, zorder=4, label=f"misclassified: {self._wrong.sum():,}")
        if self._subject.several and areas:
            self.notes.insert(0, "an area has the colour of the class predicted there")


# ---- Weight space ----


class _Constraint(NamedTuple):
    """The weights w that classify an example correctly: normal · w + rest > 0."""

    label: int
    normal: Any
    rest: float
    wrong: bool

    def at(self, point: Any) -> float:
        return float(self.normal @ point + self.rest)

    def distance(self, point: Any) -> float:
        return float(abs(self.at(point)) / numpy.hypot(*self.normal))


class _WeightSpace:
    def __init__(self, subject: _Subject, axes: Sequence[Feature], number: int, palette: _Palette, ax: Any):
        self._subject, self._axes, self.number, self._palette, self.ax = subject, axes, number, palette, ax
        self.handles: list[Any] = []
        self.notes: list[str] = []
        self._values = [subject.values(feature) for feature in axes]
        bias, slopes = subject.affine(axes, {}, [float(abs(column).max(initial=0)) or 1.0 for column in self._values])
        column = number if subject.several else 0
        if not numpy.isfinite(bias[column]):
            raise ValueError(f"the class {_quoted(subject.labels.name(number))} has no weights yet: let the model learn it first")
        self._weights = numpy.array([slope[column] for slope in slopes] + [bias[column]])[:2]
        constraints = list(self._constrain())
        # The two weights do not change the scores of other examples.
        self._lines = [one for one in constraints if one.normal.any()]
        self._lost = sum(one.wrong for one in constraints if not one.normal.any())

    def _constrain(self) -> Iterable[_Constraint]:
        """With several classes an example of the drawn one compares its score with the strongest opponent's, and any other example its own class's."""
        subject = self._subject
        xs, ys = (*self._values, numpy.ones(len(subject.rows)))[:2]
        for row, (target, wrong) in enumerate(zip(subject.targets, subject.wrong())):
            if target is None or target == _UNKNOWN:
                continue
            score, sign = subject.scores[row, 0], target
            if subject.several:
                own, sign = subject.scores[row, self.number], 1 if target == self.number else -1
                score = subject.margins[row, self.number] if sign > 0 else own - subject.scores[row, target]
            if numpy.isfinite(score):
                normal = sign * numpy.array([xs[row], ys[row]])
                yield _Constraint(sign, normal, sign * score - normal @ self._weights, bool(sign * score < 0 or score == 0 and wrong))

    def draw(self) -> None:
        ranges, palette, name = self._window(), self._palette, self._subject.labels.name
        region = self._region(ranges)
        names = (name(self.number), "other classes") if self._subject.several else (name(1), name(-1))
        nearest = sorted(self._lines, key=lambda one: one.distance(self._weights))[:MOST_LINES]
        self.handles += self.ax.plot(*self._weights[:, None], "o", markersize=9, color=palette.text, markeredgecolor=palette.paper, zorder=5, label="the model")
        for label, of_label, colour, style in zip((1, -1), names, palette.classes, ("solid", _DASHED)):
            drawn = [self._draw_line(one, ranges, colour, style, _wrapped(f"an example of {of_label}")) for one in nearest if one.label == label]
            self.handles += drawn[:1]
        if region:
            self.handles += self.ax.fill(*zip(*region), color=palette.best, alpha=0.28, linewidth=0, label="all correct")
        if self._lines or self._lost:
            self.notes += ["a line's tick points to the weights that classify its example correctly",
                           *([] if region else ["no weights in this picture classify all correctly"]),
                           *([f"{_counted(self._lost, 'example is', 'examples are')} misclassified by any of these weights"] if self._lost else []),
                           *([f"the nearest {MOST_LINES} of {len(self._lines):,} lines"] if len(self._lines) > MOST_LINES else [])]
        labels = [_wrapped(f"θ, weight of {_title_of(feature)}") for feature in self._axes] + ["θ₀, bias"]
        self.ax.set(xlim=ranges[0], ylim=ranges[1], xlabel=labels[0], ylabel=labels[1])
        self.ax.set_box_aspect(1)

    def _window(self) -> Sequence[Range]:
        """Around the origin and the weights; where these are 0, as far as the lines are."""
        away = sorted(one.distance((0, 0)) for one in self._lines if one.rest != 0)
        room = 0.75 * float(numpy.hypot(*self._weights)) or (away[len(away) // 2] if away else 1.0)
        return _equal_units(*((min(0.0, weight) - room, max(0.0, weight) + room) for weight in self._weights))

    def _region(self, ranges: Sequence[Range]) -> list[Any]:
        """The part of the window that classifies all examples correctly, as a polygon (Sutherland, Hodgman 1974)."""
        (left, right), (bottom, top) = ranges
        polygon = [numpy.array(corner) for corner in ((left, bottom), (right, bottom), (right, top), (left, top))]
        for one in self._lines:
            values = [one.at(corner) for corner in polygon]
            kept = []
            for here, after, value, following in zip(polygon, polygon[1:] + polygon[:1], values, values[1:] + values[:1]):
                kept += [here] if value >= 0 else []
                kept += [here + (after - here) * value / (value - following)] if value * following < 0 else []
            polygon = kept
        # A point or a line is no region: some example has a score of 0 there.
        xs, ys = numpy.array(polygon or [numpy.zeros(2)]).T
        area = abs(xs @ numpy.roll(ys, 1) - ys @ numpy.roll(xs, 1)) / 2
        return polygon if area > 1e-9 * (right - left) * (top - bottom) and self._lines and not self._lost else []

    def _draw_line(self, one: _Constraint, ranges: Sequence[Range], colour: str, style: Any, label: str) -> Any:
        # Distances are parts of the window, since the axes may have different scales. The line begins at its point nearest to the middle.
        size, middle = numpy.ptp(ranges, axis=1), numpy.mean(ranges, axis=1)
        normal = one.normal * size
        nearest = -normal * one.at(middle) / (normal @ normal)
        normal /= numpy.hypot(*normal)
        along = normal[::-1] * (1, -1)
        line, = self.ax.plot(*zip(*(middle + size * (nearest + share * along) for share in (-2, 2))), color=colour, linestyle=style, linewidth=1.3, label=label)
        self.ax.plot(*zip(*(middle + size * (nearest + share * normal) for share in (0, 0.025))), color=colour, linewidth=2.4)
        return line


# ---- Axes, texts and numbers ----


def _finished(ax: Any, palette: _Palette, title: str, summary: str, handles: Sequence[Any], notes: Sequence[str]) -> Any:
    """Adds title and legend: beside the axes, with notes below its entries."""
    made = ax.legend(handles=[*handles, *(Line2D([], [], linestyle="none", label=_wrapped(note)) for note in notes)], loc="upper left",
                     bbox_to_anchor=(1.01, 1.02), borderaxespad=0)
    for text in made.get_texts()[len(handles):]:
        text.set(color=palette.soft, size="small")
    ax.set_title(_wrapped(title, 70), loc="left", fontsize=13, fontweight="bold", pad=26)
    ax.annotate(_wrapped(summary, 95), (0, 1), xytext=(0, 10), xycoords="axes fraction", textcoords="offset points", color=palette.soft, fontsize=9.5)
    return ax


def _new_figure() -> Any:
    from matplotlib import pyplot
    return pyplot.figure()


def _printable(text: str) -> str:
    return "".join(character if character.isprintable() else "\ufffd" for character in text)


def _wrapped(text: str, width: int = 36) -> str:
    """For matplotlib, to which a dollar begins a formula."""
    return "\n".join(textwrap.wrap(_printable(text), width)).replace("$", r"\$")


def _quoted(feature: Feature) -> str:
    return f'"{_printable(feature)}"' if isinstance(feature, str) else str(feature)


def _list(names: Sequence[Any]) -> str:
    return f"; there are {', '.join(_printable(str(name)) for name in names[:8])}{', ...' if len(names) > 8 else ''}" if names else ""


def _title_of(feature: Feature) -> str:
    return feature if isinstance(feature, str) else f"feature {feature}"


def _counted(count: int, one: str, many: str = "") -> str:
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def _id_of(model: model_pb2.Model) -> str:
    return model.name.removeprefix("models/")


def _learner_of(model: model_pb2.Model) -> str:
    return "-".join(chosen.replace("_", "-") for part in ("prediction", "rule") if (chosen := model.learner.WhichOneof(part)))


def _padded(values: Any) -> Range:
    low, high = float(values.min()), float(values.max())
    room = 0.12 * (high - low) or 0.5 * abs(high) or 1.0
    return max(low - room, -MOST_FLOAT32), min(high + room, MOST_FLOAT32)


def _equal_units(*ranges: Range) -> Sequence[Range]:
    """Widens the shorter range, so that a square has one scale; not where it would be hard to see."""
    sizes = [high - low for low, high in ranges]
    widest = max(sizes)
    return [((low + high - widest) / 2, (low + high + widest) / 2) for low, high in ranges] if widest <= 4 * min(sizes) else ranges


def _checked(given: Optional[Range], name: str) -> Optional[Range]:
    if given is not None and not -MOST_FLOAT32 <= given[0] < given[1] <= MOST_FLOAT32:
        raise ValueError(f"the range of {name} is {given[0]:g} to {given[1]:g}: give the minimum first, then the maximum, both within float32")
    return given


def _factors(name: str) -> list[str]:
    """The names of the features whose product has this name (FeatureMap)."""
    factors, characters = [""], iter(name)
    for character in characters:
        if character == "*":
            factors.append("")
        else:
            factors[-1] += next(characters, "") if character == "\\" else character
    return factors


def _dicts(examples: Any, by_name: bool) -> tuple[list[dict[Feature, float]], list[Any]]:
    """Returns examples as dicts, and the labels that are in them."""
    if hasattr(examples, "columns") and hasattr(examples, "dtypes"):
        from .frames import as_matrix, as_named
        examples = as_named(examples) if by_name else as_matrix(examples)
    if hasattr(examples, "tocsr") or isinstance(examples, NamedMatrix):
        columns: Any = examples.names if isinstance(examples, NamedMatrix) else range(examples.shape[1])
        # In a row by name a number that is missing is no feature.
        rows: list[dict[Feature, float]] = [{columns[column]: value for column, value in zip(row.indices.tolist(), row.data.tolist()) if value == value or not by_name}
                                            for row in getattr(examples, "matrix", examples).tocsr()]
        return rows, [None] * len(rows)
    if getattr(examples, "ndim", 0) == 2 or len(examples) and type(examples[0]) in (list, tuple):
        rows = [dict(enumerate(row)) for row in as_array(examples).astype(float).tolist()]
        return rows, [None] * len(rows)
    read = [as_row(example, number) for number, example in enumerate(examples)]
    if any(isinstance(row.features, str) for row in read):
        raise ValueError("examples that are texts have no features to draw")
    return [dict(row.features) for row in read], [row.label for row in read]  # type: ignore[arg-type]


# ---- The command ----

_PICTURES: dict[str, Callable[..., Any]] = {"boundary": boundary, "weight-space": weight_space, "weights": weights, "learning-curve": learning_curve}
_FORMATS = (".svg", ".png", ".pdf")
_EPILOG = """examples:
  python3 -m perceptrond.plot and -o and.svg                       the boundary, and the stored examples
  python3 -m perceptrond.plot and --separator -o and.png           with the best separator of these examples
  python3 -m perceptrond.plot iris iris.csv --label-column kind --x petal --y sepal --at width=3 -o iris.svg
  python3 -m perceptrond.plot iris --x petal -o line.svg           the score along one feature
  python3 -m perceptrond.plot and --what weight-space -o space.svg
  python3 -m perceptrond.plot spam --what learning-curve --by examples --log -o curve.svg

Misclassified examples are ringed, and a margin is drawn where there are none. Features that are no axes have their means, or what --at
says. An SVG follows its viewer's light or dark scheme.

Exit codes: 1 the server answered with an error or was not reached, or the picture cannot be written; 2 wrong usage, unreadable input, or
nothing that can be drawn."""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python3 -m perceptrond.plot", description="Draws a model.", epilog=_EPILOG,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", metavar="MODEL", help="its name, or aliases/NAME")
    parser.add_argument("examples", metavar="FILE", nargs="?", help="examples to draw: CSV with a header (default: those that the model stores)")
    parser.add_argument("-o", "--output", type=pathlib.Path, required=True, metavar="FILE", help="the picture: .svg, .png or .pdf")
    parser.add_argument("--what", choices=_PICTURES, default="boundary", help="boundary: in the plane of two features, or along one (the default); "
                        "weight-space: an example is a line in the plane of two weights; weights: the largest; learning-curve")
    parser.add_argument("--label-column", metavar="NAME", help="the column of FILE that has the labels")
    parser.add_argument("--x", metavar="FEATURE", help="its name, or its index from 0; without --y: draw along it (default: the examples' features)")
    parser.add_argument("--y", metavar="FEATURE", help="the second feature")
    parser.add_argument("--at", metavar="FEATURE=VALUE", action="append", help="boundary: value of another feature; may be repeated (default: its mean)")
    for axis in "xy":
        parser.add_argument(f"--{axis}-range", nargs=2, type=float, metavar=("MIN", "MAX"), help="boundary: what is shown (default: where the examples are)")
    parser.add_argument("--separator", action="store_true", default=None, help="boundary: analyze the stored examples, and draw the separator found")
    parser.add_argument("--label", metavar="CLASS", help="weight-space, weights: of several classes, the one drawn")
    parser.add_argument("--by", choices=("updates", "examples"), help="learning-curve: what the x axis counts (default: updates)")
    parser.add_argument("--log", action="store_true", default=None, help="learning-curve: a logarithmic x axis")
    parser.add_argument("--title", help="of the picture")
    parser.add_argument("--dark", action="store_true", default=None, help="a dark background for every viewer")
    parser.add_argument("--server", metavar="ADDRESS", help="host:port (default: $PERCEPTROND_SERVER, else 127.0.0.1:7600)")
    parser.add_argument("--tls-ca", metavar="FILE", help="certificate authorities to trust (PEM)")
    parser.add_argument("--token-file", metavar="FILE", help="a file with a token (default: $PERCEPTRONCTL_TOKEN_FILE)")
    return parser


def _read_at(text: str) -> tuple[Feature, float]:
    feature, _, value = text.rpartition("=")
    with contextlib.suppress(ValueError):
        if feature:
            return feature, float(value)
    raise ValueError(f"--at {text}: expected FEATURE=VALUE, such as age=30")


def _read_csv(path: str, label_column: Optional[str]) -> tuple[Any, Any]:
    try:
        import pandas
        # A word such as "None" is one here too.
        frame = pandas.read_csv(path, keep_default_na=False, na_values=[""])
    except ImportError:
        raise ValueError(f"{path}: CSV needs pandas: install Debian's python3-pandas, or draw the stored examples") from None
    except (OSError, ValueError) as error:
        raise ValueError(f"{path}: {error}") from None
    if label_column is None:
        return frame, None
    if label_column not in frame:
        raise ValueError(f"{path}: there is no column {_quoted(label_column)}{_list(list(frame.columns))}")
    return frame.drop(columns=label_column), frame[label_column]


def _arguments_of(flags: argparse.Namespace) -> dict[str, Any]:
    """Those of the function that draws. Raises ValueError for a flag of another picture."""
    if flags.output.suffix.lower() not in _FORMATS:
        raise ValueError(f"-o {flags.output}: end the name with the format, {', '.join(_FORMATS)}")
    given = {name: value for name, value in vars(flags).items() if value is not None and name not in ("model", "output", "what", "server", "tls_ca", "token_file")}
    if "label_column" in given and "examples" not in given:
        raise ValueError("--label-column is a column of FILE: give FILE too")
    if "examples" in given:
        given["examples"], given["labels"] = _read_csv(given["examples"], given.pop("label_column", None))
    if "at" in given:
        given["at"] = dict(map(_read_at, given["at"]))
    for name in given.keys() - inspect.signature(_PICTURES[flags.what]).parameters.keys():
        raise ValueError(f"{'FILE' if name == 'examples' else '--' + name.replace('_', '-')} has no meaning for --what {flags.what}: leave it out")
    return given


def _picture(figure: Any, form: str, dark: bool) -> bytes:
    out = io.BytesIO()
    no_date = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(form, {})
    with warnings.catch_warnings():
        if form == "svg":
            # Texts of an SVG have the viewer's fonts.
            warnings.filterwarnings("ignore", "Glyph .* missing")
        figure.savefig(out, format=form, bbox_inches="tight", pad_inches=0.15, dpi=150, metadata={"Title": figure.axes[0].get_title(loc="left"), **no_date})
    if form != "svg":
        return out.getvalue()
    # A hundredth of a point is enough for places.
    svg = re.sub(rb' (?:d|x|y)="[^"]*"', lambda found: re.sub(rb"(\.\d\d)\d+", rb"\1", found[0]), out.getvalue())
    if dark:
        return svg
    rules = "".join(f'[style*="{what}: {light}"]{{{what}:{dark_one}!important}}' for what in ("fill", "stroke")
                    for light, dark_one in (*_COLOURS.values(), *_CLASS_COLOURS))
    return svg.replace(b"</style>", f"@media (prefers-color-scheme:dark){{{rules}}}</style>".encode(), 1)


def main(arguments: Optional[Sequence[str]] = None) -> int:
    parser = _parser()
    flags = parser.parse_args(arguments)
    try:
        given = _arguments_of(flags)
        # Text stays text, and equal pictures are equal files.
        with _background(bool(flags.dark)), matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "perceptrond"}):
            figure = Figure()
            place = {"figure": figure} if flags.what == "learning-curve" else {"ax": figure.subplots()}
            with Client(flags.server, tls_ca=flags.tls_ca, token_file=flags.token_file, give_up_after=10) as client:
                if flags.separator:
                    given["separator"] = client.analyze(flags.model)
                _PICTURES[flags.what](client, flags.model, **given, **place)
            flags.output.write_bytes(_picture(figure, flags.output.suffix.lower()[1:], bool(flags.dark)))
    except (PerceptrondError, OSError) as error:
        print(f"{parser.prog}: {flags.model}: {error}", file=sys.stderr)
        return 1
    except (ValueError, TypeError) as error:
        print(f"{parser.prog}: {flags.model}: {error}\n  hint: --help has examples", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    print(f"wrote {flags.output}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
