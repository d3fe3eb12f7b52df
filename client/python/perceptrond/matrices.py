"""Packed columns of matrices, without a loop over their rows: NumPy arrays, scipy.sparse matrices, and matrices whose
columns have names. Needs NumPy; scipy only for its own matrices."""

import numbers
from typing import Any, Iterator, NamedTuple, Optional, Sequence

import numpy

from .columns import MOST_NAME_BYTES, MOST_UINT32, append_names, merge_packed, pack_labels
from .rows import BEYOND_FLOAT32, check_all_real, is_missing, too_large
from .v1 import example_pb2

# Of one message, so that it stays far below the server's limit (--max-message-bytes, 16 MiB).
MOST_NUMBERS = 1 << 19
MOST_FLOAT32 = float(numpy.finfo(numpy.float32).max)
_Columns = example_pb2.ExampleColumns


class NamedMatrix(NamedTuple):
    """A scipy.sparse matrix, and the names of its columns."""

    matrix: Any
    names: Sequence[str]

    def rows(self, chosen: Any) -> "NamedMatrix":
        return NamedMatrix(self.matrix[chosen], self.names)


def pack_matrix(matrix: Any, labels: Optional[Sequence[Any]] = None, batch: int = 1000,
                weights: Optional[Sequence[float]] = None) -> Iterator[example_pb2.ExampleColumns]:
    """Packs the rows of a matrix into messages of at most this many, and fewer if they are long: of a NamedMatrix, a
    scipy.sparse matrix, or what numpy.asarray() takes. Labels are -1 and +1, the numbers of
    classes, or names; weights above 0.

    Raises TypeError for times and complex numbers, ValueError for masked values, missing labels, more than 2^32 columns and finite numbers beyond float32. None among
    the values of an array of objects is NaN, and texts are the numbers that they are. Infinite values and NaN are the server's to refuse."""
    check_all_real(labels, "label")
    check_all_real(weights, "weight")
    if isinstance(matrix, NamedMatrix):
        parts = _pack_sparse(_canonical(matrix.matrix), batch, matrix.names)
    elif hasattr(matrix, "tocsr"):
        parts = _pack_sparse(_canonical(matrix), batch, None)
    else:
        parts = _pack_dense(as_array(matrix), batch)
    as_labels = None if labels is None else _labels(labels)
    as_weights = None if weights is None else numpy.asarray(weights, "<f4")
    if as_weights is not None and (as_weights == 1).all():
        as_weights = None
    begin = 0
    for columns, rows in parts:
        of_message = slice(begin, begin + rows)
        if as_labels is not None and as_labels.dtype.kind in "iu":
            columns.labels.extend(as_labels[of_message].tolist())
        elif as_labels is not None:
            pack_labels(as_labels[of_message].tolist(), columns)
        if as_weights is not None:
            merge_packed(columns, _Columns.WEIGHTS_FIELD_NUMBER, as_weights[of_message].tobytes())
        begin += rows
        yield columns


def as_array(matrix: Any) -> Any:
    """A dense matrix as an array. Raises TypeError for times and complex numbers, ValueError for masked values and finite ones beyond
    float32."""
    # Also before, since an array that is no masked one has masked values as they were.
    check_all_real(matrix, "value")
    array = numpy.asarray(matrix)
    check_all_real(array, "value")
    check_float32(array)
    return array


def check_float32(matrix: Any) -> None:
    """Raises ValueError for a finite number beyond float32 in an array or a scipy.sparse matrix in CSR form, with its row."""
    values = matrix.data if hasattr(matrix, "indptr") else matrix
    if values.dtype.kind not in "fO" or values.dtype.itemsize <= 4 or values.size == 0:
        return
    if values.dtype == object:
        # Texts and None are read when they are packed.
        values = numpy.array([_double(value) for value in values.flat]).reshape(values.shape)
    # fmax() and fmin() skip NaN, and need no copy.
    if numpy.fmax.reduce(values, axis=None) < BEYOND_FLOAT32 and numpy.fmin.reduce(values, axis=None) > -BEYOND_FLOAT32:
        return
    wrong = (abs(values) >= BEYOND_FLOAT32) & numpy.isfinite(values)
    if not wrong.any():
        return
    first = int(wrong.argmax())
    row = int((matrix.indptr <= first).sum()) - 1 if hasattr(matrix, "indptr") else numpy.unravel_index(first, values.shape)[0]
    raise ValueError(f"row {row}: {too_large('value', values.flat[first])}")


def _double(value: Any) -> float:
    """0 for what is no number."""
    try:
        return float(value) if isinstance(value, numbers.Real) else 0.0
    except OverflowError:
        return 1e308 if value > 0 else -1e308


def _labels(labels: Sequence[Any]) -> Any:
    array = numpy.asarray(labels)
    given = labels if isinstance(labels, (list, tuple)) else array.tolist() if array.dtype.kind in "fO" else ()
    if not {int, str}.issuperset(map(type, given)):
        for row, label in enumerate(given):
            if is_missing(label):
                raise ValueError(f"row {row}: the label is missing; leave such rows out")
    # 1.0 is the label 1.
    return array.astype(numpy.int64) if array.dtype.kind in "fub" and (array == array.astype(numpy.int64)).all() else array


def _canonical(matrix: Any) -> Any:
    """As CSR, with strictly ascending indices, as the server requires."""
    matrix = matrix.tocsr()
    check_all_real(matrix, "value")
    if matrix.shape[1] > MOST_UINT32 + 1:
        raise ValueError(f"the matrix has {matrix.shape[1]} columns; indices are below 2^32")
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    check_float32(matrix)
    return matrix


def _pack_sparse(matrix: Any, batch: int, names: Optional[Sequence[str]]) -> Iterator[tuple[example_pb2.ExampleColumns, int]]:
    begin, rows = 0, matrix.shape[0]
    bytes_of_names = numpy.array([len(str(name).encode(errors="replace")) for name in names or ()], int)
    while begin < rows:
        first = matrix.indptr[begin]
        fits = int(numpy.searchsorted(matrix.indptr, first + MOST_NUMBERS, "right")) - 1
        end = max(min(begin + batch, fits, rows), begin + 1)
        if bytes_of_names.sum() > MOST_NAME_BYTES:
            end = _with_short_names(matrix, begin, end, bytes_of_names)
        ends = matrix.indptr[begin:end + 1]
        of_message = slice(first, ends[-1])
        columns = example_pb2.ExampleColumns(row_ends=(ends[1:] - first).tolist())
        indices, values = matrix.indices[of_message], matrix.data[of_message]
        if names is not None:
            used, indices = numpy.unique(indices, return_inverse=True)
            append_names(columns.feature_names, [names[column] for column in used])
        merge_packed(columns, _Columns.INDICES_FIELD_NUMBER, indices.astype("<u4").tobytes())
        if (values != 1).any():
            merge_packed(columns, _Columns.VALUES_FIELD_NUMBER, _float32(values).tobytes())
        yield columns, end - begin
        begin = end


def _with_short_names(matrix: Any, begin: int, end: int, bytes_of_names: Any) -> int:
    """The end of the rows whose names fit into a message with those before them, at most this one; at least one row."""
    while end > begin + 1:
        used = numpy.unique(matrix.indices[matrix.indptr[begin]:matrix.indptr[end]])
        if bytes_of_names[used].sum() <= MOST_NAME_BYTES:
            break
        end = (begin + 1 + end) // 2
    return end


def _pack_dense(matrix: Any, batch: int) -> Iterator[tuple[example_pb2.ExampleColumns, int]]:
    if matrix.ndim != 2 or matrix.shape[1] == 0:
        raise ValueError(f"expected a matrix of rows and columns, not an array of the shape {matrix.shape}")
    rows, width = matrix.shape
    batch = max(min(batch, MOST_NUMBERS // width), 1)
    for begin in range(0, rows, batch):
        part = matrix[begin:begin + batch]
        columns = example_pb2.ExampleColumns(dense_width=width)
        merge_packed(columns, _Columns.VALUES_FIELD_NUMBER, _float32(part).tobytes())
        yield columns, len(part)


def _float32(values: Any) -> Any:
    # Integers that are long, and texts of such.
    with numpy.errstate(over="ignore"):
        return values.astype("<f4")


