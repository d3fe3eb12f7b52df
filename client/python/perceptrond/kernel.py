"""KernelModel: the support examples of a kernel perceptron, which predict without a server."""

from typing import Any

import numpy

from .calls import WeightPages
from .served import Answers
from .v1 import learner_pb2
from .vectors import Products, Vectors, as_answered

# The server limits values of kernels.
_MOST = 1e150


class KernelModel(Vectors):
    """The score is the sum of a_i K(x_i, x) over the support examples x_i, as perceptron/v1/learner.proto defines K. Equal to the server's
    but for rounding in float64: a label may differ where |s| is at most some 2^-50 sum |a_i K(x_i, x)|."""

    def __init__(self, listed: WeightPages, learner: learner_pb2.Learner, dimension: int = 0, hashed: bool = False):
        """listed: the model's terms."""
        super().__init__(listed.weights, dimension, hashed)
        self.coefficients = numpy.array([term.coefficient for term in listed.terms], numpy.float64)
        self.squared_norms = numpy.asarray(self.coef.multiply(self.coef).sum(axis=1)).ravel()
        kernel = learner.kernel_perceptron.kernel
        self.gamma = kernel.rbf.gamma if kernel.HasField("rbf") else None
        self.coef0, self.degree = (kernel.polynomial.coef0, kernel.polynomial.degree) if kernel.HasField("polynomial") else (0.0, 1)
        self.squared_bias = learner.bias_input ** 2

    def answers(self, examples: Any, classes: int = 0) -> Answers:
        """examples: as Vectors.products() has them."""
        parts = [self._kernels(products) @ self.coefficients for products in self.products(examples)]
        scores = numpy.concatenate(parts or [numpy.empty(0)])
        return Answers(self.signs(scores), as_answered(scores), numpy.empty((0, 1)))

    def _kernels(self, products: Products) -> Any:
        """K of each row with each support example."""
        if self.gamma is not None:
            distances = products.squared_norms[:, numpy.newaxis] + self.squared_norms - 2 * products.dots
            return numpy.exp(-self.gamma * numpy.maximum(distances, 0)) + self.squared_bias
        with numpy.errstate(over="ignore"):
            powers = numpy.clip(self.coef0 + products.dots, -_MOST, _MOST) ** self.degree
        return numpy.clip(numpy.clip(powers, -_MOST, _MOST) + self.squared_bias, -_MOST, _MOST)
