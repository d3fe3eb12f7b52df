"""The figures of `perceptronctl predict --summary` beside scikit-learn's, from a real server.

    ENVIRONMENT/bin/python summary_figures_test.py PERCEPTROND PERCEPTRONCTL
"""

import json
import subprocess
import sys
import unittest

import numpy
from sklearn.datasets import load_iris
from sklearn.metrics import brier_score_loss, log_loss
from sklearn.preprocessing import scale

PERCEPTRONCTL = sys.argv.pop(2)
from python_fixture import ServedTest  # noqa: E402: it takes the server's path from the command line


class SummaryFiguresTest(ServedTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        rows, cls.labels = load_iris(return_X_y=True)
        cls.rows = scale(rows)

    def predict(self, model, labels, *flags):
        lines = [",".join(map(str, [label, *row])) for label, row in zip(labels, self.rows)]
        command = [PERCEPTRONCTL, "--server", self.server.address, "predict", model, "-", "--format", "csv", "--no-header", "--label-column", "1",
                   "-o", "json", *flags]
        printed = subprocess.run(command, input="\n".join(lines), check=True, capture_output=True, text=True).stdout
        return [json.loads(line) for line in printed.splitlines()]

    def test_of_several_classes(self):
        self.create("iris", features=4, learner="logistic-regression", classes=3)
        order = numpy.random.default_rng(1).permutation(len(self.labels))
        self.client.learn("iris", self.rows[order], self.labels[order], producer="file")
        answers = self.predict("iris", self.labels, "--all-scores")
        # log_loss() takes a probability of 0 for the least that its type tells from 0.
        probabilities = numpy.array([answer["classProbabilities"] for answer in answers], numpy.float32)
        [summary] = self.predict("iris", self.labels, "--summary")
        self.assertAlmostEqual(summary["logLoss"], log_loss(self.labels, probabilities), delta=1e-5)
        each = [brier_score_loss(self.labels == number, probabilities[:, number]) for number in range(3)]
        self.assertAlmostEqual(summary["brierScore"], sum(each), delta=1e-6)
        # Without --summary nothing but the usual answer is asked for.
        self.assertEqual(self.predict("iris", self.labels)[0]["classProbabilities"], [])

    def test_of_two_labels(self):
        labels = numpy.where(self.labels == 1, 1, -1)
        self.create("versicolor", features=4, learner="logistic-regression")
        self.client.learn("versicolor", self.rows, labels, producer="file")
        probabilities = numpy.array([answer["probabilities"][0] for answer in self.predict("versicolor", labels)], numpy.float32)
        [summary] = self.predict("versicolor", labels, "--summary")
        self.assertAlmostEqual(summary["logLoss"], log_loss(labels, probabilities), delta=1e-5)
        self.assertAlmostEqual(summary["brierScore"], brier_score_loss(labels, probabilities, pos_label=1), delta=1e-6)


if __name__ == "__main__":
    unittest.main()
