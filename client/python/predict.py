#!/usr/bin/python3
"""Predicts a file of examples and, where they have labels, says how many are wrong.

    predict.py spam test.tsv
    predict.py spam test.tsv --scores      also prints each label and score, tab-separated
"""

import argparse
from typing import Sequence

import connection
import program
from columns import batches, pack
from formats import Row
from perceptron.v1 import learning_service_pb2, learning_service_pb2_grpc, model_service_pb2, model_service_pb2_grpc
from retry import with_retries


def parse_flags() -> argparse.Namespace:
    flags = connection.parser(__doc__)
    program.add_input(flags)
    flags.add_argument("--scores", action="store_true", help="print the label and the score of every example")
    return flags.parse_args()


class Summary:
    """Counts what is wrong. A label is -1, +1, or the model's name for one of them, that of -1 first."""

    def __init__(self, label_names: Sequence[str]):
        self._numbers = dict(zip(label_names, (-1, +1)))
        self._names = {number: name for name, number in self._numbers.items()}
        self.examples = self.wrong = self.revision = 0

    def add(self, row: Row, label: int) -> None:
        self.examples += 1
        self.wrong += self._numbers.get(row.label, row.label) != label

    def name(self, label: int) -> str:
        return self._names.get(label, f"{label:+d}")

    def text(self) -> str:
        return f"{self.examples} predicted at revision {self.revision}\nwrong: {self.wrong} of {self.examples} ({self.wrong / self.examples:.2%})"


def main() -> int:
    flags = parse_flags()
    name = f"models/{flags.model}"
    with connection.channel(flags) as channel:
        models = model_service_pb2_grpc.ModelServiceStub(channel)
        learning = learning_service_pb2_grpc.LearningServiceStub(channel)
        model = with_retries(lambda: models.GetModel(model_service_pb2.GetModelRequest(name=name), timeout=30), flags.patience)
        summary = Summary(model.label_names)
        for rows in batches(program.rows_of(flags), flags.batch):
            # Never from an older state than the answer before.
            request = learning_service_pb2.PredictRequest(model=name, columns=pack(rows), min_revision=summary.revision)
            answer = with_retries(lambda: learning.Predict(request, timeout=30), flags.patience)
            summary.revision = answer.revision
            for row, label, score in zip(rows, answer.labels, answer.scores):
                summary.add(row, label)
                if flags.scores:
                    # Nine digits tell every float32 from its neighbours.
                    print(f"{summary.name(label)}\t{score:.9g}")
    print(summary.text() if summary.examples else "nothing to predict: there are no examples in the file")
    return 0


if __name__ == "__main__":
    program.run(main)
