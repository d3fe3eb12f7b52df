"""VotingModel: what votes on a label, the weights of a voted model or the members of `auto`, without a server."""

from typing import Any, NamedTuple, Optional

import numpy

from .calls import WeightPages
from .served import Answers
from .v1 import learner_pb2
from .vectors import Products, Vectors, as_answered


class Term(NamedTuple):
    """As perceptron.v1.ScoreTerm."""

    coefficient: float
    score: int
    rival: Optional[int]
    first_of_member: bool
    votes: Optional[float]


class VotingModel(Vectors):
    """The scores are shares of the votes; of two labels, that for +1 less that for -1. Equal to the server's but for votes on rows whose
    scores are within rounding in float64 of a tie."""

    def __init__(self, listed: WeightPages, learner: learner_pb2.Learner, dimension: int = 0, hashed: bool = False):
        """listed: the model's terms."""
        super().__init__(listed.weights, dimension, hashed)
        self.terms = [Term(term.coefficient, term.score, term.rival if term.HasField("rival") else None, term.first_of_member,
                           term.votes if term.HasField("votes") else None) for term in listed.terms]
        self.two_labels = not learner.HasField("classes")
        # Members do not vote where their scores tie; weights of a voted model do.
        self.members = learner.HasField("auto")

    def answers(self, examples: Any, classes: int = 0) -> Answers:
        """examples: as Vectors.products() has them."""
        parts = [self._shares(products) for products in self.products(examples)]
        shares = numpy.concatenate(parts or [numpy.empty((0, self._labels()))])
        if self.two_labels:
            scores = shares[:, 1] - shares[:, 0]
            return Answers(self.signs(scores), as_answered(scores), numpy.empty((0, 1)))
        known = numpy.where(numpy.isnan(shares), -numpy.inf, shares)
        return Answers(known.argmax(axis=1), as_answered(known.max(axis=1)), as_answered(shares))

    def _labels(self) -> int:
        return 2 if self.two_labels else max((term.score for term in self.terms), default=0) + 1

    def _shares(self, products: Products) -> Any:
        """The share of each label in the votes on each row: -1 and +1, or classes; NaN: the class does not exist."""
        rows = len(products.dots)
        votes, everyone = numpy.zeros((rows, self._labels())), 0.0
        # Of two labels the first is 0, so that the score is the second's. Minus infinity: the class does not exist.
        scores = numpy.full(votes.shape, 0.0 if self.two_labels else -numpy.inf)
        for number, term in enumerate(self.terms):
            if term.first_of_member:
                scores.fill(0.0 if self.two_labels else -numpy.inf)
            moved = term.coefficient * (products.dots[:, number] + self.bias[number])
            own = 1 if self.two_labels else term.score
            if scores[0, own] == -numpy.inf:
                scores[:, own] = 0
            scores[:, own] += moved
            if term.rival is not None:
                scores[:, term.rival] -= moved
            if term.votes is not None:
                everyone += term.votes
                self._vote(scores, term.votes, votes)
        with numpy.errstate(invalid="ignore"):
            shares = votes / everyone if everyone > 0 else votes
        return numpy.where(scores == -numpy.inf, numpy.nan, shares)

    def _vote(self, scores: Any, vote: float, votes: Any) -> None:
        """Adds a vote for the label of the largest score of each row; of equal ones the first, or with two labels by the tie rule."""
        largest = scores.max(axis=1)
        # Of equal ones argmax() has the first.
        chosen = (scores[:, 1] >= 0).astype(int) if self.two_labels and self.positive_ties else scores.argmax(axis=1)
        voters = (scores == largest[:, numpy.newaxis]).sum(axis=1) == 1 if self.members else slice(None)
        votes[numpy.arange(len(votes))[voters], chosen[voters]] += vote
