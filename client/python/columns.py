"""Packed columns (ExampleColumns): the server parses them with a few memory copies. From rows, which are dicts, or from a
scipy.sparse matrix, without a loop over its rows."""

import collections
import itertools
import operator
import sys
from array import array
from typing import Any, Callable, Collection, Iterator, Mapping, NamedTuple, Optional, Sequence

from examples import Label, Row
from perceptron.v1 import example_pb2


def pack(rows: Sequence[Row]) -> example_pb2.ExampleColumns:
    """Packs all rows into one message, with the names that occur in it. Features are all names or all indices. Labels are
    omitted unless all rows have one."""
    if not has_names(rows):
        return assemble(rows, number(rows))
    numbers: collections.defaultdict[str, int] = collections.defaultdict(itertools.count().__next__)
    columns = assemble(rows, number(rows, numbers))
    append_names(columns.feature_names, list(numbers))
    return columns


def pack_matrix(matrix: Any, labels: Optional[Sequence[int]] = None, batch: int = 1000) -> Iterator[example_pb2.ExampleColumns]:
    """Packs the rows of a scipy.sparse matrix, or of what csr_matrix() takes, into messages of this many. Labels are -1
    and +1, or the numbers of classes."""
    if not hasattr(matrix, "tocsr"):
        from scipy.sparse import csr_matrix
        matrix = csr_matrix(matrix)
    matrix = matrix.tocsr()
    if matrix.shape[1] > 2**32:
        raise ValueError(f"the matrix has {matrix.shape[1]} columns; indices are below 2^32")
    if not matrix.has_canonical_format:
        # The server requires that indices ascend strictly.
        matrix = matrix.copy()
        matrix.sum_duplicates()
    for begin in range(0, matrix.shape[0], batch):
        ends = matrix.indptr[begin:begin + batch + 1]
        of_message = slice(ends[0], ends[-1])
        columns = example_pb2.ExampleColumns(row_ends=(ends[1:] - ends[0]).tolist())
        values = matrix.data[of_message]
        merge_packed(columns, example_pb2.ExampleColumns.INDICES_FIELD_NUMBER, matrix.indices[of_message].astype("<u4").tobytes())
        if (values != 1).any():
            merge_packed(columns, example_pb2.ExampleColumns.VALUES_FIELD_NUMBER, values.astype("<f4").tobytes())
        if labels is not None:
            columns.labels.extend(map(int, labels[begin:begin + batch]))
        yield columns


def copy(columns: example_pb2.ExampleColumns, into: example_pb2.ExampleColumns) -> None:
    """Copies a message into an empty one, by its bytes: CopyFrom() and constructors copy number by number, which takes 30
    times as long."""
    into.SetInParent()
    into.MergeFromString(columns.SerializeToString())


# ---- Parts, which name_table.py uses too ----


def has_names(rows: Sequence[Row]) -> bool:
    # The first feature that there is tells.
    return any(isinstance(feature, str) for row in rows for feature in itertools.islice(row.features, 1))


class Numbered(NamedTuple):
    """Rows whose features have numbers, ascending within each row."""

    row_ends: list[int]
    indices: list[int]
    values: list[float]


def number(rows: Sequence[Row], numbers: Optional[Mapping[str, int]] = None, fits: Callable[[], bool] = lambda: True) -> Numbered:
    """Numbers the features of rows, up to the first row after which fits() is false. numbers: None for features that are
    indices."""
    row_ends: list[int] = []
    indices: list[int] = []
    values: list[float] = []
    for row in rows:
        # The interpreter takes a few steps a row, none a feature.
        of_row = list(row.features.values())
        numbered = row.features if numbers is None else _items(numbers, row.features)
        ascending = sorted(numbered)
        if of_row.count(1.0) != len(of_row):
            of_row = _items(dict(zip(numbered, of_row)), ascending)
        if not fits():
            break
        indices += ascending
        values += of_row
        row_ends.append(len(indices))
    return Numbered(row_ends, indices, values)


def _items(mapping: Mapping[Any, Any], keys: Collection[Any]) -> Sequence[Any]:
    """Returns the items of all keys. Twice as fast as map(mapping.__getitem__, keys)."""
    return operator.itemgetter(*keys)(mapping) if len(keys) > 1 else [mapping[key] for key in keys]


def assemble(rows: Sequence[Row], numbered: Numbered) -> example_pb2.ExampleColumns:
    """Returns a message of these rows without the names that the numbers are of."""
    columns = example_pb2.ExampleColumns(row_ends=numbered.row_ends)
    merge_packed(columns, example_pb2.ExampleColumns.INDICES_FIELD_NUMBER, _little_endian(array("I", numbered.indices)))
    # Absent values are 1.
    if numbered.values.count(1.0) != len(numbered.values):
        merge_packed(columns, example_pb2.ExampleColumns.VALUES_FIELD_NUMBER, _little_endian(array("f", numbered.values)))
    _pack_labels(rows, columns)
    return columns


def append_names(column: example_pb2.NameColumn, names: Sequence[str]) -> None:
    """Appends names. The column is present then, though there may be none."""
    column.SetInParent()
    column.text = "".join(names)
    column.lengths.extend(map(len, names if column.text.isascii() else (name.encode() for name in names)))


def merge_packed(columns: example_pb2.ExampleColumns, field: int, numbers: bytes) -> None:
    """Adds numbers of four bytes to a repeated field. Parsed from their bytes, they are copied at once; extend() converts
    one after the other, which takes three times as long from a list, and more from a numpy array."""
    columns.MergeFromString(bytes([field << 3 | 2]) + _varint(len(numbers)) + numbers)


def _little_endian(numbers: array) -> bytes:
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers.tobytes()


def _varint(number: int) -> bytes:
    encoded = bytearray()
    while number > 127:
        encoded.append(number & 127 | 128)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)


def _pack_labels(rows: Sequence[Row], columns: example_pb2.ExampleColumns) -> None:
    labels: list[Optional[Label]] = [row.label for row in rows]
    if None in labels:
        return
    if all(isinstance(label, int) for label in labels):
        columns.labels.extend(labels)
        return
    # The message has the names of the labels, and for each row the position of its name.
    positions = {name: i for i, name in enumerate(dict.fromkeys(labels))}
    columns.label_names.extend(positions)
    columns.labels.extend(map(positions.__getitem__, labels))
