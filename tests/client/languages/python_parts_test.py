"""The parts of the Python client that need no server: retries, file formats, labels, flags and errors.

    sh client/python/build.sh BUILT
    PYTHONPATH=client/python/examples:BUILT python3 python_parts_test.py
"""

import argparse
import io
import os
import pathlib
import pickle
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import warnings
from unittest import mock

import grpc

import flags
import formats
from perceptrond import columns, errors
from perceptrond.channels import Target
from perceptrond.columns import MOST_UINT32
from perceptrond.google_rpc import error_details_pb2, status_pb2
from perceptrond.labels import Labels
from perceptrond.rows import Row, batches
from perceptrond.v1 import learner_pb2, model_pb2

PROTOS = pathlib.Path(__file__).resolve().parents[3] / "proto"


class Clock:
    now = 0.0

    def monotonic(self):
        return self.now


def failed(code, retry_after=None):
    """A failed call; the server may ask to wait for retry_after seconds."""
    status = status_pb2.Status(code=code.value[0])
    if retry_after is not None:
        retry = error_details_pb2.RetryInfo()
        retry.retry_delay.FromSeconds(retry_after)
        status.details.add().Pack(retry)
    return mock.Mock(code=lambda: code, details=lambda: "", trailing_metadata=lambda: [(errors.DETAILS, status.SerializeToString())])


class BackoffTest(unittest.TestCase):
    def setUp(self):
        self.clock = Clock()
        self.enterContext(mock.patch("perceptrond.errors.time.monotonic", self.clock.monotonic))

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
        self.clock.now = 9.9
        self.assertIsNone(backoff.next_wait(failed(grpc.StatusCode.UNAVAILABLE)))
        backoff.progress()
        self.assertIsNotNone(backoff.next_wait(failed(grpc.StatusCode.UNAVAILABLE)))

    def test_a_wait_that_lasts_is_reported_once_until_there_is_progress(self):
        backoff = errors.Backoff(give_up_after=60, first=0.1, longest=1)
        lost = failed(grpc.StatusCode.UNAVAILABLE)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for now, notices in ((2.9, 0), (3, 1), (50, 1)):
                self.clock.now = now
                backoff.next_wait(lost)
                self.assertEqual(len(caught), notices, now)
            self.assertRegex(str(caught[0].message), r"^no answer for 3 s; trying for another 57 s \(give_up_after\): UNAVAILABLE: ")
            backoff.progress()
            for now, notices in ((51, 1), (53, 2)):
                self.clock.now = now
                backoff.next_wait(lost)
                self.assertEqual(len(caught), notices, now)
            # Another error is reported by itself, as is the last one.
            backoff = errors.Backoff(give_up_after=10)
            self.clock.now += 5
            backoff.next_wait(failed(grpc.StatusCode.NOT_FOUND))
            self.clock.now += 5
            self.assertIsNone(backoff.next_wait(lost))
            self.assertEqual(len(caught), 2)

    def test_unavailable_is_retried_and_what_is_exhausted_once_the_server_says(self):
        for code in grpc.StatusCode:
            exhausted = code is grpc.StatusCode.RESOURCE_EXHAUSTED
            self.assertEqual(errors.is_transient(failed(code)), code is grpc.StatusCode.UNAVAILABLE)
            self.assertEqual(errors.is_transient(failed(code, retry_after=2)), exhausted or code is grpc.StatusCode.UNAVAILABLE)
        full = failed(grpc.StatusCode.RESOURCE_EXHAUSTED, retry_after=2)
        self.assertEqual(errors.Backoff(give_up_after=10, first=1, longest=1).next_wait(full), 2)
        self.assertIsNone(errors.Backoff(give_up_after=2, first=1, longest=1).next_wait(full))


class TargetTest(unittest.TestCase):
    def test_an_address_without_a_port_has_perceptronds(self):
        for given, meant in (("localhost", "localhost:7600"), ("a,b:1, c", "a:7600,b:1,c:7600"), ("h:7", "h:7"), ("[::1]:7", "[::1]:7"), ("unix:/s", "unix:/s")):
            self.assertEqual(Target(given).server, meant)


class BatchesTest(unittest.TestCase):
    def test_batches_hold_every_row_once(self):
        self.assertEqual(list(batches(iter("abcdefg"), 3)), [["a", "b", "c"], ["d", "e", "f"], ["g"]])


class FormatsTest(unittest.TestCase):
    def read(self, text, parse):
        file = io.BytesIO(text)
        file.name = "f"
        return list(formats.read_rows(file, parse))

    def text(self, lines, required=True):
        return self.read(lines, formats.text_parser(labels("ham", "spam"), required))

    def svmlight(self, lines, required=True, index_base=1):
        return self.read(lines, formats.svmlight_parser(index_base, labels(), required))

    def test_words_are_lower_case_ascii_and_non_ascii_bytes(self):
        (row,) = self.text("ham\tGo, GO! Ünder\u00a0don't 4u\n".encode())
        self.assertEqual(row, Row({"go": 2, "Ünder\u00a0don't": 1, "4u": 1}, -1, line=1))

    def test_a_malformed_line_is_an_error_with_its_number(self):
        for text, said in ((b"+1 1:x\n", '"1:x" is not a feature'), (b"+1 1:1\n\n2 1:1\n", 'f:3: label "2" is neither'), (b"+1 0:1\n", "--index-base 0"),
                           (b"+1 1:0x10\n", "is not a feature"), (b"+1 1:nan\n", "is not a feature")):
            with self.subTest(text=text), self.assertRaisesRegex(formats.BadLine, said):
                self.svmlight(text)
        with self.assertRaisesRegex(formats.BadLine, "f:1: .*utf-8"):
            self.text(b"ham\t\xff\n")
        with self.assertRaisesRegex(formats.BadLine, 'f:1: label "eggs" is not a label of the model: "ham", "spam", -1 or \\+1$'):
            self.text(b"eggs\tgood\n")

    def test_the_largest_index_is_that_of_uint32(self):
        for index_base in (0, 1):
            (row,) = self.svmlight(b"+1 000000000001:2 4294967295:1\n", index_base=index_base)
            self.assertEqual(list(columns.pack([row]).indices), [1 - index_base, 4294967295 - index_base])
        for beyond in ("4294967296", "4294967298", "18446744073709551617", "9" * 5000):
            with self.subTest(beyond=beyond[:20]), self.assertRaisesRegex(formats.BadLine, f'^f:2: "{beyond[:20]}.*" is not a feature: expected index:value'):
                self.svmlight(f"+1 1:1\n+1 {beyond}:1\n".encode())

    def test_a_value_is_a_finite_float32(self):
        (row,) = self.svmlight(b"+1 1:.5 2:5. 3:-1e-400 4:3.4028235e38\n")
        self.assertEqual(list(row.features.values()), [0.5, 5, 0, 3.4028235e38])
        for value in ("1e39", "-1e400", "1.2.3", ".", "", "1e", "1_0"):
            with self.subTest(value=value), self.assertRaisesRegex(formats.BadLine, f'f:1: "1:{value}" is not a feature'):
                self.svmlight(f"+1 1:{value}\n".encode())

    def test_an_index_that_occurs_twice_is_an_error(self):
        for line in (b"-1 1:1 3:2 1:5\n", b"-1 1:1 3:2 01:1\n"):
            with self.assertRaisesRegex(formats.BadLine, "^f:2: index 0 occurs twice$"):
                self.svmlight(b"+1 1:1\n" + line)

    def test_a_line_without_a_label_is_a_row_if_labels_are_optional(self):
        self.assertEqual(self.text(b"good\nmore\tgood\n+1\tgood\n", required=False), [Row({"good": 1}, line=1), Row({"more": 1, "good": 1}, line=2), Row({"good": 1}, 1, line=3)])
        self.assertEqual(self.svmlight(b"2:1\n3 2:1\n-1.0 2:1\n-1\n", required=False), [Row({1: 1}, line=1), Row({1: 1}, line=2), Row({1: 1}, -1, line=3), Row({}, -1, line=4)])
        with self.assertRaisesRegex(formats.BadLine, "f:2: no label before the first feature"):
            self.svmlight(b"1 2:1\n2:1\n")
        mixed = columns.pack(self.text(b"good\nham\tgood\n", required=False))
        self.assertEqual((len(mixed.row_ends), len(mixed.labels)), (2, 0))


def labels(*names, **classes):
    """The labels of a model; of a multiclass model if there are settings for its classes."""
    model = model_pb2.Model(label_names=names)
    if classes:
        model.learner.classes.CopyFrom(learner_pb2.Classes(**classes))
    return Labels(model)


class InputFileTest(unittest.TestCase):
    def test_an_interrupt_that_does_not_wake_the_read_ends_the_wait_for_a_pipe(self):
        self.addCleanup(signal.signal, signal.SIGINT, signal.signal(signal.SIGINT, signal.default_int_handler))
        self.addCleanup(signal.pthread_sigmask, signal.SIG_SETMASK, signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT]))
        reader, writer = os.pipe()
        self.addCleanup(os.close, writer)
        state = pathlib.Path(f"/proc/self/task/{threading.get_native_id()}/stat")

        def interrupt():
            # As if it came right before the read: another thread receives it while the reader sleeps in a system call. No
            # event tells of that, only the thread's state; 50 ms of it exclude a wait for the interpreter's lock.
            asleep = 0
            while asleep < 50:
                asleep = asleep + 1 if state.read_text().rpartition(")")[2].split()[0] == "S" else 0
                time.sleep(0.001)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
            os.kill(os.getpid(), signal.SIGINT)

        with formats.open_input(f"/dev/fd/{reader}") as file:
            os.close(reader)
            os.write(writer, b"first\n")
            self.assertEqual(next(file), b"first\n")
            thread = threading.Thread(target=interrupt)
            thread.start()
            with self.assertRaises(KeyboardInterrupt):
                next(file)
            thread.join()


class LabelsTest(unittest.TestCase):
    def assert_refused(self, made, text, said):
        with self.assertRaisesRegex(ValueError, said):
            made.read(text)

    def test_with_two_labels_a_name_precedes_a_number(self):
        self.assertEqual([labels().read(text) for text in ("-1", "+1", "1", "1.0", "-10e-1")], [-1, 1, 1, 1, -1])
        self.assertEqual([labels("ham", "spam").read(text) for text in ("ham", "spam", "-1", "+1")], [-1, 1, -1, 1])
        self.assertEqual([labels("1", "2").read(text) for text in ("1", "2")], [-1, 1])
        self.assert_refused(labels("1", "2"), "-1", 'label "-1" is not a label of the model: "1", "2"$')
        for text in ("0", "2", "one", "", "1 ", "nan", "inf", "1e400"):
            self.assert_refused(labels(), text, f'^label "{text}" is neither -1 nor \\+1$')

    def test_multiclass_labels_are_classes(self):
        colours = labels("red", "green", "blue", max_classes=3)
        self.assertEqual([colours.read(text) for text in ("red", "green", "blue", "0", "2.0")], [0, 1, 2, 0, 2])
        self.assertEqual([colours.name(number) for number in (0, 1, 2, -1)], ["red", "green", "blue", "-"])
        self.assert_refused(colours, "pink", 'label "pink" is not a class of the model: its label names, or 0 to 2$')
        numbered = labels(max_classes=3)
        self.assertEqual(([numbered.read(text) for text in ("0", "1", "2")], [numbered.name(number) for number in (0, 1, 2)]), ([0, 1, 2], ["0", "1", "2"]))
        for text in ("3", "-1", "1.5", "1e400", "red"):
            self.assert_refused(numbered, text, "is not a class of the model: 0 to 2$")
        self.assert_refused(labels("7", "8", max_classes=2), "0", "is not a class of the model: its label names$")

    def test_where_new_classes_are_named_a_label_is_a_name_and_has_a_number_once_the_model_knows_it(self):
        made = labels("red", max_classes=9, new_classes=learner_pb2.Classes.NEW_CLASSES_NAMED)
        self.assertEqual([made.read(text) for text in ("red", "new", "3")], ["red", "new", "3"])
        self.assertEqual([made.number(label) for label in ("red", "new", 4)], [0, None, 4])
        self.assertEqual([made.name(number) for number in (0, 4)], ["red", "4"])
        self.assert_refused(made, "", "the label is empty")

    def test_with_two_labels_a_prediction_without_a_name_has_its_sign(self):
        self.assertEqual([made.name(number) for made in (labels(), labels("ham", "spam")) for number in (-1, 1)], ["-1", "+1", "ham", "spam"])


class FlagTypesTest(unittest.TestCase):
    def assert_refused(self, kind, *texts):
        for text in texts:
            with self.subTest(text=text[:20]), self.assertRaisesRegex(argparse.ArgumentTypeError, "expected"):
                kind(text)

    def test_an_integer_is_within_its_bounds(self):
        dimension = flags.whole(1, MOST_UINT32)
        self.assertEqual([dimension(text) for text in ("1", "4294967295")], [1, 4294967295])
        self.assert_refused(dimension, "0", "-5", "4294967296", "4294967301", "18446744073709551621", "9" * 5000, "1.5", "1e3", "nan", "x", "")

    def test_seconds_are_within_a_duration(self):
        interval = flags.seconds(0.05)
        self.assertEqual([interval(text) for text in ("0.05", "315576000000")], [0.05, 315576000000])
        self.assert_refused(interval, "0.04", "-1", "315576000001", "1e300", "nan", "inf", "-inf", "x", "")


class LeaveTest(unittest.TestCase):
    # A thread holds a lock forever, as gRPC's threads do briefly; an object that needs it, as a channel does, is freed at exit.
    LOCKED = """
import threading, flags

def hold(lock, held):
    lock.acquire()
    held.set()
    threading.Event().wait()

class Channel:
    def __init__(self):
        self.itself, self.lock, held = self, threading.Lock(), threading.Event()
        threading.Thread(target=hold, args=(self.lock, held), daemon=True).start()
        held.wait()

    def __del__(self):
        self.lock.acquire()

Channel()
print("said")
"""

    def test_a_program_ends_although_a_thread_holds_a_lock_that_an_orderly_exit_needs(self):
        done = subprocess.run([sys.executable, "-B", "-c", self.LOCKED + "flags.leave(3)"], capture_output=True, text=True, timeout=60)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (3, "said\n", ""))

    def test_a_closed_output_causes_no_traceback(self):
        reader, writer = os.pipe()
        os.close(reader)
        buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
        with open(writer, "wb") as nobody:
            done = subprocess.run([sys.executable, "-B", "-c", "import flags; print('x'); flags.leave(0)"], env=buffered, stdout=nobody,
                                  stderr=subprocess.PIPE, timeout=60)
        self.assertEqual((done.returncode, done.stderr), (1, b""))


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

    def test_an_error_without_details_is_described_by_its_code(self):
        call = mock.Mock(trailing_metadata=lambda: None, code=lambda: grpc.StatusCode.UNAVAILABLE, details=lambda: "no route")
        self.assertEqual((errors.describe(call), errors.reason(call)), ("UNAVAILABLE: no route", ""))


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


if __name__ == "__main__":
    unittest.main()
