"""LinearModel: exported weights that predict without a server."""

from typing import Any, Iterable, Mapping, Sequence

import numpy
import scipy.sparse

from .matrices import NamedMatrix
from .served import Answers
from .v1 import learner_pb2


class LinearModel:
    """The weights of a model of vectors, names or hashed names, as they predict. Scores are float32, as the server's."""

    # Of pickles that were made before there were hashed ones.
    hashed = False

    def __init__(self, weights: learner_pb2.Weights, dimension: int = 0, hashed: bool = False):
        """dimension: of vectors; 0: the weights are of names. hashed: examples have names, which are hashed into this many slots;
        predicting them needs the package xxhash."""
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

    def weights(self) -> learner_pb2.Weights:
        """The weights as the API has them."""
        names, coef = list(self.names), self.coef
        made = learner_pb2.Weights()
        for row, bias in enumerate(self.bias):
            of_row = slice(coef.indptr[row], coef.indptr[row + 1])
            columns = coef.indices[of_row].tolist()
            made.vectors.add(values=coef.data[of_row].tolist(), bias=bias, **({"names": [names[i] for i in columns]} if names else {"indices": columns}))
        return made

    def answers(self, examples: Any, classes: int = 0) -> Answers:
        """examples: a matrix, a NamedMatrix or dicts of names."""
        scores = (self._product(examples) + self.bias).astype(numpy.float32).astype(numpy.float64)
        if scores.shape[1] == 1:
            scores = scores.ravel()
            return Answers(numpy.where(scores > 0, 1, -1), scores, numpy.empty((0, 1)))
        return Answers(scores.argmax(axis=1), scores.max(axis=1), scores)

    def _product(self, examples: Any) -> Any:
        if isinstance(examples, NamedMatrix):
            known = numpy.array(self._columns(examples.names), numpy.int64)
            # A name without a weight adds nothing.
            matrix, coef = examples.matrix.tocsc()[:, known >= 0].tocsr(), self.coef[:, known[known >= 0]]
        elif isinstance(examples, (list, tuple)):
            matrix, coef = self._matrix_of(examples), self.coef
        else:
            matrix, coef = examples, self.coef
        product = matrix.astype(numpy.float32).astype(numpy.float64) @ coef.T
        return product.toarray() if scipy.sparse.issparse(product) else product

    def _matrix_of(self, rows: Sequence[Mapping[str, float]]) -> Any:
        indices: list[int] = []
        values: list[float] = []
        ends = [0]
        for row in rows:
            for column, value in zip(self._columns(row), row.values()):
                if column >= 0:
                    indices.append(column)
                    values.append(value)
            ends.append(len(indices))
        return scipy.sparse.csr_matrix((values, indices, ends), shape=(len(rows), self.coef.shape[1]))

    def _columns(self, names: Iterable[str]) -> list[int]:
        """-1: the name has no weight."""
        if not self.hashed:
            return [self.names.get(name, -1) for name in names]
        import xxhash
        return [xxhash.xxh3_64_intdigest(name) & (self.coef.shape[1] - 1) for name in names]
