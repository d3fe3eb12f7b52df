"""Client and AsyncClient of the installed package against a real server.

    ENVIRONMENT/bin/python python_client_test.py PERCEPTROND
"""

import asyncio
import functools
import itertools
import subprocess
import sys
import threading
import unittest

import grpc
import numpy
import pandas
import scipy.sparse

from perceptrond import AsyncClient, Client, PerceptrondError, Row, model_settings
from perceptrond.producers import Producers
from perceptrond.v1 import learner_pb2, model_pb2, report_pb2
from python_fixture import ServedTest, texts_are_supported

CONVERGED = report_pb2.CONVERGENCE_STATE_CONVERGED
MAIL = [{"free": 1, "now": 2}, {"lunch": 1, "now": 1}, {"free": 2}, {"meeting": 1}]
LABELS = ["spam", "ham", "spam", "ham"]
SPAM = dict(features="named", labels=["ham", "spam"])


def weights_of(client, name):
    (vector,) = client.weights(name).vectors
    return dict(zip(vector.names, vector.values)), vector.bias


class AddressTest(unittest.TestCase):
    def test_what_is_no_address_is_an_error_before_any_call(self):
        for server, said in (("http://127.0.0.1:7601", "is a web address; give host:port"), ("a:1,https://b", "is a web address"), ("a:99999", "99999 is no port"),
                             ("[::1]:0", "0 is no port")):
            for kind in (Client, AsyncClient):
                with self.assertRaisesRegex(ValueError, said):
                    kind(server)
        for server in ("::1", "unix:/tmp/a:99999", "a:65535", "a"):
            Client(server).close()


class LaterLabelsTest(ServedTest):
    def test_labels_are_learned_by_the_ids_of_predictions_once(self):
        self.create("later", stored_predictions={"max_bytes": 1 << 20}, **SPAM)
        predicted = self.client.predict("later", MAIL, ids=True)
        self.assertEqual((len(predicted.ids), len(set(predicted.ids))), (4, 4))
        learned = self.client.learn("later", ids=predicted.ids, labels=LABELS, batch=3)
        self.assertEqual((learned.totals.examples, learned.totals.row_errors), (4, 0))
        self.create("at-once", **SPAM)
        self.client.learn("at-once", MAIL, LABELS, batch=3)
        self.assertEqual(weights_of(self.client, "later"), weights_of(self.client, "at-once"))
        with self.assertWarnsRegex(UserWarning, r"^1 of 1 examples were not learned; the first, row 0: INVALID_ARGUMENT \(UNKNOWN_PREDICTION\)"):
            again = self.client.learn("later", ids=predicted.ids[:1], labels=["spam"])
        self.assertEqual((again.totals.examples, again.totals.row_errors), (0, 1))
        self.assertIn("names no prediction that waits for its label", again.totals.first_row_error)
        with self.assertRaisesRegex(ValueError, "4 ids and 1 labels"):
            self.client.learn("later", ids=predicted.ids, labels=["spam"])
        with self.assertRaisesRegex(TypeError, "examples or ids"):
            self.client.learn("later", MAIL, LABELS, ids=predicted.ids)

    def test_an_async_client_does_the_same(self):
        self.create("async", stored_predictions={"max_bytes": 1 << 20}, **SPAM)

        async def run():
            async with AsyncClient() as client:
                predicted = await client.predict("async", MAIL, ids=True)
                return await client.learn("async", ids=predicted.ids, labels=LABELS)

        self.assertEqual(asyncio.run(run()).totals.examples, 4)


class ModelsTest(ServedTest):
    def test_a_model_is_created_read_listed_changed_frozen_and_deleted(self):
        self.assertEqual(self.create("spam", **SPAM).name, "models/spam")
        self.assertEqual(list(self.client.get("models/spam").label_names), ["ham", "spam"])
        self.assertEqual(self.models(), ["spam"])
        self.assertEqual(self.client.update("spam", description="mail", margin_of_interest=0.5).margin_of_interest, 0.5)
        self.assertEqual(self.client.freeze("spam").state, model_pb2.MODEL_STATE_FROZEN)
        self.assertEqual(self.client.freeze("spam", False).state, model_pb2.MODEL_STATE_ACTIVE)
        self.client.delete("spam")
        self.client.delete("spam", missing_ok=True)
        self.assertEqual(self.models(), [])

    def test_an_error_has_code_reason_and_violations(self):
        with self.assertRaises(PerceptrondError) as raised:
            self.client.create("m", features=2, learner_options={"step_size": -1})
        self.assertEqual((raised.exception.code, raised.exception.reason), (grpc.StatusCode.INVALID_ARGUMENT, "INVALID_FIELD"))
        self.assertEqual([violation.field for violation in raised.exception.violations], ["model.learner.perceptron.step_size"])
        with self.assertRaisesRegex(PerceptrondError, r"NOT_FOUND \(MODEL_NOT_FOUND\)"):
            self.client.get("nothing")

    def test_an_option_with_named_values_takes_a_name(self):
        for steps in ("STEPS_ADAPTIVE", "adaptive"):
            model = self.create("m", features=2, learner="logistic_regression", learner_options={"steps": steps}, tie_rule="positive")
            self.assertEqual(model.learner.logistic_regression.steps, learner_pb2.LogisticRegression.STEPS_ADAPTIVE)
            self.assertEqual(model.learner.tie_rule, learner_pb2.TIE_RULE_POSITIVE)
            self.client.delete("m")
        for steps in ("STEPS_WIDE", "wide", "unspecified"):
            with self.assertRaisesRegex(ValueError, f"^LogisticRegression: steps='{steps}': there are 'constant', 'decreasing', 'adaptive'$"):
                self.client.create("n", features=2, learner="logistic_regression", learner_options={"steps": steps})

    def test_hashed_names_have_a_default_of_slots(self):
        self.assertEqual(self.create("m", features="hashed").feature_space.hashed.bits, 20)
        self.assertEqual(self.create("n", features="hashed", feature_options={"bits": 7}).feature_space.hashed.bits, 7)

    def test_an_existing_model_is_returned_only_if_that_is_ok(self):
        self.create("spam", **SPAM)
        self.assertEqual(list(self.client.create("spam", features=3, exist_ok=True).label_names), ["ham", "spam"])
        with self.assertRaisesRegex(PerceptrondError, "MODEL_EXISTS"):
            self.client.create("spam", **SPAM)

    def test_settings_that_the_api_does_not_have_are_value_errors(self):
        for wrong, said in ((dict(features="name"), "there are dense, hashed, named, text"), (dict(features=2, learner="perzeptron"), "there are perceptron, "),
                            (dict(features=2, learner_options={"eta": 1}), "eta"), (dict(features=2, speed=1), "speed"),
                            (dict(features=2, labels=["a", "b", "c"]), "labels has 3 names, .*give classes=3"), (dict(features=2, labels="ab"), "expected a list of names")):
            with self.subTest(wrong), self.assertRaisesRegex(ValueError, said):
                self.client.create("m", **wrong)

    def test_a_closed_client_lets_the_process_end_as_does_one_that_was_not_closed(self):
        for close in ("client.close()", "pass"):
            code = f"from perceptrond import Client\nclient = Client()\nlist(client.list())\n{close}\nprint('done')"
            for _ in range(5):
                done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
                self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "done\n", ""))


class LearnTest(ServedTest):
    def test_dicts_rows_frames_and_matrices_are_learned_alike(self):
        matrix = numpy.array([[1, 2, 0, 0], [0, 1, 1, 0], [2, 0, 0, 0], [0, 0, 0, 1]])
        names = ["free", "now", "lunch", "meeting"]
        numbers = [1, -1, 1, -1]
        frame = pandas.DataFrame(matrix, columns=names)
        frame["kind"] = ["mail", None, "list", "mail"]
        examples = {"dicts": (MAIL, LABELS), "rows": ([Row(*pair) for pair in zip(MAIL, LABELS)], None), "iterator": (iter([Row(*pair) for pair in zip(MAIL, LABELS)]), None)}
        learned = {}
        for name, (rows, labels) in examples.items():
            self.create(name, **SPAM)
            self.client.learn(name, rows, labels)
            learned[name] = weights_of(self.client, name)
        self.assertEqual(learned["rows"], learned["dicts"])
        self.assertEqual(learned["iterator"], learned["dicts"])
        expected = [learned["dicts"][0].get(name, 0) for name in names]
        for name, rows in (("array", matrix), ("csr", scipy.sparse.csr_matrix(matrix)), ("coo", scipy.sparse.coo_matrix(matrix)), ("lists", matrix.tolist()),
                           ("numbers", frame[names])):
            self.create(name, features=4)
            self.client.learn(name, rows, numbers)
            (vector,) = self.client.weights(name).vectors
            self.assertEqual([dict(zip(vector.indices, vector.values)).get(i, 0) for i in range(4)], expected, name)
        self.create("frame", **SPAM)
        self.client.learn("frame", frame, LABELS)
        named, _ = weights_of(self.client, "frame")
        self.assertEqual({name: named[name] for name in names if named[name]}, {name: value for name, value in zip(names, expected) if value})

    def test_labels_may_be_numbers_and_texts_of_numpy(self):
        self.create("spam", **SPAM)
        numbers = numpy.array([1, -1, 1, -1])
        for labels in (numpy.array(LABELS), list(numpy.array(LABELS)), numbers, list(numbers)):
            self.assertEqual(self.client.learn("spam", MAIL, labels).totals.row_errors, 0)

    def test_texts_are_learned(self):
        missing = texts_are_supported(self.client)
        if missing:
            self.skipTest(missing)
        self.create("texts", features="text", labels=["ham", "spam"])
        texts = ["Free money now", "Lunch at noon?"]
        self.assertTrue(self.client.learn("texts", texts, ["spam", "ham"], until_converged=True).converged)
        self.assertEqual(self.client.predict("texts", texts).labels, ["spam", "ham"])

    def test_learning_goes_on_until_a_pass_changes_nothing_and_shows_how_far_it_is(self):
        self.create("spam", **SPAM)
        seen = []
        learned = self.client.learn("spam", MAIL, LABELS, until_converged=True, batch=3, progress=seen.append)
        self.assertTrue(learned.converged)
        self.assertEqual(learned.passes, learned.last_pass.number)
        self.assertEqual([(now.pass_number, now.sent, now.rows, now.summary is None) for now in seen[:3]], [(1, 3, 4, True), (1, 4, 4, True), (1, 4, 4, False)])
        self.assertEqual(seen[-1].examples, 4 * learned.passes)
        self.assertEqual(self.client.wait_until_converged("spam", 30).report.state, CONVERGED)

    def test_examples_without_a_producer_are_new_and_a_named_one_goes_on_where_it_was(self):
        self.create("spam", **SPAM)
        for passes in (1, 2):
            self.assertEqual(self.client.learn("spam", MAIL, LABELS).passes, passes)
        self.assertEqual(self.client.report("spam").examples, 8)
        for passes, examples in ((1, 12), (1, 12), (3, 20)):
            self.client.learn("spam", MAIL, LABELS, producer="file", passes=passes)
            self.assertEqual(self.client.report("spam").examples, examples)
        self.assertEqual(self.client.report("spam").duplicates, 0)

    def test_an_interrupted_sequence_goes_on_in_the_middle_of_a_pass(self):
        self.create("spam", **SPAM)
        with self.client.learn_stream("spam", "file") as stream:
            stream.send([Row(MAIL[0], "spam")])
            stream.finish()
        seen = []
        learned = self.client.learn("spam", MAIL, LABELS, producer="file", passes=2, progress=seen.append)
        self.assertEqual((seen[0].sent, learned.totals.examples, learned.passes), (4, 7, 2))
        self.assertEqual(self.client.report("spam").examples, 8)

    def test_a_server_killed_in_the_middle_changes_nothing_in_the_result(self):
        rng = numpy.random.default_rng(17)
        rows = [Row({f"f{i}": float(v) for i, v in zip(rng.choice(50, 5, replace=False), rng.integers(1, 9, 5))}, int(rng.choice([-1, 1]))) for _ in range(3000)]

        def interrupted():
            for number, row in enumerate(rows):
                if number in (1000, 2000):
                    self.restart_server()
                yield row

        lost = []
        for name in ("reference", "interrupted"):
            self.create(name, features="named")
        self.client.learn("reference", rows, batch=50, window=200)
        with Client(on_reconnect=lost.append) as client:
            learned = client.learn("interrupted", interrupted(), batch=50, window=200)
        self.assertGreaterEqual(len(lost), 2)
        self.assertEqual(lost[0].code, grpc.StatusCode.UNAVAILABLE)
        self.assertEqual(learned.last_pass.examples, 3000)
        self.assertEqual(weights_of(self.client, "interrupted"), weights_of(self.client, "reference"))
        self.assertEqual(self.client.report("interrupted").updates, self.client.report("reference").updates)

    def test_several_threads_learn_one_model_at_once(self):
        self.create("spam", **SPAM)
        threads = [threading.Thread(target=lambda: [self.client.learn("spam", MAIL, LABELS) for _ in range(5)]) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(self.client.report("spam").examples, 4 * 5 * 4)

    def test_two_open_streams_have_two_producers_and_one_that_ended_gives_its_name_back(self):
        producers = Producers()
        with producers.lent("m", None) as first, producers.lent("m", None) as second, producers.lent("m", "file") as named:
            self.assertNotEqual(first, second)
            self.assertEqual(named, "file")
        with producers.lent("m", None) as again:
            self.assertEqual(again, first)

    def test_rows_with_validation_errors_are_counted_and_the_others_learned(self):
        self.create("spam", **SPAM)
        totals = self.client.learn("spam", [{"a": float("nan")}, {"a": 1.0}], ["spam", "ham"]).totals
        self.assertEqual((totals.row_errors, totals.examples, totals.first_row_error_offset), (1, 1, 0))
        self.assertIn("INVALID_ARGUMENT (NON_FINITE_VALUE)", totals.first_row_error)

    def test_a_row_with_an_error_is_named_by_its_position_in_what_was_given(self):
        self.create("spam", **SPAM)
        rows, labels = [{"a": 1.0}, {"b": 1.0}, {"a": float("nan")}, {"c": 1.0}], ["spam", "ham"] * 2
        for arguments in ({"batch": 1}, {"passes": 2, "batch": 3}, {"producer": "file", "batch": 2}):
            with self.subTest(arguments):
                self.assertEqual(self.client.learn("spam", rows, labels, **arguments).totals.first_row_error_position, "row 2")
        of_file = [Row(row, label, line=10 + number) for number, (row, label) in enumerate(zip(rows, labels))]
        self.assertEqual(self.client.learn("spam", iter(of_file), batch=2).totals.first_row_error_position, "line 12")
        with self.assertRaisesRegex(PerceptrondError, r"NON_FINITE_VALUE\): row 2: "):
            self.client.predict("spam", rows, batch=2)
        with self.assertRaisesRegex(PerceptrondError, r"NON_FINITE_VALUE\): line 12: "):
            self.client.predict("spam", of_file, batch=1)
        self.create("dense", features=1)
        matrix = numpy.array([[0.0], [1.0], [numpy.inf]])
        self.assertEqual(self.client.learn("dense", matrix, [1, -1, 1], batch=1).totals.first_row_error_position, "row 2")

    def test_a_row_that_cannot_be_sent_is_named(self):
        self.create("spam", **SPAM)
        for bad, said in (({"a": "x"}, "row 1: must be real number, not str"), ({"a": 1, 2: 1}, "row 1: the feature 2 is int; expected a name"),
                          ({3: 1.0}, "row 1: the feature 3 is int; expected a name, as the features before it are"), (5, "row 1: an example is .* not int")):
            with self.subTest(bad), self.assertRaisesRegex(TypeError, said):
                self.client.learn("spam", [{"a": 1.0}, bad], ["spam", "ham"])
        with self.assertRaisesRegex(TypeError, "^line 8: "):
            self.client.learn("spam", [Row({"a": 1.0}, 1, line=7), Row({"a": "x"}, 1, line=8)])

    def test_wrong_arguments_are_errors_before_anything_is_sent(self):
        for error, arguments, more in ((ValueError, (MAIL, LABELS[:3]), {}), (ValueError, (numpy.zeros((2, 2)), [1]), {}), (ValueError, (iter([]),), dict(passes=2)),
                                       (ValueError, (MAIL, LABELS), dict(passes=0)), (ValueError, (MAIL, LABELS), dict(batch=0)), (ValueError, (MAIL, LABELS), dict(batch=65537)),
                                       (ValueError, (MAIL, LABELS), dict(window=0)), (TypeError, ({"a": 1},), {}), (TypeError, ("text",), {}), (TypeError, ([1, 2], [1, -1]), {})):
            with self.subTest(arguments), self.assertRaises(error):
                self.client.learn("nothing", *arguments, **more)


class PredictTest(ServedTest):
    def test_arguments_out_of_range_and_mixed_features_are_named(self):
        self.create("spam", **SPAM)
        with self.assertRaisesRegex(ValueError, "batch=0: expected a whole number, 1 to 65,536"):
            self.client.predict("spam", MAIL, batch=0)
        async def predict_async(rows, **arguments):
            async with AsyncClient() as client:
                await client.predict("spam", rows, **arguments)

        predicts = (functools.partial(self.client.predict, "spam"), lambda rows, **arguments: asyncio.run(predict_async(rows, **arguments)))
        for predict, batch in itertools.product(predicts, (100, 2)):
            with self.assertRaisesRegex(TypeError, "^row 5: the feature 7 is int; expected a name, as the features before it are"):
                predict([*MAIL, {"free": 1}, {7: 1.0}], batch=batch)
            with self.assertRaisesRegex(TypeError, "^row 4: must be real number, not str"):
                predict([*MAIL, {"free": "x"}], batch=batch)
        with self.assertRaisesRegex(TypeError, "^line 8: the feature 'a' is str; expected an index"):
            self.client.predict("spam", [Row({1: 1}, line=7), Row({"a": 1}, line=8)])
        with self.assertRaisesRegex(TypeError, "^row 1: the feature 7 is int"):
            self.client.explain("spam", [MAIL[0], {7: 1.0}])
        self.assertEqual((self.client.predict("spam", []).labels, self.client.learn("spam", [], []).totals.examples), ([], 0))

    def test_predictions_have_labels_and_scores(self):
        self.create("spam", **SPAM)
        self.client.learn("spam", MAIL, LABELS, until_converged=True)
        predictions = self.client.predict("spam", MAIL, batch=3)
        self.assertEqual(predictions.labels, LABELS)
        self.assertEqual([score > 0 for score in predictions.scores], [True, False, True, False])
        self.assertEqual(predictions.revision, self.client.get("spam").revision)
        self.assertEqual(self.client.predict("spam", MAIL, min_revision=predictions.revision).scores, predictions.scores)
        with self.assertRaisesRegex(PerceptrondError, "REVISION_TOO_OLD"):
            self.client.predict("spam", MAIL, min_revision=predictions.revision + 1)
        explained = self.client.explain("spam", MAIL[:1]).explanations[0]
        self.assertAlmostEqual(explained.bias + sum(one.contribution for one in explained.contributions), predictions.scores[0])

    def test_several_classes_have_a_score_each(self):
        self.create("classes", features=3, classes=3, learner="logistic_regression")
        self.client.learn("classes", numpy.eye(3), [0, 1, 2], passes=5)
        predictions = self.client.predict("classes", scipy.sparse.eye(3), class_scores=True)
        self.assertEqual(predictions.labels, [0, 1, 2])
        self.assertEqual([max(row) for row in predictions.class_scores], predictions.scores)
        self.assertEqual(len(predictions.probabilities), 3)

    def test_a_class_that_is_added_while_predictions_are_made_has_its_name(self):
        settings = {"classes": 4, "features": "named", "learner": "logistic_regression"}
        classes = learner_pb2.Classes(max_classes=4, new_classes=learner_pb2.Classes.NEW_CLASSES_NAMED)

        def rows(name):
            yield Row({"a": 1})
            self.client.learn(name, [{"b": 1}, {"a": 1}], ["new", "old"], passes=9)
            yield Row({"b": 1})

        async def predict_async(name):
            async with AsyncClient() as client:
                return await client.predict(name, rows(name), batch=1)

        for name, predict in (("sync", lambda name: self.client.predict(name, rows(name), batch=1)), ("async", lambda name: asyncio.run(predict_async(name)))):
            model = model_settings(**settings)
            model.learner.classes.CopyFrom(classes)
            self.create(name, settings=model)
            self.client.learn(name, [{"a": 1}], ["old"])
            self.assertEqual(predict(name).labels, ["old", "new"])

    def test_a_row_with_a_validation_error_is_an_error_with_its_field(self):
        self.create("rows", features=2)
        with self.assertRaises(PerceptrondError) as raised:
            self.client.predict("rows", [[1, 2], [1, float("inf")]])
        self.assertEqual((raised.exception.reason, raised.exception.violations[0].field), ("NON_FINITE_VALUE", "columns.values[3]"))


class ConvergenceTest(ServedTest):
    def test_a_model_is_watched_until_it_is_deleted(self):
        self.create("spam", **SPAM)
        watched = self.client.watch("spam", 0.05)
        self.assertEqual(next(watched).report.examples, 0)
        self.client.learn("spam", MAIL, LABELS)
        self.assertGreater(next(watched).report.examples, 0)
        self.client.delete("spam")
        with self.assertRaisesRegex(PerceptrondError, "MODEL_NOT_FOUND"):
            list(watched)

    def test_the_wait_for_convergence_ends_with_its_time(self):
        self.create("spam", **SPAM)
        with self.assertRaisesRegex(TimeoutError, "spam has not converged within 0.2 s: its state is learning"):
            self.client.wait_until_converged("spam", 0.2)


class AsyncTest(ServedTest):
    def test_one_loop_learns_watches_and_predicts(self):
        async def run():
            async with AsyncClient() as client:
                await client.create("spam", **SPAM)
                await client.create("spam", **SPAM, exist_ok=True)
                learned, converged = await asyncio.gather(client.learn("spam", MAIL, LABELS, until_converged=True, batch=3), client.wait_until_converged("spam", 60))
                self.assertTrue(learned.converged)
                self.assertEqual(converged.report.state, CONVERGED)
                predictions = await client.predict("spam", MAIL, batch=1)
                self.assertEqual((predictions.labels, predictions.revision), (LABELS, (await client.get("spam")).revision))
                self.assertEqual([model.name async for model in client.list()], ["models/spam"])
                self.assertEqual((await client.weights("spam")).vectors[0], self.client.weights("spam").vectors[0])
                self.assertEqual((await client.update("spam", description="mail")).description, "mail")
                self.assertEqual((await client.freeze("spam")).state, model_pb2.MODEL_STATE_FROZEN)
                self.assertEqual(len((await client.explain("spam", MAIL)).explanations), 4)
                with self.assertRaises(TimeoutError):
                    await client.create("other", **SPAM)
                    await client.wait_until_converged("other", 0.1)
                with self.assertRaisesRegex(PerceptrondError, "NON_FINITE_VALUE"):
                    await client.predict("spam", [{"a": float("inf")}])
                for name in ("spam", "other"):
                    await client.delete(name)
        asyncio.run(run())
        self.assertEqual(self.models(), [])


if __name__ == "__main__":
    unittest.main()
