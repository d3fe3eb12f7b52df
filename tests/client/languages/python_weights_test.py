"""Weights to and from other programs: labels of the real server beside those of onnxruntime-web and scikit-learn, and the slots that
Vowpal Wabbit itself wrote.

    PYTHONPATH=tests/deploy:BUILT python3 python_weights_test.py PERCEPTROND
"""

import contextlib
import io
import itertools
import json
import pathlib
import re
import subprocess
import unittest

import numpy
import onnx
from onnx import TensorProto, helper
from sklearn.datasets import load_iris
from sklearn.feature_extraction import DictVectorizer
from sklearn.linear_model import LogisticRegression, Perceptron, SGDClassifier
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from perceptrond import weights
from perceptrond.v1 import learner_pb2
from python_fixture import ServedTest

EVALUATE = pathlib.Path(__file__).resolve().parent.parent / "onnx/evaluate.mjs"
README = pathlib.Path(__file__).resolve().parents[3] / "client/python/README.md"
WORDS = ["free", "now", "lunch", "prize", "größe", "a b"]


def whole_numbers(rows, columns, classes, seed=17):
    """Small numbers, so that sums are exact and many scores are equal. Labels at random: weights of all kinds."""
    rng = numpy.random.default_rng(seed)
    return rng.integers(-2, 3, (rows, columns)).astype(float), rng.integers(0, classes, rows)


def dicts(matrix, names):
    return [{name: value for name, value in zip(names, row) if value} for row in matrix.tolist()]


def matrix_feed(X):
    return {"X": {"type": "float32", "dims": X.shape, "data": X.ravel().tolist()}}


def row_feeds(rows, kind, filler):
    """Dicts as the inputs of a named or hashed model, filled up to the longest."""
    width = max(map(len, rows))
    padded = [list(row.items()) + [(filler, 0)] * (width - len(row)) for row in rows]
    return {"features": {"type": kind, "dims": [len(rows), width], "data": [name for row in padded for name, _ in row]},
            "values": {"type": "float32", "dims": [len(rows), width], "data": [value for row in padded for _, value in row]}}


class WeightsTest(ServedTest):
    def learned(self, name, examples, learned_labels, **settings):
        """A model that has learned these, and its weights."""
        self.create(name, **settings)
        self.client.learn(name, examples, learned_labels, passes=2)
        return weights.get(self.client, name)

    def evaluated(self, *models):
        """The answers of onnxruntime-web to (ModelProto, feeds)."""
        cases = []
        for model, feeds in models:
            file = self.directory / f"{len(cases)}.onnx"
            file.write_bytes(model.SerializeToString())
            cases.append({"model": str(file), "feeds": feeds})
        done = subprocess.run(["node", EVALUATE], input=json.dumps(cases), capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def assert_serves_the_same(self, linear, examples, expected):
        """A model that starts from these weights predicts these labels."""
        self.addCleanup(self.client.delete, "imported", missing_ok=True)
        weights.create(self.client, "imported", linear)
        self.assertEqual(self.client.predict("imported", examples).labels, expected)
        self.client.delete("imported")


class OnnxTest(WeightsTest):
    def assert_same_labels(self, cases):
        """cases: name, examples, feeds of models on the server."""
        graphs = {name: weights.to_onnx(weights.get(self.client, name)) for name, _, _ in cases}
        for (name, examples, _), answer in zip(cases, self.evaluated(*((graphs[name], feeds) for name, _, feeds in cases))):
            with self.subTest(name):
                expected = self.client.predict(name, examples, class_scores=True)
                self.assertEqual(answer["labels"], expected.labels)
                self.assertGreater(len(set(expected.labels)), 1)
                scores = [score for score in itertools.chain(*expected.class_scores) if score == score] or expected.scores
                self.assertEqual(answer["scores"], scores)
                self.assert_serves_the_same(weights.from_onnx(graphs[name]), examples, expected.labels)

    def test_dense_models_get_the_same_labels_in_another_evaluator(self):
        X, y = whole_numbers(300, 4, 3)
        two = numpy.where(X @ [1, -2, 1, 3] > 0, 1, -1)
        rows, _ = whole_numbers(500, 4, 1, seed=2)
        self.learned("mistake", X, two, features=4)
        self.learned("positive", X, two, features=4, tie_rule=learner_pb2.TIE_RULE_POSITIVE,
                     labels=["no", "yes"])
        self.learned("without-bias", X, two, features=4, bias_input=0)
        self.learned("several", X, y, features=4, classes=3)
        # A row of zeros, on which every score without a bias is 0.
        rows[0] = 0
        self.assertIn(0, self.client.predict("without-bias", rows).scores)
        for name in ("mistake", "positive"):
            self.assertIn(0, self.client.predict(name, rows).scores)
        exact = [(name, rows, matrix_feed(rows)) for name in ("mistake", "positive", "without-bias", "several")]
        self.assert_same_labels(exact)

    def test_features_without_a_weight_add_nothing(self):
        X, y = whole_numbers(300, 6, 3)
        rows = dicts(whole_numbers(500, 6, 1, seed=2)[0], [*WORDS[:4], "never seen", "x^y"])
        self.learned("named", dicts(X, WORDS), numpy.where(y > 0, 1, -1), features="named")
        self.create("growing", features="named", classes=4)
        growing = self.client.get("growing")
        self.client.delete("growing")
        growing.learner.classes.new_classes = learner_pb2.Classes.NEW_CLASSES_NAMED
        self.create("growing", settings=growing)
        self.client.learn("growing", dicts(X, WORDS), [["eins", "zwei", "drei"][k] for k in y])
        by_slot = [{WORDS.index(name) * 7 if name in WORDS else 1000: value for name, value in row.items()} for row in rows]
        self.learned("hashed", [{7 * i: value for i, value in enumerate(row) if value} for row in X.tolist()], y, features="hashed",
                     feature_options={"bits": 12}, classes=3)
        self.assert_same_labels([("named", rows, row_feeds(rows, "string", "")), ("growing", rows, row_feeds(rows, "string", "")),
                                 ("hashed", by_slot, row_feeds(by_slot, "int64", -1))])

    def test_a_linear_classifier_of_skl2onnx_is_read(self):
        """skl2onnx makes a score and its negative of two labels."""
        for X, y in (whole_numbers(200, 4, 3), whole_numbers(200, 4, 2)):
            fitted = SGDClassifier(random_state=1).fit(X, y + 5)
            coef, bias = (numpy.vstack([-part, part]) if len(fitted.classes_) == 2 else part for part in (fitted.coef_, fitted.intercept_.reshape(-1, 1)))
            node = helper.make_node("LinearClassifier", ["X"], ["label", "raw"], domain="ai.onnx.ml", classlabels_ints=fitted.classes_,
                                    coefficients=coef.ravel(), intercepts=bias.ravel(), multi_class=1, post_transform="LOGISTIC")
            graph = helper.make_graph([node, helper.make_node("Normalizer", ["raw"], ["scores"], domain="ai.onnx.ml", norm="L1")], "sgd",
                                      [helper.make_tensor_value_info("X", TensorProto.FLOAT, [None, 4])],
                                      [helper.make_tensor_value_info("label", TensorProto.INT64, [None]),
                                       helper.make_tensor_value_info("scores", TensorProto.FLOAT, [None, len(fitted.classes_)])])
            model = helper.make_model(graph, producer_name="skl2onnx", ir_version=7,
                                      opset_imports=[helper.make_opsetid("", 13), helper.make_opsetid("ai.onnx.ml", 2)])
            expected = self.evaluated((model, matrix_feed(X)))[0]["labels"]
            self.assertEqual(expected, fitted.predict(X).tolist())
            self.assert_serves_the_same(weights.from_onnx(model), X, [str(label) for label in expected])


class SklearnTest(WeightsTest):
    def test_estimators_predict_the_labels_of_the_model(self):
        X, y = whole_numbers(300, 6, 3)
        two = numpy.where(y > 0, 1, -1)
        rows, _ = whole_numbers(300, 6, 1, seed=2)
        models = {"two": (X, two, {"features": 6}, Perceptron), "several": (X, y, {"features": 6, "classes": 3}, Perceptron),
                  "named": (dicts(X, WORDS), two, {"features": "named", "labels": ["ham", "spam"]}, Perceptron),
                  "logistic": (X, y, {"features": 6, "classes": 3, "learner": "logistic_regression"}, LogisticRegression)}
        for name, (examples, labels, settings, kind) in models.items():
            with self.subTest(name):
                estimator = weights.to_sklearn(self.learned(name, examples, labels, **settings))
                self.assertIsInstance(estimator[-1] if name == "named" else estimator, kind)
                given = dicts(rows, [*WORDS[:5], "never seen"]) if name == "named" else rows
                self.assertEqual(estimator.predict(given).tolist(), self.client.predict(name, given).labels)
                self.assert_serves_the_same(weights.from_sklearn(estimator), given, estimator.predict(given).tolist())
        answers = self.client.predict("logistic", rows)
        estimator = weights.to_sklearn(weights.get(self.client, "logistic"))
        numpy.testing.assert_allclose(estimator.predict_proba(rows).max(axis=1), answers.probabilities, rtol=1e-5)

    def test_a_model_starts_from_a_fitted_estimator(self):
        X, y = load_iris(return_X_y=True)
        names = numpy.array(["setosa", "versicolor", "virginica"])[y]
        for fitted in (SGDClassifier(random_state=1).fit(X, names), LogisticRegression(max_iter=1000).fit(X, names), LinearSVC(dual=False).fit(X, names),
                       SGDClassifier(random_state=1).fit(X, names == "setosa")):
            self.assert_serves_the_same(weights.from_sklearn(fitted), X, [str(label) for label in fitted.predict(X)])
        people = [{"age": 20, "country": "DE"}, {"age": 61, "country": "FR"}, {"age": 45, "country": "DE"}]
        fitted = make_pipeline(DictVectorizer(), Perceptron()).fit(people, ["no", "yes", "yes"])
        linear = weights.from_sklearn(fitted)
        self.assertEqual(linear.names, ["age", "country=DE", "country=FR"])
        self.assert_serves_the_same(linear, [{"age": 20, "country=DE": 1}, {"age": 61, "country=FR": 1}], list(fitted.predict([people[0], people[1]])))


# Written by Vowpal Wabbit 9 (its test/pred-sets/ref/inv_hash.cmp), without the interactions.
OF_VW = """Version 9.11.2
Id 
Min label:1
Max label:3
bits:18
lda:0
0 ngram:
0 skip:
options: --oaa 3
Checksum: 0
:0
e^y:27664:-0.0331786
e^y[1]:27665:-0.0331786
e^y[2]:27666:0.0331786
f^a:57420:-0.0619448
f^a[1]:57421:0.0201492
f^a[2]:57422:-0.0201492
f^b:62864:-0.0331786
f^b[1]:62865:-0.0331786
f^b[2]:62866:0.0331786
e^x:125152:-0.0619448
e^x[1]:125153:0.0201492
e^x[2]:125154:-0.0201492
f^y:154732:-0.05178
f^y[1]:154733:0.0666978
f^y[2]:154734:-0.0666978
Constant:202096:-0.0619448
Constant[1]:202097:0.0201492
Constant[2]:202098:-0.0201492
f^c:228992:-0.0619448
f^c[1]:228993:0.0201492
f^c[2]:228994:-0.0201492
e^z:259284:-0.0331786
e^z[1]:259285:-0.0331786
e^z[2]:259286:0.0331786
"""


class VwTest(WeightsTest):
    def test_names_have_the_slots_that_vowpal_wabbit_gave_them(self):
        linear = weights.from_vw(OF_VW)
        self.assertEqual((linear.labels, sorted(linear.names)), (["1", "2", "3"], ["e^x", "e^y", "e^z", "f^a", "f^b", "f^c", "f^y"]))

        def slots(text):
            """By the name of the weight; as many as there are in OF_VW."""
            return {name: int(slot) % 2**18 for name, slot, _ in (line.split(":") for line in text.partition("\n:0\n")[2].splitlines())}

        self.assertEqual(slots(weights.to_vw(linear)), slots(OF_VW))
        again = weights.from_vw(weights.to_vw(linear))
        self.assertEqual([again.coef[row, again.names.index("f^y")] for row in range(3)], [-0.05178, 0.0666978, -0.0666978])
        self.assertEqual(again.bias.tolist(), linear.bias.tolist())
        self.assert_serves_the_same(linear, [{"f^a": 1, "f^b": 1, "f^c": 1, "e^x": 1}, {"f^b": 9}], ["2", "3"])


class CommandTest(WeightsTest):
    def run_main(self, *arguments, expect=0):
        with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as error:
            code = weights.main([*map(str, arguments)])
        self.assertEqual(code, expect, error.getvalue())
        return out.getvalue() + error.getvalue()

    def test_files_are_written_and_read(self):
        X, y = load_iris(return_X_y=True)
        self.learned("iris", X, y, features=4, classes=3)
        expected = self.client.predict("iris", X).labels
        for form in weights.FORMATS:
            file = self.directory / f"iris.{form}"
            self.assertRegex(self.run_main("export", "--format", form, "iris", file), r"\Airis: 3 classes, 4 dense features\n")
            self.addCleanup(self.client.delete, f"iris-{form}", missing_ok=True)
            self.run_main("import", "--format", form, f"iris-{form}", file, "--learner", "arow")
            self.assertTrue(self.client.get(f"iris-{form}").learner.HasField("arow"))
            given = [dict(enumerate(row)) for row in X.tolist()] if form == "vw" else X
            labels = self.client.predict(f"iris-{form}", given).labels
            self.assertEqual([int(label) - 1 for label in labels] if form == "vw" else labels, expected)

    def test_the_commands_of_the_readme_work_and_their_file_predicts_the_same_labels_elsewhere(self):
        commands = re.findall(r"^ +env/bin/python -m perceptrond.weights (.*)$", README.read_text(), re.MULTILINE)
        rows = dicts(whole_numbers(99, 6, 1)[0], WORDS)
        self.learned("spam", rows, [-1, 1, 1] * 33, features="named")
        self.addCleanup(self.client.delete, "spam-3", missing_ok=True)
        self.assertEqual([command.split()[0] for command in commands], ["export", "import"])
        with contextlib.chdir(self.directory):
            for command in commands:
                self.assertRegex(self.run_main(*command.split()), r"two labels, \d named features")
        self.assertEqual(weights.get(self.client, "spam-3").labels, [-1, 1])
        answer = self.evaluated((onnx.load(str(self.directory / "spam.onnx")), row_feeds(rows, "string", "")))[0]
        self.assertEqual(answer["labels"], self.client.predict("spam", rows).labels)

    def test_vowpal_wabbits_labels_are_replaced_by_those_that_the_export_names(self):
        for model, labels, shown, settings in (("digits", [0, 1, 2], "0,1,2", {"classes": 3}),
                                               ("mail", ["spam", "ham", "ham"], "ham,spam", {"labels": ["ham", "spam"]}),
                                               ("topics", ["c", "a", "b"], "a,b,c", {"classes": 3, "labels": ["a", "b", "c"]})):
            self.create(model, features="named", **settings)
            self.client.learn(model, [{name: 1.0} for name in ("free", "lunch", "late")], labels, until_converged=True)
            file = self.directory / f"{model}.vw"
            self.assertIn(f"give --labels {shown}\n", self.run_main("export", "--format", "vw", model, file))
            self.addCleanup(self.client.delete, f"{model}-vw", missing_ok=True)
            self.run_main("import", "--format", "vw", f"{model}-vw", file, "--labels", shown)
            self.assertEqual(self.client.predict(f"{model}-vw", [{name: 1.0} for name in ("free", "lunch", "late")]).labels, labels)


if __name__ == "__main__":
    unittest.main()
