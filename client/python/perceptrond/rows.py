"""Row: an example as a dict or a text, with its label."""

import itertools
import numbers
import sys
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
    """Whether it is None, NaN, pandas.NA or numpy.ma.masked."""
    return value is None or isinstance(value, float) and value != value or type(value).__name__ in ("NAType", "NaTType", "MaskedConstant")


def check_real(value: Any, what: str, place: Optional[tuple[int, ...]] = None) -> None:
    """Refuses what float() or NumPy makes a number of although it is none: TypeError for a time or a complex number, ValueError for what
    is masked or pandas.NA. An array is checked as a whole, by its kind and mask. what: "value", "label" or "weight". place: its row and
    column, for errors."""
    where = f"{', '.join(f'{axis} {index}' for axis, index in zip(('row', 'column'), place))}: " if place else ""
    kind = getattr(getattr(value, "dtype", None), "kind", "c" if isinstance(value, complex) else "")
    if kind in ("m", "M", "c"):
        subject = f"{what}s are" if place == () else f"the {what} is"
        advice = ("give texts" if what == "label" else "give the real and the imaginary part" if kind == "c" else
                  "make numbers of times, such as hours or weekdays")
        raise TypeError(f"{where}{subject} of {getattr(value, 'dtype', 'complex')}: {advice}")
    if type(value).__name__ in ("NAType", "NaTType"):
        raise ValueError(f"{where}the {what} is missing; leave such rows out")
    # Who has not imported NumPy has no masked array.
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, numpy.ma.MaskedArray) and value.mask.any():
        inside = tuple(numpy.argwhere(numpy.ma.getmaskarray(value))[0])
        if inside:
            check_real(numpy.ma.masked, what, (*(place or ()), *inside))
        raise ValueError(f"{where}the {what} is masked; fill it, as by numpy.ma.filled(), or leave such rows out")


# Rounds to infinity, as numbers above do.
BEYOND_FLOAT32 = 3.4028235677973366e38


def too_large(what: str, number: Any) -> ValueError:
    return ValueError(f"the {what} {number:g} is too large; numbers are from -3.4028235e38 to 3.4028235e38")


def check_all_real(given: Any, what: str, place: Optional[tuple[int, ...]] = ()) -> None:
    """The same for an array, a scipy.sparse matrix or a sequence, and for what an array of objects or a sequence holds. place: None if
    errors shall not name one."""
    check_real(given, what, place)
    if getattr(getattr(given, "dtype", None), "kind", "") == "O" and hasattr(given, "tolist"):
        given = given.tolist()
    if isinstance(given, (list, tuple)) and not _are_plain(given):
        for index, item in enumerate(given):
            check_all_real(item, what, None if place is None else (*place, index))


def _are_plain(items: Iterable[Any]) -> bool:
    """Whether they are real numbers, texts and None, or lists of such: takes no step of the interpreter for each."""
    kinds = set(map(type, items))
    if kinds and kinds <= {list, tuple}:
        kinds = set(map(type, itertools.chain.from_iterable(items)))
    # To NumPy a timedelta64 is an integer.
    return all(issubclass(kind, (numbers.Real, str, type(None))) and kind.__name__ != "timedelta64" for kind in kinds)


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
