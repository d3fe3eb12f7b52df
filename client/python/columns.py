"""Rows as packed columns, which the server parses with a few memory copies."""

import itertools
from typing import Iterable, Iterator, Sequence

from formats import Row
from perceptron.v1 import example_pb2


def pack(rows: Sequence[Row]) -> example_pb2.ExampleColumns:
    """Packs all rows into one message. Their features are all names or all indices. Labels are omitted unless all rows
    have one."""
    columns = example_pb2.ExampleColumns()
    by_name = any(isinstance(feature, str) for row in rows for feature in row.features)
    if by_name:
        # The server requires names sorted by UTF-8 bytes, which is Python's order by code points.
        columns.feature_names.extend(sorted({name for row in rows for name in row.features}))
    position = {name: i for i, name in enumerate(columns.feature_names)}
    for row in rows:
        indexed = sorted((position[feature] if by_name else feature, value) for feature, value in row.features.items())
        columns.indices.extend(index for index, _ in indexed)
        columns.values.extend(value for _, value in indexed)
        columns.row_ends.append(len(columns.indices))
    _pack_labels(rows, columns)
    return columns


def _pack_labels(rows: Sequence[Row], columns: example_pb2.ExampleColumns) -> None:
    labels = [row.label for row in rows]
    if any(label is None for label in labels):
        return
    if all(isinstance(label, int) for label in labels):
        columns.labels.extend(labels)
        return
    # The message has the names of the labels, and for each row the index of its name.
    columns.label_names.extend(sorted(set(labels)))
    columns.labels.extend(columns.label_names[:].index(label) for label in labels)


def batches(rows: Iterable[Row], size: int) -> Iterator[list[Row]]:
    """Yields the rows in batches of this size."""
    remaining = iter(rows)
    while batch := list(itertools.islice(remaining, size)):
        yield batch
