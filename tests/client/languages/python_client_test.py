"""Client and AsyncClient of the Python package against a real server, and model files beside perceptronctl's.

    PYTHONPATH=tests/deploy:BUILT python3 python_client_test.py PERCEPTROND PERCEPTRONCTL
"""

import asyncio
import io
import pathlib
import subprocess
import sys
import tempfile
import threading
import unittest
import warnings

import grpc
import numpy
import pandas
import scipy.sparse

from perceptrond import AsyncClient, Client, PerceptrondError, Row, model_settings
from perceptrond.v1 import alias_service_pb2, learner_pb2, model_pb2, report_pb2
from processes import Server

PERCEPTRONCTL = sys.argv.pop(2)
from python_fixture import PERCEPTROND, ServedTest, for_both_clients  # noqa: E402: it takes the server's path from the command line

CHALLENGER_WON = alias_service_pb2.CHALLENGE_OUTCOME_CHALLENGER_WON
MAIL = [{"free": 1, "now": 2}, {"lunch": 1, "now": 1}, {"free": 2}, {"meeting": 1}]
LABELS = ["spam", "ham", "spam", "ham"]
OPPOSITE = ["ham", "spam", "ham", "spam"]
SPAM = dict(features="named", labels=["ham", "spam"])
X = numpy.random.default_rng(5).normal(size=(60, 4)).astype(numpy.float32)
SIGNS = numpy.where(X @ [1, -2, 0.5, 3] > 0, 1, -1)
DICTS = [dict(enumerate(row)) for row in X.tolist()]
# Weights of 256 KiB: several pieces of a file.
WIDE = 1 << 16


def weights_of(client, name):
    (vector,) = client.weights(name).vectors
    return dict(zip(vector.names or vector.indices, vector.values)), vector.bias


@for_both_clients
class ModelsTest(ServedTest):
    def learned(self, name, labels=LABELS, passes=3, **settings):
        self.create(name, **SPAM, **settings)
        self.client.learn(name, MAIL, labels, passes=passes)

    def alias(self, name, model):
        self.addCleanup(self.client.aliases.delete, name, missing_ok=True)
        return self.tested.aliases.set(name, model)

    def test_a_model_is_created_read_listed_changed_frozen_and_deleted(self):
        client = self.tested
        self.assertEqual(client.create("spam", **SPAM).name, "models/spam")
        self.assertEqual(list(client.create("spam", features=3, exist_ok=True).label_names), ["ham", "spam"])
        self.assert_fails("MODEL_EXISTS", client.create, "spam", **SPAM)
        self.assertEqual(list(client.get("models/spam").label_names), ["ham", "spam"])
        self.assertEqual([model.name for model in client.list()], ["models/spam"])
        changed = client.update("spam", description="mail", margin_of_interest=0.5, expire_after="1d")
        self.assertEqual((changed.description, changed.margin_of_interest, changed.expire_after.seconds), ("mail", 0.5, 86400))
        self.assertFalse(client.update("spam", expire_after="never").HasField("expire_after"))
        self.assertEqual(client.freeze("spam").state, model_pb2.MODEL_STATE_FROZEN)
        self.assertEqual(client.freeze("spam", False).state, model_pb2.MODEL_STATE_ACTIVE)
        client.delete("spam")
        client.delete("spam", missing_ok=True)
        self.assertEqual(self.models(), [])

    def test_a_model_is_watched_until_it_is_deleted_and_a_wait_ends_with_its_time(self):
        self.create("spam", **SPAM)
        watched = self.tested.watch("spam", 0.05)
        self.assertEqual(next(watched).report.examples, 0)
        # On a busy machine the time may be over before the state is known.
        ended, seconds = "its state is unknown", 0.2
        while "its state is unknown" in ended:
            with self.assertRaises(TimeoutError) as raised:
                self.tested.wait_until_converged("spam", seconds)
            ended, seconds = str(raised.exception), 2 * seconds
        self.assertIn("its state is learning", ended)
        self.client.learn("spam", MAIL, LABELS, until_converged=True)
        self.assertGreater(next(watched).report.examples, 0)
        self.assertEqual(self.tested.wait_until_converged("spam", 3600).report.state, report_pb2.CONVERGENCE_STATE_CONVERGED)
        self.client.delete("spam")
        self.assert_fails("MODEL_NOT_FOUND", list, watched)

    def test_an_alias_is_set_listed_moved_challenged_and_deleted(self):
        for name in ("a", "b"):
            self.learned(name, passes=100)
        aliases = self.tested.aliases
        self.assertEqual((self.alias("x", "a").model, self.alias("aliases/y", "models/b").name), ("models/a", "aliases/y"))
        self.assertEqual([alias.name for alias in aliases.list()], ["aliases/x", "aliases/y"])
        self.assertEqual(self.tested.predict("aliases/x", MAIL).labels, LABELS)
        old = aliases.get("x")
        moved = aliases.set("x", "b", description="for all", etag=old.etag)
        self.assertEqual((moved.model, moved.previous_model, moved.description), ("models/b", "models/a", "for all"))
        self.assert_fails("ETAG_MISMATCH", aliases.set, "x", "a", etag=old.etag)
        self.create("none", **SPAM)
        self.assertEqual(aliases.challenge("x", "none").outcome, alias_service_pb2.CHALLENGE_OUTCOME_TOO_FEW_EXAMPLES)
        self.learned("worse", passes=1)
        self.alias("x", "worse")
        self.assertEqual(aliases.challenge("x", "a", min_examples=2).outcome, CHALLENGER_WON)
        aliases.delete("x")
        aliases.delete("x", missing_ok=True)
        self.assert_fails("ALIAS_NOT_FOUND", aliases.delete, "x")

    def test_a_model_is_copied_renamed_and_goes_back_to_a_snapshot_or_a_revision(self):
        self.learned("spam")
        history, weights, before = self.tested.history, self.client.weights("spam"), self.client.get("spam").revision
        for name in ("copy", "renamed"):
            self.addCleanup(self.client.delete, name, missing_ok=True)
        self.assertEqual(history.copy("spam", "copy").report.examples, 12)
        self.assertEqual(history.rename("copy", "renamed").name, "models/renamed")
        self.assertEqual(history.create_snapshot("spam", "good").revision, before)
        self.client.learn("spam", MAIL, OPPOSITE, passes=2)
        worse = self.client.get("spam").revision
        self.assert_fails("REVISION_MISMATCH", history.roll_back, "spam", "good", expected_revision=worse + 1)
        self.assertEqual(history.roll_back("spam", "good", expected_revision=worse).revision, worse + 1)
        self.assertEqual(self.client.weights("spam"), weights)
        self.assertEqual(history.roll_back("spam", revision=before).revision, worse + 2)
        self.assertEqual([snapshot.name for snapshot in history.list_snapshots("spam")], ["models/spam/snapshots/good"])
        history.delete_snapshot("spam", "good")
        self.assert_fails("SNAPSHOT_NOT_FOUND", history.delete_snapshot, "spam", "good")

    def test_stored_examples_have_a_largest_margin(self):
        self.learned("spam", stored_examples={"max_sample": 10})
        self.assertEqual([stored.update_revision for stored in self.tested.stored_examples("spam")][-len(MAIL):], [0] * len(MAIL))
        self.assertEqual(self.tested.get("spam", learning_curve=True).learning_curve[-1].examples, self.client.report("spam").examples)
        seen = []
        result = self.tested.analyze("spam", progress=seen.append, relative_gap=1e-3, time_limit="1m")
        self.assertGreater(result.separator_margin, 0)
        revision = self.client.get("spam").revision
        self.assert_fails("REVISION_MISMATCH", self.tested.analyze, "spam", replace_weights=True, expected_revision=revision + 1)
        self.assertEqual(self.tested.analyze("spam", replace_weights=True, expected_revision=revision).new_revision, revision + 1)
        self.create("none", **SPAM)
        self.assert_fails("NOTHING_STORED", self.tested.analyze, "none")


@for_both_clients
class LearnTest(ServedTest):
    def examples(self, name):
        return self.client.report(name).examples

    def test_dicts_rows_frames_and_matrices_are_learned_alike(self):
        matrix = numpy.array([[1, 2, 0, 0], [0, 1, 1, 0], [2, 0, 0, 0], [0, 0, 0, 1]])
        names, rows = ["free", "now", "lunch", "meeting"], [Row(*pair) for pair in zip(MAIL, LABELS)]
        frame = pandas.DataFrame(matrix, columns=names)
        learned = {}
        for name, examples, labels in (("dicts", MAIL, LABELS), ("rows", rows, None), ("iterator", iter(rows), None), ("frame", frame.assign(kind=["mail", None, "list", "mail"]), LABELS)):
            self.create(name, **SPAM)
            self.tested.learn(name, examples, labels)
            learned[name] = weights_of(self.client, name)
        self.assertEqual(learned["rows"], learned["dicts"])
        self.assertEqual(learned["iterator"], learned["dicts"])
        expected = [learned["dicts"][0].get(name, 0) for name in names]
        self.assertEqual([learned["frame"][0].get(name, 0) for name in names], expected)
        for name, examples in (("array", matrix), ("csr", scipy.sparse.csr_matrix(matrix)), ("coo", scipy.sparse.coo_matrix(matrix)), ("lists", matrix.tolist()), ("numbers", frame.to_numpy())):
            self.create(name, features=4)
            self.tested.learn(name, examples, numpy.array([1, -1, 1, -1]))
            self.assertEqual([weights_of(self.client, name)[0].get(i, 0) for i in range(4)], expected, name)

    def test_a_frame_of_numbers_goes_by_the_names_of_its_columns_and_a_dense_model_refuses_it(self):
        frame = pandas.DataFrame({"a": [5.0, 1.0], "b": [1.0, 5.0]})
        self.create("spam", **SPAM)
        self.tested.learn("spam", frame, ["spam", "ham"], until_converged=True)
        self.assertEqual(self.tested.predict("spam", frame[["b", "a"]]).labels, ["spam", "ham"])
        self.create("dense", features=2)
        for call in (lambda: self.tested.learn("dense", frame, [1, -1]), lambda: self.tested.predict("dense", frame[["b", "a"]])):
            with self.assertRaisesRegex(ValueError, r"frame\.to_numpy\(\)"):
                call()
        self.assertEqual(self.examples("dense"), 0)
        self.tested.learn("dense", frame.to_numpy(), [1, -1], until_converged=True)
        self.assertEqual(self.tested.predict("dense", frame.to_numpy()).labels, [1, -1])

    def test_a_row_that_is_too_large_for_a_message_is_named_as_such(self):
        self.create("texts", features="text", labels=["ham", "spam"])
        long = "x " * 12_500_000
        for rows, number in ((["a", long, "b"], 1), ([long, "b"], 0)):
            for call in (lambda: self.tested.learn("texts", rows, ["ham", "spam", "ham"][:len(rows)]), lambda: self.tested.predict("texts", rows)):
                with self.subTest(number=number), self.assertRaisesRegex(PerceptrondError, f"row {number}: this row alone is too large: it takes 25") as raised:
                    call()
                self.assertEqual(raised.exception.reason, "MESSAGE_TOO_LARGE")

    def test_learning_goes_on_until_a_pass_changes_nothing_and_shows_how_far_it_is(self):
        self.create("spam", **SPAM)
        seen = []
        learned = self.tested.learn("spam", MAIL, LABELS, until_converged=True, batch=3, progress=seen.append)
        self.assertEqual((learned.converged, learned.passes), (True, learned.last_pass.number))
        self.assertEqual([(now.pass_number, now.sent, now.rows, now.summary is None) for now in seen[:3]], [(1, 3, 4, True), (1, 4, 4, True), (1, 4, 4, False)])
        self.assertEqual(seen[-1].examples, 4 * learned.passes)

    def test_examples_without_a_producer_are_new_and_a_named_one_goes_on_where_it_was(self):
        self.create("spam", **SPAM)
        for passes in (1, 2):
            self.assertEqual(self.tested.learn("spam", MAIL, LABELS).passes, passes)
        with self.client.learn_stream("spam", "file") as stream:
            stream.send([Row(MAIL[0], "spam")])
            stream.finish()
        # From the middle of the first pass; then the whole again, of which nothing is left; then a third pass.
        for passes, examples in ((1, 12), (1, 12), (3, 20)):
            self.tested.learn("spam", MAIL, LABELS, producer="file", passes=passes)
            self.assertEqual(self.examples("spam"), examples)
        self.assertEqual(self.client.report("spam").duplicates, 0)

    def test_a_row_with_an_error_is_left_out_and_named_by_its_position_in_what_was_given(self):
        self.create("spam", **SPAM)
        rows, labels = [{"a": 1.0}, {"b": 1.0}, {"a": float("nan")}, {"c": 1.0}], ["spam", "ham"] * 2
        for arguments in ({"batch": 1}, {"passes": 2, "batch": 3}, {"producer": "file", "batch": 2}):
            with self.subTest(arguments), self.assertWarns(UserWarning):
                totals = self.tested.learn("spam", rows, labels, **arguments).totals
                self.assertEqual((totals.first_row_error_position, totals.row_errors, totals.examples), ("row 2", totals.examples // 3, 3 * arguments.get("passes", 1)))
        of_file = [Row(row, label, line=10 + number) for number, (row, label) in enumerate(zip(rows, labels))]
        with self.assertWarns(UserWarning):
            self.assertEqual(self.tested.learn("spam", iter(of_file), batch=2).totals.first_row_error_position, "line 12")
        for given, position in ((rows, "row 2: "), (of_file, "line 12: ")):
            # AsyncClient's messages are calls, which fail as a whole.
            with self.assertRaisesRegex(PerceptrondError, rf"NON_FINITE_VALUE\): {'' if self.asynchronous else position}"):
                self.tested.predict("spam", given, batch=2)

    def test_a_call_that_learned_nothing_raises_the_error_of_the_first_row(self):
        self.create("spam", **SPAM)
        with self.assertRaisesRegex(PerceptrondError, r"NON_FINITE_VALUE\): none of 4 examples was learned; the first, row 0: ") as raised:
            self.tested.learn("spam", [{"a": float("nan")}] * 4, LABELS, batch=3)
        self.assertEqual((raised.exception.code, self.examples("spam")), (grpc.StatusCode.INVALID_ARGUMENT, 0))

    def test_a_row_that_cannot_be_sent_is_named(self):
        self.create("spam", **SPAM)
        for bad, said in (({"a": "x"}, "row 1: must be real number, not str"), ({3: 1.0}, "row 1: the feature 3 is int; expected a name"), (5, "row 1: an example is .* not int")):
            with self.subTest(bad), self.assertRaisesRegex(TypeError, said):
                self.tested.learn("spam", [{"a": 1.0}, bad], ["spam", "ham"])
            with self.subTest(bad), self.assertRaisesRegex(TypeError, said):
                self.tested.predict("spam", [{"a": 1.0}, bad])

    def test_wrong_arguments_are_errors_before_anything_is_sent(self):
        for error, arguments, more in ((ValueError, (MAIL, LABELS[:3]), {}), (ValueError, (numpy.zeros((2, 2)), [1]), {}), (ValueError, (iter([]),), dict(passes=2)),
                                       (ValueError, (MAIL, LABELS), dict(passes=0)), (ValueError, (MAIL, LABELS), dict(batch=65537)),
                                       (ValueError, (MAIL, LABELS), dict(window=0)), (TypeError, ({"a": 1},), {}), (TypeError, ("text",), {}), (TypeError, ([1, 2], [1, -1]), {})):
            with self.subTest(arguments), self.assertRaises(error):
                self.tested.learn("nothing", *arguments, **more)

    def test_labels_are_learned_by_the_ids_of_predictions_once(self):
        for name, settings in (("later", {"stored_predictions": {"max_bytes": 1 << 20}}), ("at-once", {})):
            self.create(name, **SPAM, **settings)
        ids = self.tested.predict("later", MAIL, ids=True).ids
        self.assertEqual(len(set(ids)), 4)
        self.assertEqual(self.tested.learn("later", ids=ids, labels=LABELS, batch=3).totals.examples, 4)
        self.client.learn("at-once", MAIL, LABELS, batch=3)
        self.assertEqual(weights_of(self.client, "later"), weights_of(self.client, "at-once"))
        self.assert_fails("UNKNOWN_PREDICTION", self.tested.learn, "later", ids=ids[:1], labels=["spam"])

    # ---- Labels ----

    def test_zeros_and_booleans_are_read_as_the_first_of_two_labels_with_a_notice(self):
        self.create("plain", features=4)
        self.client.learn("plain", X, SIGNS)
        zeros = (SIGNS > 0).astype(int)
        for labels, examples in ((zeros, X), (SIGNS > 0, DICTS), (zeros.tolist(), scipy.sparse.csr_matrix(X)), (pandas.Series(SIGNS > 0), X)):
            self.create("zeros", features=4)
            with self.assertWarnsRegex(UserWarning, "^label 0 is read as -1$"):
                self.tested.learn("zeros", examples, labels)
            self.assertEqual(self.client.weights("zeros"), self.client.weights("plain"))
            self.client.delete("zeros")
        with self.assertRaisesRegex(ValueError, "label 0 beside the label -1"):
            self.tested.learn("plain", X, [-1, 1, 0] * 20)

    def test_what_a_model_does_not_take_is_named_before_anything_is_learned(self):
        for name, settings in (("plain", {}), ("named", {"labels": ["neg", "pos"]}), ("classes", {"classes": 3}), ("swapped", {"labels": ["2", "1"]})):
            self.create(name, features=4, **settings)
        with_other = lambda label: [label if row == 7 else "pos" for row in range(60)]
        wide = numpy.hstack([X, numpy.zeros((60, 2))])
        wide[9, 5] = 1
        for model, examples, labels, said in (
                ("named", X, with_other("Pos"), 'row 7: label "Pos" is not a label of the model: "neg", "pos"'), ("named", DICTS, with_other(2), "row 7: label 2 is not"),
                ("named", X, with_other(None), "row 7: the label is missing"), ("named", X, with_other(pandas.NA), "row 7: the label is missing"), ("named", X, None, "there are no labels"),
                ("classes", X, [0, 2, 3] * 20, "row 2: label 3 is not a class of the model: 0 to 2"), ("swapped", X, [1, -1] * 30, 'row 1: label -1 is not a label of the model: "2", "1"'),
                ("plain", X, [1, 7] * 30, "row 1: label 7 is neither"),
                ("plain", scipy.sparse.csr_matrix(wide), SIGNS, "row 9: the feature 5 is not below the dimension 4 of models/plain"),
                ("plain", wide, SIGNS, "the rows have 6 values, and models/plain the dimension 4")):
            with self.subTest(said), self.assertRaisesRegex(ValueError, f"^{said}"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self.tested.learn(model, examples, labels)
        self.assertEqual([self.examples(name) for name in ("plain", "named", "classes", "swapped")], [0] * 4)

    def test_a_number_is_a_name_where_names_are_numbers(self):
        for name, labels in (("names", ["2", "1"]), ("numbers", ["2", "1"])):
            self.create(name, features=4, labels=labels)
        self.client.learn("names", X, ["1" if sign < 0 else "2" for sign in SIGNS])
        self.tested.learn("numbers", X, [1 if sign < 0 else 2.0 for sign in SIGNS])
        self.assertEqual(self.client.weights("numbers"), self.client.weights("names"))

    def test_an_iterator_is_learned_up_to_the_first_row_that_is_not_of_the_model_and_goes_on_there(self):
        self.create("plain", features=4)
        rows = [Row(features, int(label)) for features, label in zip(DICTS, SIGNS)]
        for bad, said in ((Row({0: 1.0}, 2), "label 2 is neither -1 nor"), (Row({4: 1.0}, 1), "the feature 4 is not below")):
            with self.assertRaisesRegex(ValueError, f"^row 25: {said}.*; the rows before it were learned$"):
                self.tested.learn("plain", iter([*rows[:25], bad, *rows[26:]]), batch=10, producer="file")
            self.assertEqual(self.examples("plain"), 25)
        self.tested.learn("plain", iter(rows), batch=10, producer="file")
        self.assertEqual(self.examples("plain"), 60)


@for_both_clients
class PredictTest(ServedTest):
    def test_predictions_have_labels_scores_and_a_revision(self):
        self.create("spam", **SPAM)
        self.client.learn("spam", MAIL, LABELS, until_converged=True)
        predictions = self.tested.predict("spam", MAIL, batch=3)
        self.assertEqual((predictions.labels, predictions.revision), (LABELS, self.client.get("spam").revision))
        self.assertEqual([score > 0 for score in predictions.scores], [True, False, True, False])
        self.assertEqual(self.tested.predict("spam", MAIL, min_revision=predictions.revision).scores, predictions.scores)
        self.assert_fails("REVISION_TOO_OLD", self.tested.predict, "spam", MAIL, min_revision=predictions.revision + 1)
        explained = self.tested.explain("spam", MAIL[:1]).explanations[0]
        self.assertAlmostEqual(explained.bias + sum(one.contribution for one in explained.contributions), predictions.scores[0])
        # Each message of a stream: one row, or several.
        answers = [(len(rows), list(answer.predicted_labels)) for rows, answer in self.tested.predict_stream("spam", [Row(MAIL[1]), MAIL[0], MAIL[:2]])]
        self.assertEqual(answers, [(1, [-1]), (1, [1]), (2, [1, -1])])
        with self.assertRaisesRegex(TypeError, "message 1: a message is a row, a list of rows"):
            list(self.tested.predict_stream("spam", [MAIL[0], pandas.DataFrame(MAIL)]))

    def test_several_classes_have_a_score_each_and_one_that_is_added_meanwhile_its_name(self):
        settings = model_settings(classes=4, features="named", learner="logistic_regression")
        settings.learner.classes.CopyFrom(learner_pb2.Classes(max_classes=4, new_classes=learner_pb2.Classes.NEW_CLASSES_NAMED))
        self.create("classes", settings=settings)
        self.client.learn("classes", [{"a": 1}], ["old"])

        def rows():
            yield Row({"a": 1})
            self.client.learn("classes", [{"b": 1}, {"a": 1}], ["new", "old"], passes=9)
            yield Row({"b": 1})

        self.assertEqual(self.tested.predict("classes", rows(), batch=1).labels, ["old", "new"])
        predictions = self.tested.predict("classes", [{"a": 1}, {"b": 1}], class_scores=True)
        self.assertEqual([max(row[:2]) for row in predictions.class_scores], predictions.scores)
        self.assertEqual(len(predictions.probabilities), 2)

    def test_a_stream_of_predictions_follows_an_alias_and_each_label_is_of_the_model_that_answered(self):
        self.create("first", **SPAM)
        self.create("second", features="named", labels=["bad", "good"])
        # Revisions of another model are no older states.
        for name, labels in (("first", OPPOSITE), ("first", LABELS), ("second", ["bad", "good"] * 2)):
            self.client.learn(name, MAIL, labels, until_converged=True)
        self.addCleanup(self.client.aliases.delete, "prod", missing_ok=True)

        def rows():
            for number in range(16):
                if number == 8:
                    self.client.aliases.set("prod", "second")
                yield Row(MAIL[number % 2])

        self.client.aliases.set("prod", "first")
        labels = self.tested.predict("aliases/prod", rows(), batch=1).labels
        # At most four messages are on their way when the alias is moved.
        self.assertEqual((labels[:4], labels[8:]), (["spam", "ham"] * 2, ["bad", "good"] * 4))


@for_both_clients
class FilesTest(ServedTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.client.create("wide", features=WIDE)
        values = numpy.arange(1, WIDE + 1, dtype=numpy.float32)
        rows = scipy.sparse.csr_matrix((values, numpy.arange(WIDE), [0, WIDE // 2, WIDE]), shape=(2, WIDE))
        assert cls.client.learn("wide", rows, [1, -1], batch=1).totals.updates == 2

    def setUp(self):
        self.file = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory())) / "file"
        self.addCleanup(self.client.delete, "made", missing_ok=True)

    def assert_same(self, made="made"):
        self.assertEqual(self.client.weights(made), self.client.weights("wide"))
        self.client.delete(made)

    def test_the_command_line_imports_what_was_exported_and_exports_what_is_imported(self):
        self.assertEqual(self.tested.history.export_model("wide", self.file), self.file.stat().st_size)
        ctl = lambda *arguments: subprocess.run([PERCEPTRONCTL, "--server", self.server.address, "--quiet", *arguments], check=True)
        ctl("import", "made", self.file)
        self.assert_same()
        with self.assertRaises(FileExistsError):
            self.tested.history.export_model("wide", self.file)
        self.file.unlink()
        ctl("export", "wide", self.file)
        self.assertEqual(self.tested.history.import_model("made", self.file).name, "models/made")
        self.assert_same()

    def test_what_fails_leaves_neither_a_file_nor_a_model(self):
        self.assert_fails("MODEL_NOT_FOUND", self.tested.history.export_model, "nothing", self.file)
        self.assertEqual(list(self.file.parent.iterdir()), [])
        whole = io.BytesIO()
        self.tested.history.export_model("wide", whole)
        whole = whole.getvalue()
        damaged = bytearray(whole)
        damaged[len(whole) // 2] ^= 1
        for file in (whole[:-1], b"", bytes(damaged), whole + b"x"):
            self.assert_fails("BAD_MODEL_FILE", self.tested.history.import_model, "made", io.BytesIO(file))
        with self.assertRaisesRegex(TypeError, "expected bytes"):
            self.tested.history.import_model("made", io.StringIO("text"))
        self.assertEqual(self.models(), ["wide"])

    def test_a_file_begins_again_when_the_server_was_killed_and_shows_how_far_it_is(self):
        for transfer, model in ((self.tested.history.export_model, "wide"), (self.tested.history.import_model, "made")):
            seen = []

            def progress(now):
                seen.append(now)
                if len(seen) == 1:
                    self.restart_server()

            transfer(model, self.file, progress=progress)
            size = self.file.stat().st_size
            self.assertEqual(seen[-1], (size, size, True))
        self.assert_same()


class ClientsTest(ServedTest):
    def test_both_clients_have_the_same_public_methods(self):
        async def names():
            async with AsyncClient() as client:
                return [{name for name in dir(each) if not name.startswith("_")} for each in (client, client.aliases, client.history)]
        self.assertEqual([{name for name in dir(each) if not name.startswith("_")} for each in (self.client, self.client.aliases, self.client.history)], asyncio.run(names()))

    def test_what_is_no_address_or_no_setting_is_an_error_before_any_call(self):
        for server, said in (("http://127.0.0.1:7601", "is a URL; give host:port"), ("a:99999", "99999 is no port")):
            for kind in (Client, AsyncClient):
                with self.assertRaisesRegex(ValueError, said):
                    kind(server)
        for wrong, said in ((dict(features="name"), "there are dense, hashed, named, text"), (dict(features=2, learner="perzeptron"), "there are perceptron, "),
                            (dict(features=2, learner_options={"eta": 1}), "eta"), (dict(features=2, speed=1), "speed"), (dict(features=2, labels="ab"), "expected a list of names"),
                            (dict(features=2, learner="logistic_regression", learner_options={"steps": "wide"}), "there are 'constant', 'decreasing', 'adaptive'")):
            with self.subTest(wrong), self.assertRaisesRegex(ValueError, said):
                self.client.create("m", **wrong)

    def test_several_threads_learn_one_model_at_once(self):
        self.create("spam", **SPAM)
        threads = [threading.Thread(target=lambda: [self.client.learn("spam", MAIL, LABELS) for _ in range(5)]) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(self.client.report("spam").examples, 4 * 5 * 4)

    def test_a_cancelled_call_of_an_async_client_leaves_it_usable(self):
        async def run():
            async with AsyncClient() as client:
                started = asyncio.Event()
                learning = asyncio.create_task(client.learn("m", X, SIGNS, passes=1000, producer="long", progress=lambda now: started.set()))
                await started.wait()
                learning.cancel()
                with self.assertRaises(asyncio.CancelledError):
                    await learning
                learned = await client.learn("m", X, SIGNS)
                # No task is left for ever; gRPC's own, which sends, may end after the last answer.
                await asyncio.gather(*asyncio.all_tasks() - {asyncio.current_task()}, return_exceptions=True)
                return learned.totals.examples

        self.create("m", features=4)
        self.assertEqual(asyncio.run(run()), 60)

    def test_a_change_that_may_have_been_made_is_not_repeated(self):
        with Client(f"unix:{self.directory}/nobody", give_up_after=600) as client, self.assertRaises(PerceptrondError) as raised:
            client.history.rename("spam", "other")
        self.assertIs(raised.exception.code, grpc.StatusCode.UNAVAILABLE)

    def certificate(self, name):
        files = [self.directory / f"{name}.{kind}" for kind in ("pem", "key")]
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ed25519", "-nodes", "-subj", f"/CN={name}", "-addext", f"subjectAltName=DNS:{name}", "-days", "1",
                        "-out", files[0], "-keyout", files[1]], check=True, capture_output=True)
        return files

    def test_tls_and_tokens_are_used_and_what_answers_elsewhere_is_said_with_what_to_do(self):
        def assert_said(said, **target):
            with Client(give_up_after=0.2, **target) as client, self.assertRaisesRegex(PerceptrondError, said):
                client.get("m")

        token, access = self.directory / "token", self.directory / "access"
        made = subprocess.run([PERCEPTROND, "--new-token", token], check=True, capture_output=True, text=True)
        access.write_text(f"principal {{ name: 'owner' {made.stdout} allow {{ role: ADMIN models: '' }} }}")
        access.chmod(0o600)
        trusted, key = self.certificate("localhost")
        assert_said("give the address of gRPC", server=self.server.metrics)
        flags = ["--tls-cert", trusted, "--tls-key", key, "--access-file", access]
        with Server(PERCEPTROND, self.directory / "tls", self.directory / "tls.log", flags) as encrypted:
            server = "localhost:" + encrypted.address.rpartition(":")[2]
            assert_said("If it uses TLS, give tls_ca", server=encrypted.address)
            assert_said("is not signed by an authority in tls_ca", server=server, tls_ca=self.certificate("other")[0])
            assert_said("another name", server=encrypted.address, tls_ca=trusted)
            assert_said("UNAUTHENTICATED", server=server, tls_ca=trusted)
            assert_said("MODEL_NOT_FOUND", server=server, tls_ca=trusted, token_file=token)


if __name__ == "__main__":
    unittest.main()
