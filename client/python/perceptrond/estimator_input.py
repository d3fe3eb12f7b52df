"""What an estimator takes: matrices, frames, dicts and texts, read into what is sent."""

import collections
import collections.abc
import numbers
from typing import Any, Iterable, Iterator, Mapping, NamedTuple, Optional

import numpy

from .frames import as_named, numeric_columns, warn_of_texts
from .matrices import NamedMatrix, pack_matrix
from .rows import Row, check_real, is_missing, row_batches
from .window import Examples

MATRIX, FRAME, DICTS, TEXTS = "a matrix", "a frame with columns that are not numbers", "dicts", "texts"


class Input(NamedTuple):
    """Examples of one kind: a matrix, a NamedMatrix, or a list of dicts or texts."""

    kind: str
    examples: Any

    def messages(self, batch: int, order: Any = None, labels: Any = None, weights: Any = None) -> Iterator[Examples]:
        """Yields the rows, in this order, in messages of at most this many. labels, weights: one a row, in the order of the rows."""
        chosen = slice(None) if order is None else order
        labels = None if labels is None else labels[chosen]
        weights = None if weights is None else weights[chosen]
        if not isinstance(self.examples, list):
            examples = self.examples.rows(chosen) if self.kind == FRAME else self.examples[chosen]
            yield from pack_matrix(examples, labels, batch, weights)
            return
        positions = range(len(self.examples)) if order is None else order.tolist()
        as_labels = [None] * len(positions) if labels is None else labels.tolist()
        as_weights = [1.0] * len(positions) if weights is None else weights.tolist()
        yield from row_batches((Row(self.examples[position], label, weight) for position, label, weight in zip(positions, as_labels, as_weights)), batch)


def kind_of(X: Any) -> str:
    """Tells by the first row. TypeError for one text, whose rows would be its letters."""
    if isinstance(X, str):
        raise TypeError("X is one text; expected a list of texts")
    # A sparse matrix may be a dict.
    if isinstance(X, Mapping) and not hasattr(X, "tocsr"):
        raise TypeError("X is one dict; expected a list of dicts")
    if isinstance(X, collections.abc.Iterator):
        raise TypeError(f"X is a {type(X).__name__}, which can be read once; expected a list: list(X)")
    if hasattr(X, "columns") and hasattr(X, "dtypes"):
        return MATRIX if all(numeric_columns(X)) else FRAME
    if getattr(X, "ndim", 1) == 1 and hasattr(X, "__len__") and len(X):
        first = next((value for value in X if not is_missing(value)), None)
        if isinstance(first, str):
            return TEXTS
        if isinstance(first, Mapping):
            return DICTS
    return MATRIX


def read(X: Any, kind: str, learned: bool = False) -> Input:
    """Reads what is no matrix. learned: X is not only predicted; warns of texts among its features. Raises TypeError or ValueError for a row of another kind, with its number."""
    if kind == FRAME:
        named = as_named(X, learned)
        finite = numpy.isfinite(named.matrix.data)
        if not finite.all():
            raise ValueError(f"Input X contains NaN or infinity in the column {named.names[named.matrix.indices[~finite][0]]!r}.")
        return Input(kind, named)
    if kind == TEXTS:
        return Input(kind, list(_checked(X, str, "a text")))
    # Of dicts first: a Mapping takes ten times as long to tell.
    rows = [_features(row, number) for number, row in enumerate(_checked(X, (dict, Mapping), "a dict"))]
    if learned:
        texts: collections.defaultdict[str, list[str]] = collections.defaultdict(list)
        for row in (row for row, read in zip(X, rows) if row is not read):
            for name, value in row.items():
                if isinstance(value, str):
                    texts[name].append(value)
        for name, values in texts.items():
            warn_of_texts(name, len(set(values)), len(values))
    return Input(kind, rows)


def _checked(rows: Iterable[Any], kind: Any, what: str) -> Iterator[Any]:
    for number, row in enumerate(rows):
        if not isinstance(row, kind):
            raise TypeError(f"row {number} is {type(row).__name__}; expected {what}, as the others are" + ("; leave it out" if is_missing(row) else ""))
        yield row


def _features(row: Mapping[Any, Any], number: int) -> Mapping[str, float]:
    """A number is a feature of its name, a text "name=text" a feature of 1."""
    if _NUMBERS.issuperset(map(type, row.values())) and _NAMES.issuperset(map(type, row)):
        return row
    features: dict[str, float] = {}
    for name, value in row.items():
        if not isinstance(name, str):
            raise TypeError(f"row {number}: the name {name!r} is {type(name).__name__}; expected a text")
        if isinstance(value, str):
            features[f"{name}={value}"] = 1.0
        elif isinstance(value, (numbers.Real, numpy.bool_)):
            check_real(value, "value")
            features[name] = float(value)
        else:
            raise TypeError(f"row {number}: the value of {name!r} is {type(value).__name__}; expected a number or a text")
    return features


_NUMBERS = {int, float}
_NAMES = {str}


def plain_labels(y: Any) -> Any:
    """y without pandas' own kinds of numbers. Raises ValueError for a label that is missing, with its row."""
    missing: Any = []
    if hasattr(y, "isna"):
        missing = numpy.flatnonzero(numpy.asarray(y.isna()))
    elif isinstance(y, numpy.ma.MaskedArray):
        missing = numpy.flatnonzero(numpy.ma.getmaskarray(y))
    elif getattr(getattr(y, "dtype", None), "kind", "") in ("m", "M"):
        missing = numpy.flatnonzero(numpy.isnat(y))
    elif isinstance(y, (list, tuple)) or getattr(getattr(y, "dtype", None), "kind", "") == "O" and getattr(y, "ndim", 0) == 1:
        missing = [row for row, label in enumerate(y) if is_missing(label)]
    if len(missing):
        raise ValueError(f"Input y contains NaN, None or what is masked: row {missing[0]} has no label; leave such rows out")
    return y.to_numpy(dtype=y.dtype.numpy_dtype) if hasattr(getattr(y, "dtype", None), "numpy_dtype") else y


def class_numbers(y: Any, classes: Any) -> Any:
    """The number of the class of each label. Raises ValueError for one that is none, such as 1 beside the class "1"."""
    numbers_of = {label: number for number, label in enumerate(classes.tolist())}
    found = [numbers_of.get(label, -1) for label in y.tolist()]
    if -1 in found:
        row = found.index(-1)
        raise ValueError(f"y has labels that are not among the classes {list(numbers_of)}: the first, row {row}, is {y.tolist()[row]!r}")
    return numpy.array(found, int)


def find(X: Any, kind: Optional[str]) -> str:
    """The kind of X. kind: that of what was fitted; a ValueError if they differ."""
    found = kind_of(X)
    if kind is None or found == kind:
        return found
    # A part of a frame may have numbers alone; an empty list may be of anything.
    if kind == FRAME and hasattr(X, "columns") or found == MATRIX and hasattr(X, "__len__") and len(X) == 0 and kind in (DICTS, TEXTS):
        return kind
    raise ValueError(f"this estimator was fitted on {kind}, and X is {found}")
