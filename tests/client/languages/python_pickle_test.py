"""Pickles of PerceptrondClassifier of the installed package, and what is left on a real server of estimators that cannot be pickled.

    ENVIRONMENT/bin/python python_pickle_test.py PERCEPTROND
"""

import os
import pickle
import signal
import subprocess
import sys
import unittest
from unittest import mock

import joblib
import numpy
import pandas
import scipy.sparse
from sklearn.datasets import load_iris

from perceptrond import PerceptrondError
from perceptrond.sklearn import PerceptrondClassifier
from python_fixture import ServedTest

PEOPLE = [{"age": 20, "country": "DE"}, {"age": 61, "country": "FR", "member": True}, {"age": 45, "country": "DE", "member": True}, {"age": 33, "country": "US"}]
ANSWERS = ["no", "yes", "yes", "no"]
TEXTS = ["Free money now", "Lunch at noon?", "free FREE", "see you at lunch"]
WEEK = 7 * 86400


class PickleTest(ServedTest):
    def assert_predicts_locally(self, classifier, X):
        pickled = pickle.dumps(classifier)
        methods = ["predict", "decision_function", *(["predict_proba"] if hasattr(classifier, "predict_proba") else [])]
        expected = [getattr(classifier, method)(X) for method in methods]
        # Whatever server there is.
        unpickled = pickle.loads(pickled).set_params(server="127.0.0.1:1", give_up_after=0.1)
        numpy.testing.assert_array_equal(unpickled.predict(X), expected[0])
        for method, values in zip(methods[1:], expected[1:]):
            # Equal but for the rounding to float32 of weights, which are averages in float64 on the server.
            numpy.testing.assert_allclose(getattr(unpickled, method)(X), values, rtol=1e-6, atol=1e-6 * abs(values).max())
        self.assertIsNone(unpickled.model_name_)
        with self.assertRaisesRegex(ValueError, "no model on a server"):
            unpickled.report()
        with self.assertRaisesRegex(ValueError, "no model on a server"):
            unpickled.partial_fit(X, unpickled.predict(X))
        return unpickled

    def test_a_pickle_predicts_without_a_server(self):
        X, y = load_iris(return_X_y=True)
        for labels in (y == 0, y):
            for settings in ({}, {"prediction": "averaged"}, {"learner": "logistic_regression"}):
                for data in (X, scipy.sparse.csr_matrix(X)):
                    with self.subTest(classes=len(set(labels)), **settings):
                        self.assert_predicts_locally(PerceptrondClassifier(max_iter=5, **settings).fit(data, labels), data)
        self.assert_predicts_locally(PerceptrondClassifier().fit(PEOPLE, ANSWERS), PEOPLE)
        frame = pandas.DataFrame(PEOPLE)
        unpickled = self.assert_predicts_locally(PerceptrondClassifier(shuffle=False, max_iter=1000).fit(frame, ANSWERS), frame)
        self.assertEqual(list(unpickled.predict(frame)), ANSWERS)
        published = unpickled.set_params(server=None).publish("restored")
        self.addCleanup(self.client.delete, "restored")
        self.assertEqual((published.model_name_, list(published.predict(frame))), ("restored", ANSWERS))

    def test_a_pickle_of_hashed_features_predicts_without_a_server(self):
        rng = numpy.random.default_rng(2)
        rows = [{f"größe {name}": float(value) for name, value in zip(rng.choice(300, 9, replace=False), rng.integers(-4, 5, 9))} for _ in range(200)]
        rows = [{**row, "country": str(rng.choice(["DE", "FR"]))} for row in rows]
        labels = rng.integers(0, 3, 200)
        # With 32 slots, names share them.
        for bits, classes, settings in ((5, 2, {}), (18, 2, {"prediction": "averaged"}), (5, 3, {}), (12, 3, {"learner": "logistic_regression"})):
            with self.subTest(bits=bits, classes=classes):
                hashed = PerceptrondClassifier(features="hashed", feature_options={"bits": bits}, max_iter=3, random_state=1, **settings)
                self.assert_predicts_locally(hashed.fit(rows, labels % classes), rows)
        frame = pandas.DataFrame(rows[:40]).fillna(0.0)
        unpickled = self.assert_predicts_locally(hashed.fit(frame, labels[:40]), frame)
        self.addCleanup(self.client.delete, "restored", missing_ok=True)
        expected = unpickled.decision_function(frame)
        numpy.testing.assert_allclose(unpickled.set_params(server=None).publish("restored").decision_function(frame), expected, rtol=1e-6, atol=1e-6 * abs(expected).max())
        # The server finds numbered slots by themselves, as a pickle does.
        matrix = scipy.sparse.random(60, 32, 0.2, "csr", random_state=1)
        self.assert_predicts_locally(PerceptrondClassifier(features="hashed", feature_options={"bits": 5}, max_iter=3).fit(matrix, labels[:60] % 2), matrix)

    def test_a_pickle_of_hashed_features_says_which_package_it_lacks(self):
        hashed = PerceptrondClassifier(features="hashed", feature_options={"bits": 10}, max_iter=1).fit(PEOPLE, ANSWERS)
        with mock.patch("importlib.util.find_spec", lambda name: None), self.assertRaisesRegex(pickle.PicklingError, "xxhash .* is not installed"):
            pickle.dumps(hashed)

    def test_a_pickle_of_hashed_features_says_where_it_is_read_which_package_it_lacks(self):
        hashed = pickle.loads(pickle.dumps(PerceptrondClassifier(features="hashed", feature_options={"bits": 10}, max_iter=1).fit(PEOPLE, ANSWERS)))
        with mock.patch.dict(sys.modules, {"xxhash": None}), self.assertRaisesRegex(ImportError, "install the package xxhash"):
            hashed.predict(PEOPLE)

    def test_texts_cannot_be_pickled(self):
        texts = PerceptrondClassifier(feature_options={"bits": 16}).fit(TEXTS, ANSWERS)
        with self.assertRaisesRegex(pickle.PicklingError, "of texts cannot be pickled: the server makes its features.*publish"):
            pickle.dumps(texts)
        self.assertEqual(list(texts.predict(TEXTS)), ANSWERS)


class LeftTest(ServedTest):
    def test_a_worker_that_cannot_return_its_estimator_leaves_no_model(self):
        with self.assertRaisesRegex(pickle.PicklingError, "of texts cannot be pickled"):
            joblib.Parallel(n_jobs=2)([joblib.delayed(PerceptrondClassifier().fit)(TEXTS, ANSWERS)])
        self.await_models()

    def test_a_fit_that_fails_leaves_no_model(self):
        try:
            PerceptrondClassifier().fit([{"a": 1}, {"a": float("nan")}], [0, 1])
        except ValueError:
            # Before anything of it is freed.
            self.assertEqual(self.models(), [])
        else:
            self.fail("a row that cannot be learned was learned")
        kernel = PerceptrondClassifier(learner="kernel_perceptron")
        with self.assertRaisesRegex(PerceptrondError, "WEIGHTS_NOT_TAKEN"):
            joblib.Parallel(n_jobs=2)([joblib.delayed(kernel.fit)([[1.0], [-1.0]], [0, 1], sample_weight=[1, 2])])
        self.assertEqual(self.models(), [])

    def test_what_a_worker_has_begun_to_fit_expires_within_an_hour_and_what_it_has_fitted_as_any_other(self):
        seen = []

        class Observer(numpy.random.RandomState):
            def permutation(observer, rows):
                seen.extend(self.client.get(name).expire_after.seconds for name in self.models())
                return super().permutation(rows)

        with mock.patch("multiprocessing.parent_process", os.getppid):
            classifier = PerceptrondClassifier(max_iter=2, random_state=Observer(1)).fit([[1.0], [-1.0]], [0, 1])
        self.assertEqual(set(seen), {3600})
        self.assertEqual(self.client.get(classifier.model_name_).expire_after.seconds, WEEK)

    def test_what_a_killed_process_leaves_expires_and_what_is_published_stays(self):
        program = "from perceptrond.sklearn import PerceptrondClassifier; import signal\nclassifier = PerceptrondClassifier().fit([[1.0], [-1.0]], [0, 1])\nprint(classifier.model_name_, flush=True)\nsignal.pause()"
        with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, env=dict(os.environ)) as process:
            name = process.stdout.readline().strip()
            process.send_signal(signal.SIGTERM)
        self.assertEqual(self.client.get(name).expire_after.seconds, WEEK)
        self.client.delete(name)
        classifier = PerceptrondClassifier().fit(PEOPLE, ANSWERS)
        self.assertEqual(self.client.get(classifier.model_name_).expire_after.seconds, WEEK)
        self.addCleanup(self.client.delete, "published", missing_ok=True)
        classifier.publish("published")
        self.assertFalse(self.client.get("published").HasField("expire_after"))
        # What the user says of a model holds for its copy.
        self.client.update("published", expire_after="30d")
        self.addCleanup(self.client.delete, "second", missing_ok=True)
        classifier.publish("second")
        self.assertEqual(self.client.get("second").expire_after.seconds, 30 * 86400)


if __name__ == "__main__":
    unittest.main()
