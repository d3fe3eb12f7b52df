"""Several models that learn one stream, with the installed package against a real server.

    ENVIRONMENT/bin/python python_several_models_test.py PERCEPTROND
"""

import asyncio
import sys
import unittest
import warnings

import numpy

from perceptrond import AsyncClient, PerceptrondError, Row
from python_fixture import ServedTest

ROWS = numpy.random.default_rng(5).normal(size=(400, 6)).astype(numpy.float32)
SCORES = ROWS @ [1, -2, 0.5, 0, 3, 1]
LABELS = numpy.where(SCORES > 0, 1, -1)
RULES = {"a": "perceptron", "b": "passive_aggressive"}


class SeveralModelsTest(ServedTest):
    def setUp(self):
        for name, rule in RULES.items():
            self.create(name, features=6, learner=rule)
            self.create(f"{name}-alone", features=6, learner=rule)

    def weights(self, name):
        return self.client.weights(name).SerializeToString()

    def examples(self, name):
        return self.client.report(name).examples

    def learned_alone(self, passes):
        for name in RULES:
            self.client.learn(f"{name}-alone", ROWS, LABELS, passes=passes, batch=50)

    def same_as_alone(self):
        for name in RULES:
            self.assertEqual(self.weights(name), self.weights(f"{name}-alone"), name)

    def test_each_model_learns_what_it_would_alone(self):
        self.learned_alone(3)
        outcome = self.client.learn(["a", "b"], ROWS, LABELS, passes=3, batch=50)
        self.same_as_alone()
        self.assertEqual([one.totals.examples for one in (outcome, *outcome.others)], [1200, 1200])
        for name, one in zip(RULES, (outcome, *outcome.others)):
            self.assertEqual(one.totals.updates, self.client.report(name).updates)
            self.assertEqual(one.last_pass.number, 3)

    def test_an_async_client_does_the_same(self):
        self.learned_alone(2)

        async def run():
            async with AsyncClient() as client:
                return await client.learn(["a", "b"], ROWS, LABELS, passes=2, batch=50)

        self.assertEqual(len(asyncio.run(run()).others), 1)
        self.same_as_alone()

    def test_it_goes_on_until_the_last_one_has_converged(self):
        self.create("c", features=6, bias_input=5)
        clear = abs(SCORES) > 0.5
        outcome = self.client.learn(["a", "c"], ROWS[clear], LABELS[clear], until_converged=True)
        self.assertTrue(outcome.converged and outcome.others[0].converged)

    def test_a_producer_gives_each_model_what_it_lacks(self):
        self.client.learn("a", ROWS, LABELS, producer="p")
        self.learned_alone(1)
        outcome = self.client.learn(["a", "b"], ROWS, LABELS, producer="p", batch=50)
        self.assertEqual((outcome.totals.examples, outcome.totals.duplicates), (0, 400))
        self.assertEqual((outcome.others[0].totals.examples, outcome.others[0].totals.duplicates), (400, 0))
        self.same_as_alone()

    def test_each_call_is_learned_by_all(self):
        self.client.learn("a", ROWS, LABELS)
        for _ in range(2):
            self.client.learn(["a", "b"], ROWS, LABELS)
        self.assertEqual((self.examples("a"), self.examples("b")), (1200, 800))

    def test_a_server_that_dies_costs_nothing(self):
        self.learned_alone(1)
        with self.client.learn_stream(["models/a", "models/b"], "q", window=100) as stream:
            for begin in range(0, 400, 20):
                if begin in (100, 240):
                    self.restart_server()
                rows = zip(ROWS[begin:begin + 20].tolist(), LABELS[begin:begin + 20].tolist())
                stream.send([Row(dict(enumerate(row)), label) for row, label in rows])
            stream.end_pass()
            stream.finish()
            for model in stream.models:
                totals = model.totals
                self.assertEqual(totals.examples + totals.duplicates + totals.lost_answers, 400)
        self.same_as_alone()

    def test_an_error_names_its_model(self):
        with self.assertRaises(PerceptrondError) as raised:
            self.client.learn(["a", "missing"], ROWS, LABELS)
        self.assertIn("missing", str(raised.exception))
        with self.assertRaises(PerceptrondError) as raised:
            self.client.learn(["a", "a"], ROWS, LABELS)
        self.assertEqual(raised.exception.reason, "INVALID_FIELD")
        self.create("names", features="named")
        with self.assertRaisesRegex(PerceptrondError, "MALFORMED_COLUMNS.: models/names: .*takes names, not indices"):
            self.client.learn(["a", "names"], [{0: 1.0}], [1])
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            self.client.learn(["a", "b"], [{0: float("nan")}, {0: 1.0}], [1, 1])
        self.assertEqual([str(one.message)[:34] for one in caught], ["models/a: 1 of 2 examples were not", "models/b: 1 of 2 examples were not"])
        self.create("named", features=6, labels=["no", "yes"])
        for models in (["a", "named"], ["named", "a"]):
            with self.assertRaisesRegex(ValueError, '^row 0: models/a: label "yes" is neither -1 nor'):
                self.client.learn(models, ROWS[:2], ["yes", "no"])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
