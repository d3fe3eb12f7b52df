"""Dataset: what a user has, as the messages of a stream. Rows, dicts, texts, matrices or frames."""

import itertools
from typing import Any, Iterable, Iterator, Mapping, Optional, Sequence

from .model_check import ModelCheck
from .rows import Row, as_row, check_all_real, row_batches
from .window import Examples


# The rows of a message.
MOST_ROWS = 65536


def check_batch(batch: int, name: str = "batch") -> None:
    """Raises ValueError for what is no number of rows of a message."""
    if not hasattr(batch, "__index__") or not 1 <= batch <= MOST_ROWS:
        raise ValueError(f"{name}={batch!r}: expected a whole number, 1 to {MOST_ROWS:,}")


class Dataset:
    """Examples with their labels and weights.

    examples: a NumPy array or scipy.sparse matrix, a NamedMatrix or a pandas frame, whose columns are features by their names and which a
      dense model refuses; or an iterable of dicts {name: value} or {index: value}, of texts, or of Rows, which have their own labels and
      weights.
    labels: one each: names, or numbers as the model has them. None: Rows have theirs, or there are none.
    weights: one each, above 0. Default: 1.
    batch: the most rows of a message, 1 to 65,536.

    Raises ValueError if the lengths differ, batch is out of range or an array has masked values or finite ones beyond float32,
    TypeError for other examples and for times and complex numbers in arrays."""

    def __init__(self, examples: Any, labels: Optional[Sequence[Any]] = None, weights: Optional[Sequence[float]] = None, batch: int = 1000):
        check_batch(batch)
        check_all_real(labels, "label")
        check_all_real(weights, "weight")
        self._batch = batch
        self._matrix: Any = None
        self._rows: Iterable[Row] = ()
        self._check: Optional[ModelCheck] = None
        if _is_matrix(examples):
            self._matrix, self._labels, self._weights = _as_matrix(examples, labels is not None), labels, weights
            self.rows: Optional[int] = _row_count(self._matrix)
        elif isinstance(examples, (str, bytes, Mapping)):
            raise TypeError(f"expected an iterable of rows, not one {type(examples).__name__}")
        elif labels is None and weights is None and not hasattr(examples, "__len__"):
            self._rows, self.rows = map(as_row, examples, itertools.count()), None
        else:
            self._rows = list(map(as_row, examples, itertools.count()) if labels is None and weights is None else _zipped(examples, labels, weights))
            self.rows = len(self._rows)
        _check_lengths(self.rows, labels, weights)

    def check(self, check: ModelCheck) -> None:
        """Reads the labels as the model has them. Raises ValueError for a row that the model does not take, and names it; of an
        iterator, messages() ends before that row, and `refused` says why."""
        if self._matrix is not None:
            check.matrix(self._matrix)
            self._labels = check.labels(None if self._labels is None else _plain(self._labels))
        elif isinstance(self._rows, list):
            self._rows = list(check.rows(self._rows))
            if check.error is not None:
                raise check.error
        else:
            self._rows, self._check = check.rows(self._rows), check

    def check_names(self, check: ModelCheck) -> None:
        """Raises ValueError for a frame if the model keeps no names."""
        if self._matrix is not None:
            check.names(self._matrix)

    @property
    def refused(self) -> Optional[ValueError]:
        return None if self._check is None else self._check.error

    def messages(self, first: int = 0) -> Iterator[Examples]:
        """Yields the rows from this one on, in messages. Once only, if `rows` is None."""
        if self._matrix is None:
            rows = self._rows[first:] if isinstance(self._rows, list) else itertools.islice(self._rows, first, None)
            yield from row_batches(rows, self._batch)
            return
        from .matrices import pack_matrix
        chosen = slice(first, None)
        yield from pack_matrix(_rows_of(self._matrix, chosen), None if self._labels is None else self._labels[chosen], self._batch,
                               None if self._weights is None else self._weights[chosen])


def _is_matrix(examples: Any) -> bool:
    if isinstance(examples, (list, tuple)):
        # A list of lists of numbers; a NamedMatrix is a tuple, as is a Row.
        return hasattr(examples, "names") or bool(examples) and isinstance(examples[0], (list, tuple)) and not isinstance(examples[0], Row)
    return hasattr(examples, "tocsr") or getattr(examples, "ndim", 0) == 2


def _as_matrix(examples: Any, learned: bool) -> Any:
    if hasattr(examples, "columns") and hasattr(examples, "dtypes"):
        from .frames import as_named
        return as_named(examples, learned)
    from .matrices import as_array, check_float32
    if hasattr(examples, "tocsr") or hasattr(examples, "names"):
        check_all_real(getattr(examples, "matrix", examples), "value")
        if hasattr(examples, "names"):
            return examples
        matrix = examples.tocsr()
        check_float32(matrix)
        return matrix
    return as_array(examples)


def _row_count(matrix: Any) -> int:
    return int(getattr(matrix, "matrix", matrix).shape[0])


def _rows_of(matrix: Any, chosen: slice) -> Any:
    return matrix.rows(chosen) if hasattr(matrix, "names") else matrix[chosen]


def _zipped(examples: Iterable[Any], labels: Optional[Sequence[Any]], weights: Optional[Sequence[float]]) -> Iterator[Row]:
    examples = list(examples)
    _check_lengths(len(examples), labels, weights)
    all_labels = itertools.repeat(None) if labels is None else _plain(labels)
    all_weights = itertools.repeat(1.0) if weights is None else _plain(weights)
    for number, (example, label, weight) in enumerate(zip(examples, all_labels, all_weights)):
        features, _, _, line = as_row(example, number)
        yield Row(features, label, weight, line)


def _check_lengths(rows: Optional[int], labels: Optional[Sequence[Any]], weights: Optional[Sequence[float]]) -> None:
    for name, column in (("labels", labels), ("weights", weights)):
        if column is not None and len(column) != rows:
            raise ValueError(f"{rows} examples and {len(column)} {name}: expected as many")


def _plain(column: Any) -> Iterable[Any]:
    """As Python's own numbers and texts."""
    if hasattr(column, "tolist"):
        return column.tolist()
    return (item.item() if hasattr(item, "item") else item for item in column)
