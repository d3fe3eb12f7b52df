"""PerceptrondClassifier of the installed package against a real server: scikit-learn's own checks, and scikit-learn's Perceptron as
the reference.

    ENVIRONMENT/bin/python python_estimator_test.py PERCEPTROND
"""

import contextlib
import gc
import io
import pickle
import re
import threading
import unittest
import warnings
from unittest import mock

import numpy
import pandas
import scipy.sparse
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.feature_extraction import DictVectorizer
from sklearn.linear_model import Perceptron
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator, check_estimators_pickle, check_sample_weights_invariance, check_sample_weights_not_overwritten

from perceptrond import PerceptrondError
from perceptrond.sklearn import PerceptrondClassifier, expected_failures
from perceptrond.settings import LEARNERS
from python_fixture import ServedTest, texts_are_supported

PEOPLE = [{"age": 20, "country": "DE"}, {"age": 61, "country": "FR", "member": True}, {"age": 45, "country": "DE", "member": True}, {"age": 33, "country": "US"}]
ANSWERS = ["no", "yes", "yes", "no"]


def whole_numbers(rows=300, columns=8, seed=17):
    """Data of which sums in any precision are exact, and which have no separator."""
    rng = numpy.random.default_rng(seed)
    X = rng.integers(-5, 6, (rows, columns)).astype(float)
    y = numpy.where(X @ rng.integers(-3, 4, columns) + rng.integers(-6, 7, rows) > 0, 1, 0)
    return X, y


def assert_close(scores, expected):
    """Equal but for the rounding to float32 of weights, which are averages in float64 on the server."""
    numpy.testing.assert_allclose(scores, expected, rtol=1e-6, atol=1e-6 * abs(expected).max())


class CheckEstimatorTest(ServedTest):
    def check(self, estimator):
        for one, check in check_estimator(estimator, generate_only=True):
            with self.subTest(str(check)), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    check(one)
                except unittest.SkipTest as skipped:
                    reasons = expected_failures(estimator.learner, estimator.prediction).values()
                    self.assertTrue(any(reason in str(skipped) for reason in reasons), skipped)
        gc.collect()
        self.await_models()

    def test_the_perceptron_passes(self):
        self.check(PerceptrondClassifier())

    def test_the_averaged_perceptron_passes(self):
        self.check(PerceptrondClassifier(prediction="averaged"))

    def test_logistic_regression_passes(self):
        self.check(PerceptrondClassifier(learner="logistic_regression", max_iter=20))

    def test_every_other_learner_passes(self):
        for learner in set(LEARNERS) - {"perceptron", "logistic_regression"}:
            with self.subTest(learner):
                self.check(PerceptrondClassifier(learner=learner, max_iter=5))
        for prediction in ("pocket", "voted"):
            with self.subTest(prediction):
                self.check(PerceptrondClassifier(prediction=prediction, max_iter=5))

    def test_checks_that_are_expected_to_fail_with_a_learner_fail(self):
        for learner in LEARNERS:
            estimator = PerceptrondClassifier(learner=learner, max_iter=2)
            with self.subTest(learner), contextlib.nullcontext() if "check_sample_weights_list" not in expected_failures(learner) else self.assertRaises(PerceptrondError):
                check_sample_weights_not_overwritten("", estimator)

    def test_pickles_of_votes_and_kernels_pass(self):
        X, y = load_iris(return_X_y=True)
        for settings in ({"learner": "kernel_perceptron"}, {"learner": "auto"}, {"prediction": "voted"}):
            check_estimators_pickle("", PerceptrondClassifier(max_iter=2, **settings))
            self.assertFalse(hasattr(PerceptrondClassifier(max_iter=1, **settings).fit(X, y == 0), "coef_"))

    def test_what_is_expected_to_fail_fails_and_only_for_the_reason_given(self):
        check_sample_weights_invariance("", PerceptrondClassifier(), kind="ones")
        with self.assertRaises(AssertionError):
            check_sample_weights_invariance("", PerceptrondClassifier(), kind="zeros")
        # In the same order they are as if they were not there.
        X, y = whole_numbers()
        kept = numpy.arange(len(y)) % 3 > 0
        plain = PerceptrondClassifier(shuffle=False, max_iter=3).fit(X[kept], y[kept])
        weighted = PerceptrondClassifier(shuffle=False, max_iter=3).fit(X, y, sample_weight=kept)
        numpy.testing.assert_array_equal(weighted.coef_, plain.coef_)


class ReferenceTest(ServedTest):
    def test_probabilities_are_those_of_the_server(self):
        X, y = load_iris(return_X_y=True)
        for labels in (y == 0, y):
            classifier = PerceptrondClassifier(learner="logistic_regression", max_iter=3).fit(X, labels)
            probabilities = classifier.predict_proba(X)
            served = self.client.predict(classifier.model_name_, X).probabilities
            expected = probabilities[:, 1] if len(classifier.classes_) == 2 else probabilities.max(axis=1)
            numpy.testing.assert_allclose(served, expected, rtol=1e-5)
        self.assertFalse(hasattr(PerceptrondClassifier(), "predict_proba"))

    def test_weights_equal_those_of_scikit_learns_perceptron(self):
        X, y = whole_numbers()
        weights = numpy.where(numpy.arange(len(y)) % 2, 2.0, 1.0)
        for what, data in (("array", X), ("csr", scipy.sparse.csr_matrix(X)), ("csc", scipy.sparse.csc_matrix(X)), ("frame", pandas.DataFrame(X, columns=list("abcdefgh")))):
            for sample_weight in (None, weights):
                reference = Perceptron(shuffle=False, tol=None, max_iter=4).fit(X, y, sample_weight=sample_weight)
                ours = PerceptrondClassifier(shuffle=False, until_converged=False, max_iter=4, batch_size=70).fit(data, y, sample_weight=sample_weight)
                with self.subTest(what, weighted=sample_weight is not None):
                    numpy.testing.assert_array_equal(ours.coef_, reference.coef_)
                    numpy.testing.assert_array_equal(ours.intercept_, reference.intercept_)
                    numpy.testing.assert_array_equal(ours.decision_function(data), reference.decision_function(X))
                    numpy.testing.assert_array_equal(ours.predict(data), reference.predict(X))

    def test_a_separable_set_is_learned_until_a_pass_changes_nothing(self):
        X, y = load_iris(return_X_y=True)
        classifier = PerceptrondClassifier(random_state=1).fit(X, y == 0)
        self.assertLess(classifier.n_iter_, 100)
        self.assertEqual((classifier.score(X, y == 0), classifier.report().last_pass.converged), (1, True))

    def test_it_works_in_a_pipeline_and_in_cross_validation(self):
        X, y = load_breast_cancer(return_X_y=True)
        pipeline = make_pipeline(StandardScaler(), PerceptrondClassifier(prediction="averaged", max_iter=10, random_state=1))
        self.assertGreater(cross_val_score(pipeline, X, y, cv=5).mean(), 0.95)
        self.assertGreater(cross_val_score(pipeline, X, y, cv=2, n_jobs=2).mean(), 0.95)
        search = GridSearchCV(pipeline, {"perceptrondclassifier__prediction": [None, "averaged"]}, cv=2).fit(X, y)
        self.assertGreater(search.best_score_, 0.95)
        self.assertEqual(len(self.models()), 1)
        del search
        gc.collect()
        self.await_models()


class ModelTest(ServedTest):
    def test_fit_makes_a_model_of_its_own_which_is_deleted_with_the_estimator(self):
        X, y = whole_numbers()
        first = PerceptrondClassifier(model="shared", max_iter=2).fit(X, y)
        second = clone(first).fit(X, 1 - y)
        self.assertNotEqual(first.model_name_, second.model_name_)
        self.assertEqual(self.models(), sorted([first.model_name_, second.model_name_]))
        before = second.model_name_
        second.fit(X, y)
        self.assertNotEqual(second.model_name_, before)
        del first, second
        gc.collect()
        self.await_models()

    def test_partial_fit_binds_to_the_named_model_which_stays(self):
        X, y = whole_numbers()
        self.addCleanup(self.client.delete, "stream", missing_ok=True)
        for begin in (0, 150):
            # Another process would do the same.
            classifier = PerceptrondClassifier(model="stream").partial_fit(X[begin:begin + 150], y[begin:begin + 150], classes=[0, 1])
        whole = PerceptrondClassifier(shuffle=False, max_iter=1).fit(X, y)
        numpy.testing.assert_array_equal(classifier.coef_, whole.coef_)
        self.assertEqual(classifier.report().examples, 300)
        with self.assertRaisesRegex(ValueError, "the model stream has other features"):
            PerceptrondClassifier(model="stream").partial_fit(X[:, 1:], y, classes=[0, 1])
        with self.assertRaisesRegex(ValueError, "the model stream has other classes"):
            PerceptrondClassifier(model="stream").partial_fit(X, y, classes=[0, 1, 2])
        with self.assertRaisesRegex(ValueError, "the model stream has other labels"):
            PerceptrondClassifier(model="stream").partial_fit(X, y.astype(bool), classes=[False, True])
        del classifier, whole
        gc.collect()
        self.await_models("stream")

    def test_partial_fit_needs_the_classes_at_first_and_the_same_later(self):
        X, y = whole_numbers()
        with self.assertRaisesRegex(ValueError, "classes must be passed on the first call"):
            PerceptrondClassifier().partial_fit(X, y)
        classifier = PerceptrondClassifier().partial_fit(X, y, classes=[0, 1])
        with self.assertRaisesRegex(ValueError, "is not the same as on the last call"):
            classifier.partial_fit(X, y, classes=[0, 2])
        for labels, classes in ((y + 1, [0, 1]), (y, ["0", "1"]), (y.astype(str), [0, 1])):
            with self.assertRaisesRegex(ValueError, f"labels that are not among the classes {re.escape(str(classes))}: the first, row .*, is"):
                PerceptrondClassifier().partial_fit(X, labels, classes=classes)

    def test_a_published_model_has_the_weights_and_learns_on(self):
        for examples, labels in (whole_numbers(), (PEOPLE, ANSWERS), load_iris(return_X_y=True), (PEOPLE, ["a", "b", "c", "a"])):
            self.addCleanup(self.client.delete, "published", missing_ok=True)
            classifier = PerceptrondClassifier(prediction="averaged", max_iter=3, random_state=1).fit(examples, labels)
            expected = classifier.decision_function(examples)
            self.assertIs(classifier.publish("published"), classifier)
            self.assertEqual(classifier.model_name_, "published")
            assert_close(classifier.decision_function(examples), expected)
            before = classifier.report()
            classifier.partial_fit(examples, labels)
            # Counters go on, and the theorem's bound is still there.
            self.assertEqual(self.client.report("published").examples, before.examples + len(labels))
            self.assertEqual(self.client.report("published").HasField("bound_in_use"), before.HasField("bound_in_use"))
            with self.assertRaisesRegex(PerceptrondError, "MODEL_EXISTS"):
                classifier.publish("published")
            del classifier
            gc.collect()
            self.await_models("published")
            self.client.delete("published")

    def test_a_row_that_cannot_be_predicted_is_named(self):
        classifier = PerceptrondClassifier(batch_size=2).fit(PEOPLE, ANSWERS)
        with self.assertRaisesRegex(ValueError, "row 3: .*"):
            classifier.predict([*PEOPLE[:3], {"age": float("nan")}])

    def test_what_cannot_be_published_says_why(self):
        X, y = load_iris(return_X_y=True)
        classifier = PerceptrondClassifier(max_iter=1).fit(X, y)
        with self.assertRaisesRegex(ValueError, "publish.. needs a name"):
            classifier.publish()

    def test_models_without_weights_are_published_as_they_are(self):
        X, y = load_iris(return_X_y=True)
        texts, spam = 20 * ["Free money now", "Lunch at noon?", "free FREE", "see you at lunch", "money at noon"], 20 * [1, 0, 1, 0, 1]
        for settings, examples, labels in (({"learner": "kernel_perceptron"}, X[:100], y[:100]), ({"learner": "auto"}, X, y), ({"prediction": "voted"}, X, y),
                                           ({"learner": "arow"}, X, y), ({"feature_options": {"bits": 16, "inverse_document_frequency": True}}, texts, spam)):
            with self.subTest(**settings):
                self.addCleanup(self.client.delete, "published", missing_ok=True)
                classifier = PerceptrondClassifier(max_iter=3, **settings).fit(examples, labels)
                expected, report = classifier.decision_function(examples), classifier.report()
                classifier.publish("published")
                self.assertEqual(classifier.model_name_, "published")
                numpy.testing.assert_array_equal(classifier.decision_function(examples), expected)
                self.assertEqual((classifier.report().examples, classifier.report().updates), (report.examples, report.updates))
                # A second copy learns by itself.
                self.addCleanup(self.client.delete, "second", missing_ok=True)
                classifier.publish("second").partial_fit(examples, labels)
                self.assertEqual(self.client.report("published").examples, report.examples)
                for name in ("published", "second"):
                    self.client.delete(name)

    def test_parameters_out_of_range_are_named(self):
        X, y = whole_numbers()
        for wrong, said in (({"max_iter": 0}, "max_iter=0: expected a whole number, at least 1"), ({"max_iter": 2.5}, "max_iter=2.5"), ({"batch_size": 0}, "batch_size=0: .*1 to 65,536"),
                            ({"batch_size": 65537}, "batch_size=65537"), ({"batch_size": 10.0}, "batch_size=10.0")):
            with self.subTest(wrong), self.assertRaisesRegex(ValueError, said):
                PerceptrondClassifier(**wrong).fit(X, y)
        with self.assertRaisesRegex(ValueError, "Only binary classification is supported by the learner 'kernel_perceptron'; y has 3 classes"):
            PerceptrondClassifier(learner="kernel_perceptron").fit(*load_iris(return_X_y=True))

    def test_a_server_killed_during_fit_changes_nothing_in_the_result(self):
        X, y = whole_numbers(2000)
        settings = dict(max_iter=30, until_converged=False, random_state=1, batch_size=50)
        expected = PerceptrondClassifier(**settings).fit(X, y).coef_
        learning = threading.Event()

        def kill():
            learning.wait()
            self.restart_server()

        thread = threading.Thread(target=kill)
        thread.start()
        classifier = PerceptrondClassifier(**settings)
        with mock.patch("perceptrond.sklearn.shown", lambda verbose: lambda now: learning.set() if now.pass_number == 3 else None):
            classifier.fit(X, y)
        thread.join()
        numpy.testing.assert_array_equal(classifier.coef_, expected)
        self.assertEqual(classifier.report().examples, 30 * 2000)

    def test_progress_is_shown_if_verbose(self):
        X, y = whole_numbers()
        with contextlib.redirect_stderr(io.StringIO()) as shown:
            PerceptrondClassifier(max_iter=2, verbose=True).fit(X, y)
        self.assertRegex(shown.getvalue(), r"^pass 1: 300 examples, \d+ mistakes, \d+ updates\npass 2: 300 examples, .*\n$")


class InputTest(ServedTest):
    def test_dicts_and_frames_are_features_by_name(self):
        by_dicts = PerceptrondClassifier(shuffle=False, max_iter=20).fit(PEOPLE, ANSWERS)
        by_frame = PerceptrondClassifier(shuffle=False, max_iter=20).fit(pandas.DataFrame(PEOPLE), ANSWERS)
        names = {name for vector in self.client.weights(by_dicts.model_name_).vectors for name in vector.names}
        self.assertLessEqual(names, {"age", "country=DE", "country=FR", "country=US", "member"})
        self.assertIn("age", names)
        by_dicts, by_frame = (pickle.loads(pickle.dumps(classifier)) for classifier in (by_dicts, by_frame))
        linear, frame = by_dicts._served, by_frame._served
        expected = linear.coef.toarray()
        for name, position in linear.names.items():
            self.assertEqual(frame.coef.toarray()[0, frame.names[name]], expected[0, position], name)
        self.assertEqual(list(by_frame.feature_names_in_), ["age", "country", "member"])
        with self.assertRaisesRegex(ValueError, "feature names"):
            by_frame.predict(pandas.DataFrame(PEOPLE).rename(columns={"age": "years"}))
        self.assertEqual(list(by_frame.predict(pandas.DataFrame(PEOPLE).iloc[:1])), ANSWERS[:1])

    def test_weights_of_names_equal_those_of_a_vectorizer_and_scikit_learns_perceptron(self):
        rng = numpy.random.default_rng(3)
        rows = [{"x": int(rng.integers(-3, 4)), "colour": str(rng.choice(["red", "green", "blue"]))} for _ in range(200)]
        labels = [int(row["x"] + (row["colour"] == "red") + rng.integers(-1, 2) > 0) for row in rows]
        vectorizer = DictVectorizer(sparse=False)
        reference = Perceptron(shuffle=False, tol=None, max_iter=3).fit(vectorizer.fit_transform(rows), labels)
        ours = PerceptrondClassifier(shuffle=False, until_converged=False, max_iter=3).fit(rows, labels)
        numpy.testing.assert_array_equal(ours.decision_function(rows), reference.decision_function(vectorizer.transform(rows)))

    def test_texts_are_split_by_the_server(self):
        missing = texts_are_supported(self.client)
        if missing:
            self.skipTest(missing)
        texts, labels = ["Free money now", "Lunch at noon?", "free FREE", "see you at lunch"], ["spam", "ham", "spam", "ham"]
        for examples in (texts, pandas.Series(texts), numpy.array(texts), numpy.array(texts, object)):
            classifier = PerceptrondClassifier(feature_options={"bits": 16}).fit(examples, labels)
            self.assertEqual(list(classifier.predict(examples)), labels)

    def test_one_text_is_not_read_as_its_letters(self):
        learned = PerceptrondClassifier().fit(["a prize", "a lunch"], [1, 0])
        for call in (learned.predict, lambda text: learned.fit(text, [1])):
            with self.assertRaisesRegex(TypeError, "X is one text; expected a list of texts"):
                call("prize")

    def test_learners_have_the_command_lines_names_too_and_others_are_corrected(self):
        X, y = load_iris(return_X_y=True)
        estimator = PerceptrondClassifier(learner="logistic-regression").fit(X, y == 0)
        self.assertEqual(estimator.predict_proba(X[:2]).shape, (2, 2))
        self.assertEqual(clone(estimator).learner, "logistic-regression")
        for learner, said in (("perceptorn", "did you mean 'perceptron'?"), ("averaged-perceptron", 'give prediction="averaged" and learner="perceptron"')):
            with self.assertRaisesRegex(ValueError, re.escape(said)):
                PerceptrondClassifier(learner=learner).fit(X, y)

    def test_labels_may_be_of_any_type(self):
        X, y = load_iris(return_X_y=True)
        for labels in (numpy.array(["setosa", "other", "third"])[y], y == 0, y * 1000 - 7, numpy.array([1.5, 2.5, 3.5])[y].astype(str), numpy.array(["a", "b", "c"], object)[y]):
            classifier = PerceptrondClassifier(max_iter=5, random_state=1).fit(X, labels)
            self.assertLessEqual(set(classifier.predict(X)), set(labels))
            self.assertEqual(list(self.client.get(classifier.model_name_).label_names), [str(label) for label in classifier.classes_])

    def test_rows_that_cannot_be_learned_are_errors_that_name_them(self):
        for error, rows, said in ((TypeError, [{"a": 1}, {"a": None}], "row 1: the value of 'a' is NoneType"), (TypeError, [{"a": 1}, "a"], "row 1 is str; expected a dict"),
                                  (ValueError, [{"a": 1}, {"a": float("nan")}], "1 of 2 rows were refused; the first, row 1: .*NON_FINITE_VALUE"),
                                  (ValueError, pandas.DataFrame({"a": ["x", "y"], "b": [1.0, float("nan")]}), "Input X contains NaN")):
            with self.subTest(said), self.assertRaisesRegex(error, said):
                PerceptrondClassifier().fit(rows, [0, 1])
        for random_state in range(5):
            texts = ["\ud800" if row == 3 else "a text" for row in range(100)]
            with self.assertRaisesRegex(ValueError, "row 3: .*surrogates not allowed"):
                PerceptrondClassifier(random_state=random_state).fit(texts, [0, 1] * 50)
        classifier = PerceptrondClassifier(max_iter=1).fit(PEOPLE, ANSWERS)
        with self.assertRaisesRegex(ValueError, "was fitted on dicts, and X is a matrix"):
            classifier.predict([[1.0, 2.0]])
        with self.assertRaisesRegex(ValueError, "NON_FINITE_VALUE"):
            classifier.predict([{"age": float("inf")}])


if __name__ == "__main__":
    unittest.main()
