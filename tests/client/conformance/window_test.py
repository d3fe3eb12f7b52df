"""The exactly-once window of learn streams: one script for every client, against one scripted server.

    python3 window_test.py CLIENT COMMAND...     (CLIENT: cpp, python, asyncio or node; COMMAND runs its driver)

A driver reads jobs and prints outcomes, one JSON line each; client.py and client.mjs show the whole of it. A job's actions are messages
(lists of rows), "mark" (the end of a pass) and "finish". An outcome has the error that ended the stream, [code, reason], or null; the
totals, or null if it was not opened; and how often the client said that it reconnects.
"""

import contextlib
import json
import os
import random
import subprocess
import sys
import threading
import unittest

from scripted_server import ScriptedServer, Stream, row, status_of

CLIENT, COMMAND = sys.argv[1], sys.argv[2:]
DAY = 86400
TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
# Where clients differ today: {test: {client: what it has instead}}. This list may only shrink.
DIFFERENCES = {
    "another_model_of_the_name": {"cpp": ["ABORTED", "MODEL_REPLACED"], "node": ["INTERNAL", ""]},
    "lost_acknowledged_rows": {"cpp": ["DATA_LOSS", "POSITION_LOST"], "node": ["INTERNAL", ""]},
    "answer_out_of_order": {"cpp": "goes on", "node": ["INTERNAL", ""]},
    "early_end": {"cpp": "goes on", "node": ["INTERNAL", ""]},
    "passing_error_of_a_message": {"python": ["UNAVAILABLE", "KEEPER_UNREACHABLE"], "asyncio": ["UNAVAILABLE", "KEEPER_UNREACHABLE"]},
}


def difference(test, expected):
    return DIFFERENCES[test].get(CLIENT, expected)


class WindowTest(unittest.TestCase):
    driver = None

    @classmethod
    def tearDownClass(cls):
        cls.stop_driver()

    @classmethod
    def stop_driver(cls):
        if cls.driver is not None:
            cls.driver.kill()
            cls.driver.communicate()
            cls.driver = None

    def setUp(self):
        if self.driver is None:
            type(self).driver = subprocess.Popen(COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, "TRACEPARENT": TRACE})
        self.server = ScriptedServer()
        self.addCleanup(self.server.stop)
        # A test that fails leaves the driver in the middle of its job.
        self.addCleanup(self.stop_driver_unless_done)
        self.running = 0

    def stop_driver_unless_done(self):
        if self.running > 0:
            self.stop_driver()

    def start(self, *actions, model="models/m", window=8192, give_up_after=3600, servers=1):
        """Has the client begin. A message is a tuple of keys of rows."""
        job = {"server": ",".join([self.server.first, self.server.second][:servers]), "model": model, "producer": "p", "window": window,
               "giveUpAfter": give_up_after, "actions": [one if isinstance(one, str) else [row(key) for key in one] for one in actions]}
        self.running += 1
        print(json.dumps(job), file=self.driver.stdin, flush=True)
        driver = self.driver
        threading.Thread(target=lambda: self.server.events.put(driver.stdout.readline()), daemon=True).start()

    def assert_outcome(self, error=None, totals=None, reconnects=None, passes=None):
        """totals: those that are not 0; of a stream that was not opened, "none"."""
        got = json.loads(self.server.events.get())
        self.running -= 1
        self.assertEqual(got["error"], list(error) if error else None)
        if totals is not None:
            names = ("examples", "mistakes", "updates", "duplicates", "row_errors", "lost")
            found = {name: value for name, value in zip(names, got["totals"]) if value} if got["totals"] is not None else "none"
            self.assertEqual(found, totals)
        for name, expected in (("reconnects", reconnects), ("passes", passes)):
            if expected is not None:
                self.assertEqual(got[name], expected, name)

    # ---- One connection ----

    def test_rows_are_numbered_and_sent_in_their_order_and_the_answers_are_added_up(self):
        self.start((1, 2), (3,), "mark", (4,), "finish")
        stream = self.server.accept()
        self.assertEqual((stream.opening.model, stream.opening.producer.id, stream.claim()), ("models/m", "p", None))
        stream.open()
        stream.expect(0, (1, 2))
        stream.expect(2, (3,))
        stream.answer(examples=2, mistakes=2, updates=1, ack=1, revision=1)
        stream.answer(examples=0, duplicates=1, ack=2, revision=1)
        stream.expect(3, (), mark=1)
        stream.answer(ack=2, revision=1, passed=1)
        stream.expect(3, (4,))
        stream.answer(examples=1, mistakes=1, updates=1, ack=3, revision=2)
        stream.expect_end()
        self.assert_outcome(totals={"examples": 3, "mistakes": 3, "updates": 2, "duplicates": 1}, passes=[[1, 100]], reconnects=0)

    def test_a_stream_is_a_part_of_the_programs_trace(self):
        self.start("finish")
        stream = self.server.accept()
        # A program in C++ says so itself (CallMetadata).
        self.assertEqual(stream.metadata.get("traceparent"), None if CLIENT == "cpp" else TRACE)
        stream.open()
        stream.expect_end()
        self.assert_outcome(totals={}, reconnects=0)

    def test_a_known_producer_goes_on_at_its_position_and_with_its_next_pass(self):
        self.start((1,), "mark", "finish")
        stream = self.server.accept().open(next_offset=41, passes=3)
        stream.learn(41, (1,))
        stream.expect(42, (), mark=4)
        stream.answer(ack=41, passed=4)
        stream.expect_end()
        self.assert_outcome(passes=[[4, 100]])

    def test_no_more_is_sent_than_the_window_holds(self):
        count, window = 300, 4
        self.start(*((number,) for number in range(1, count + 1)), "finish", window=window)
        stream = self.server.accept().open()
        for number in range(count):
            stream.expect(number, (number + 1,))
            if number + 1 >= window:
                # A client without a window would be far ahead by now.
                self.assertLessEqual(stream.unanswered(), window)
                stream.answer(examples=1, ack=number + 1 - window)
        for number in range(window - 1):
            stream.answer(examples=1, ack=count - window + 1 + number)
        stream.expect_end()
        self.assert_outcome(totals={"examples": count})

    def test_errors_of_rows_are_counted_and_leave_the_stream_open(self):
        self.start((1, 2, 3), (4,), "finish")
        stream = self.server.accept().open()
        stream.expect(0, (1, 2, 3))
        stream.answer(examples=1, ack=2, row_errors=[(0, "NON_FINITE_VALUE"), (2, "UNKNOWN_LABEL")])
        stream.learn(3, (4,))
        stream.expect_end()
        self.assert_outcome(totals={"examples": 2, "row_errors": 2}, reconnects=0)

    def test_a_refused_message_ends_the_stream_with_its_reason(self):
        for code, reason in (("OUT_OF_RANGE", "OFFSET_GAP"), ("OUT_OF_RANGE", "PASS_GAP"), ("FAILED_PRECONDITION", "MODEL_FROZEN"), ("INVALID_ARGUMENT", "MALFORMED_COLUMNS")):
            with self.subTest(reason):
                self.start((1,), "mark", (2,), "finish")
                stream = self.server.accept().open()
                stream.learn(0, (1,))
                stream.expect(1, (), mark=1)
                stream.answer(error=status_of(code, reason))
                self.assert_outcome((code, reason), {"examples": 1}, reconnects=0)

    def test_an_answer_out_of_order_is_never_taken_for_another(self):
        for number in (2, 0):
            with self.subTest(number):
                self.start((1,), "finish")
                stream = self.server.accept().open()
                stream.expect(0, (1,))
                if number == 0:
                    # The opening's own answer is of no message.
                    stream.answer(number=0)
                    stream.answer(examples=1, ack=0)
                    stream.expect_end()
                    self.assert_outcome(totals={"examples": 1})
                    continue
                stream.answer(examples=1, ack=0, number=number)
                error = difference("answer_out_of_order", ["INTERNAL", "OUT_OF_ORDER"])
                if error == "goes on":
                    error, stream = None, self.server.accept()
                    stream.open(next_offset=1)
                    stream.expect_end()
                self.assert_outcome(error, {"lost": 1} if error is None else {})

    # ---- A lost connection ----

    def test_what_was_answered_is_claimed_and_the_rest_is_sent_again(self):
        # Once cut, a connection may take several attempts.
        for lose, reconnects in ((lambda stream: stream.fail("UNAVAILABLE", "DRAINING", retry_after=0.01), 1), (lambda stream: stream.fail("UNAVAILABLE"), 1),
                                 (lambda stream: self.server.cut(), None)):
            self.start((1, 2), "mark", (3,), (4, 5), "finish")
            stream = self.server.accept().open(epoch=4, revision=6)
            stream.expect(0, (1, 2))
            stream.answer(examples=2, updates=1, ack=1, revision=7)
            stream.expect(2, (), mark=1)
            # From a copy that is behind.
            stream.answer(ack=1, revision=6, epoch=3, passed=1)
            stream.expect(2, (3,))
            stream.expect(3, (4, 5))
            lose(stream)
            stream = self.server.accept()
            self.assertEqual((stream.opening.producer.id, stream.opening.producer.resume.model_uid, stream.claim()), ("p", "u", (1, 7, 4)))
            stream.open(next_offset=2, passes=1, epoch=9, revision=7)
            stream.expect(2, (3,))
            stream.expect(3, (4, 5))
            stream.answer(examples=1, ack=2)
            stream.answer(examples=2, updates=1, ack=4, revision=8, epoch=9)
            stream.expect_end()
            self.assert_outcome(totals={"examples": 5, "updates": 2}, reconnects=reconnects)

    def test_rows_that_were_learned_though_their_answers_were_lost_are_not_sent_again(self):
        self.start((1, 2), (3,), (4, 5), "finish")
        stream = self.server.accept().open()
        for first, keys in ((0, (1, 2)), (2, (3,)), (3, (4, 5))):
            stream.expect(first, keys)
        stream.fail("UNAVAILABLE")
        stream = self.server.accept()
        # The first connection has acknowledged nothing.
        self.assertIsNone(stream.claim())
        # Learned in part: sent whole, since the server knows the offset of what it has.
        stream.open(next_offset=4, revision=3)
        stream.expect(3, (4, 5))
        stream.fail("UNAVAILABLE")
        stream = self.server.accept()
        self.assertEqual(stream.claim(), (3, 3, 4))
        stream.open(next_offset=4, revision=3)
        stream.expect(3, (4, 5))
        stream.answer(examples=1, duplicates=1, ack=4)
        stream.expect_end()
        self.assert_outcome(totals={"examples": 1, "duplicates": 1, "lost": 3}, reconnects=2)

    def test_a_mark_is_sent_again_until_it_is_answered_though_its_rows_were_learned(self):
        self.start((1, 2), "mark", "finish")
        stream = self.server.accept().open()
        stream.expect(0, (1, 2))
        stream.expect(2, (), mark=1)
        for passes in (0, 1):
            stream.fail("UNAVAILABLE")
            stream = self.server.accept().open(next_offset=2, passes=passes)
            stream.expect(2, (), mark=1)
        stream.answer(ack=1, passed=1)
        stream.expect_end()
        self.assert_outcome(totals={"lost": 2}, passes=[[1, 100]], reconnects=2)

    def test_a_server_that_ends_the_stream_early_does_not_pass_for_success(self):
        self.start((1,), "finish")
        stream = self.server.accept().open()
        stream.expect(0, (1,))
        stream.end()
        error = difference("early_end", ["INTERNAL", "OUT_OF_ORDER"])
        if error == "goes on":
            error, stream = None, self.server.accept()
            stream.open()
            stream.learn(0, (1,))
            stream.expect_end()
        self.assert_outcome(error)

    def test_whatever_breaks_each_row_is_learned_once_and_in_its_order(self):
        for seed in range(4):
            with self.subTest(seed=seed):
                chance, total, faults = random.Random(seed), 60, 0
                keys = [f"n{number}+both" if seed % 2 else number + 1 for number in range(total)]
                self.start(*(tuple(keys[begin:begin + 3]) for begin in range(0, total, 3)), "mark", "finish", window=12)
                learned, passes, durable, stream = [], 0, 0, None
                while passes == 0 or stream is not None:
                    stream = self.server.accept()
                    claim = stream.claim()
                    # A crash loses correct rows that were not acknowledged; what was, the claim restores.
                    if seed < 2:
                        del learned[max(durable, claim[0] + 1 if claim else 0):]
                    stream.open(next_offset=len(learned), passes=passes, table=chance.choice((0, 8, 64)))
                    while (message := stream.read()) is not None:
                        first, rows, mark = message
                        fault = chance.choice(("before", "halfway", "after", *["none"] * 9)) if faults < 6 else "none"
                        faults += fault != "none"
                        if fault != "before" and rows:
                            self.assertLessEqual(first, len(learned))
                            rows, known = rows[:len(rows) // 2] if fault == "halfway" else rows, len(learned) - first
                            learned += rows[known:]
                            durable = len(learned) if chance.random() < 0.3 else durable
                        if mark and fault in ("none", "after"):
                            passes, durable = mark, len(learned)
                        if fault != "none":
                            stream.fail("UNAVAILABLE")
                            break
                        stream.answer(examples=len(rows), ack=len(learned) - 1, passed=mark)
                    else:
                        stream.end()
                        stream = None
                self.assertEqual(learned, [row(key) for key in keys])
                self.assert_outcome(passes=[[1, 100]], reconnects=faults)

    # ---- Errors of a stream ----

    def test_an_error_that_no_attempt_avoids_is_final_when_a_stream_opens(self):
        for code, reason, retry in (("NOT_FOUND", "MODEL_NOT_FOUND", None), ("INVALID_ARGUMENT", "INVALID_FIELD", None), ("PERMISSION_DENIED", "ROLE_MISSING", None),
                                    ("RESOURCE_EXHAUSTED", "PRODUCER_LIMIT", DAY), ("RESOURCE_EXHAUSTED", "MESSAGE_TOO_LARGE", None), ("DATA_LOSS", "JOURNAL_CORRUPT", None)):
            with self.subTest(reason):
                self.start((1,), "finish")
                self.server.accept().fail(code, reason, retry)
                self.assert_outcome((code, reason), "none", reconnects=0)

    def test_an_error_that_no_attempt_avoids_is_final_while_rows_are_on_their_way(self):
        for code, reason in (("ABORTED", "PRODUCER_SUPERSEDED"), ("NOT_FOUND", "MODEL_NOT_FOUND"), ("INVALID_ARGUMENT", "MALFORMED_MESSAGE")):
            with self.subTest(reason):
                self.start((1,), (2,), "finish")
                stream = self.server.accept().open()
                stream.learn(0, (1,))
                stream.expect(1, (2,))
                stream.fail(code, reason)
                self.assert_outcome((code, reason), {"examples": 1}, reconnects=0)

    def reopened(self):
        """The second connection of a client that has one row answered and one not."""
        self.start((1,), (2,), "finish")
        stream = self.server.accept().open()
        stream.learn(0, (1,))
        stream.expect(1, (2,))
        stream.fail("UNAVAILABLE")
        return self.server.accept()

    def test_a_claim_that_the_server_refuses_is_final(self):
        for code, reason in (("DATA_LOSS", "UPDATES_LOST"), ("FAILED_PRECONDITION", "MODEL_REPLACED")):
            with self.subTest(reason):
                self.reopened().fail(code, reason)
                self.assert_outcome((code, reason), {"examples": 1}, reconnects=1)

    def test_another_model_of_the_same_name_gets_no_rows(self):
        stream = self.reopened()
        stream.open(uid="another")
        self.assert_outcome(difference("another_model_of_the_name", ["FAILED_PRECONDITION", "MODEL_REPLACED"]), {"examples": 1})
        self.assertEqual(stream.unanswered(), 0)

    def test_a_server_that_lost_acknowledged_rows_gets_none(self):
        self.reopened().open(next_offset=0)
        self.assert_outcome(difference("lost_acknowledged_rows", ["DATA_LOSS", "UPDATES_LOST"]), {"examples": 1})

    def test_a_server_that_asks_to_wait_is_tried_again(self):
        self.start((1,), "finish")
        self.server.accept().fail("RESOURCE_EXHAUSTED", "TOO_MANY_STREAMS", retry_after=0.01)
        self.server.accept().fail("UNAVAILABLE", "JOURNAL_UNAVAILABLE", retry_after=0.01)
        stream = self.server.accept().open()
        stream.learn(0, (1,))
        stream.expect_end()
        self.assert_outcome(totals={"examples": 1}, reconnects=2)

    def test_a_refused_message_that_may_succeed_later_is_sent_again(self):
        self.start((1,), "finish")
        stream = self.server.accept().open()
        stream.expect(0, (1,))
        stream.answer(error=status_of("UNAVAILABLE", "KEEPER_UNREACHABLE", retry_after=0.01))
        error = difference("passing_error_of_a_message", None)
        if error is None:
            stream = self.server.accept().open()
            stream.learn(0, (1,))
            stream.expect_end()
        self.assert_outcome(error, {"examples": 1} if error is None else {})

    def assert_gives_up(self, serve):
        """The last attempt may have ended with the time instead of an answer: its reason is not looked at."""
        self.start((1,), "finish", give_up_after=0.2)
        while isinstance(last := self.server.events.get(), Stream):
            serve(last)
        self.running -= 1
        self.assertEqual(json.loads(last)["error"][0], "UNAVAILABLE")

    def test_a_server_that_stays_away_is_given_up(self):
        self.assert_gives_up(lambda stream: stream.fail("UNAVAILABLE", "JOURNAL_UNAVAILABLE"))

    def test_opening_a_connection_is_no_progress_if_what_is_sent_is_refused_each_time(self):
        def serve(stream):
            stream.open()
            with contextlib.suppress(AssertionError):
                stream.read()
                stream.answer(error=status_of("UNAVAILABLE", "KEEPER_UNREACHABLE"))

        self.assert_gives_up(serve)

    # ---- Aliases, names, several servers ----

    def test_a_stream_to_an_alias_stays_on_the_model_that_it_was_opened_on(self):
        self.start((1,), "finish", model="aliases/prod")
        stream = self.server.accept()
        self.assertEqual(stream.opening.model, "aliases/prod")
        stream.open(model="models/champion")
        stream.expect(0, (1,))
        stream.fail("UNAVAILABLE")
        stream = self.server.accept()
        self.assertEqual(stream.opening.model, "models/champion")
        stream.open(model="models/champion")
        stream.learn(0, (1,))
        stream.expect_end()
        self.assert_outcome(totals={"examples": 1})

    def test_rows_by_name_arrive_as_they_are_with_the_table_that_each_connection_grants(self):
        # More new names in a message than a table of 8 takes, names that return, and names that left the table.
        keys = [("a+b", "b+c", "a+d+e"), ("f+a", "g", "h", "b+g"), ("a+h",)]
        for tables in ((8, 0, 64), (64, 8, 0), (0, 64, 8)):
            with self.subTest(tables=tables):
                self.start(*keys, "mark", "finish")
                for table in tables[:2]:
                    stream = self.server.accept()
                    self.assertEqual(stream.opening.name_table_size, 1 << 18)
                    stream.open(table=table)
                    stream.read()
                    stream.fail("UNAVAILABLE")
                stream = self.server.accept().open(table=tables[2])
                stream.expect_rows(0, [key for message in keys for key in message], mark=1)
                stream.expect_end()
                self.assert_outcome(totals={"examples": 8}, reconnects=2)

    def test_a_server_without_tables_of_names_is_asked_for_none_at_once(self):
        self.start(("a+b",), "finish")
        self.server.accept().fail("INVALID_ARGUMENT", "UNSUPPORTED_FIELD")
        stream = self.server.accept()
        self.assertEqual(stream.opening.name_table_size, 0)
        stream.open()
        stream.expect(0, ("a+b",))
        stream.answer(examples=1, ack=0)
        stream.expect_end()
        self.assert_outcome(totals={"examples": 1}, reconnects=0)

    def test_a_writer_that_the_client_does_not_know_is_left_alone(self):
        self.start((1,), "mark", "finish", servers=2)
        stream = self.server.accept().open()
        stream.learn(0, (1,), writer="127.0.0.1:1")
        stream.expect(1, (), mark=1)
        stream.answer(ack=0, passed=1)
        stream.expect_end()
        self.assert_outcome(totals={"examples": 1}, reconnects=0)

    def test_a_stream_goes_on_at_the_writer_that_is_named_and_anywhere_once_that_is_lost(self):
        self.start((1,), "mark", (2,), "mark", (3,), "finish", servers=2)
        stream = self.server.accept().open()
        stream.learn(0, (1,))
        stream.expect(1, (), mark=1)
        stream.answer(ack=0, revision=1, passed=1, writer=self.server.second)
        while (message := stream.read()) is not None:
            # Sent before it knew: answered before it goes.
            stream.answer(examples=len(message[1]), ack=1)
        stream.end()
        learned = 1 if stream.received == 3 else 2
        stream = self.server.accept("second")
        self.assertEqual(stream.claim()[0], learned - 1)
        stream.open(next_offset=learned, passes=1)
        if learned == 1:
            stream.learn(1, (2,))
        stream.expect(2, (), mark=2)
        stream.fail("UNAVAILABLE")
        stream = self.server.accept().open(next_offset=2, passes=1)
        stream.expect(2, (), mark=2)
        # The client does not go where it was lost.
        stream.answer(ack=1, passed=2)
        stream.learn(2, (3,))
        stream.expect_end()
        self.assert_outcome(totals={"examples": 3}, reconnects=1)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
