"""The window of the Python client: which examples it sends again after a lost connection, and which answers it accepts.

    sh client/python/build.sh BUILT
    PYTHONPATH=BUILT python3 python_window_test.py
"""

import unittest

from perceptrond.errors import PerceptrondError
from perceptrond.rows import Row
from perceptrond.google_rpc import error_details_pb2
from perceptrond.v1 import learning_service_pb2
from server_table import ServerTable
from perceptrond.window import Window

Opened = learning_service_pb2.StreamOpened
Result = learning_service_pb2.LearnResult


def rows(count):
    return [Row({"a": 1.0}, 1)] * count


def sent(window):
    """All messages to send now: (first offset, rows, completed pass)."""
    return [(request.first_offset, len(request.columns.row_ends), request.completed_pass) for request in iter(window.next_to_send, None)]


def read(table, window):
    """The rows of all messages to send now, as a server with this table reads them."""
    return [row for request in iter(window.next_to_send, None) for row in table.rows(request.columns)]


class WindowTest(unittest.TestCase):
    """Three messages of 10 rows each, offsets 0, 10 and 20, the last one followed by the mark of a pass."""

    def setUp(self):
        self.window = Window("models/m", "p", capacity=25)
        self.window.opening()
        self.window.opened(Opened(model_uid="u", next_offset=0, history_id="h"))
        for _ in range(3):
            self.window.add(rows(10))
        self.window.add((), completed_pass=1)

    def reopen(self, next_offset, uid="u"):
        opening = self.window.opening()
        self.window.opened(Opened(model_uid=uid, next_offset=next_offset))
        return opening

    def test_examples_are_numbered_and_sent_once_in_their_order(self):
        self.assertEqual(sent(self.window), [(0, 10, 0), (10, 10, 0), (20, 10, 0), (30, 0, 1)])
        self.assertEqual(sent(self.window), [])

    def test_nothing_is_sent_before_the_server_has_sent_the_position(self):
        self.window.opening()
        self.assertFalse(self.window.ready())
        self.assertEqual(sent(self.window), [])

    def test_a_new_stream_claims_nothing_and_one_that_resumes_claims_what_was_acknowledged(self):
        self.assertFalse(Window("models/m", "p", 1).opening().producer.HasField("resume"))
        sent(self.window)
        self.window.answered(Result(message_number=1, examples=10, acknowledged_offset=9, revision=4))
        resume = self.window.opening().producer.resume
        self.assertEqual((resume.model_uid, resume.acknowledged_offset), ("u", 9))
        self.assertEqual((resume.acknowledged_revision, resume.history_id), (4, "h"))

    def test_a_stream_to_an_alias_is_opened_again_on_its_model(self):
        window = Window(["aliases/x", "models/n"], "p", 1)
        self.assertEqual(window.opening().model, "aliases/x")
        window.opened(Opened(model_uid="u", model="models/m"), [Opened(model_uid="v", model="models/n")])
        opening = window.opening()
        self.assertEqual((opening.model, list(opening.additional_models)), ("models/m", ["models/n"]))

    def test_examples_not_learned_are_sent_again(self):
        sent(self.window)
        self.window.answered(Result(message_number=1, examples=10, acknowledged_offset=9))
        self.reopen(10)
        self.assertEqual(sent(self.window), [(10, 10, 0), (20, 10, 0), (30, 0, 1)])
        self.window.answered(Result(message_number=1, examples=10, acknowledged_offset=19))
        self.assertEqual(self.window.totals.examples, 20)

    def test_learned_examples_whose_answer_was_lost_are_not_sent_again(self):
        sent(self.window)
        self.reopen(20)
        self.assertEqual(sent(self.window), [(20, 10, 0), (30, 0, 1)])
        self.assertEqual(self.window.totals.lost_answers, 20)

    def test_a_partly_learned_message_is_sent_whole_with_its_offset(self):
        sent(self.window)
        self.reopen(13)
        self.assertEqual(sent(self.window)[0], (10, 10, 0))

    def test_a_pass_mark_is_sent_again_although_its_rows_were_learned(self):
        self.window.add(rows(1), completed_pass=2)
        sent(self.window)
        self.reopen(31)
        self.assertEqual([mark for _, _, mark in sent(self.window)], [1, 2])
        self.assertFalse(self.window.empty())

    def test_answers_and_learned_examples_make_room(self):
        self.assertFalse(self.window.has_room())
        sent(self.window)
        self.window.answered(Result(message_number=1, examples=10, acknowledged_offset=9))
        self.assertTrue(self.window.has_room())
        self.window.add(rows(10))
        self.assertFalse(self.window.has_room())
        self.reopen(20)
        self.assertTrue(self.window.has_room())

    def test_a_known_producer_continues_at_its_position(self):
        window = Window("models/m", "p", 10)
        window.opening()
        window.opened(Opened(model_uid="u", next_offset=41, passes=3))
        window.add(rows(2))
        self.assertEqual((sent(window), window.passes), ([(41, 2, 0)], 3))

    # ---- Tables of names ----

    def test_a_message_with_more_new_names_than_a_quarter_of_the_table_is_split_and_its_mark_comes_after_its_last_part(self):
        window = Window("models/m", "p", 10)
        self.assertEqual(window.opening().name_table_size, 262144)
        window.opened(Opened(model_uid="u", name_table_size=8))
        window.add([Row({name: 1.0}, 1) for name in "abcde"], completed_pass=1)
        self.assertEqual(sent(window), [(0, 2, 0), (2, 2, 0), (4, 1, 1)])
        for number, offset in enumerate((1, 3, 4)):
            self.assertFalse(window.empty())
            window.answered(Result(message_number=number + 1, acknowledged_offset=offset))
        self.assertTrue(window.empty())

    def test_a_new_connection_has_an_empty_table_of_its_own_size(self):
        window = Window("models/m", "p", 10)
        examples = [[Row({name: 2.0, "both": 1.0}, 1)] for name in "abc"]
        for size in (16, 8, 0, 16):
            window.opening()
            window.opened(Opened(model_uid="u", name_table_size=size))
            if window.empty():
                for rows in examples:
                    window.add(rows)
            self.assertEqual(read(ServerTable(size), window), [dict(row.features) for rows in examples for row in rows])

    def test_a_server_without_tables_is_asked_for_none_the_next_time(self):
        window = Window("models/m", "p", 10, name_table_size=16)
        self.assertEqual(window.opening().name_table_size, 16)
        self.assertFalse(window.do_without_table("MODEL_NOT_FOUND"))
        self.assertTrue(window.do_without_table("UNSUPPORTED_FIELD"))
        self.assertFalse(window.do_without_table("UNSUPPORTED_FIELD"))
        self.assertEqual(window.opening().name_table_size, 0)

    # ---- Errors ----

    def test_another_model_of_the_same_name_is_an_error(self):
        with self.assertRaisesRegex(PerceptrondError, "deleted and created again"):
            self.reopen(0, uid="v")

    def test_a_server_that_lost_acknowledged_examples_is_an_error(self):
        sent(self.window)
        self.window.answered(Result(message_number=1, examples=10, acknowledged_offset=9))
        with self.assertRaisesRegex(PerceptrondError, "acknowledged examples through 9 but now expects 9"):
            self.reopen(9)

    def test_answers_out_of_order_are_an_error(self):
        with self.assertRaises(PerceptrondError):
            self.window.answered(Result(message_number=1))
        sent(self.window)
        with self.assertRaises(PerceptrondError):
            self.window.answered(Result(message_number=2))

    def test_an_error_of_a_whole_message_ends_the_stream_with_its_reason(self):
        sent(self.window)
        result = Result(message_number=1)
        result.error.code, result.error.message = 11, "a gap"
        result.error.details.add().Pack(error_details_pb2.ErrorInfo(reason="OFFSET_GAP"))
        with self.assertRaisesRegex(PerceptrondError, r"OUT_OF_RANGE \(OFFSET_GAP\): a gap"):
            self.window.answered(result)

    def test_row_errors_are_counted_and_the_first_is_reported_with_its_offset(self):
        sent(self.window)
        for number in (1, 2):
            result = Result(message_number=number, acknowledged_offset=10 * number - 1)
            result.row_errors.add(row=4).status.message = f"bad {number}"
            self.window.answered(result)
        self.assertEqual(self.window.totals.row_errors, 2)
        self.assertEqual((self.window.totals.first_row_error_offset, self.window.totals.first_row_error), (4, "OK: bad 1"))


if __name__ == "__main__":
    unittest.main()
