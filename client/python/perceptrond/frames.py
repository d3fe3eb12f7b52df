"""Pandas frames as matrices."""

import decimal
import numbers
import warnings
from typing import Any, Union

import numpy
import scipy.sparse

from .matrices import MOST_FLOAT32, NamedMatrix
from .rows import is_missing


# Of a column, to tell texts from categories.
FEWEST_VALUES = 20


def as_matrix(frame: Any, learned: bool = False) -> Union[Any, NamedMatrix]:
    """An array if all columns are numbers; else a NamedMatrix: a number is a feature of its column's name, any other value (also
    a number that is a category of its column) a feature "column=value" of 1. A missing value (None, NaN) of a column that is not
    of numbers is no feature, one of numbers is NaN. learned: the frame is not only predicted; warns of a column of texts.

    Raises TypeError for a column of times, lists or the like, and ValueError for two features of one name and a number beyond float32;
    they name the column.
    Works on whole columns; takes no loop over the rows."""
    for position, kind in enumerate(frame.dtypes):
        _check_kind(frame.columns[position], kind, frame, position)
    frame = _with_dense_objects(frame)
    numeric = numeric_columns(frame)
    if all(numeric) and any(hasattr(kind, "numpy_dtype") or kind == object for kind in frame.dtypes):
        return numpy.column_stack([_numbers(frame.columns[position], frame.iloc[:, position]) for position in range(len(numeric))])
    if all(numeric):
        matrix = frame.to_numpy(dtype=numpy.float64)
        if _is_beyond_float32(matrix):
            check_numbers(frame)
        return matrix
    names: list[str] = []
    rows, columns, values = [], [], []
    everything = numpy.arange(len(frame))
    for position, is_number in enumerate(numeric):
        name, column = str(frame.columns[position]), frame.iloc[:, position]
        if is_number:
            rows.append(everything)
            columns.append(numpy.full(len(frame), len(names)))
            values.append(_numbers(name, column))
            names.append(name)
        else:
            codes, uniques = _factorize(name, column)
            present = codes >= 0
            if learned:
                warn_of_texts(name, len(uniques), int(present.sum()))
            # A column of objects may have numbers among its texts.
            as_number = [isinstance(value, _NUMBERS) and column.dtype == object for value in uniques]
            features = [name if is_number else f"{name}={value}" for value, is_number in zip(uniques, as_number)]
            position_of = {feature: number for number, feature in enumerate(dict.fromkeys(features), len(names))}
            rows.append(everything[present])
            columns.append(numpy.array([position_of[feature] for feature in features], int)[codes[present]])
            of_uniques = [_float(value) if is_number else 1.0 for value, is_number in zip(uniques, as_number)]
            values.append(_checked(name, numpy.array(of_uniques, numpy.float64)[codes[present]], everything[present]))
            names += position_of
    _check_names(names)
    data, ij = numpy.concatenate(values), (numpy.concatenate(rows), numpy.concatenate(columns))
    # Zeros add nothing to a score, and would take a weight.
    kept = data != 0
    matrix = scipy.sparse.coo_matrix((data[kept], (ij[0][kept], ij[1][kept])), shape=(len(frame), len(names)))
    return NamedMatrix(matrix.tocsr(), names)


def as_named(frame: Any, learned: bool = False) -> NamedMatrix:
    """The same, with the names also if all columns are numbers."""
    matrix = as_matrix(frame, learned)
    if isinstance(matrix, NamedMatrix):
        return matrix
    names = [str(column) for column in frame.columns]
    _check_names(names)
    return NamedMatrix(scipy.sparse.csr_matrix(matrix), names)


def _check_names(names: list[str]) -> None:
    if len(set(names)) < len(names):
        twice = next(name for number, name in enumerate(names) if name in names[:number])
        raise ValueError(f"two features of the frame have the name {twice!r}: rename a column")


def warn_of_texts(name: str, different: int, values: int) -> None:
    """Of values that hardly recur: as features they separate what was learned, and say nothing of what comes."""
    if values >= FEWEST_VALUES and different > 0.9 * values:
        warnings.warn(f"{different} of {values} values of {name!r} are different, and each is a feature that new rows will hardly have: give texts "
                      f"alone (the column, not a frame), which the server splits into words; leave out identifiers", stacklevel=2)


def _check_kind(name: Any, dtype: Any, frame: Any, position: int) -> None:
    """Raises TypeError for times: each would be a feature of its own, which no other row has."""
    from pandas.api.types import infer_dtype
    kind = str(dtype)
    if kind == "object":
        kind = infer_dtype(frame.iloc[:, position], skipna=True)
    if kind.startswith(("datetime", "timedelta", "period", "date", "time", "complex")):
        raise TypeError(f"the column {name!r} is of {kind}: make numbers of it, such as hours or weekdays, or texts by astype(str)")


def numeric_columns(frame: Any) -> list[bool]:
    """Whether each column is of numbers."""
    frame = _with_dense_objects(frame)
    return [_holds_numbers(frame.iloc[:, position]) for position in range(len(frame.columns))]


def _with_dense_objects(frame: Any) -> Any:
    """A row of sparse and other columns has sparse columns of objects: they are made plain ones."""
    sparse = [position for position, kind in enumerate(frame.dtypes) if getattr(kind, "subtype", None) == object]
    if sparse:
        frame = frame.copy(deep=False)
    for position in sparse:
        frame.isetitem(position, numpy.asarray(frame.iloc[:, position].array, dtype=object))
    return frame


def _holds_numbers(column: Any) -> bool:
    """Whether all values that are not missing are numbers: also those of a column of objects, which a row of a frame becomes.
    Booleans with missing values are not: those are no features."""
    from pandas.api.types import infer_dtype, is_bool_dtype, is_numeric_dtype
    if column.dtype == object:
        kind = infer_dtype(column, skipna=True)
        return kind in ("decimal", "floating", "integer", "mixed-integer-float") or kind == "boolean" and not column.isna().any()
    return bool(is_numeric_dtype(column.dtype) or is_bool_dtype(column.dtype))


_NUMBERS = (numbers.Real, numpy.bool_, decimal.Decimal)


def check_numbers(frame: Any) -> None:
    """Raises ValueError for a number beyond float32, with its column and row."""
    for position, is_number in enumerate(numeric_columns(frame)):
        if is_number:
            _numbers(frame.columns[position], frame.iloc[:, position])


def _numbers(name: Any, column: Any) -> Any:
    """Raises ValueError for one beyond float32."""
    missing = {"na_value": numpy.nan} if (hasattr(column.dtype, "numpy_dtype") or column.dtype == object) and column.isna().any() else {}
    try:
        return _checked(name, column.to_numpy(dtype=numpy.float64, **missing))
    except OverflowError:
        return _checked(name, numpy.array([numpy.nan if is_missing(value) else _float(value) for value in column]))


def _float(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:
        return numpy.inf if value > 0 else -numpy.inf


def _is_beyond_float32(values: Any) -> bool:
    return values.size > 0 and bool(numpy.fmax.reduce(values, axis=None) > MOST_FLOAT32 or numpy.fmin.reduce(values, axis=None) < -MOST_FLOAT32)


def _checked(name: Any, values: Any, rows: Any = None) -> Any:
    """rows: of the values, if not each has one."""
    if _is_beyond_float32(values):
        first = int((abs(values) > MOST_FLOAT32).argmax())
        raise ValueError(f"row {first if rows is None else rows[first]}: the number in the column {str(name)!r} is infinite or beyond float32, "
                         f"{MOST_FLOAT32:.1e}: divide the column, or take logarithms")
    return values


def _factorize(name: str, column: Any) -> tuple[Any, Any]:
    """Returns the number of each value, -1 for a missing one, and the values."""
    import pandas
    try:
        return pandas.factorize(column)
    except TypeError:
        value = column.dropna().iloc[0]
        raise TypeError(f"the column {name!r} has values such as a {type(value).__name__}; expected numbers, texts or categories") from None
