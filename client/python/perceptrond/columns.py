"""Packed columns (ExampleColumns): the server parses them with a few memory copies. From rows; matrices has those of
matrices."""

import collections
import itertools
import math
import operator
import sys
from array import array
from typing import Any, Callable, Collection, Iterable, Iterator, Mapping, NamedTuple, Optional, Sequence, Union

from .rows import BEYOND_FLOAT32, Label, Row, check_all_real, check_real, position_of, too_large
from .v1 import example_pb2

MOST_UINT32 = 2**32 - 1
# Bytes of a name, as the server has it.
MOST_NAME = 1024
# Bytes of the names of a message, so that it stays far below the server's limit (--max-message-bytes, 16 MiB).
MOST_NAME_BYTES = 1 << 22
_Columns = example_pb2.ExampleColumns


def pack(rows: Sequence[Row]) -> example_pb2.ExampleColumns:
    """Packs all rows into one message, with the names that occur in it. Features are all names, all indices or all texts.
    Labels are omitted unless all rows have one; weights, if all are 1."""
    return pack_first(rows, sys.maxsize)[0]


def pack_first(rows: Sequence[Row], most_name_bytes: int = MOST_NAME_BYTES) -> tuple[example_pb2.ExampleColumns, int]:
    """The same for the first rows, and how many: fewer than all if their names are long, but one."""
    if has_texts(rows):
        # Of anything else str() would make a text.
        if not all(isinstance(row.features, str) for row in rows):
            raise TypeError("features among texts")
        columns = example_pb2.ExampleColumns(texts=[str(row.features) for row in rows])
        _pack_targets(rows, columns)
        return columns, len(rows)
    if not has_names(rows):
        return assemble(rows, number(rows)), len(rows)
    numbers: collections.defaultdict[str, int] = collections.defaultdict(itertools.count().__next__)
    added = AddedNames(numbers, MOST_UINT32, most_name_bytes)
    numbered = number(rows, numbers, added.fit)
    fitting = len(numbered.row_ends)
    if fitting == 0:
        return pack(rows[:1]), 1
    columns = assemble(rows[:fitting], numbered)
    append_names(columns.feature_names, added.names())
    return columns, fitting


def packed_parts(messages: Iterable[Union[Sequence[Row], example_pb2.ExampleColumns]]
                 ) -> Iterator[tuple[Union[Sequence[Row], example_pb2.ExampleColumns], example_pb2.ExampleColumns]]:
    """Yields each message with its columns, in parts if its names are long."""
    first = 0
    for message in messages:
        if isinstance(message, example_pb2.ExampleColumns):
            yield message, message
            first += count(message)
            continue
        rest: Optional[Sequence[Row]] = message
        while rest is not None:
            try:
                columns, fitting = pack_first(rest)
            except PACKING_ERRORS as error:
                raise at_its_row(rest, error, lambda index: first + index) from error
            yield rest[:fitting], columns
            first, rest = first + fitting, rest[fitting:] or None


def packed(examples: Union[Sequence[Row], example_pb2.ExampleColumns]) -> example_pb2.ExampleColumns:
    if isinstance(examples, example_pb2.ExampleColumns):
        return examples
    try:
        return pack(examples)
    except PACKING_ERRORS as error:
        raise at_its_row(examples, error, lambda index: index) from error


def count(examples: Union[Sequence[Row], example_pb2.ExampleColumns]) -> int:
    """The number of rows."""
    if not isinstance(examples, example_pb2.ExampleColumns):
        return len(examples)
    if examples.dense_width:
        return len(examples.values) // examples.dense_width
    return len(examples.row_ends) or len(examples.texts) or len(examples.prediction_ids)


def copy(columns: example_pb2.ExampleColumns, into: example_pb2.ExampleColumns) -> None:
    """Copies a message into an empty one, by its bytes: CopyFrom() and constructors copy number by number, which takes 30
    times as long."""
    into.SetInParent()
    into.MergeFromString(columns.SerializeToString())


# ---- Parts, which name_table.py uses too ----


def has_texts(rows: Sequence[Row]) -> bool:
    return bool(rows) and isinstance(rows[0].features, str)


def has_names(rows: Sequence[Row]) -> bool:
    # The first feature that there is tells.
    return any(isinstance(feature, str) for row in rows for feature in itertools.islice(row.features, 1))


class MixedFeatures(TypeError):
    """A row of another kind than those before it."""

    def __init__(self, index: int, said: str):
        super().__init__(said)
        # The position of the row.
        self.index = index


def find_mixed(rows: Sequence[Row]) -> Optional[MixedFeatures]:
    """The first row that is no text, or whose features are not names, or not indices, as those before it are. To be called for
    rows that cannot be packed: it takes a step a feature."""
    named: Optional[bool] = None
    for index, row in enumerate(rows):
        if isinstance(row.features, str) != has_texts(rows):
            return MixedFeatures(index, "features; expected a text, as the rows before it" if has_texts(rows) else "a text; expected features, as the rows before it")
        for feature in row.features if isinstance(row.features, Mapping) else ():
            named = isinstance(feature, str) if named is None else named
            if isinstance(feature, str) != named:
                return MixedFeatures(index, f"the feature {feature!r} is {type(feature).__name__}; expected {'a name' if named else 'an index'}, as the features before it are")
    return None


# What rows that cannot be packed raise.
PACKING_ERRORS = (ArithmeticError, AttributeError, TypeError, ValueError)


def at_its_row(rows: Sequence[Row], error: Exception, number_of: Callable[[int], int]) -> Exception:
    """The error of the first row that cannot be packed, with its position. number_of: from the index of a row to its number in
    what a user gave."""
    mixed = find_mixed(rows)
    if mixed is not None:
        return TypeError(f"{position_of(rows, mixed.index, number_of(mixed.index))}: {mixed}")
    for index, row in enumerate(rows):
        try:
            # Before they are compared, which pandas.NA says nothing useful about.
            check_all_real(list(row.features.values()) if isinstance(row.features, Mapping) else (), "value", None)
            check_real(row.weight, "weight")
            pack([row])
        except PACKING_ERRORS as of_row:
            kind = TypeError if isinstance(of_row, (AttributeError, TypeError)) else ValueError
            return kind(f"{position_of(rows, index, number_of(index))}: {of_row}{_category_hint(row.features)}")
    return error


def _category_hint(features: Any) -> str:
    category = next((item for item in features.items() if isinstance(item[1], str)), None) if isinstance(features, Mapping) else None
    if category is None:
        return ""
    name, value = (f"{part}"[:40] for part in category)
    return f"; make a category a feature, {{{f'{name}={value}'!r}: 1}}, as PerceptrondClassifier and frames do"


class AddedNames:
    """The names that rows add to a table, as many as a message may have."""

    def __init__(self, numbers: dict[str, int], most: int, most_bytes: int = MOST_NAME_BYTES):
        """numbers: the table, in the order in which names are added."""
        self._numbers, self._most, self._most_bytes = numbers, most, most_bytes
        self._known = self._fitting = len(numbers)
        self._bytes = 0

    def fit(self) -> bool:
        """Whether the names of one more row, which are in the table now, are not too many."""
        if len(self._numbers) == self._fitting:
            return True
        self._bytes += len("".join(self._latest(len(self._numbers) - self._fitting)).encode())
        if len(self._numbers) - self._known > self._most or self._bytes > self._most_bytes:
            return False
        self._fitting = len(self._numbers)
        return True

    def names(self) -> list[str]:
        """Those of the rows that fit. Removes the others from the table."""
        for name in self._latest(len(self._numbers) - self._fitting):
            del self._numbers[name]
        return self._latest(self._fitting - self._known)[::-1]

    def _latest(self, count: int) -> list[str]:
        return list(itertools.islice(reversed(self._numbers), count))


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
        features: Mapping[Any, float] = row.features  # type: ignore[assignment]  # no text
        of_row: Sequence[float] = list(features.values())
        numbered = features if numbers is None else _items(numbers, features)
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
    merge_packed(columns, _Columns.INDICES_FIELD_NUMBER, _little_endian(array("I", numbered.indices)))
    # Absent values are 1.
    if numbered.values.count(1.0) != len(numbered.values):
        merge_packed(columns, _Columns.VALUES_FIELD_NUMBER, _floats(numbered.values, "value"))
    _pack_targets(rows, columns)
    return columns


def append_names(column: example_pb2.NameColumn, names: Sequence[str]) -> None:
    """Appends names. The column is present then, though there may be none."""
    column.SetInParent()
    try:
        column.text = "".join(names)
    except TypeError:
        other = next(name for name in names if not isinstance(name, str))
        raise TypeError(f"the feature {other!r} is {type(other).__name__}; expected a name, as others of its message are") from None
    lengths = list(map(len, names if column.text.isascii() else (name.encode() for name in names)))
    if lengths and not 0 < min(lengths) <= max(lengths) <= MOST_NAME:
        wrong = next(index for index, length in enumerate(lengths) if not 0 < length <= MOST_NAME)
        raise ValueError(f"the name {names[wrong][:40]!r} has {lengths[wrong]:,} bytes; expected 1 to {MOST_NAME:,}" + (": give a long text to a model of texts" if lengths[wrong] else ""))
    column.lengths.extend(lengths)


def merge_packed(columns: example_pb2.ExampleColumns, field: int, numbers: bytes) -> None:
    """Adds numbers of four bytes to a repeated field. Parsed from their bytes, they are copied at once; extend() converts
    one after the other, which takes three times as long from a list, and more from a numpy array."""
    columns.MergeFromString(bytes([field << 3 | 2]) + _varint(len(numbers)) + numbers)


def _floats(numbers: Sequence[float], what: str) -> bytes:
    """Raises ValueError for a finite number beyond float32; what is infinite or NaN is the server's to refuse."""
    check_all_real(numbers, what, None)
    encoded = _little_endian(array("f", numbers))
    # Hardly ever: bytes of an infinite one.
    if b"\x00\x00\x80\x7f" in encoded or b"\x00\x00\x80\xff" in encoded:
        for number in numbers:
            if BEYOND_FLOAT32 <= abs(number) < math.inf:
                raise too_large(what, number)
    return encoded


def _little_endian(numbers: "array[Any]") -> bytes:
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


def _pack_targets(rows: Sequence[Row], columns: example_pb2.ExampleColumns) -> None:
    weights = [row.weight for row in rows]
    if weights.count(1) != len(weights):
        merge_packed(columns, _Columns.WEIGHTS_FIELD_NUMBER, _floats(weights, "weight"))
    labels = [row.label for row in rows]
    if None not in labels:
        pack_labels(labels, columns)


def pack_labels(labels: Iterable[Optional[Label]], columns: example_pb2.ExampleColumns) -> None:
    """Numbers, or names."""
    labels = list(labels)
    if all(isinstance(label, int) for label in labels):
        columns.labels.extend(labels)
        return
    # The message has the names of the labels, and for each row the position of its name.
    positions = {name: i for i, name in enumerate(dict.fromkeys(labels))}
    columns.label_names.extend(positions)
    columns.labels.extend(map(positions.__getitem__, labels))
