"""Row: an example as a dict or a text, with its label."""

import itertools
from typing import Any, Iterable, Iterator, Mapping, NamedTuple, Optional, TypeVar, Union

Label = Union[int, str]
# By name, by index, or a text, which models of a text space split themselves.
Features = Union[Mapping[str, float], Mapping[int, float], str]


# The characters of a message of texts, and the features of another: so that it, with its names or n-grams, stays below the
# server's limits.
MOST_TEXT = 1 << 19
MOST_FEATURES = 1 << 18


class Row(NamedTuple):
    """One example."""

    features: Features
    # A number: -1 or +1, or of several classes the class from 0; or a name (Example.label_name). None: for predictions.
    label: Optional[Label] = None
    # Above 0 and finite. How much the example counts in an update (Example.weight).
    weight: float = 1
    # The line of the file that it was read from, from 1, which errors name.
    line: Optional[int] = None


def as_row(example: Any, number: int) -> Row:
    """number: of the row, for errors. Raises TypeError."""
    # Of dicts first: a Mapping takes ten times as long to tell.
    if isinstance(example, (dict, str, Mapping)):
        return Row(example)
    if isinstance(example, Row):
        return example
    raise TypeError(f"row {number}: an example is a dict, a text, a Row or a row of a matrix, not {type(example).__name__}")


def is_missing(value: Any) -> bool:
    """Whether it is None, NaN or pandas.NA."""
    return value is None or isinstance(value, float) and value != value or type(value).__name__ in ("NAType", "NaTType")


def position_of(examples: Any, index: int, number: int) -> str:
    """Where a row is in what a user gave: the line of its file, or its number. index: in its message, of Rows or columns."""
    line = examples[index].line if isinstance(examples, (list, tuple)) else None
    return f"row {number}" if line is None else f"line {line}"


Item = TypeVar("Item")


def batches(rows: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """Yields the rows in batches of this size."""
    remaining = iter(rows)
    while batch := list(itertools.islice(remaining, size)):
        yield batch


def row_batches(rows: Iterable[Row], size: int) -> Iterator[list[Row]]:
    """Yields the rows in batches of at most this many; long ones make smaller ones."""
    for batch in batches(rows, size):
        yield from _short_enough(batch, MOST_TEXT if isinstance(batch[0].features, str) else MOST_FEATURES)


def _short_enough(batch: list[Row], most: int) -> Iterator[list[Row]]:
    begin = length = 0
    for end, row in enumerate(batch):
        length += len(row.features)
        if length > most and end > begin:
            yield batch[begin:end]
            begin, length = end, len(row.features)
    yield batch[begin:]
