"""Packed columns of the Python client: of rows, of matrices, and of streams with a table of names, read by a model of the
server's table.

    sh client/python/build.sh BUILT
    PYTHONPATH=BUILT python3 python_names_test.py
"""

import random
import unittest

import numpy
import scipy.sparse

from perceptrond import columns, matrices
from perceptrond.name_table import NameTable
from perceptrond.rows import Row, row_batches
from server_table import ServerTable, names_of


class ColumnsTest(unittest.TestCase):
    def test_names_have_the_order_in_which_they_occur_and_rows_that_of_their_names_positions(self):
        packed = columns.pack([Row({"b": 1.0, "\U0001f600": 3.0, "a": 2.0}, "x"), Row({}, "y"), Row({"c": 6.0, "a": 5.0}, "x")])
        self.assertEqual(names_of(packed.feature_names), ["b", "\U0001f600", "a", "c"])
        self.assertEqual((list(packed.row_ends), list(packed.indices), list(packed.values)), ([3, 3, 5], [0, 1, 2, 2, 3], [1, 3, 2, 5, 6]))
        self.assertEqual([packed.label_names[label] for label in packed.labels], ["x", "y", "x"])

    def test_vectors_keep_their_indices_and_numbers_as_labels(self):
        packed = columns.pack([Row({7: 1.0, 2: 0.5}, -1)])
        self.assertEqual((list(packed.indices), list(packed.values), list(packed.labels), list(packed.label_names)), ([2, 7], [0.5, 1], [-1], []))
        self.assertFalse(packed.HasField("feature_names"))

    def test_values_are_sent_if_one_is_not_1(self):
        self.assertEqual(list(columns.pack([Row({"a": 1, "b": 1.0}, 1)]).values), [])
        self.assertEqual(list(columns.pack([Row({"a": 1, "b": 2}, 1)]).values), [1, 2])

    def test_long_columns_are_packed_as_the_library_packs_them(self):
        row = Row({i: i / 8 for i in range(1, 100_000)}, 1)
        packed = columns.pack([row])
        self.assertEqual((list(packed.indices), list(packed.values)), (list(row.features), list(row.features.values())))

    def test_rows_without_features_are_rows(self):
        self.assertEqual(list(columns.pack([Row({}, 1), Row({}, -1)]).row_ends), [0, 0])

    def test_an_index_beyond_uint32_is_an_error(self):
        for index in (-1, 2**32, 0.5):
            with self.subTest(index=index), self.assertRaises((OverflowError, TypeError)):
                columns.pack([Row({index: 1.0}, 1)])


class MatrixTest(unittest.TestCase):
    def rows(self, messages):
        return [(dict(zip(m.indices[b:e], m.values[b:e] if m.values else [1.0] * (e - b))), label)
                for m in messages for b, e, label in zip([0, *m.row_ends], m.row_ends, m.labels)]

    def test_a_matrix_is_packed_as_its_rows_are(self):
        matrix = scipy.sparse.random(50, 30, 0.1, "csr", random_state=1, dtype=numpy.float32)
        labels = numpy.where(numpy.arange(50) % 3, 1, -1)
        expected = [Row({int(j): float(matrix[i, j]) for j in matrix[i].nonzero()[1]}, int(labels[i])) for i in range(50)]
        for batch in (1, 7, 50, 1000):
            messages = list(matrices.pack_matrix(matrix, labels, batch))
            self.assertEqual(messages, [columns.pack(expected[begin:begin + batch]) for begin in range(0, 50, batch)])

    def test_unsorted_and_repeated_entries_are_sorted_and_summed_in_a_copy(self):
        matrix = scipy.sparse.csr_matrix(([1.0, 2.0, 4.0], [5, 3, 5], [0, 3]), shape=(1, 8))
        self.assertEqual(self.rows(matrices.pack_matrix(matrix, [1])), [({3: 2, 5: 5}, 1)])
        self.assertEqual(list(matrix.indices), [5, 3, 5])

    def test_other_formats_are_converted_and_ones_left_out(self):
        dense = numpy.array([[0, 1], [1, 0], [0, 0]])
        for matrix in (scipy.sparse.coo_matrix(dense), scipy.sparse.csc_matrix(dense)):
            (packed,) = matrices.pack_matrix(matrix)
            self.assertEqual((list(packed.row_ends), list(packed.indices), list(packed.values), list(packed.labels)), ([1, 2, 2], [1, 0], [], []))


    def test_plain_arrays_are_dense_rows(self):
        messages = list(matrices.pack_matrix([[0, 1.5], [1, 0], [0, 0]], [1, -1, 1], batch=2))
        self.assertEqual([(m.dense_width, list(m.values), list(m.labels), columns.count(m)) for m in messages],
                         [(2, [0, 1.5, 1, 0], [1, -1], 2), (2, [0, 0], [1], 1)])
        for wrong in ([1, 2], numpy.zeros((2, 0))):
            with self.assertRaisesRegex(ValueError, "expected a matrix"):
                list(matrices.pack_matrix(wrong))

    def test_columns_with_names_are_sent_with_the_names_that_occur(self):
        matrix = scipy.sparse.csr_matrix(([1.0, 2.0, 3.0], [2, 0, 2], [0, 1, 3]), shape=(2, 4))
        server = ServerTable(0)
        messages = list(matrices.pack_matrix(matrices.NamedMatrix(matrix, ["a", "b", "c", "d"]), batch=1))
        self.assertEqual([names_of(m.feature_names) for m in messages], [["c"], ["a", "c"]])
        self.assertEqual([row for m in messages for row in server.rows(m)], [{"c": 1}, {"a": 2, "c": 3}])

    def test_long_rows_make_messages_of_fewer_rows(self):
        wide = scipy.sparse.random(40, 100_000, 0.3, "csr", random_state=1, dtype=numpy.float32)
        for matrix in (wide, wide.toarray()):
            messages = list(matrices.pack_matrix(matrix, numpy.ones(40)))
            self.assertLessEqual(max(len(m.values) for m in messages), matrices.MOST_NUMBERS)
            self.assertEqual(sum(map(columns.count, messages)), 40)
        self.assertEqual([len(m.row_ends) for m in matrices.pack_matrix(scipy.sparse.csr_matrix((3, 5)))], [3])

    def test_weights_are_sent_if_one_is_not_1(self):
        for weights, expected in (([1, 1], []), ([1, 0.5], [1, 0.5])):
            (packed,) = matrices.pack_matrix([[1.0], [2.0]], [1, -1], weights=weights)
            self.assertEqual(list(packed.weights), expected)
            packed = columns.pack([Row({"a": 1.0}, 1, weight) for weight in weights])
            self.assertEqual(list(packed.weights), expected)


class TextTest(unittest.TestCase):
    def test_texts_are_a_column_of_their_own(self):
        rows = [Row("free now", 1, 2.0), Row("lunch?", -1)]
        for packed in (columns.pack(rows), NameTable(8).pack(rows)[0]):
            self.assertEqual((list(packed.texts), list(packed.labels), list(packed.weights)), (["free now", "lunch?"], [1, -1], [2, 1]))
            self.assertEqual((list(packed.row_ends), packed.HasField("stream_names"), columns.count(packed)), ([], False, 2))


    def test_long_rows_make_messages_of_fewer_rows(self):
        rows = [Row("x" * length) for length in (10, 300_000, 300_000, 10, 1_000_000, 5)]
        self.assertEqual([[len(row.features) for row in batch] for batch in row_batches(rows, 3)], [[10, 300_000], [300_000], [10], [1_000_000], [5]])
        many = [Row(dict.fromkeys(range(features), 1.0)) for features in (10, 200_000, 200_000, 10, 300_000, 5)]
        self.assertEqual([[len(row.features) for row in batch] for batch in row_batches(many, 3)], [[10, 200_000], [200_000], [10], [300_000], [5]])
        self.assertEqual(list(row_batches([Row({"a": 1.0})] * 3, 2)), [[Row({"a": 1.0})] * 2, [Row({"a": 1.0})]])


class LongNamesTest(unittest.TestCase):
    def test_long_names_make_messages_of_fewer_rows(self):
        rows = [Row({f"{row}-{name}-" + "x" * 990: 1.0 for name in range(10)}, 1) for row in range(600)]
        names = [name for row in rows for name in row.features]
        matrix = scipy.sparse.csr_matrix((numpy.ones(len(names)), numpy.arange(len(names)), numpy.arange(0, len(names) + 1, 10)))
        table, server, of_table, rest = NameTable(1 << 18), ServerTable(1 << 18), [], rows
        while rest:
            packed, count = table.pack(rest)
            of_table.append(packed)
            rest = rest[count:]
        for messages in (of_table, [packed for _, packed in columns.packed_parts([rows])], list(matrices.pack_matrix(matrices.NamedMatrix(matrix, names)))):
            self.assertEqual([row for packed in messages for row in server.rows(packed)], [row.features for row in rows])
            self.assertLessEqual(max(len((m.feature_names.text or m.stream_names.text).encode()) for m in messages), columns.MOST_NAME_BYTES)
            self.assertLessEqual(len(messages), 5)
        # One row is one message, however long its names are.
        longest = Row(dict.fromkeys(names[:5000], 1.0))
        self.assertEqual([len(rows) for rows, _ in columns.packed_parts([[longest, rows[0]], []])], [1, 1, 0])
        self.assertEqual(NameTable(1 << 18).pack([longest, rows[0]])[1], 1)


class NameTableTest(unittest.TestCase):
    def send(self, table, server, rows):
        """Sends rows in as many messages as it takes; returns what the server reads, and the names appended by each."""
        read, appended = [], []
        while rows:
            packed, count = table.pack(rows)
            read += server.rows(packed)
            appended.append(server.appended)
            rows = rows[count:]
        return read, appended

    def test_any_rows_are_read_by_the_server_as_they_were(self):
        rng = random.Random(17)
        for size in (0, 1, 2, 4, 8, 16, 64):
            for _ in range(60):
                names = [f"n\u00e4me{i}" for i in range(rng.choice((1, 3, 10, 40)))]
                table, server, total = NameTable(size), ServerTable(size), 0
                for _ in range(30):
                    rows = [Row({name: float(rng.randrange(1, 4)) for name in rng.sample(names, rng.randrange(min(len(names), 6) + 1))}, 1)
                            for _ in range(rng.randrange(1, 9))]
                    read, appended = self.send(table, server, rows)
                    self.assertEqual(read, [row.features for row in rows])
                    self.assertLessEqual(max(map(len, appended)), size // 4)
                    total += sum(map(len, appended))
                if len(names) <= size // 4:
                    self.assertLessEqual(total, len(names))

    def test_a_name_is_appended_once_while_it_is_among_the_latest_three_quarters(self):
        table, server = NameTable(8), ServerTable(8)
        say = lambda *names: self.send(table, server, [Row(dict.fromkeys(names, 1.0), 1)])[1]
        self.assertEqual(say("a", "b"), [["a", "b"]])
        self.assertEqual(say("b", "a"), [[]])
        self.assertEqual([say("c", "d"), say("e", "f")], [[["c", "d"]], [["e", "f"]]])
        # a is the sixth from the end: the two names that a message may append would not push it out.
        self.assertEqual(say("a", "b"), [[]])
        self.assertEqual(say("g"), [["g"]])
        self.assertEqual(say("b", "a"), [["a"]])

    def test_a_row_with_too_many_new_names_is_sent_with_its_own_names(self):
        table, server = NameTable(8), ServerTable(8)
        rows = [Row({"a": 1.0}, 1), Row(dict.fromkeys("bcd", 2.0), -1), Row({"b": 1.0, "a": 1.0}, 1)]
        read, appended = self.send(table, server, rows)
        self.assertEqual((read, appended), ([row.features for row in rows], [["a"], [], ["b"]]))

    def test_rows_by_index_leave_the_table_alone(self):
        packed, count = NameTable(8).pack([Row({3: 1.0}, 1)] * 2)
        self.assertEqual((packed, count), (columns.pack([Row({3: 1.0}, 1)] * 2), 2))


if __name__ == "__main__":
    unittest.main()
