"""Aliases, history and analyses by Client and AsyncClient of the installed package, against a real server.

    ENVIRONMENT/bin/python python_management_test.py PERCEPTROND
"""

import asyncio
import datetime
import unittest

import grpc

from perceptrond import AsyncClient, Client, PerceptrondError
from perceptrond.durations import duration
from perceptrond.v1 import alias_service_pb2, analysis_service_pb2
from python_fixture import ServedTest

# On which models with these labels give opposite answers.
MAIL, LABELS, OPPOSITE = [{"free": 1}, {"lunch": 1}], ["spam", "ham"], ["ham", "spam"]
SPAM = dict(features="named", labels=["ham", "spam"])
CHALLENGER_WON = alias_service_pb2.CHALLENGE_OUTCOME_CHALLENGER_WON


class ManagementTest(ServedTest):
    def learned(self, name, labels=LABELS, passes=3, **settings):
        self.create(name, **SPAM, **settings)
        self.client.learn(name, MAIL, labels, passes=passes)

    def alias(self, name, model):
        self.addCleanup(self.client.aliases.delete, name, missing_ok=True)
        return self.client.aliases.set(name, model)

    def assert_fails(self, reason, call, *arguments, **more):
        with self.assertRaises(PerceptrondError) as raised:
            call(*arguments, **more)
        self.assertEqual(raised.exception.reason, reason)


class AliasTest(ManagementTest):
    def test_a_model_is_read_and_predicts_and_learns_by_its_alias(self):
        self.learned("spam-1")
        self.alias("prod", "spam-1")
        self.assertEqual(self.client.get("aliases/prod").name, "models/spam-1")
        self.assertEqual(self.client.predict("aliases/prod", MAIL).labels, LABELS)
        self.assertEqual(len(self.client.explain("aliases/prod", MAIL).explanations), 2)
        self.assertEqual(self.client.weights("aliases/prod"), self.client.weights("spam-1"))
        before = self.client.report("spam-1").examples
        self.assertEqual(self.client.learn("aliases/prod", MAIL, LABELS).totals.examples, 2)
        self.assertEqual(self.client.report("aliases/prod").examples, before + 2)
        self.assert_fails("INVALID_FIELD", self.client.update, "aliases/prod", description="an alias is no model")
        self.assert_fails("ALIAS_NOT_FOUND", self.client.predict, "aliases/none", MAIL)

    def test_a_stream_of_predictions_follows_a_move_and_one_that_learns_stays(self):
        self.learned("first")
        self.learned("second", OPPOSITE)
        self.alias("prod", "first")

        def messages():
            yield [self.row(MAIL[0])]
            self.alias("prod", "second")
            yield [self.row(MAIL[0])]

        with self.client.learn_stream("aliases/prod", "file") as learning:
            self.assertEqual([answer.predicted_labels[0] for _, answer in self.client.predict_stream("aliases/prod", messages(), window=1)], [1, -1])
            learning.send([self.row(MAIL[0], "spam")])
            learning.finish()
        self.assertEqual((self.client.report("first").examples, self.client.report("second").examples), (7, 6))

    def test_predictions_have_the_labels_of_the_model_that_predicts_though_its_alias_is_moved(self):
        self.learned("first")
        self.create("second", features="named", labels=["bad", "good"])
        self.client.learn("second", MAIL, ["bad", "good"], passes=3)

        # Revisions of another model are no older states.
        for labels in (OPPOSITE, LABELS):
            self.client.learn("first", MAIL, labels, until_converged=True)
        self.assertLess(self.client.get("second").revision, self.client.get("first").revision)

        def rows():
            for number in range(16):
                if number == 8:
                    self.alias("prod", "second")
                yield self.row(MAIL[number % 2])

        async def predict_async():
            async with AsyncClient() as client:
                return (await client.predict("aliases/prod", rows(), batch=1)).labels

        for predict in (lambda: self.client.predict("aliases/prod", rows(), batch=1).labels, lambda: asyncio.run(predict_async())):
            self.alias("prod", "first")
            labels = predict()
            # At most four messages are on their way when the alias is moved.
            self.assertEqual((labels[:4], labels[8:]), (LABELS * 2, ["bad", "good"] * 4))

    def row(self, features, label=None):
        from perceptrond import Row
        return Row(features, label)

    def test_one_client_learns_a_model_by_its_name_and_by_an_alias_at_once(self):
        self.learned("spam", passes=1)
        self.alias("prod", "spam")

        def rows():
            yield self.row(MAIL[0], "spam")
            self.assertEqual(self.client.learn("aliases/prod", MAIL, LABELS).totals.examples, 2)
            yield self.row(MAIL[1], "ham")

        self.assertEqual(self.client.learn("spam", rows(), batch=1).totals.examples, 2)
        self.assertEqual(self.client.report("spam").examples, 6)

    def test_an_alias_is_set_listed_moved_and_deleted(self):
        for name in ("a", "b"):
            self.learned(name)
        self.assertEqual((self.alias("x", "a").model, self.alias("aliases/y", "models/b").name), ("models/a", "aliases/y"))
        self.assertEqual([alias.name for alias in self.client.aliases.list()], ["aliases/x", "aliases/y"])
        old = self.client.aliases.get("x")
        moved = self.client.aliases.set("x", "b", description="for all", etag=old.etag)
        self.assertEqual((moved.model, moved.previous_model, moved.description), ("models/b", "models/a", "for all"))
        self.assert_fails("ETAG_MISMATCH", self.client.aliases.set, "x", "a", etag=old.etag)
        self.assert_fails("ALIAS_NOT_FOUND", self.client.aliases.set, "none", "a", etag=old.etag)
        self.assertEqual(self.client.aliases.set("x", "a").description, "for all")
        self.client.aliases.delete("x")
        self.client.aliases.delete("x", missing_ok=True)
        self.assert_fails("ALIAS_NOT_FOUND", self.client.aliases.delete, "x")

    def test_an_alias_moves_to_a_challenger_that_errs_less(self):
        self.learned("champion")
        self.create("challenger", **SPAM)
        self.client.learn("challenger", MAIL, LABELS, passes=100)
        self.alias("prod", "champion")
        challenge = self.client.aliases.challenge
        self.assertEqual(challenge("prod", "challenger").outcome, alias_service_pb2.CHALLENGE_OUTCOME_TOO_FEW_EXAMPLES)
        for error in ("window", "progressive"):
            answer = challenge("prod", "challenger", error=error, min_examples=2, validate_only=True)
            self.assertEqual((answer.outcome, answer.alias.model), (CHALLENGER_WON, "models/champion"))
        self.assertEqual(challenge("prod", "challenger", min_examples=2).alias.model, "models/challenger")
        with self.assertRaisesRegex(ValueError, "expected one of window, progressive"):
            challenge("prod", "champion", error="all")


class HistoryTest(ManagementTest):
    def test_a_copy_has_what_the_model_has_and_learns_by_itself(self):
        self.learned("spam")
        self.addCleanup(self.client.delete, "copy", missing_ok=True)
        copy = self.client.history.copy("spam", "copy")
        self.assertEqual((copy.name, copy.report.examples), ("models/copy", 6))
        self.client.learn("copy", MAIL, LABELS)
        self.assertEqual(self.client.report("spam").examples, 6)
        self.assert_fails("MODEL_EXISTS", self.client.history.copy, "spam", "copy")

    def test_a_renamed_model_keeps_its_aliases(self):
        self.learned("spam")
        self.alias("prod", "spam")
        self.addCleanup(self.client.delete, "spam-2026", missing_ok=True)
        self.addCleanup(self.client.aliases.delete, "prod", missing_ok=True)
        self.assertEqual(self.client.history.rename("spam", "spam-2026").name, "models/spam-2026")
        self.assertEqual(self.client.aliases.get("prod").model, "models/spam-2026")
        self.assert_fails("MODEL_NOT_FOUND", self.client.history.rename, "spam", "other")
        self.assert_fails("ETAG_MISMATCH", self.client.history.rename, "spam-2026", "other", etag="old")

    def test_a_model_goes_back_to_a_snapshot_or_a_revision(self):
        self.learned("spam")
        history, before = self.client.history, self.client.get("spam")
        weights = self.client.weights("spam")
        self.assertEqual(history.create_snapshot("spam", "good").revision, before.revision)
        self.client.learn("spam", MAIL, OPPOSITE, passes=2)
        worse = self.client.get("spam").revision
        self.assertGreater(worse, before.revision)
        self.assert_fails("REVISION_MISMATCH", history.roll_back, "spam", "good", expected_revision=worse + 1)
        self.assertEqual(history.roll_back("spam", "good", expected_revision=worse).revision, worse + 1)
        self.assertEqual(self.client.weights("spam"), weights)
        self.assertEqual(history.roll_back("spam", revision=before.revision).revision, worse + 2)
        self.assertEqual([snapshot.name for snapshot in history.list_snapshots("spam")], ["models/spam/snapshots/good"])
        history.delete_snapshot("spam", "good")
        self.assertEqual(history.list_snapshots("spam"), [])
        self.assert_fails("SNAPSHOT_NOT_FOUND", history.delete_snapshot, "spam", "good")
        for arguments in ({}, {"snapshot": "good", "revision": 1}):
            with self.assertRaisesRegex(ValueError, "a snapshot or a revision"):
                history.roll_back("spam", **arguments)


class AnalysisTest(ManagementTest):
    def test_stored_examples_have_a_largest_margin(self):
        self.learned("spam", stored_examples={"max_sample": 10})
        seen = []
        result = self.client.analyze("spam", progress=seen.append, relative_gap=1e-3, time_limit="1m")
        # The points (1, 0, 1) and (0, 1, 1), the last coordinate that of the bias, are at sqrt(1/2) from a boundary.
        self.assertAlmostEqual(result.separator_margin, 0.5 ** 0.5, delta=1e-3)
        revision = self.client.get("spam").revision
        self.assert_fails("REVISION_MISMATCH", self.client.analyze, "spam", replace_weights=True, expected_revision=revision + 1)
        replaced = self.client.analyze("spam", replace_weights=True, expected_revision=revision, time_limit=datetime.timedelta(minutes=1))
        self.assertEqual(replaced.new_revision, revision + 1)
        self.create("none", **SPAM)
        self.assert_fails("NOTHING_STORED", self.client.analyze, "none")


class DurationTest(ManagementTest):
    def test_a_duration_is_a_timedelta_or_a_text(self):
        for given, seconds in (("30d", 30 * 86400), ("1h30m", 5400), ("1.5s", 1.5), ("250ms", 0.25), (datetime.timedelta(hours=2), 7200)):
            made = duration(given)
            self.assertEqual(made.seconds + made.nanos / 1e9, seconds, given)
        for wrong, error in (("", ValueError), ("30", ValueError), ("30 days", ValueError), ("-1h", ValueError), (30, TypeError)):
            with self.assertRaises(error):
                duration(wrong)

    def test_a_model_expires_after_a_time_that_may_be_changed(self):
        created = self.create("trial", **SPAM, expire_after="30d", stored_predictions={"max_age": datetime.timedelta(hours=12)})
        self.assertEqual((created.expire_after.seconds, created.stored_predictions.max_age.seconds), (30 * 86400, 12 * 3600))
        self.assertEqual(self.client.update("trial", expire_after=datetime.timedelta(days=1)).expire_after.seconds, 86400)
        self.assertTrue(self.client.update("trial", description="kept").HasField("expire_after"))
        self.assertFalse(self.client.update("trial", expire_after="never").HasField("expire_after"))
        with self.assertRaisesRegex(ValueError, "expire_after='soon' is no time such as"):
            self.client.update("trial", expire_after="soon")
        with self.assertRaisesRegex(ValueError, "max_age='soon'"):
            self.client.create("wrong", **SPAM, stored_predictions={"max_age": "soon"})


class AsyncTest(ManagementTest):
    def test_an_async_client_has_the_same_methods(self):
        self.learned("spam", stored_examples={"max_sample": 10})
        self.create("other", **SPAM)
        self.create("empty", **SPAM)
        self.client.learn("other", MAIL, LABELS, passes=100)
        for name in ("copy", "renamed"):
            self.addCleanup(self.client.delete, name, missing_ok=True)

        async def run():
            async with AsyncClient() as client:
                await client.history.copy("spam", "copy")
                self.assertEqual((await client.history.rename("copy", "renamed")).name, "models/renamed")
                await client.history.create_snapshot("spam", "one")
                self.assertEqual(len(await client.history.list_snapshots("spam")), 1)
                self.assertEqual((await client.aliases.set("prod", "spam")).model, "models/spam")
                self.assertEqual((await client.predict("aliases/prod", MAIL)).labels, LABELS)
                self.assertEqual([alias.name async for alias in client.aliases.list()], ["aliases/prod"])
                self.assertEqual((await client.aliases.challenge("prod", "other", min_examples=2)).outcome, CHALLENGER_WON)
                self.assertEqual((await client.aliases.get("prod")).model, "models/other")
                await client.aliases.delete("prod")
                revision = (await client.get("spam")).revision
                self.assertEqual((await client.history.roll_back("spam", "one")).revision, revision + 1)
                await client.history.delete_snapshot("spam", "one")
                self.assertIsInstance(await client.analyze("spam"), analysis_service_pb2.AnalysisResult)
                with self.assertRaisesRegex(PerceptrondError, "NOTHING_STORED"):
                    await client.analyze("empty")
                self.assertEqual((await client.update("spam", expire_after="1d")).expire_after.seconds, 86400)
        asyncio.run(run())

    def test_both_clients_have_the_same_public_methods(self):
        async def names():
            async with AsyncClient() as client:
                return [{name for name in dir(each) if not name.startswith("_")} for each in (client, client.aliases, client.history)]
        with Client() as client:
            self.assertEqual([{name for name in dir(each) if not name.startswith("_")} for each in (client, client.aliases, client.history)], asyncio.run(names()))

    def test_a_change_that_may_have_been_made_is_not_repeated(self):
        with Client("127.0.0.1:1", give_up_after=600) as client, self.assertRaises(PerceptrondError) as raised:
            client.history.rename("spam", "other")
        self.assertIs(raised.exception.code, grpc.StatusCode.UNAVAILABLE)


if __name__ == "__main__":
    unittest.main()
