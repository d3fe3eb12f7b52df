"""Messages of streams as people give them, and those of long names, with the installed package against a real server.

    ENVIRONMENT/bin/python python_messages_test.py PERCEPTROND
"""

import asyncio
import unittest

import pandas

from perceptrond import AsyncClient, Row
from perceptrond.sklearn import PerceptrondClassifier
from python_fixture import ServedTest

MAIL, LABELS = [{"free": 1, "now": 2}, {"lunch": 1, "now": 1}, {"free": 2}], ["spam", "ham", "spam"]


class GivenTest(ServedTest):
    def setUp(self):
        self.create("spam", features="named", labels=["ham", "spam"])
        self.client.learn("spam", MAIL, LABELS, until_converged=True)
        self.create("texts", features="text", labels=["ham", "spam"])

    def predicted(self, model, messages):
        """By both clients, the rows and labels of each answer."""
        async def predict_async():
            async with AsyncClient() as client:
                return [(len(rows), list(answer.predicted_labels)) async for rows, answer in client.predict_stream(model, messages())]

        answers = [(len(rows), list(answer.predicted_labels)) for rows, answer in self.client.predict_stream(model, messages())]
        self.assertEqual(asyncio.run(predict_async()), answers)
        return answers

    def test_each_row_of_a_generator_is_answered(self):
        self.assertEqual(self.predicted("spam", lambda: (row for row in MAIL)), [(1, [1]), (1, [-1]), (1, [1])])
        self.assertEqual(self.predicted("spam", lambda: [Row(MAIL[1]), MAIL[:2], [Row(MAIL[0]), MAIL[1]]]), [(1, [-1]), (2, [1, -1]), (2, [1, -1])])
        self.assertEqual([rows for rows, _ in self.predicted("texts", lambda: iter(["free now", "lunch"]))], [1, 1])

    def test_what_is_no_message_is_named(self):
        for message, said in ((pandas.DataFrame(MAIL), "message 1: a message is a row, a list of rows, or what pack_matrix.. makes, not DataFrame"),
                              ([MAIL[0], 3], "message 1: row 1: an example is a dict, .*, not int")):
            with self.assertRaisesRegex(TypeError, said):
                self.predicted("spam", lambda: [MAIL[0], message])
        with self.client.learn_stream("spam", "generator") as stream, self.assertRaisesRegex(TypeError, "a message is a row, .*, not generator"):
            stream.send(Row(row, label) for row, label in zip(MAIL, LABELS))

    def test_no_examples_are_learned_without_a_pass_and_no_models_are_an_error(self):
        before = self.client.report("spam").examples
        learned = self.client.learn("spam", [], [], until_converged=True)
        self.assertEqual((learned.totals.examples, learned.last_pass, self.client.report("spam").examples), (0, None, before))
        with self.assertRaisesRegex(ValueError, "no model: give a name, or several"):
            self.client.learn([], MAIL, LABELS)


class LongNamesTest(ServedTest):
    def setUp(self):
        self.create("names", features="named")

    def test_many_new_names_of_many_bytes_are_learned_and_predicted(self):
        # Together 24 MB, where a message may have 16 MiB; of two bytes a character.
        rows = [{f"{row}-{number}-" + "é" * 395: 1.0 for number in range(30)} for row in range(1000)]
        labels = [1, -1] * 500

        async def learn_and_predict():
            async with AsyncClient() as client:
                return await client.learn("names", rows, labels), await client.predict("names", rows)

        self.assertEqual(self.client.learn("names", rows, labels).totals.examples, 1000)
        learned, predictions = asyncio.run(learn_and_predict())
        self.assertEqual((learned.totals.examples, predictions.labels), (1000, labels))
        self.assertEqual(self.client.predict("names", rows).labels, labels)

    def test_a_frame_of_long_categories_is_learned_and_predicted(self):
        frame, labels = pandas.DataFrame({"url": [f"{row}-" + "z" * 890 for row in range(20000)]}), [1, -1] * 10000
        with self.assertWarnsRegex(UserWarning, "values of 'url' are different"):
            self.assertEqual(self.client.learn("names", frame, labels, batch=65536).totals.examples, 20000)
        self.assertEqual(self.client.predict("names", frame, batch=65536).labels, labels)
        with self.assertWarnsRegex(UserWarning, "values of 'url' are different"):
            classifier = PerceptrondClassifier(max_iter=1, batch_size=65536).fit(frame, labels)
        self.assertEqual(classifier.score(frame, labels), 1)


if __name__ == "__main__":
    unittest.main()
