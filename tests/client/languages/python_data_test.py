"""Data as people have it, and servers that cannot be reached, with the installed package against a real server.

    ENVIRONMENT/bin/python python_data_test.py PERCEPTROND
"""

import asyncio
import datetime
import socket
import subprocess
import unittest
import warnings
from unittest import mock

import numpy
import pandas
import scipy.sparse
from sklearn.compose import ColumnTransformer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from perceptrond import AsyncClient, Client, PerceptrondError, Row
from perceptrond.sklearn import PerceptrondClassifier
from processes import Server
from python_fixture import PERCEPTROND, ServedTest

ROWS = 120
X = numpy.random.default_rng(7).normal(size=(ROWS, 4)).astype(numpy.float32)
SIGNS = numpy.where(X @ [1, -2, 0.5, 3] > 0, 1, -1)
ANSWERS = numpy.where(SIGNS > 0, "yes", "no")
FRAME = pandas.DataFrame({
    "size": X[:, 0], "count": pandas.array([None if i == 5 else i % 3 for i in range(ROWS)], dtype="Int64"), "kind": pandas.Categorical(numpy.where(X[:, 3] > 0, "a", "b")),
    "open": pandas.array([None if i == 7 else i % 2 == 0 for i in range(ROWS)], dtype="boolean"), "when": pandas.date_range("2026-01-01", periods=ROWS)})


def fitted(rows, labels=ANSWERS):
    return PerceptrondClassifier(shuffle=False, max_iter=3).fit(rows, labels)


class DataTest(ServedTest):
    def assert_refused(self, rows, labels, said, error=ValueError):
        with self.assertRaisesRegex(error, said):
            fitted(rows, labels)

    def test_sparse_matrices_of_every_format_and_index_are_learned_alike(self):
        expected = fitted(scipy.sparse.csr_matrix(X)).coef_
        wide = scipy.sparse.csr_matrix(X)
        wide.indices, wide.indptr = wide.indices.astype(numpy.int64), wide.indptr.astype(numpy.int64)
        for matrix in (*(scipy.sparse.csr_matrix(X).asformat(name) for name in ("csc", "coo", "lil", "dok", "bsr")), wide):
            numpy.testing.assert_array_equal(fitted(matrix).coef_, expected)

    def test_labels_of_pandas_are_plain_and_scored(self):
        positive = pandas.Series(SIGNS > 0)
        for labels, classes in ((positive, [False, True]), (positive.astype("boolean"), [False, True]), (pandas.Series(SIGNS, dtype="Int64"), [-1, 1]),
                                (pandas.Series(SIGNS, dtype=float), [-1.0, 1.0]), (pandas.Series(ANSWERS, dtype="category"), ["no", "yes"]), (pandas.Series(ANSWERS, dtype="string"), ["no", "yes"])):
            classifier = fitted(X, labels)
            self.assertEqual(list(classifier.classes_), classes)
            self.assertGreater(classifier.score(X, labels), 0.8)

    def test_a_missing_label_is_named_by_its_row(self):
        for missing in (None, float("nan"), pandas.NA):
            labels = [missing if row == 3 else label for row, label in enumerate(ANSWERS.tolist())]
            for given in (labels, pandas.Series(labels), numpy.array(labels, object)):
                self.assert_refused(X, given, "row 3 has no label; leave such rows out")
        self.assert_refused(X, numpy.ones(ROWS), "y has one class, 1.0")

    def test_missing_numbers_are_named_by_their_column(self):
        self.assert_refused(FRAME[["size", "count", "kind"]], ANSWERS, "NaN or infinity in the column 'count'")
        self.assert_refused(FRAME[["open", "kind"]], ANSWERS, "NaN or infinity in the column 'open'")
        self.assert_refused(FRAME[["size", "count"]], ANSWERS, "Input X contains NaN")
        filled = FRAME[["size", "count", "kind", "open"]].fillna({"count": 0, "open": False})
        self.assertEqual(fitted(filled).predict(filled[:1]).shape, (1,))
        self.create("filled", features="named", labels=["no", "yes"])
        self.assertEqual(self.client.learn("filled", filled, ANSWERS).totals.examples, ROWS)

    def test_a_column_whose_values_never_return_is_no_feature_by_itself(self):
        for name, column in (("when", FRAME["when"]), ("zone", FRAME["when"].dt.tz_localize("UTC")), ("took", FRAME["when"] - FRAME["when"][0]),
                             ("month", FRAME["when"].dt.to_period("M")), ("day", pandas.Series([datetime.date(2026, 1, 1 + i % 28) for i in range(ROWS)]))):
            frame = pandas.DataFrame({"size": X[:, 0], name: column})
            self.assert_refused(frame, ANSWERS, f"the column '{name}' is of .*: make numbers of it", TypeError)
            with self.assertRaisesRegex(TypeError, f"the column '{name}'"):
                self.client.learn("none", frame, SIGNS)
        self.assertEqual(fitted(FRAME[["size"]].assign(weekday=FRAME["when"].dt.weekday, month=FRAME["when"].dt.month.astype(str))).predict(
            FRAME[["size"]].assign(weekday=1, month="1")).shape, (ROWS,))

    def test_texts_in_a_frame_or_dict_are_warned_of_when_they_are_learned(self):
        texts = [f"message number {row} is {answer}" for row, answer in enumerate(ANSWERS)]
        frame = pandas.DataFrame({"text": texts, "kind": FRAME["kind"]})
        self.create("frame", features="named", labels=["no", "yes"])
        dicts = frame.astype(str).to_dict("records")
        for learn in (lambda: fitted(frame), lambda: fitted(frame[["text"]]), lambda: fitted(dicts), lambda: self.client.learn("frame", frame, ANSWERS)):
            with self.assertWarnsRegex(UserWarning, "^120 of 120 values of 'text' are different, .*give texts alone"):
                learn()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for few in (fitted(dicts[:10], ANSWERS[:10]), fitted(frame[["kind"]]), fitted(frame["text"])):
                few.predict(frame["text"] if few._kind == "texts" else dicts if few._kind == "dicts" else frame[["kind"]])
            self.client.predict("frame", frame)

    def test_a_category_in_a_dict_for_a_client_is_refused_with_what_to_send(self):
        self.create("dicts", features="named", labels=["no", "yes"])
        said = "row 1: must be real number, not str; make a category a feature, {'country=DE': 1}, as PerceptrondClassifier and frames do"
        rows = [{"age": 3, "country=FR": 1}, {"age": 4, "country": "DE"}]
        for call in (lambda: self.client.learn("dicts", rows, ["no", "yes"]), lambda: self.client.predict("dicts", rows)):
            with self.assertRaisesRegex(TypeError, said):
                call()

    def test_numbers_in_columns_of_objects_are_numbers(self):
        frame = FRAME[["size"]].assign(width=X[:, 1], kind=FRAME["kind"].astype(str))
        classifier = fitted(frame)
        self.create("objects", features="named", labels=["no", "yes"])
        self.client.learn("objects", frame, ANSWERS)
        scores, predicted = classifier.decision_function(frame), self.client.predict("objects", frame).scores
        for row in range(5):
            # Its columns are of objects.
            one = frame.iloc[row].to_frame().T
            self.assertEqual(classifier.decision_function(one).tolist(), [scores[row]])
            self.assertEqual(self.client.predict("objects", one).scores, predicted[row:row + 1])
        numpy.testing.assert_array_equal(fitted(frame.astype(object)).decision_function(frame), scores)
        numpy.testing.assert_array_equal(fitted(frame[["size", "width"]].astype(object)).coef_, fitted(frame[["size", "width"]]).coef_)
        # With sparse ones they are sparse columns of objects.
        dummies = pandas.get_dummies(frame.assign(text=frame["kind"]), columns=["text"], sparse=True)
        expected = fitted(dummies)
        scores = expected.decision_function(dummies)
        for row in range(5):
            self.assertEqual(expected.decision_function(dummies.iloc[row].to_frame().T).tolist(), [scores[row]])
        with self.assertRaisesRegex(ValueError, "NaN or infinity in the column 'size'"):
            classifier.predict(frame.assign(size=[None, *frame["size"][1:]]).astype(object))

    def test_a_number_beyond_float32_is_named_by_its_column_and_row(self):
        self.create("wide", features=2)
        self.create("wide-named", features="named")
        for huge in (10**40, -10**400, 1e300, float("inf")):
            numbers = pandas.DataFrame({"size": [1, 2, 3], "sales": pandas.Series([1, 2, huge], dtype=float if isinstance(huge, float) else object)})
            for frame, model in ((numbers, "wide"), (numbers.assign(kind="x"), "wide-named"), (numbers.assign(sales=["none", 2, huge]), "wide-named")):
                for call in (lambda: self.client.learn(model, frame, [1, -1, 1]), lambda: self.client.predict(model, frame), lambda: fitted(frame, [1, -1, 1])):
                    with self.subTest(huge=str(huge)[:9], frame=list(frame.dtypes)), self.assertRaisesRegex(ValueError, "^row 2: the number in the column 'sales' is infinite or beyond float32"):
                        call()
        self.assertEqual(self.client.learn("wide", numbers.assign(sales=3e38), [1, -1, 1]).totals.examples, 3)

    def test_numbers_among_texts_of_a_column_are_numbers(self):
        mixed = pandas.DataFrame({"dose": ["none" if row % 3 == 0 else float(X[row, 3]) for row in range(ROWS)]})
        self.create("mixed", features="named")
        self.client.learn("mixed", mixed, SIGNS)
        self.assertEqual(set(self.client.weights("mixed").vectors[0].names), {"dose", "dose=none"})

    def test_texts_among_features_and_features_among_texts_are_refused_by_their_row(self):
        self.create("texts", features="text")
        self.create("dicts", features="named")
        texts, dicts = ["a text"] * 3 + [{"a": 1}], [{"a": 1}] * 3 + ["a text"]
        for model, rows, said in (("texts", texts, "row 3: features; expected a text"), ("dicts", dicts, "row 3: a text; expected features")):
            for call in (lambda: self.client.learn(model, rows, [1] * 4), lambda: self.client.predict(model, rows), lambda: self.client.predict(model, rows[:3] * 2 + rows, batch=5)):
                with self.assertRaisesRegex(TypeError, said.replace("3", "[39]")):
                    call()
            self.assertEqual(self.client.report(model).examples, 0)

    def test_a_name_that_a_model_cannot_have_is_named_with_its_row(self):
        self.create("names", features="named")
        for name, said in (("", "row 3: the name '' has 0 bytes"), ("é" * 600, "row 3: the name 'é+' has 1,200 bytes; expected 1 to 1,024: give a long text to a model of texts")):
            rows = [{"a": 1}] * 3 + [{"b": 1, name: 1}]
            for call in (lambda: self.client.learn("names", rows, SIGNS[:4]), lambda: self.client.predict("names", rows), lambda: fitted(rows, ANSWERS[:4])):
                with self.assertRaisesRegex(ValueError, said):
                    call()
        self.assert_refused(pandas.DataFrame({"mail": ["x" * 2000] * ROWS}), ANSWERS, "the name 'mail=x+' has 2,005 bytes")

    def test_frames_of_other_things_and_of_one_name_twice_are_refused_in_words(self):
        self.assert_refused(pandas.DataFrame({"tags": [["a"]] * ROWS}), ANSWERS, "the column 'tags' has values such as a list", TypeError)
        self.assert_refused(pandas.concat([FRAME[["kind"]]] * 2, axis=1), ANSWERS, "two features of the frame have the name 'kind=[ab]'")
        self.assert_refused(FRAME[["kind"]][:0], ANSWERS[:0], "0 sample")

    def test_a_missing_text_a_generator_and_one_dict_are_refused_in_words(self):
        for first in (None, float("nan"), pandas.NA):
            self.assert_refused([first] + ["a"] * (ROWS - 1), ANSWERS, "row 0 is .*; expected a text, as the others are; leave it out", TypeError)
        self.assert_refused((text for text in ANSWERS), ANSWERS, r"X is a generator, which can be read once; expected a list: list\(X\)", TypeError)
        self.assert_refused({"a": 1}, ANSWERS, "X is one dict; expected a list of dicts", TypeError)
        self.assert_refused([{1: 1.0}] * ROWS, ANSWERS, "row 0: the name 1 is int; expected a text", TypeError)
        self.assertEqual(fitted([{"a": numpy.float32(row[0]), "b": numpy.bool_(row[1] > 0), "c": numpy.str_("x")} for row in X]).predict([{"a": 1}]).shape, (1,))

    def test_an_option_of_other_learners_names_them(self):
        with self.assertRaisesRegex(ValueError, "learner='passive_aggressive' has no option 'step_size'; it has none; those that have it: perceptron, logistic_regression, batch_perceptron"):
            PerceptrondClassifier(learner="passive-aggressive", learner_options={"step_size": 2}).fit(X, ANSWERS)
        with self.assertRaisesRegex(ValueError, "prediction='averaged' has no option 'budget'; it has none; those that have it: voted"):
            self.client.create("none", features=4, prediction="averaged", prediction_options={"budget": 2})
        with self.assertRaisesRegex(ValueError, "learner='perceptron' has no option 'C'; it has step_size$"):
            self.client.create("none", features=4, learner_options={"C": 2})
        with self.assertRaisesRegex(ValueError, 'features="hashed" is not for texts, .*leave it out'):
            PerceptrondClassifier(features="hashed").fit(["a", "b"], [0, 1])

    def test_searches_pipelines_and_processes_work_on_frames(self):
        columns = ColumnTransformer([("numbers", StandardScaler(), ["size"]), ("kinds", OneHotEncoder(), ["kind"])])
        pipeline = Pipeline([("columns", columns), ("classifier", PerceptrondClassifier(learner="passive_aggressive_i", max_iter=2))])
        options = [{"aggressiveness": c} for c in (0.1, 1)]
        search = GridSearchCV(pipeline, {"classifier__learner_options": options}, cv=2, n_jobs=2).fit(FRAME, ANSWERS)
        self.assertIn(search.best_params_["classifier__learner_options"], options)
        self.assertEqual(search.predict(FRAME[:3]).shape, (3,))

    def test_chunks_are_learned_as_they_come(self):
        classifier = PerceptrondClassifier()
        for begin in range(0, ROWS, 50):
            classifier.partial_fit(FRAME[["size", "kind"]][begin:begin + 50], ANSWERS[begin:begin + 50], classes=["no", "yes"])
        self.assertEqual(classifier.report().examples, ROWS)


class UnreachableTest(ServedTest):
    def assert_fails(self, said, **target):
        with Client(give_up_after=1, **target) as client, self.assertRaisesRegex(PerceptrondError, said):
            client.get("m")

    def certificate(self, name):
        files = [self.directory / f"{name}.{kind}" for kind in ("pem", "key")]
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ed25519", "-nodes", "-subj", f"/CN={name}", "-addext", f"subjectAltName=DNS:{name}", "-days", "1",
                        "-out", files[0], "-keyout", files[1]], check=True, capture_output=True)
        return files

    def test_what_answers_elsewhere_is_said_with_what_to_do(self):
        with socket.socket() as unused:
            unused.bind(("127.0.0.1", 0))
            self.assert_fails("is perceptrond running there?", server=f"127.0.0.1:{unused.getsockname()[1]}")
        self.assert_fails("give the address of gRPC", server=self.server.metrics)
        trusted, key = self.certificate("localhost")
        self.assert_fails("leave out tls_ca", server=self.server.address, tls_ca=trusted)
        with Server(PERCEPTROND, self.directory / "tls", self.directory / "tls.log", ["--tls-cert", trusted, "--tls-key", key]) as encrypted:
            port = encrypted.address.rpartition(":")[2]
            self.assert_fails("If it uses TLS, give tls_ca", server=encrypted.address)
            self.assert_fails("is not signed by an authority in tls_ca", server=f"localhost:{port}", tls_ca=self.certificate("other")[0])
            self.assert_fails("another name", server=encrypted.address, tls_ca=trusted)
            self.assert_fails("MODEL_NOT_FOUND", server=f"localhost:{port}", tls_ca=trusted)

    def test_a_server_that_ends_in_the_middle_is_an_error_after_a_warning(self):
        with Server(PERCEPTROND, self.directory / "ended", self.directory / "ended.log") as server, Client(server.address, give_up_after=4) as client:
            client.create("m", features=4)

            def rows():
                for number in range(20000):
                    if number == 2000:
                        server.kill()
                    yield Row(dict(enumerate(X[number % ROWS].tolist())), int(SIGNS[number % ROWS]))

            with mock.patch("perceptrond.errors.NOTICE_AFTER", 0.5), warnings.catch_warnings(record=True) as caught, self.assertRaisesRegex(PerceptrondError, "UNAVAILABLE: .*is perceptrond running there"):
                warnings.simplefilter("always")
                client.learn("m", rows())
            self.assertRegex(" ".join(str(warning.message) for warning in caught), r"no answer for [01] s; trying for another [234] s \(give_up_after\): UNAVAILABLE")

    def test_a_cancelled_call_of_an_async_client_leaves_it_usable(self):
        async def run():
            async with AsyncClient() as client:
                await client.create("m", features=4)
                many, signs = numpy.tile(X, (300, 1)), numpy.tile(SIGNS, 300)
                started = asyncio.Event()
                learning = asyncio.create_task(client.learn("m", many, signs, passes=1000, progress=lambda now: started.set()))
                await started.wait()
                learning.cancel()
                with self.assertRaises(asyncio.CancelledError):
                    await learning
                predicting = asyncio.create_task(client.predict("m", many))
                await asyncio.sleep(0)
                predicting.cancel()
                with self.assertRaises(asyncio.CancelledError):
                    await predicting
                outcome = await client.learn("m", X, SIGNS)
                labels = (await client.predict("m", X)).labels
                await client.delete("m")
                return outcome.totals.examples, len(labels), len(asyncio.all_tasks())

        self.assertEqual(asyncio.run(run()), (ROWS, ROWS, 1))


if __name__ == "__main__":
    unittest.main()
