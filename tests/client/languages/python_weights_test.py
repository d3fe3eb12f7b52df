"""Weights to and from other programs: labels of the real server beside those of onnxruntime-web and scikit-learn, and the slots that
Vowpal Wabbit itself wrote.

    ENVIRONMENT/bin/python python_weights_test.py PERCEPTROND
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
import scipy.sparse
from onnx import TensorProto, helper
from sklearn.datasets import load_iris
from sklearn.feature_extraction import DictVectorizer
from sklearn.linear_model import LogisticRegression, Perceptron, SGDClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

from perceptrond import PerceptrondError, weights
from perceptrond.v1 import learner_pb2
from python_fixture import ServedTest, texts_are_supported

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

    def test_rounded_weights_get_the_same_labels_but_within_rounding_of_a_tie(self):
        X, y = whole_numbers(300, 4, 3)
        two = numpy.where(X @ [1, -2, 1, 3] > 0, 1, -1)
        grid = numpy.array(list(itertools.product(range(-2, 3), repeat=4)), float)
        for name, labels, settings in (("averaged-two", two, {"prediction": "averaged"}), ("averaged", y, {"prediction": "averaged", "classes": 3}),
                                       ("variances", two, {"learner": "arow"})):
            linear = self.learned(name, X, labels, features=4, **settings)
            coef = linear.coef.toarray()
            # Each row moved next to a tie, of several classes to one of the first two.
            normal, offset = (coef[0], linear.bias[0]) if len(coef) == 1 else (coef[0] - coef[1], linear.bias[0] - linear.bias[1])
            distance = 2**-19 * (numpy.abs(grid) @ numpy.abs(normal) + abs(offset)) * numpy.where(numpy.arange(len(grid)) % 2, 1, -1)
            ties = grid - numpy.outer((grid @ normal + offset - distance) / (normal @ normal), normal)
            rows = numpy.vstack([grid, ties]).astype(numpy.float32).astype(float)
            answer = self.evaluated((weights.to_onnx(linear), matrix_feed(rows)))[0]
            scores, rounding = rows @ coef.T + linear.bias, 2**-23 * (numpy.abs(rows) @ numpy.abs(coef.T) + numpy.abs(linear.bias))
            if scores.shape[1] == 1:
                gap, bound = numpy.abs(scores[:, 0]), rounding[:, 0]
            else:
                first, second = numpy.argsort(-scores, axis=1)[:, :2].T
                row = numpy.arange(len(rows))
                gap, bound = scores[row, first] - scores[row, second], rounding[row, first] + rounding[row, second]
            sure = gap > bound
            # Below what a test without the bound would leave out.
            self.assertGreater((sure & (gap < 1e-4)).sum(), 20, name)
            self.assertGreater(sure.sum(), 600, name)
            served = numpy.array(self.client.predict(name, rows).labels)
            numpy.testing.assert_array_equal(numpy.array(answer["labels"])[sure], served[sure], name)

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

    def test_classes_that_do_not_exist_yet_are_left_out(self):
        X, y = whole_numbers(100, 4, 2)
        settings = {"features": 4, "classes": 9}
        self.create("numbered", **settings)
        numbered = self.client.get("numbered")
        self.client.delete("numbered")
        numbered.learner.classes.new_classes = learner_pb2.Classes.NEW_CLASSES_NUMBERED
        self.create("numbered", settings=numbered)
        with self.assertRaisesRegex(ValueError, "fewer than two classes"):
            weights.get(self.client, "numbered")
        self.client.learn("numbered", X, 3 + 4 * y)
        linear = weights.get(self.client, "numbered")
        self.assertEqual(linear.labels, [3, 7])
        answer, = self.evaluated((weights.to_onnx(linear), matrix_feed(X)))
        self.assertEqual(answer["labels"], self.client.predict("numbered", X).labels)

    def test_a_linear_classifier_of_skl2onnx_is_read(self):
        """As it makes them of a fitted one: with two labels a score and its negative."""
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

    def test_other_graphs_are_refused(self):
        scaled = helper.make_model(helper.make_graph([helper.make_node("Relu", ["X"], ["y"])], "g", [], []), producer_name="pytorch")
        with self.assertRaisesRegex(ValueError, "expected a graph that perceptrond exported, or one LinearClassifier.*this one has Relu"):
            weights.from_onnx(scaled)
        changed = weights.to_onnx(weights.LinearClassifier("dense", [], [-1, 1], scipy.sparse.csr_matrix([[1.0]]), numpy.zeros(1)))
        del changed.graph.initializer[:]
        with self.assertRaisesRegex(ValueError, "was changed after"):
            weights.from_onnx(changed)


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

    def test_a_published_model_learns_on_by_another_rule(self):
        X, y = load_iris(return_X_y=True)
        self.addCleanup(self.client.delete, "taught", missing_ok=True)
        weights.create(self.client, "taught", weights.from_sklearn(SGDClassifier(random_state=1).fit(X, y)), learner="passive_aggressive_i")
        self.client.learn("taught", X, y)
        self.assertGreater(self.client.get("taught").revision, 0)

    def test_what_is_not_linear_is_refused(self):
        X, y = load_iris(return_X_y=True)
        for estimator, problem in ((SVC(kernel="linear").fit(X, y), "not SVC"),
                                   (make_pipeline(StandardScaler(), Perceptron()).fit(X, y), "not StandardScaler with Perceptron")):
            with self.assertRaisesRegex(ValueError, f"expected a linear classifier.*{problem}"):
                weights.from_sklearn(estimator)
        self.learned("positive", X, numpy.where(y > 0, 1, -1), features=4, tie_rule=learner_pb2.TIE_RULE_POSITIVE)
        with self.assertRaisesRegex(ValueError, "a score of 0"):
            weights.to_sklearn(weights.get(self.client, "positive"))


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
HEADER = "Version 9.11.2\nId \nMin label:0\nMax label:2\nbits:18\nlda:0\n0 ngram:\n0 skip:\noptions:{}\nChecksum: 2673762800\n:0\n"


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

    def test_weights_by_index_keep_their_slots(self):
        linear = weights.from_vw(HEADER.format(" --noconstant") + "39524:0.253423\n116060:0.187343\n")
        self.assertEqual((linear.space, linear.coef.shape, linear.bias[0]), ("hashed", (1, 2**18), 0))
        self.assertEqual(linear.coef[0, 116060], 0.187343)
        linear = weights.from_vw(HEADER.format("") + "39524:0.253423\n116060:-5\n")
        self.assertEqual((linear.coef.nnz, linear.bias[0]), (1, -5))
        self.assert_serves_the_same(linear, [{39524: 10}, {39524: 30}], [-1, 1])

    def test_what_a_rule_remembers_is_passed_over(self):
        saved = HEADER.format("").replace(":0\n", ":1\ninitial_t 0\nnorm normalizer 195.798\nt 25\nsd::oec.weighted_labeled_examples 16\ncurrent_pass 1\n") \
            + "f^r5:5244:0.0650571 1.48172 0.727735\n"
        linear = weights.from_vw(saved.replace("lda:1\ninitial_t 0\nnorm normalizer 195.798\nt 25\nsd::oec.weighted_labeled_examples 16\ncurrent_pass 1\n", "lda:0\n"))
        self.assertEqual((linear.names, linear.coef[0, 0]), (["f^r5"], 0.0650571))

    def test_models_of_the_server_go_there_and_back(self):
        X, y = whole_numbers(300, 6, 3)
        rows, _ = whole_numbers(300, 6, 1, seed=2)
        for name, examples, labels, given, settings in (
                ("dense", X, numpy.where(y > 0, 1, -1), rows, {"features": 6}), ("several", X, y, rows, {"features": 6, "classes": 3}),
                ("named", dicts(X, WORDS), numpy.where(y > 0, 1, -1), dicts(rows, WORDS), {"features": "named"})):
            with self.subTest(name):
                text = weights.to_vw(self.learned(name, examples, labels, **settings))
                expected = self.client.predict(name, given).labels
                given = [dict(enumerate(row)) for row in given.tolist()] if name != "named" else given
                self.assert_serves_the_same(weights.from_vw(text), given, [str(label + 1) for label in expected] if name == "several" else expected)
        self.assertRegex(weights.to_vw(weights.get(self.client, "named")), r"\nfree:\d+:-?\d+\n")

    def test_what_is_no_linear_model_is_refused(self):
        for text, problem in ((HEADER.format(" --interact ab") + "80026:0.148807\n", "without --interact"), (HEADER.format(" --quadratic ::"), "--quadratic"),
                              (HEADER.format("").replace("lda:0", "lda:5"), "a linear model"), (HEADER.format("").replace("0 ngram:", "1 ngram:2"), "n-grams"),
                              (HEADER.format("") + "f^a:1:2\n:3:4\n", "line 13 has no name"), (HEADER.format("") + "a*b:1:2\n", "line 12: a\\*b is of several"),
                              (HEADER.format("") + "300000:1\n", "line 12: slot 300000 is not one of 262144 features"), ("f 1\n", "expected a file of `vw")):
            with self.subTest(problem), self.assertRaisesRegex(ValueError, problem):
                weights.from_vw(text)
        with self.assertRaisesRegex(ValueError, "has its constant in slot 11650396"):
            weights.to_vw(weights.LinearClassifier("dense", [], [-1, 1], scipy.sparse.csr_matrix((1, 2**24)), numpy.zeros(1)))


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

    def test_what_has_no_weights_of_its_own_says_why(self):
        X, y = whole_numbers(50, 4, 2)
        file = self.directory / "none.onnx"
        for name, settings, problem in (("kernel", {"features": 4, "learner": "kernel_perceptron"}, r"NOT_LINEAR.*kernel-perceptron"),
                                        ("voted", {"features": 4, "prediction": "voted"}, r"NOT_LINEAR.*voted"),
                                        ("text", {"features": "text"}, "features that the server makes of texts")):
            if name == "text" and texts_are_supported(self.client):
                continue
            self.create(name, **settings)
            self.assertRegex(self.run_main("export", "--format", "onnx", name, file, expect=1), problem)
        self.assertRegex(self.run_main("export", "--format", "vw", "nothing", file, expect=1), "MODEL_NOT_FOUND")
        self.assertFalse(file.exists())
        for form, data, problem in (("onnx", b"\xff\xff no", "ONNX model"), ("onnx", b"", "ONNX model"), ("sklearn", b"\x80\x04no", "estimator that pickle"), ("vw", b"\xff", "text")):
            file.write_bytes(data)
            self.assertRegex(self.run_main("import", "--format", form, "m", file, expect=1), rf"none.onnx: it is no {problem}")

    def test_a_name_that_is_taken_is_an_error(self):
        self.learned("taken", *whole_numbers(9, 2, 2), features=2, classes=2)
        with self.assertRaisesRegex(PerceptrondError, "MODEL_EXISTS"):
            weights.create(self.client, "taken", weights.get(self.client, "taken"))


if __name__ == "__main__":
    unittest.main()
