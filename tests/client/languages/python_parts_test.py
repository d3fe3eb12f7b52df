"""The parts of the Python client that need no server: retries, errors, labels, packed columns and tables of names.

    sh client/python/build.sh BUILT
    PYTHONPATH=tests/client/conformance:BUILT python3 python_parts_test.py
"""

import asyncio
import datetime
import json
import os
import pathlib
import pickle
import random
import subprocess
import sys
import tempfile
import unittest
import warnings
from unittest import mock

import grpc
import numpy
import pandas
import scipy.sparse

from perceptrond import AsyncClient, Client, columns, errors, matrices
from perceptrond.channels import MOST_PEM_BYTES, Target, credentials, goes_direct
from perceptrond.datasets import Dataset
from perceptrond.durations import duration
from perceptrond.google_rpc import error_details_pb2, status_pb2
from perceptrond.labels import Labels
from perceptrond.later_labels import LaterLabels
from perceptrond.model_check import ModelCheck
from perceptrond.name_table import NameTable
from perceptrond.producers import Producers
from perceptrond.rows import Row
from perceptrond.v1 import learner_pb2, model_pb2
from server_table import ServerTable, names_of

PROTOS = pathlib.Path(__file__).resolve().parents[3] / "proto"
CASES = pathlib.Path(__file__).resolve().parents[1] / "conformance"


def failed(code, retry_after=None):
    """A failed call; the server may ask to wait for retry_after seconds."""
    status = status_pb2.Status(code=code.value[0])
    if retry_after is not None:
        retry = error_details_pb2.RetryInfo()
        retry.retry_delay.FromSeconds(retry_after)
        status.details.add().Pack(retry)
    return mock.Mock(code=lambda: code, details=lambda: "", trailing_metadata=lambda: [(errors.DETAILS, status.SerializeToString())])


class BackoffTest(unittest.TestCase):
    now = 0.0

    def setUp(self):
        self.enterContext(mock.patch("perceptrond.errors.time.monotonic", lambda: self.now))

    def test_waits_double_up_to_the_longest_and_are_drawn_from_their_upper_half(self):
        drawn = [[] for _ in range(6)]
        for _ in range(200):
            backoff = errors.Backoff(give_up_after=60, first=0.1, longest=1)
            for waits in drawn:
                waits.append(backoff.next_wait(failed(grpc.StatusCode.UNAVAILABLE)))
        for waits, ceiling in zip(drawn, (0.1, 0.2, 0.4, 0.8, 1, 1)):
            self.assertGreaterEqual(min(waits), ceiling / 2)
            self.assertLessEqual(max(waits), ceiling)
            self.assertGreater(max(waits) - min(waits), ceiling / 4)

    def test_the_time_to_give_up_restarts_with_progress(self):
        backoff = errors.Backoff(give_up_after=10, first=1, longest=1)
        self.now = 9.9
        self.assertIsNone(backoff.next_wait(failed(grpc.StatusCode.UNAVAILABLE)))
        backoff.progress()
        self.assertIsNotNone(backoff.next_wait(failed(grpc.StatusCode.UNAVAILABLE)))

    def test_a_wait_that_lasts_is_reported_once_until_there_is_progress(self):
        backoff = errors.Backoff(give_up_after=60, first=0.1, longest=1)
        lost = failed(grpc.StatusCode.UNAVAILABLE)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for now, notices in ((2.9, 0), (3, 1), (50, 1)):
                self.now = now
                backoff.next_wait(lost)
                self.assertEqual(len(caught), notices, now)
            self.assertRegex(str(caught[0].message), r"^no answer for 3 s; trying for another 57 s \(give_up_after\): UNAVAILABLE: ")
            backoff.progress()
            for now, notices in ((51, 1), (53, 2)):
                self.now = now
                backoff.next_wait(lost)
                self.assertEqual(len(caught), notices, now)

    def test_unavailable_is_retried_and_what_is_exhausted_once_the_server_says(self):
        for code in grpc.StatusCode:
            exhausted = code is grpc.StatusCode.RESOURCE_EXHAUSTED
            self.assertEqual(errors.is_transient(failed(code)), code is grpc.StatusCode.UNAVAILABLE)
            self.assertEqual(errors.is_transient(failed(code, retry_after=2)), exhausted or code is grpc.StatusCode.UNAVAILABLE)
        # HAProxy resets a stream that the server has ended early, with CANCEL.
        reset = failed(grpc.StatusCode.UNAVAILABLE)
        reset.code = lambda: grpc.StatusCode.CANCELLED
        self.assertTrue(errors.is_transient(reset))
        full = failed(grpc.StatusCode.RESOURCE_EXHAUSTED, retry_after=2)
        self.assertEqual(errors.Backoff(give_up_after=10, first=1, longest=1).next_wait(full), 2)
        self.assertIsNone(errors.Backoff(give_up_after=2, first=1, longest=1).next_wait(full))


def labels(*names, **classes):
    """The labels of a model; of a multiclass model if there are settings for its classes."""
    model = model_pb2.Model(label_names=names)
    if classes:
        model.learner.classes.CopyFrom(learner_pb2.Classes(**classes))
    return Labels(model)


class ReadingTest(unittest.TestCase):
    def test_an_address_is_read_as_people_write_it_and_refused_if_it_is_none(self):
        cases = json.loads((CASES / "addresses.json").read_text())
        for given, meant in cases["read"].items():
            self.assertEqual(Target(given).server, meant)
        for wrong in cases["refused"]:
            with self.subTest(wrong), self.assertRaisesRegex(ValueError, "^server "):
                Target(wrong)

    def test_servers_of_this_machine_and_of_a_fleet_are_called_without_a_proxy(self):
        cases = json.loads((CASES / "addresses.json").read_text())
        self.assertTrue(all(goes_direct(Target(server)) for server in cases["direct"]))
        self.assertFalse(any(goes_direct(Target(server)) for server in cases["through_a_proxy"]))

    def test_a_server_that_is_not_reached_through_a_proxy_is_an_error_that_names_the_proxy(self):
        with mock.patch.dict(os.environ, {"http_proxy": "http://127.0.0.1:9", "https_proxy": "", "grpc_proxy": "", "no_proxy": ""}):
            with Client("192.0.2.2:1", give_up_after=0.1) as client, self.assertRaisesRegex(errors.PerceptrondError, "http_proxy is set") as raised:
                client.get("m")
            self.assertEqual(str(pickle.loads(pickle.dumps(raised.exception))), str(raised.exception))
            with Client("LOCALHOST:9", give_up_after=0.1) as client, self.assertRaises(errors.PerceptrondError) as raised:
                client.get("m")
            self.assertNotIn("proxy", str(raised.exception))
            self.assertIn("http_proxy is set", asyncio.run(self._error_of_learning()))

    async def _error_of_learning(self):
        async with AsyncClient("192.0.2.2:1", give_up_after=0.1) as client:
            with self.assertRaises(errors.PerceptrondError) as raised:
                await client.learn_stream("m", "p").__aenter__()
            return str(raised.exception)

    def test_a_token_file_that_is_not_there_is_refused_before_any_call(self):
        with self.assertRaisesRegex(OSError, "/no/such/token"):
            Client("127.0.0.1:1", token_file="/no/such/token")

    def test_a_file_that_is_too_long_is_refused_by_its_name(self):
        with tempfile.NamedTemporaryFile() as file:
            file.truncate(MOST_PEM_BYTES + 1)
            with self.assertRaisesRegex(OSError, f"more than {MOST_PEM_BYTES} bytes.*{file.name}"):
                credentials(Target("localhost", tls_ca=file.name))

    def test_a_duration_is_a_timedelta_or_a_text(self):
        for given, seconds in (("30d", 30 * 86400), ("1h30m", 5400), ("1.5s", 1.5), ("250ms", 0.25), (datetime.timedelta(hours=2), 7200)):
            made = duration(given)
            self.assertEqual(made.seconds + made.nanos / 1e9, seconds, given)
        for wrong, error in (("", ValueError), ("30", ValueError), ("30 days", ValueError), ("-1h", ValueError), (30, TypeError)):
            with self.assertRaises(error):
                duration(wrong)

    def test_two_open_streams_have_two_producers_and_one_that_ended_gives_its_name_back(self):
        producers = Producers()
        with producers.lent("m", None) as first, producers.lent("m", None) as second, producers.lent("m", "file") as named:
            self.assertNotEqual(first, second)
            self.assertEqual(named, "file")
        with producers.lent("m", None) as again:
            self.assertEqual(again, first)

    def test_labels_are_names_or_numbers_as_the_model_has_them(self):
        for case in json.loads((CASES / "labels.json").read_text()):
            classes = {"max_classes": case["classes"]} if "classes" in case else {}
            if case.get("new"):
                classes["new_classes"] = learner_pb2.Classes.NEW_CLASSES_NAMED
            made, program = labels(*case["names"], **classes), labels(*case["names"], **classes)
            for text, label in case["read"]:
                with self.subTest(text=text, names=case["names"]):
                    if label == "!":
                        self.assertRaises(ValueError, made.read, text)
                        self.assertRaises(ValueError, program.read_value, text)
                        continue
                    self.assertEqual(str(made.read(text)), label)
                    # A name, where there is one.
                    sent = program.read_value(text)
                    self.assertEqual(str(program.number(sent) if not case.get("new") else sent), label)

    def test_a_label_that_is_none_is_refused_with_those_that_are(self):
        for made, text, said in ((labels(), "0", "neither -1 nor \\+1"), (labels("1", "2"), "-1", 'not a label of the model: "1", "2"'),
                                 (labels("red", "green", max_classes=2), "pink", "not a class of the model: its label names, or 0 to 1"),
                                 (labels(max_classes=3), "3", "not a class of the model: 0 to 2"),
                                 (labels("7", "8", max_classes=2), "0", "not a class of the model: its label names")):
            with self.subTest(text), self.assertRaisesRegex(ValueError, f'^label "{text}" is {said}$'):
                made.read(text)

    def test_a_number_of_a_program_is_a_name_where_names_are_numbers(self):
        self.assertEqual([labels("ham", "spam").read_value(label) for label in ("spam", 1, -1.0, 0, True)], ["spam", 1, -1, -1, 1])
        self.assertEqual([labels("1", "2").read_value(label) for label in (1, 2.0, numpy.int64(2))], ["1", "2", "2"])
        self.assertEqual([labels("0.5", "tea").read_value(label) for label in (0.5, "tea")], ["0.5", "tea"])
        self.assertEqual([labels("3", "1", "2", max_classes=3).read_value(label) for label in (1, 2, 3)], ["1", "2", "3"])
        # Also where it is new.
        growing = labels("tea", "7.0", max_classes=9, new_classes=learner_pb2.Classes.NEW_CLASSES_NAMED)
        self.assertEqual([growing.read_value(label) for label in (0, 7, "tea", "7", 3, "3.0")], ["0", "7.0", "tea", "7.0", "3", "3"])
        for names, label in ((("1", "2"), 0), (("1", "2"), -1), (("1", "tea"), -1), (("1", "inf"), float("inf"))):
            with self.subTest(label), self.assertRaisesRegex(ValueError, f"^label {label} is not a label of the model"):
                labels(*names).read_value(label)

    def test_a_predicted_class_has_its_name(self):
        self.assertEqual([labels("red", "green", "blue", max_classes=3).name(number) for number in (0, 1, 2, -1)], ["red", "green", "blue", "-"])
        self.assertEqual([labels(max_classes=3).name(number) for number in (0, 1, 2)], ["0", "1", "2"])


class ErrorsTest(unittest.TestCase):
    def test_an_error_is_described_by_its_code_reason_and_fields(self):
        status = status_pb2.Status(code=3, message="wrong")
        status.details.add().Pack(error_details_pb2.BadRequest(field_violations=[{"field": "model", "description": "is empty"}]))
        status.details.add().Pack(error_details_pb2.ErrorInfo(reason="INVALID_FIELD"))
        self.assertEqual(errors.describe_status(status), "INVALID_ARGUMENT (INVALID_FIELD): wrong\n  model: is empty")
        call = mock.Mock(trailing_metadata=lambda: (("other", "x"), (errors.DETAILS, status.SerializeToString())))
        self.assertEqual(errors.reason(call), "INVALID_FIELD")
        for error in (errors.PerceptrondError.of(call), pickle.loads(pickle.dumps(errors.PerceptrondError(status)))):
            self.assertEqual((error.code, error.reason, error.message), (grpc.StatusCode.INVALID_ARGUMENT, "INVALID_FIELD", "wrong"))
            self.assertEqual(error.violations, [errors.Violation("model", "is empty")])
            self.assertEqual(str(error), errors.describe_status(status))


class OtherProtosTest(unittest.TestCase):
    def test_where_google_rpc_is_installed_in_another_version_its_modules_are_used(self):
        directory = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        (directory / "google/rpc").mkdir(parents=True)
        for proto in PROTOS.glob("google/rpc/*.proto"):
            (directory / "google/rpc" / proto.name).write_text(f"{proto.read_text()}\nmessage AddedTo{proto.stem.title().replace('_', '')} {{}}\n")
        subprocess.run(["protoc", f"--proto_path={directory}", f"--python_out={directory}", *directory.glob("google/rpc/*.proto")], check=True)
        code = ("import perceptrond.v1.learning_service_pb2, perceptrond.errors as ours\n"
                "from google.rpc import status_pb2\n"
                "assert ours.status_pb2 is status_pb2 and hasattr(status_pb2, 'AddedToStatus')")
        path = f"{directory}:{os.environ['PYTHONPATH']}"
        done = subprocess.run([sys.executable, "-B", "-c", code], env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""))


class ColumnsTest(unittest.TestCase):
    def test_names_have_the_order_in_which_they_occur_and_rows_that_of_their_names_positions(self):
        packed = columns.pack([Row({"b": 1.0, "\U0001f600": 3.0, "a": 2.0}, "x"), Row({}, "y"), Row({"c": 6.0, "a": 5.0}, "x")])
        self.assertEqual(names_of(packed.feature_names), ["b", "\U0001f600", "a", "c"])
        self.assertEqual((list(packed.row_ends), list(packed.indices), list(packed.values)), ([3, 3, 5], [0, 1, 2, 2, 3], [1, 3, 2, 5, 6]))
        self.assertEqual([packed.label_names[label] for label in packed.labels], ["x", "y", "x"])

    def test_an_index_beyond_uint32_is_an_error(self):
        for index in (-1, 2**32, 0.5):
            with self.subTest(index=index), self.assertRaises((OverflowError, TypeError)):
                columns.pack([Row({index: 1.0}, 1)])

    def test_a_finite_number_beyond_float32_is_refused_with_its_row_and_the_limit(self):
        said = r"^row 1: the (value|weight) -?1e\+39 is too large; numbers are from -3.4028235e38 to 3.4028235e38$"
        for wrong in (1e39, -1e39):
            for examples, weights in (([{"a": 1.0}, {"a": wrong, "b": 2.0}], None), ([{0: 1.0}, {0: wrong}], None), (["a", "b"], [1, wrong]),
                                      ([[1, 2], [2, wrong]], None), (numpy.array([[1, 2], [wrong, numpy.nan]]), None),
                                      ([[1, 2], [int(wrong), None]], None), (scipy.sparse.csr_matrix([[0, 2], [0, wrong]]), None)):
                with self.subTest(examples=examples), self.assertRaisesRegex(ValueError, said):
                    for _ in columns.packed_parts(Dataset(examples, weights=weights).messages()):
                        pass
        # The largest as it is printed is rounded to the largest, and what is infinite is the server's to refuse.
        for kept in (3.4028235e38, -3.4028235e38, float("inf")):
            (packed,) = Dataset([[1, kept]]).messages()
            self.assertEqual(columns.pack([Row({0: 1.0, 1: kept})]).values, packed.values)

    def test_texts_are_a_column_of_their_own(self):
        rows = [Row("free now", 1, 2.0), Row("lunch?", -1)]
        for packed in (columns.pack(rows), NameTable(8).pack(rows)[0]):
            self.assertEqual((list(packed.texts), list(packed.labels), list(packed.weights)), (["free now", "lunch?"], [1, -1], [2, 1]))
            self.assertEqual((list(packed.row_ends), packed.HasField("stream_names"), columns.count(packed)), ([], False, 2))


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

    def test_plain_arrays_are_dense_rows(self):
        messages = list(matrices.pack_matrix([[0, 1.5], [1, 0], [0, 0]], [1, -1, 1], batch=2))
        self.assertEqual([(m.dense_width, list(m.values), list(m.labels), columns.count(m)) for m in messages],
                         [(2, [0, 1.5, 1, 0], [1, -1], 2), (2, [0, 0], [1], 1)])
        for wrong in ([1, 2], numpy.zeros((2, 0))):
            with self.assertRaisesRegex(ValueError, "expected a matrix"):
                list(matrices.pack_matrix(wrong))

    def test_weights_are_sent_if_one_is_not_1(self):
        for weights, expected in (([1, 1], []), ([1, 0.5], [1, 0.5])):
            (packed,) = matrices.pack_matrix([[1.0], [2.0]], [1, -1], weights=weights)
            self.assertEqual(list(packed.weights), expected)
            packed = columns.pack([Row({"a": 1.0}, 1, weight) for weight in weights])
            self.assertEqual(list(packed.weights), expected)


MASKED = numpy.ma.array([[1000.0, 2.0]], mask=[[True, False]])
TIME = numpy.datetime64("2020-01-01", "ns")


class NoNumberTest(unittest.TestCase):
    """NumPy makes numbers of what is masked, of times and of complex numbers."""

    def assert_refused(self, made, said):
        with self.assertRaisesRegex((TypeError, ValueError), said):
            made()

    def test_values_of_a_matrix(self):
        complex_sparse = scipy.sparse.csr_matrix([[1 + 2j, 1]])
        objects = [(numpy.array([[1.0, value]], object), f"^row 0, column 1: the value is {said}") for value, said in (
            (numpy.ma.masked, "masked"), (TIME, "of datetime64"), (numpy.datetime64("NaT"), "of datetime64"), (numpy.timedelta64(5, "ns"), "of timedelta64"),
            (numpy.complex64(1j), "of complex64"), (pandas.NA, "missing"), (pandas.NaT, "missing"))]
        for matrix, said in ((MASKED, "^row 0, column 0: the value is masked; fill it"), ([[1.0, 1.0], [1.0, numpy.ma.masked]], "^row 1, column 1: the value is masked"),
                             (numpy.array([["NaT", "2020-01-01"]], "datetime64[ns]"), r"^values are of datetime64\[ns\]: make numbers"),
                             (numpy.array([[5]], "timedelta64[s]"), "^values are of timedelta64"), ([[1 + 2j, 1]], "^row 0, column 0: the value is of complex: give the real"),
                             (complex_sparse, "^values are of complex128: give the real"), (matrices.NamedMatrix(complex_sparse, ["a", "b"]), "^values are of complex128"),
                             *objects):
            with self.subTest(matrix):
                self.assert_refused(lambda: list(matrices.pack_matrix(matrix)), said)
                # As learn() and predict() have it.
                self.assert_refused(lambda: Dataset(matrix), said)
        self.assert_refused(lambda: list(matrices.pack_matrix([MASKED[0], MASKED[0]])), "^row 0, column 0: the value is masked")
        self.assert_refused(lambda: list(matrices.pack_matrix(pandas.DataFrame({"a": [TIME]}))), "^values are of datetime64")

    def test_what_is_a_number_stays_one(self):
        for matrix in (numpy.ma.array([[1.0, 2.0]], mask=[[False, False]]), [[True, 2]], numpy.array([["1", "2.0"]]), numpy.array([[1, 2.0]], object),
                       [[numpy.float32(1), numpy.int64(2)]]):
            (packed,) = matrices.pack_matrix(matrix, [numpy.int64(1)], weights=numpy.ma.array([2.0], mask=[False]))
            self.assertEqual((list(packed.values), list(packed.labels), list(packed.weights)), ([1, 2], [1], [2]))
        # NaN, which None is among objects, is the server's to refuse.
        self.assertTrue(numpy.isnan(next(matrices.pack_matrix(numpy.array([[None]], object))).values[0]))

    def test_labels_and_weights(self):
        check, matrix = ModelCheck(model_pb2.Model(name="m")), [[1.0], [2.0]]
        for column, said in ((numpy.ma.array([1, 1], mask=[0, 1]), "^row 1: the {} is masked"), ([1, numpy.ma.masked], "^row 1: the {} is masked"),
                             (numpy.array([TIME, TIME]), "^{}s are of datetime64"), ([1, TIME], "^row 1: the {} is of datetime64"), ([1, 1j], "^row 1: the {} is of complex"),
                             (pandas.Series([TIME, TIME]), "^{}s are of datetime64"), ([1, pandas.NA], "^row 1: the {} is missing")):
            with self.subTest(column):
                for made in (lambda: Dataset(matrix, column).check(check), lambda: list(matrices.pack_matrix(matrix, column)),
                             lambda: LaterLabels(["0.1", "0.2"], column, None, 9).check(check)):
                    self.assert_refused(made, said.format("label"))
                for made in (lambda: Dataset(matrix, [1, 1], column), lambda: list(matrices.pack_matrix(matrix, weights=column)),
                             lambda: LaterLabels(["0.1", "0.2"], [1, 1], column, 9)):
                    self.assert_refused(made, said.format("weight"))
        for names in (["tea", numpy.nan], ["tea", None]):
            self.assert_refused(lambda: list(matrices.pack_matrix(matrix, names)), "^row 1: the label is missing")

    def test_values_labels_and_weights_of_rows(self):
        for wrong, said in ((numpy.ma.masked, "masked|missing"), (TIME, "of datetime64"), (numpy.timedelta64(5, "ns"), "of timedelta64"), (numpy.complex64(1j), "of complex64"),
                            (pandas.NA, "missing")):
            with self.subTest(wrong):
                for row, what in ((Row({"a": wrong}, 1), "value"), (Row({"a": 1.0}, 1, wrong), "weight")):
                    self.assert_refused(lambda: columns.packed([Row({"a": 1.0}, 1), row]), f"^row 1: the {what} is (?:{said})")
                check = ModelCheck(model_pb2.Model(name="m"))
                self.assertEqual(list(check.rows([Row({"a": 1.0}, wrong)])), [])
                self.assertRegex(str(check.error), f"^row 0: the label is (?:{said})")


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


if __name__ == "__main__":
    unittest.main()
