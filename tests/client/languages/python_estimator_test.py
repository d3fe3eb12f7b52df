"""PerceptrondClassifier against a real server: scikit-learn's own checks, scikit-learn's Perceptron as the reference, pickles, and the
data that people have.

    PYTHONPATH=tests/deploy:BUILT python3 python_estimator_test.py PERCEPTROND [--all]      (--all: every learner, and several processes)
"""

import contextlib
import gc
import pickle
import re
import sys
import unittest
import warnings

import joblib
import numpy
import pandas
import scipy.sparse
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.linear_model import Perceptron
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator, check_sample_weights_not_overwritten

from perceptrond import PerceptrondError
from perceptrond.settings import LEARNERS
from perceptrond.sklearn import PerceptrondClassifier, expected_failures
from processes import wait_for
from python_fixture import ServedTest

ALL = "--all" in sys.argv
if ALL:
    sys.argv.remove("--all")
PEOPLE = [{"age": 20, "country": "DE"}, {"age": 61, "country": "FR", "member": True}, {"age": 45, "country": "DE", "member": True}, {"age": 33, "country": "US"}]
ANSWERS = ["no", "yes", "yes", "no"]
TEXTS = ["Free money now", "Lunch at noon?", "free FREE", "see you at lunch"]
WEEK = 7 * 86400


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

    def test_it_passes(self):
        settings = [{"max_iter": 5}]
        if ALL:
            settings += [{"learner": learner, "max_iter": 5} for learner in LEARNERS] + [{"prediction": prediction, "max_iter": 5} for prediction in ("averaged", "pocket", "voted")]
        for one in settings:
            with self.subTest(**one):
                self.check(PerceptrondClassifier(**one))

    @unittest.skipUnless(ALL, "it repeats for each learner")
    def test_checks_that_are_expected_to_fail_with_a_learner_fail(self):
        for learner in LEARNERS:
            estimator = PerceptrondClassifier(learner=learner, max_iter=2)
            with self.subTest(learner), contextlib.nullcontext() if "check_sample_weights_list" not in expected_failures(learner) else self.assertRaises(PerceptrondError):
                check_sample_weights_not_overwritten("", estimator)


class FitTest(ServedTest):
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
            sample_weight = None if what == "array" else weights
            reference = Perceptron(shuffle=False, tol=None, max_iter=4).fit(X, y, sample_weight=sample_weight)
            ours = PerceptrondClassifier(shuffle=False, until_converged=False, max_iter=4, batch_size=70).fit(data, y, sample_weight=sample_weight)
            with self.subTest(what):
                numpy.testing.assert_array_equal(ours.coef_, reference.coef_)
                numpy.testing.assert_array_equal(ours.intercept_, reference.intercept_)
                numpy.testing.assert_array_equal(ours.decision_function(data), reference.decision_function(X))
                numpy.testing.assert_array_equal(ours.predict(data), reference.predict(X))

    @unittest.skipUnless(ALL, "it starts processes")
    def test_it_works_in_a_pipeline_and_in_a_search_by_several_processes(self):
        X, y = load_iris(return_X_y=True)
        pipeline = make_pipeline(StandardScaler(), PerceptrondClassifier(max_iter=5, random_state=1))
        search = GridSearchCV(pipeline, {"perceptrondclassifier__prediction": [None, "averaged"]}, cv=2, n_jobs=2).fit(X, y)
        self.assertGreater(search.best_score_, 0.8)
        # Workers delete theirs when they free them.
        wait_for("only the refitted model is left", lambda: len(self.models()) == 1)
        del search
        gc.collect()
        self.await_models()

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

    def test_a_published_model_predicts_as_before_and_learns_on(self):
        X, y = load_iris(return_X_y=True)
        for settings, examples, labels in (({"prediction": "averaged"}, PEOPLE, ANSWERS), ({"prediction": "averaged"}, X, y), ({"learner": "kernel_perceptron"}, X[:100], y[:100]),
                                           ({"prediction": "voted"}, X, y), ({"feature_options": {"bits": 16, "inverse_document_frequency": True}}, TEXTS, ANSWERS)):
            with self.subTest(**settings):
                self.addCleanup(self.client.delete, "published", missing_ok=True)
                classifier = PerceptrondClassifier(max_iter=3, random_state=1, **settings).fit(examples, labels)
                expected, before = classifier.decision_function(examples), classifier.report()
                self.assertIs(classifier.publish("published"), classifier)
                assert_close(classifier.decision_function(examples), expected)
                classifier.partial_fit(examples, labels)
                self.assertEqual(self.client.report("published").examples, before.examples + len(labels))
                self.assert_fails("MODEL_EXISTS", classifier.publish, "published")
                self.client.delete("published")

    def test_parameters_out_of_range_are_named(self):
        X, y = whole_numbers()
        for wrong, said in (({"max_iter": 0}, "max_iter=0: expected a whole number, at least 1"), ({"max_iter": 2.5}, "max_iter=2.5"), ({"batch_size": 0}, "batch_size=0: .*1 to 65,536"),
                            ({"batch_size": 65537}, "batch_size=65537"), ({"batch_size": 10.0}, "batch_size=10.0")):
            with self.subTest(wrong), self.assertRaisesRegex(ValueError, said):
                PerceptrondClassifier(**wrong).fit(X, y)
        with self.assertRaisesRegex(ValueError, "Only binary classification is supported by the learner 'kernel_perceptron'; y has 3 classes"):
            PerceptrondClassifier(learner="kernel_perceptron").fit(*load_iris(return_X_y=True))


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

    def test_texts_are_split_by_the_server(self):
        labels = ["spam", "ham", "spam", "ham"]
        for examples in (TEXTS, pandas.Series(TEXTS), numpy.array(TEXTS), numpy.array(TEXTS, object)):
            classifier = PerceptrondClassifier(feature_options={"bits": 16}).fit(examples, labels)
            self.assertEqual(list(classifier.predict(examples)), labels)

    def test_labels_may_be_of_any_type(self):
        X, y = load_iris(return_X_y=True)
        for labels in (y == 0, y * 1000 - 7, numpy.array(["a", "b", "c"], object)[y]):
            classifier = PerceptrondClassifier(max_iter=2, random_state=1).fit(X, labels)
            self.assertLessEqual(set(classifier.predict(X)), set(labels))
            self.assertEqual(list(self.client.get(classifier.model_name_).label_names), [str(label) for label in classifier.classes_])
        # Equal numbers cannot be names: the model has none.
        classifier = PerceptrondClassifier(max_iter=2).fit(X, numpy.array(["2", "2.0", "tea"])[y])
        self.assertLessEqual(set(classifier.predict(X)), {"2", "2.0", "tea"})


ROWS = 60
X = numpy.random.default_rng(7).normal(size=(ROWS, 4)).astype(numpy.float32)
SIGNS = numpy.where(X @ [1, -2, 0.5, 3] > 0, 1, -1)
REPLIES = numpy.where(SIGNS > 0, "yes", "no")
FRAME = pandas.DataFrame({
    "size": X[:, 0], "count": pandas.array([None if i == 5 else i % 3 for i in range(ROWS)], dtype="Int64"), "kind": pandas.Categorical(numpy.where(X[:, 3] > 0, "a", "b")),
    "when": pandas.date_range("2026-01-01", periods=ROWS)})


class DataTest(ServedTest):
    def test_labels_of_pandas_are_plain_and_scored(self):
        positive = pandas.Series(SIGNS > 0)
        for labels, classes in ((positive, [False, True]), (pandas.Series(SIGNS, dtype="Int64"), [-1, 1]), (pandas.Series(REPLIES, dtype="category"), ["no", "yes"]),
                                (pandas.Series(REPLIES, dtype="string"), ["no", "yes"])):
            classifier = PerceptrondClassifier(max_iter=3).fit(X, labels)
            self.assertEqual(list(classifier.classes_), classes)
            self.assertGreater(classifier.score(X, labels), 0.7)

    def test_what_cannot_be_learned_is_an_error_that_names_the_row_or_the_column(self):
        missing = [None if row == 3 else label for row, label in enumerate(REPLIES.tolist())]
        sizes = FRAME[["size"]]
        times, one_masked = FRAME["when"].to_numpy(), numpy.ma.array(numpy.ones(ROWS), mask=numpy.arange(ROWS) == 3)
        for rows, labels, error, named in (
                (X, missing, ValueError, "row 3"), (X, numpy.ones(ROWS), ValueError, "one class"), (FRAME[["size", "count", "kind"]], REPLIES, ValueError, "column 'count'"),
                (FRAME[["size", "when"]], REPLIES, TypeError, "column 'when'"), (pandas.DataFrame({"tags": [["a"]] * ROWS}), REPLIES, TypeError, "column 'tags'"),
                (sizes.assign(sales=pandas.Series([10**40 if row == 2 else row for row in range(ROWS)], dtype=object)), REPLIES, ValueError, "row 2.*column 'sales'"),
                (pandas.concat([FRAME[["kind"]]] * 2, axis=1), REPLIES, ValueError, "'kind=[ab]'"), (pandas.DataFrame({"mail": ["x" * 2000] * ROWS}), REPLIES, ValueError, "'mail=x+'"),
                ([None, *["a"] * (ROWS - 1)], REPLIES, TypeError, "row 0"), ([{"a": 1}, {"a": None}], [0, 1], TypeError, "row 1"), ([{"a": 1}, "a"], [0, 1], TypeError, "row 1"),
                ([{"a": 1}, {"a": float("nan")}], [0, 1], ValueError, "row 1: .*NON_FINITE_VALUE"), ("a prize", [1], TypeError, "one text"), ({"a": 1}, REPLIES, TypeError, "one dict"),
                ((text for text in REPLIES), REPLIES, TypeError, "generator"), (numpy.ma.array(X, mask=X == X[3, 1]), REPLIES, ValueError, "row 3, column 1: the value is masked"),
                (times.reshape(-1, 1), REPLIES, TypeError, "values are of datetime64"), (X, numpy.ma.array(SIGNS, mask=one_masked.mask), ValueError, "row 3"),
                (X, numpy.where(one_masked.mask, numpy.datetime64("NaT"), times), ValueError, "row 3"), ([{"a": 1}, {"a": numpy.timedelta64(5, "ns")}], [0, 1], TypeError, "timedelta64")):
            with self.subTest(named), self.assertRaisesRegex(error, named):
                PerceptrondClassifier(max_iter=1).fit(rows, labels)
        for weights, error, named in ((one_masked, ValueError, "row 3: the weight is masked"), (times, TypeError, "weights are of datetime64")):
            self.assertRaisesRegex(error, named, PerceptrondClassifier(max_iter=1).fit, X, REPLIES, sample_weight=weights)
        self.assertRaisesRegex(ValueError, "is masked", PerceptrondClassifier(max_iter=1).fit(X, REPLIES).predict, numpy.ma.array(X, mask=True))
        classifier = PerceptrondClassifier(max_iter=1).fit(PEOPLE, ANSWERS)
        for rows, named in (([[1.0, 2.0]], "X is a matrix"), ([{"age": float("inf")}], "NON_FINITE_VALUE")):
            self.assertRaisesRegex(ValueError, named, classifier.predict, rows)

    def test_a_text_among_features_is_warned_of_and_filled_frames_are_learned(self):
        filled = FRAME[["size", "count", "kind"]].fillna({"count": 0})
        self.assertEqual(PerceptrondClassifier(max_iter=1).fit(filled, REPLIES).predict(filled[:1]).shape, (1,))
        texts = filled.assign(text=[f"message number {row} is {answer}" for row, answer in enumerate(REPLIES)])
        with self.assertWarnsRegex(UserWarning, "^60 of 60 values of 'text' are different, .*give texts alone"):
            PerceptrondClassifier(max_iter=1).fit(texts, REPLIES)


KERNELS = ({"rbf": {"gamma": 0.02}}, {"polynomial": {"degree": 3, "coef0": 0.5}}, {"linear": {}})
VOTES = ({"learner": "auto"}, {"prediction": "voted"}, {"prediction": "voted", "learner": "passive_aggressive_i", "prediction_options": {"budget": 15}})


def estimators(kernels=KERNELS, votes=VOTES, **settings):
    settings = {"max_iter": 3, "random_state": 1, **settings}
    for kernel in kernels:
        yield PerceptrondClassifier(learner="kernel_perceptron", learner_options={"kernel": kernel, "budget": 90}, **settings)
    for vote in votes:
        yield PerceptrondClassifier(**vote, **settings)


class PickleTest(ServedTest):
    def assert_predicts_locally(self, classifier, X):
        """A pickle predicts what the estimator does, whatever server there is."""
        labels = classifier.predict(X)
        unpickled = pickle.loads(pickle.dumps(classifier)).set_params(server="127.0.0.1:1", give_up_after=0.1)
        with self.subTest(classifier):
            numpy.testing.assert_array_equal(unpickled.predict(X), labels)
            for method in ("decision_function", "predict_proba"):
                if hasattr(classifier, method):
                    assert_close(getattr(unpickled, method)(X), getattr(classifier, method)(X))
        return unpickled

    def test_a_pickle_predicts_without_a_server(self):
        X, y = load_iris(return_X_y=True)
        for labels in (y == 0, y):
            for settings, data in (({"prediction": "averaged"}, X), ({"learner": "logistic_regression"}, scipy.sparse.csr_matrix(X))):
                self.assert_predicts_locally(PerceptrondClassifier(max_iter=5, **settings).fit(data, labels), data)
        for labels, settings in ((ANSWERS, {}), (["a", "b", "c", "a"], {"prediction": "averaged"})):
            hashed = PerceptrondClassifier(features="hashed", feature_options={"bits": 5}, max_iter=3, random_state=1, **settings)
            self.assert_predicts_locally(hashed.fit(PEOPLE, labels), PEOPLE)
        self.assert_predicts_locally(PerceptrondClassifier().fit(PEOPLE, ANSWERS), PEOPLE)
        frame = pandas.DataFrame(PEOPLE)
        unpickled = self.assert_predicts_locally(PerceptrondClassifier(shuffle=False, max_iter=1000).fit(frame, ANSWERS), frame)
        self.assertIsNone(unpickled.model_name_)
        for call in (unpickled.report, lambda: unpickled.partial_fit(frame, ANSWERS)):
            self.assertRaisesRegex(ValueError, "no model on a server", call)
        published = unpickled.set_params(server=None).publish("restored")
        self.addCleanup(self.client.delete, "restored")
        self.assertEqual((published.model_name_, list(published.predict(frame))), ("restored", ANSWERS))

    def test_texts_cannot_be_pickled(self):
        texts = PerceptrondClassifier(feature_options={"bits": 16}).fit(TEXTS, ANSWERS)
        self.assertRaises(pickle.PicklingError, pickle.dumps, texts)

    def test_pickles_of_votes_and_kernels_predict_without_a_server(self):
        X, y = load_iris(return_X_y=True)
        cases = [(estimator.fit(X[::2], y[::2] == 0), X[1::2]) for estimator in estimators()]
        cases += [(estimator.fit(X[::2], y[::2]), X[1::2]) for estimator in estimators(kernels=())]
        rng = numpy.random.default_rng(5)
        rows = [{f"größe {name}": float(value) for name, value in zip(rng.choice(40, 6, replace=False), rng.integers(-4, 5, 6))} for _ in range(150)]
        labels = [sum(row.values()) > 0 for row in rows]
        # Names that were not seen in fit count in the norms of rows; with 32 slots names share them.
        held_out = [*rows[100:], *({**row, "never seen": 2.5} for row in rows[100:])]
        for settings in ({}, {"features": "hashed", "feature_options": {"bits": 5}}):
            cases += [(estimator.fit(rows[:100], labels[:100]), held_out) for estimator in estimators(**settings)]
        # Whole numbers, and no bias: many scores are 0.
        ties = rng.integers(-2, 3, (200, 4)).astype(float)
        cases += [(estimator.fit(ties[:100], rng.integers(0, 2, 100)), ties[100:]) for estimator in estimators(({"linear": {}},), bias_input=0)]
        for estimator, examples in cases:
            self.assertGreater(numpy.ptp(estimator.decision_function(examples)), 0.01)
            self.assert_predicts_locally(estimator, examples)

    def test_cannot_learn_on_or_be_published(self):
        X, y = load_iris(return_X_y=True)
        for estimator in estimators(kernels=KERNELS[:1], votes=VOTES[:1]):
            unpickled = pickle.loads(pickle.dumps(estimator.fit(X, y == 0)))
            with self.subTest(estimator):
                with self.assertRaisesRegex(ValueError, "no model on a server.*publish the estimator before it is pickled"):
                    unpickled.partial_fit(X, y == 0)
                with self.assertRaisesRegex(ValueError, "votes or a kernel.*publish the estimator before it is pickled"):
                    unpickled.publish("never")
                self.assertFalse(hasattr(unpickled, "coef_"))
                # It pickles again.
                numpy.testing.assert_array_equal(pickle.loads(pickle.dumps(unpickled)).predict(X), estimator.predict(X))

    def test_a_fit_that_fails_leaves_no_model(self):
        try:
            PerceptrondClassifier().fit([{"a": 1}, {"a": float("nan")}], [0, 1])
        except ValueError:
            # Before anything of it is freed.
            self.assertEqual(self.models(), [])
        else:
            self.fail("a row that cannot be learned was learned")

    @unittest.skipUnless(ALL, "it starts processes")
    def test_a_worker_that_fails_leaves_no_model(self):
        # Workers outlive a class of tests, and remember its server.
        kernel = PerceptrondClassifier(learner="kernel_perceptron", server=self.server.address)
        with self.assertRaisesRegex(PerceptrondError, "WEIGHTS_NOT_TAKEN"):
            joblib.Parallel(n_jobs=2)([joblib.delayed(kernel.fit)([[1.0], [-1.0]], [0, 1], sample_weight=[1, 2])])
        self.await_models()

    def test_what_is_fitted_expires_if_nobody_deletes_it_and_what_is_published_stays(self):
        classifier = PerceptrondClassifier().fit(PEOPLE, ANSWERS)
        self.assertEqual(self.client.get(classifier.model_name_).expire_after.seconds, WEEK)
        self.addCleanup(self.client.delete, "published", missing_ok=True)
        classifier.publish("published")
        self.assertFalse(self.client.get("published").HasField("expire_after"))
        # A copy keeps the settings of its model.
        self.client.update("published", expire_after="30d")
        self.addCleanup(self.client.delete, "second", missing_ok=True)
        classifier.publish("second")
        self.assertEqual(self.client.get("second").expire_after.seconds, 30 * 86400)


if __name__ == "__main__":
    unittest.main()
