"""LinearModel: exported weights that predict without a server."""

from typing import Any

import numpy

from .served import Answers
from .v1 import learner_pb2
from .vectors import Vectors, as_answered


class LinearModel(Vectors):
    """The weights of a model, as they predict: one vector, or one for each class."""

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
        """examples: as Vectors.products() has them."""
        parts = [products.dots for products in self.products(examples)]
        scores = numpy.concatenate(parts or [numpy.empty((0, len(self.bias)))]) + self.bias
        if scores.shape[1] == 1:
            scores = scores.ravel()
            return Answers(self.signs(scores), as_answered(scores), numpy.empty((0, 1)))
        return Answers(scores.argmax(axis=1), as_answered(scores.max(axis=1)), as_answered(scores))
