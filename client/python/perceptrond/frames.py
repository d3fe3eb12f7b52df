"""Pandas frames as matrices."""

from typing import Any, Union

import numpy
import scipy.sparse

from .matrices import NamedMatrix


def as_matrix(frame: Any) -> Union[Any, NamedMatrix]:
    """An array if all columns are numbers; else a NamedMatrix: a number is a feature of its column's name, any other value a
    feature "column=value" of 1. A missing value (None, NaN) of a column that is not of numbers is no feature.

    Works on whole columns; takes no loop over the rows."""
    from pandas.api.types import is_bool_dtype, is_numeric_dtype
    numeric = [is_numeric_dtype(kind) or is_bool_dtype(kind) for kind in frame.dtypes]
    if all(numeric):
        return frame.to_numpy(dtype=numpy.float64)
    names: list[str] = []
    rows, columns, values = [], [], []
    everything = numpy.arange(len(frame))
    for position, is_number in enumerate(numeric):
        name, column = str(frame.columns[position]), frame.iloc[:, position]
        if is_number:
            rows.append(everything)
            columns.append(numpy.full(len(frame), len(names)))
            values.append(column.to_numpy(dtype=numpy.float64))
            names.append(name)
        else:
            codes, uniques = _factorize(column)
            present = codes >= 0
            rows.append(everything[present])
            columns.append(codes[present] + len(names))
            values.append(numpy.ones(int(present.sum())))
            names += [f"{name}={value}" for value in uniques]
    data, ij = numpy.concatenate(values), (numpy.concatenate(rows), numpy.concatenate(columns))
    # Zeros add nothing to a score, and would take a weight.
    kept = data != 0
    matrix = scipy.sparse.coo_matrix((data[kept], (ij[0][kept], ij[1][kept])), shape=(len(frame), len(names)))
    return NamedMatrix(matrix.tocsr(), names)


def _factorize(column: Any) -> tuple[Any, Any]:
    """Returns the number of each value, -1 for a missing one, and the values."""
    import pandas
    return pandas.factorize(column)
