"""Pickles of estimators that predict by votes or a kernel, in a process that reaches no server.

    ENVIRONMENT/bin/python python_votes_test.py PERCEPTROND
"""

import os
import pickle
import subprocess
import sys
import unittest

import numpy
import pandas
import scipy.sparse
from sklearn.datasets import load_breast_cancer, load_iris

from perceptrond.sklearn import PerceptrondClassifier
from perceptrond.v1 import feature_space_pb2
from python_fixture import ServedTest

PROGRAM = """
import pickle, sys
with open(sys.argv[1], "rb") as file:
    cases = pickle.load(file)
with open(sys.argv[1], "wb") as file:
    pickle.dump([(estimator.predict(X), estimator.decision_function(X)) for estimator, X in cases], file)
"""
KERNELS = ({"rbf": {"gamma": 0.02}}, {"polynomial": {"degree": 3, "coef0": 0.5}}, {"linear": {}})
VOTES = ({"learner": "auto"}, {"prediction": "voted"}, {"prediction": "voted", "learner": "passive_aggressive_i", "prediction_options": {"budget": 15}})


def estimators(kernels=KERNELS, votes=VOTES, **settings):
    settings = {"max_iter": 3, "random_state": 1, **settings}
    for kernel in kernels:
        yield PerceptrondClassifier(learner="kernel_perceptron", learner_options={"kernel": kernel, "budget": 90}, **settings)
    for vote in votes:
        yield PerceptrondClassifier(**vote, **settings)


def dicts(seed, count, names):
    """Rows of some of the names, whose values are whole numbers."""
    rng = numpy.random.default_rng(seed)
    return [{f"größe {name}": float(value) for name, value in zip(rng.choice(names, 8, replace=False), rng.integers(-4, 5, 8))} | {"country": str(rng.choice(["DE", "FR"]))}
            for _ in range(count)]


def total(row):
    return sum(value for value in row.values() if not isinstance(value, str))


class VotesTest(ServedTest):
    def assert_pickles_predict(self, cases):
        """cases: fitted estimators, and examples that they were not fitted on."""
        expected = [(estimator.predict(X), estimator.decision_function(X)) for estimator, X in cases]
        path = self.directory / "cases"
        path.write_bytes(pickle.dumps([(estimator, X) for estimator, X in cases]))
        # Nothing listens there.
        subprocess.run([sys.executable, "-c", PROGRAM, path], check=True, timeout=120, env={**os.environ, "PERCEPTROND_SERVER": "127.0.0.1:1"})
        for (estimator, _), (labels, scores), (local_labels, local_scores) in zip(cases, expected, pickle.loads(path.read_bytes())):
            with self.subTest(estimator):
                self.assertGreater(numpy.ptp(scores), 0.01)
                numpy.testing.assert_array_equal(local_labels, labels)
                # A unit in the last place of float32.
                numpy.testing.assert_allclose(local_scores, scores, rtol=2e-7, atol=1e-12 * abs(scores).max())

    def test_of_matrices(self):
        X, y = load_breast_cancer(return_X_y=True)
        X = (X - X.mean(axis=0)) / X.std(axis=0)
        cases = [(estimator.fit(data[:300], y[:300]), data[300:]) for data in (X, scipy.sparse.csr_matrix(X)) for estimator in estimators()]
        # More weights than a page has.
        wide = numpy.random.default_rng(3).normal(scale=0.25, size=(600, 400))
        cases += [(estimator.fit(wide[:400], wide[:400, 0] * wide[:400, 1] > 0), wide[400:]) for estimator in estimators()]
        cases += [(estimator.fit(wide[:400], wide[:400, 0] > 0), wide[400:]) for estimator in estimators(kernels=(), bias_input=0.5)]
        voted = cases[-2][0]
        self.assertGreater(self.client.get(voted.model_name_).revision * wide.shape[1], 65536)
        self.assert_pickles_predict(cases)

    def test_of_several_classes(self):
        X, y = load_iris(return_X_y=True)
        names = numpy.array(["setosa", "versicolor", "virginica"])[y]
        rows = dicts(5, 300, 60)
        labels = [int(total(row)) % 4 for row in rows]
        self.assert_pickles_predict(
            [(estimator.fit(X[::2], names[::2]), X[1::2]) for estimator in estimators(kernels=())]
            + [(estimator.fit(rows[:200], labels[:200]), rows[200:]) for estimator in estimators(kernels=())])

    def test_of_names_that_the_model_has_and_has_not(self):
        rows = dicts(7, 400, 150)
        labels = [row["country"] == "DE" or total(row) > 0 for row in rows]
        # Of the held-out rows, names that no row before had count in their norms.
        held_out = [*rows[300:], *({**row, "never seen": 2.5} for row in rows[300:])]
        frame = pandas.DataFrame(rows).fillna(0.0)
        cases = [(estimator.fit(rows[:300], labels[:300]), held_out) for estimator in estimators()]
        cases += [(estimator.fit(frame[:300], labels[:300]), frame[300:]) for estimator in estimators()]
        # With 32 slots, names share them, also within a row.
        for bits in (5, 14):
            cases += [(estimator.fit(rows[:300], labels[:300]), held_out) for estimator in estimators(features="hashed", feature_options={"bits": bits})]
        self.assert_pickles_predict(cases)

    def test_ties_are_predicted_as_the_server_does(self):
        rng = numpy.random.default_rng(9)
        X = rng.integers(-2, 3, (400, 4)).astype(float)
        # Whole numbers, and no bias: many scores are 0.
        X[300:340] = 0
        for several in (False, True):
            y = rng.integers(0, 3 if several else 2, 400)
            self.assert_pickles_predict([(estimator.fit(X[:300], y[:300]), X[300:])
                                         for estimator in estimators(() if several else ({"linear": {}}, {"polynomial": {"degree": 3, "coef0": 0}}), bias_input=0)])
        # A model whose ties are +1.
        cases = []
        for number, estimator in enumerate(estimators(({"linear": {}},), (*VOTES, {}), bias_input=0)):
            rule = {"learner": estimator.learner, "learner_options": estimator.learner_options, "prediction": estimator.prediction, "prediction_options": estimator.prediction_options}
            self.create(f"positive-{number}", features=4, tie_rule="positive", bias_input=0, **rule)
            estimator.set_params(model=f"positive-{number}").partial_fit(X[:300], y[:300] > 0, classes=[False, True])
            self.assertTrue(estimator.predict(numpy.zeros((1, 4))).all())
            cases.append((estimator, X[300:]))
        self.assert_pickles_predict(cases)

    def test_cannot_learn_on_or_be_published(self):
        X, y = load_iris(return_X_y=True)
        for estimator in estimators():
            unpickled = pickle.loads(pickle.dumps(estimator.fit(X, y == 0)))
            with self.subTest(estimator):
                with self.assertRaisesRegex(ValueError, "no model on a server.*publish the estimator before it is pickled"):
                    unpickled.partial_fit(X, y == 0)
                with self.assertRaisesRegex(ValueError, "votes or a kernel.*publish the estimator before it is pickled"):
                    unpickled.publish("never")
                self.assertFalse(hasattr(unpickled, "coef_"))
                # It pickles again.
                numpy.testing.assert_array_equal(pickle.loads(pickle.dumps(unpickled)).predict(X), estimator.predict(X))

    def test_of_a_model_whose_features_the_server_makes_there_is_none(self):
        self.create("mapped", features=feature_space_pb2.FeatureSpace(named={}, map={"polynomial": {"degree": 2}}))
        estimator = PerceptrondClassifier(model="mapped").partial_fit([{"a": 1.0, "b": 2.0}, {"a": -1.0}], [1, 0], classes=[0, 1])
        with self.assertRaisesRegex(pickle.PicklingError, "with a feature map cannot be pickled: the server makes its features.*publish"):
            pickle.dumps(estimator)


if __name__ == "__main__":
    unittest.main()
