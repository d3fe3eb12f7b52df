"""Labels and dimensions that a model does not have, with the installed package against a real server: nothing is learned of the rows that
it has, since that would be biased.

    ENVIRONMENT/bin/python python_labels_test.py PERCEPTROND
"""

import asyncio
import unittest
import warnings

import numpy
import pandas
import scipy.sparse

from perceptrond import AsyncClient, Row
from python_fixture import ServedTest

X = numpy.random.default_rng(5).normal(size=(60, 4)).astype(numpy.float32)
SIGNS = numpy.where(X @ [1, -2, 0.5, 3] > 0, 1, -1)
DICTS = [dict(enumerate(row)) for row in X.tolist()]
NOTICE = "^label 0 is read as -1$"


class LabelsTest(ServedTest):
    def setUp(self):
        self.create("plain", features=4)
        self.create("named", features=4, labels=["neg", "pos"])

    def examples(self, name="plain"):
        return self.client.report(name).examples

    def assert_refused(self, said, *arguments, model="plain", **more):
        before = self.examples("plain")
        with self.assertRaisesRegex(ValueError, said):
            self.client.learn(model, *arguments, **more)
        self.assertEqual(self.examples("plain"), before)

    def test_zeros_and_ones_and_booleans_are_read_as_the_two_labels_with_a_notice(self):
        self.client.learn("plain", X, SIGNS)
        expected = self.client.weights("plain")
        zeros = (SIGNS > 0).astype(int)
        for labels in (zeros, SIGNS > 0, zeros.astype(float), zeros.tolist(), (SIGNS > 0).tolist(), list(SIGNS > 0), pandas.Series(SIGNS > 0), pandas.Series(zeros, dtype="Int64")):
            for examples in (X, DICTS, scipy.sparse.csr_matrix(X)):
                self.create("zeros", features=4)
                with self.assertWarnsRegex(UserWarning, NOTICE):
                    self.assertEqual(self.client.learn("zeros", examples, labels).totals.row_errors, 0)
                self.assertEqual(self.client.weights("zeros"), expected)
                self.client.delete("zeros")
        for labels in (SIGNS, SIGNS.astype(float), numpy.where(SIGNS > 0, "pos", "neg")):
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                self.assertEqual(self.client.learn("named", X, labels).totals.examples, 60)

    def test_zeros_beside_minus_ones_are_refused(self):
        for labels in ([0, -1] * 30, [-1, 1, 0] * 20):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self.assert_refused("label 0 beside the label -1: if both mean -1", X, labels)

    def test_an_unknown_label_is_named_before_anything_is_learned(self):
        for unknown, said in (("Pos", 'label "Pos" is not a label of the model: "neg", "pos"'), (2, "label 2 is not"), (0.5, "label 0.5 is not"), (None, "the label is missing; leave such rows out"),
                              (float("nan"), "the label is missing"), (float("inf"), "label inf is not"), ([1], "unhashable"), (pandas.NA, "the label is missing")):
            labels = [unknown if row == 7 else "pos" for row in range(60)]
            for examples in (X, DICTS):
                with self.subTest(said):
                    self.assert_refused(f"^row 7: {said}", examples, labels, model="named")
        self.assert_refused("^row 0: the label is missing", DICTS)
        self.assert_refused("there are no labels: give one for each example", X)
        self.assertEqual(self.examples("named"), 0)
        self.create("classes", features=4, classes=3)
        self.assert_refused('^row 2: label 3 is not a class of the model: 0 to 2$', X, [0, 2, 3] * 20, model="classes")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            self.assertEqual(self.client.learn("classes", X, [0, 1, 2] * 20).totals.examples, 60)

    def test_names_that_are_numbers_are_read_as_names_where_only_one_reading_is_a_label(self):
        self.create("digits", features=4, labels=["3", "8"])
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            self.client.learn("digits", X, numpy.where(SIGNS > 0, 8, 3), until_converged=True)
        self.assertEqual(self.client.predict("digits", X).labels, numpy.where(SIGNS > 0, "8", "3").tolist())
        self.create("swapped", features=4, labels=["1", "0"])
        self.assert_refused("label 1 may be the number or the name \"1\" of the model: give names as texts", X, [1, 0] * 30, model="swapped")
        self.assertEqual(self.client.learn("swapped", X, ["1", "0"] * 30).totals.examples, 60)

    def test_new_classes_are_learned_by_their_names(self):
        from perceptrond.v1 import learner_pb2, model_pb2
        settings = model_pb2.Model()
        settings.feature_space.dense.dimension = 4
        settings.learner.classes.max_classes = 5
        settings.learner.classes.new_classes = learner_pb2.Classes.NEW_CLASSES_NAMED
        self.create("open", settings=settings)
        self.assertEqual(self.client.learn("open", X, ["a", "b", "c"] * 20).totals.examples, 60)
        self.assert_refused("row 1: the label is empty", X, ["a", ""] * 30, model="open")

    def test_rows_beyond_the_dimension_are_named_before_anything_is_learned(self):
        wide = numpy.hstack([X, numpy.zeros((60, 2))])
        wide[9, 5] = 1
        said = "^row 9: the feature 5 is not below the dimension 4 of models/plain: create a model"
        self.assert_refused(said, scipy.sparse.csr_matrix(wide), SIGNS)
        self.assert_refused(said, [*DICTS[:9], {0: 1.0, 5: 1.0}, *DICTS[10:]], SIGNS)
        self.assert_refused("^line 3: the feature 4 is not below", [Row(DICTS[0], 1, line=2), Row({4: 1.0}, 1, line=3)])
        for matrix in (wide, X[:, :3], pandas.DataFrame(wide)):
            self.assert_refused(f"^the rows have {matrix.shape[1]} values, and models/plain the dimension 4", matrix, SIGNS)
        self.create("slots", features="hashed", feature_options={"bits": 2})
        self.assert_refused("^row 9: the feature 5 is not below the dimension 4 of models/slots", scipy.sparse.csr_matrix(wide), SIGNS, model="slots")
        # Columns that no row has are no reason.
        self.assertEqual(self.client.learn("plain", scipy.sparse.csr_matrix(wide)[10:], SIGNS[10:]).totals.examples, 50)

    def test_an_iterator_is_learned_up_to_the_first_row_that_is_not_of_the_model(self):
        for number, (bad, said) in enumerate(((Row({0: 1.0}, 2), "label 2 is neither -1 nor"), (Row({4: 1.0}, 1), "the feature 4 is not below"))):
            rows = [Row(features, int(label)) for features, label in zip(DICTS, SIGNS)]
            rows[25] = bad
            learned = 50 * number
            with self.assertRaisesRegex(ValueError, f"^row 25: {said}.*; the rows before it were learned$"):
                self.client.learn("plain", iter(rows), batch=10, producer=f"file-{number}")
            self.assertEqual(self.examples(), learned + 25)
            # And goes on there.
            rows[25] = Row({0: 1.0}, 1)
            self.client.learn("plain", iter(rows[:50]), batch=10, producer=f"file-{number}")
            self.assertEqual(self.examples(), learned + 50)

    def test_an_async_client_does_the_same(self):
        async def learn(*arguments):
            async with AsyncClient() as client:
                return await client.learn("plain", *arguments)

        with self.assertWarnsRegex(UserWarning, NOTICE):
            self.assertEqual(asyncio.run(learn(X, SIGNS > 0)).totals.examples, 60)
        with self.assertRaisesRegex(ValueError, "^row 1: label 7 is neither"):
            asyncio.run(learn(X, [1, 7] * 30))
        with self.assertRaisesRegex(ValueError, "^row 2: label 7 is neither .*; the rows before it were learned"):
            asyncio.run(learn(iter([Row(DICTS[0], 1), Row(DICTS[1], -1), Row(DICTS[2], 7)])))
        self.assertEqual(self.examples(), 62)

    def test_several_models_are_taught_what_each_takes(self):
        with self.assertWarnsRegex(UserWarning, NOTICE):
            self.client.learn(["plain", "named"], X, SIGNS > 0)
        self.assertEqual([list(self.client.weights(name).vectors[0].values) for name in ("plain", "named")].count(list(self.client.weights("plain").vectors[0].values)), 2)
        self.create("classes", features=4, classes=3)
        self.assert_refused("row 1: label 0 is another one in each model: give names as texts", X, [1, 0] * 30, model=["plain", "classes"])
        self.create("flipped", features=4, labels=["pos", "neg"])
        self.client.learn(["named", "flipped"], X, numpy.where(SIGNS > 0, "pos", "neg"))
        self.assertEqual(self.examples("flipped"), 60)

    def test_labels_that_come_later_are_read_alike(self):
        self.create("later", features=4, stored_predictions={"max_age": "1h"})
        ids = self.client.predict("later", X, ids=True).ids
        self.assert_refused("row 3: label 7 is neither", ids=ids, labels=[1, -1, 1, 7] * 15, model="later")
        with self.assertWarnsRegex(UserWarning, NOTICE):
            self.assertEqual(self.client.learn("later", ids=ids, labels=SIGNS > 0).totals.examples, 60)


if __name__ == "__main__":
    unittest.main()
