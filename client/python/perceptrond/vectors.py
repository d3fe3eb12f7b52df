"""Vectors: exported weights, and examples times them, without a server."""

from typing import Any, Iterable, Iterator, Mapping, NamedTuple, Sequence

import numpy
import scipy.sparse

from .matrices import MOST_FLOAT32, NamedMatrix
from .v1 import learner_pb2

# Of the products that are computed at once.
_MOST_PRODUCTS = 1 << 22


class Products(NamedTuple):
    """Some rows' inner products with the vectors."""

    # A row of products for each row of the examples; without biases.
    dots: Any
    # Of the rows.
    squared_norms: Any


class Vectors:
    """Vectors of features, names or hashed names. Predicting hashed names needs the package xxhash."""

    # Of pickles that were made before there were hashed ones, and before ties were noted.
    hashed = False
    # With two labels a score of 0 is +1.
    positive_ties = False

    def __init__(self, weights: learner_pb2.Weights, dimension: int = 0, hashed: bool = False):
        """dimension: of vectors; 0: the weights are of names. hashed: examples have names, which are hashed into this many slots."""
        vectors = weights.vectors
        self.hashed = hashed
        self.names: dict[str, int] = {}
        for vector in vectors:
            for name in vector.names:
                self.names.setdefault(name, len(self.names))
        indices = [[self.names[name] for name in vector.names] if vector.names else list(vector.indices) for vector in vectors]
        values = [value for vector in vectors for value in vector.values]
        ends = numpy.cumsum([0, *map(len, indices)])
        columns = numpy.array([index for of_vector in indices for index in of_vector], numpy.int64)
        self.coef = scipy.sparse.csr_matrix((numpy.array(values, numpy.float64), columns, ends), shape=(len(vectors), dimension or len(self.names)))
        self.bias = numpy.array([vector.bias for vector in vectors])

    def products(self, examples: Any) -> Iterator[Products]:
        """examples: a matrix, a NamedMatrix or dicts of names. Yields those of some rows at a time, in their order."""
        matrix, squared_norms = self._read(examples)
        at_once = max(_MOST_PRODUCTS // max(len(self.bias), 1), 1)
        for begin in range(0, matrix.shape[0], at_once):
            rows = slice(begin, begin + at_once)
            dots = matrix[rows] @ self.coef.T
            yield Products(dots.toarray() if scipy.sparse.issparse(dots) else dots, squared_norms[rows])

    def signs(self, scores: Any) -> Any:
        """The labels of two, -1 and +1."""
        return numpy.where(scores >= 0 if self.positive_ties else scores > 0, 1, -1)

    def _read(self, examples: Any) -> tuple[Any, Any]:
        """The rows as the server has them: float32, with a column for each feature that has one. And the squared norms, which
        count the other features too."""
        if isinstance(examples, NamedMatrix):
            matrix = examples.matrix.tocsr()
            columns, values, ends = numpy.array(self._columns(examples.names), numpy.int64)[matrix.indices], matrix.data, matrix.indptr
        elif isinstance(examples, (list, tuple)):
            columns, values, ends = self._read_dicts(examples)
        else:
            matrix = examples.astype(numpy.float32).astype(numpy.float64)
            if scipy.sparse.issparse(matrix):
                matrix.sum_duplicates()
            return matrix, _squared_norms(matrix)
        values = values.astype(numpy.float32).astype(numpy.float64)
        rows = numpy.repeat(numpy.arange(len(ends) - 1), numpy.diff(ends))
        known = columns >= 0
        # Adds the values of names that share a slot.
        matrix = scipy.sparse.coo_matrix((values[known], (rows[known], columns[known])), shape=(len(ends) - 1, self.coef.shape[1])).tocsr()
        matrix.data = matrix.data.astype(numpy.float32).astype(numpy.float64)
        return matrix, _squared_norms(matrix) + numpy.bincount(rows[~known], values[~known] ** 2, len(ends) - 1)

    def _read_dicts(self, rows: Sequence[Mapping[str, float]]) -> tuple[Any, Any, Any]:
        columns: list[int] = []
        values: list[float] = []
        ends = [0]
        for row in rows:
            columns.extend(self._columns(row))
            values.extend(row.values())
            ends.append(len(columns))
        return numpy.array(columns, numpy.int64), numpy.array(values, numpy.float64), numpy.array(ends)

    def _columns(self, names: Iterable[str]) -> list[int]:
        """-1: the name has none."""
        if not self.hashed:
            return [self.names.get(name, -1) for name in names]
        try:
            import xxhash
        except ImportError:
            raise ImportError("this estimator hashes the names of features: to predict without a server, install the package xxhash (Debian's python3-xxhash)") from None
        return [xxhash.xxh3_64_intdigest(name) & (self.coef.shape[1] - 1) for name in names]


def _squared_norms(matrix: Any) -> Any:
    if scipy.sparse.issparse(matrix):
        return numpy.asarray(matrix.multiply(matrix).sum(axis=1)).ravel()
    return numpy.einsum("ij,ij->i", matrix, matrix)


def as_answered(scores: Any) -> Any:
    """The scores as a server's answer has them: float32, within its range."""
    return numpy.clip(scores, -MOST_FLOAT32, MOST_FLOAT32).astype(numpy.float32).astype(numpy.float64)
