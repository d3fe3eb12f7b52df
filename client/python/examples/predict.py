#!/usr/bin/python3
"""Predicts a file of examples and, if they have labels, counts the errors.

    predict.py spam test.tsv
    predict.py spam test.tsv --scores      also prints each label and score, tab-separated
"""

import argparse

from perceptrond import Client, PerceptrondError, Row
from perceptrond.labels import Labels
from perceptrond.rows import batches
from perceptrond.v1 import learner_pb2

import flags as flag
import program


def parse_flags() -> argparse.Namespace:
    flags = flag.parser(__doc__)
    program.add_input(flags)
    flags.add_argument("--scores", action="store_true", help="print the label and the score of every example")
    return flags.parse_args()


class Summary:
    """Counts the errors among labelled examples. A score of 0 counts as when it is learned."""

    def __init__(self, labels: Labels, learner: learner_pb2.Learner):
        self._labels = labels
        # With several classes the score of 0 is like any other.
        self._zero_is_tie = not learner.HasField("classes") and learner.tie_rule != learner_pb2.TIE_RULE_POSITIVE
        self._tie_is_error = learner.tie_rule != learner_pb2.TIE_RULE_CORRECT
        self.examples = self.labelled = self.wrong = self.revision = 0

    def add(self, row: Row, label: int, score: float) -> None:
        self.examples += 1
        if row.label is not None:
            self.labelled += 1
            tie = self._zero_is_tie and score == 0
            self.wrong += self._tie_is_error if tie else self._labels.number(row.label) != label

    def text(self) -> str:
        if not self.examples:
            return "nothing to predict: there are no examples in the file"
        text = f"{self.examples} predicted at revision {self.revision}"
        return f"{text}\nerrors: {self.wrong} of {self.labelled} ({100 * self.wrong / self.labelled:.2f} %)" if self.labelled else text


def main() -> int:
    flags = parse_flags()
    client = Client(**program.settings_of(flags))
    model = client.get(flags.model)
    labels = Labels(model)
    summary = Summary(labels, model.learner)
    messages = batches(program.rows_of(flags, labels, labels_required=False), flags.batch)
    for rows, answer in client.predict_stream(model.name, messages):
        if answer.row_errors:
            raise PerceptrondError(answer.row_errors[0].status)
        summary.revision = answer.revision
        for row, label, score in zip(rows, answer.predicted_labels, answer.scores):
            summary.add(row, label, score)
            if flags.scores:
                # Nine digits identify every float32.
                print(f"{labels.name(label)}\t{score:.9g}")
    print(summary.text())
    return 0


if __name__ == "__main__":
    program.run(main)
