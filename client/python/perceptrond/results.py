"""What learn() and predict() return."""

import warnings
from dataclasses import dataclass, field
from typing import Optional, Union

from .errors import PerceptrondError
from .google_rpc import status_pb2
from .labels import Labels
from .rows import position_of
from .v1 import prediction_service_pb2, report_pb2
from .window import Examples, Totals


@dataclass(frozen=True)
class Learned:
    """The outcome of learn()."""

    # Sums over the answers that this call received. The model's report has those that got lost with a connection too.
    totals: Totals
    # The passes that the producer has completed.
    passes: int
    # The last of them; None: this call completed none.
    last_pass: Optional[report_pb2.PassSummary]

    @property
    def converged(self) -> bool:
        """Whether the last pass made no update."""
        return self.last_pass is not None and self.last_pass.converged


def learned(totals: Totals, first_refused: Optional[status_pb2.Status], passes: int, last_pass: Optional[report_pb2.PassSummary]) -> Learned:
    """To be called by learn(): warns of rows that were left out, since what is learned of the others may be biased. Raises
    PerceptrondError if all were."""
    if first_refused is not None and totals.examples + totals.duplicates + totals.lost_answers == 0:
        raise PerceptrondError.at(f"none of {totals.row_errors} examples was learned; the first, {totals.first_row_error_position}", first_refused)
    if totals.row_errors > 0:
        warnings.warn(f"{totals.row_errors} of {totals.row_errors + totals.examples} examples were not learned; the first, "
                      f"{totals.first_row_error_position}: {totals.first_row_error}", stacklevel=3)
    return Learned(totals, passes, last_pass)


@dataclass
class Predictions:
    """The outcome of predict(): one item a row in each list."""

    # Names, if the model has any; else numbers: -1 and +1, or classes. -1 while a model of several classes has none.
    labels: list[Union[int, str]] = field(default_factory=list)
    # s = w . x + bias; of several classes the largest. float32.
    scores: list[float] = field(default_factory=list)
    # Of learners with probabilities: that of +1; of several classes that of the predicted one. Else empty.
    probabilities: list[float] = field(default_factory=list)
    # If asked for: the score of each class. Else empty.
    class_scores: list[list[float]] = field(default_factory=list)
    # If asked for: the ids by which the labels are learned later.
    ids: list[str] = field(default_factory=list)
    # The oldest state that predicted a row.
    revision: int = 0

    def add(self, answer: prediction_service_pb2.PredictResponse, names: Labels, message: Examples) -> None:
        """Appends the rows of an answer. Raises PerceptrondError for a row with a validation error."""
        if answer.row_errors:
            row = answer.row_errors[0].row
            raise PerceptrondError.at(position_of(message, row, len(self.labels) + row), answer.row_errors[0].status)
        self.revision = min(self.revision, answer.revision) if self.labels else answer.revision
        self.labels += map(names.name_or_number, answer.predicted_labels)
        self.scores += answer.scores
        self.probabilities += answer.probabilities
        self.ids += answer.prediction_ids
        if answer.class_scores:
            width = len(answer.class_scores) // len(answer.scores)
            scores = list(answer.class_scores)
            self.class_scores += (scores[begin:begin + width] for begin in range(0, len(scores), width))
