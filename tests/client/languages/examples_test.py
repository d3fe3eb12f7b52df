"""The example clients in other languages against a real server: their results equal perceptronctl's, and examples are learned
exactly once even if the server or the client is killed in the middle of a stream.

    python3 examples_test.py LANGUAGE PERCEPTROND PERCEPTRONCTL      (LANGUAGE: python, asyncio or node)
"""

import json
import os
import re
import signal
import subprocess
import sys
import unittest
from unittest import mock

from examples_fixture import CREATE, LANGUAGE, PERCEPTROND, PERCEPTRONCTL, PROGRAMS, TEST, TRAIN, Client, ExamplesFixture, float32, only_if
from old_server import OldServer
from processes import Server, wait_for


class ExamplesTest(ExamplesFixture):
    # ---- The main job ----

    def learn_all(self, *more):
        train = self.file("train.tsv", TRAIN)
        return self.run_client("learn", "spam", train, *CREATE, "--producer", "train", "--passes", 2, *more)

    def test_learned_weights_equal_perceptronctls_bit_for_bit(self):
        reference = self.reference(TRAIN, "--passes", 2)
        out, _ = self.learn_all()
        self.assert_same_model(self.model("spam"), reference)
        self.assertIn("pass 1: 4459 examples, 201 mistakes, 201 updates\n", out)
        self.assertIn(f"spam is at revision {reference['revision']}: 8918 examples, ", out)

    def test_learned_weights_are_the_same_with_a_small_table_of_names_and_without_one(self):
        reference = self.reference(TRAIN, "--passes", 2)
        train = self.file("train.tsv", TRAIN)
        for size in (0, 4, 200):
            self.run_client("learn", f"spam{size}", train, *CREATE, "--producer", "train", "--passes", 2, "--name-table-size", size)
            self.assert_same_model(self.model(f"spam{size}"), reference)

    def test_a_server_without_tables_of_names_is_sent_none(self):
        reference = self.reference(TRAIN)
        test = self.file("test.tsv", TEST)
        with OldServer(self.server.address) as old:
            job = ["spam", self.file("train.tsv", TRAIN), *CREATE, "--producer", "train", "--server", old.address]
            out, error = self.run_client("learn", *job, *([] if "predict" in PROGRAMS else ["--predict", test]))
            self.assertEqual((old.refused, error), (1, ""))
            self.assert_same_model(self.model("spam"), reference)
            if "predict" in PROGRAMS:
                out, error = self.run_client("predict", "spam", test, "--server", old.address)
                self.assertEqual((old.refused, error), (2, ""))
        self.assertEqual(out.splitlines()[-2:], list(self.error_by_perceptronctl("spam").groups()))

    def error_by_perceptronctl(self, name):
        test = self.file("test.tsv", TEST)
        return re.search(r"(\d+ predicted at revision \d+)\n(errors: \d+ of \d+ \([\d.]+ %\))", self.ctl("predict", name, test, "--format", "text", "--summary"))

    @only_if("predict" in PROGRAMS)
    def test_predictions_equal_perceptronctls_bit_for_bit(self):
        self.reference(TRAIN)
        test = self.file("test.tsv", TEST)
        answers = [json.loads(line) for line in self.ctl("predict", "reference", test, "--format", "text", "-o", "json").splitlines()]
        expected = [({-1: "ham", 1: "spam"}[answer["predictedLabels"][0]], float32(answer["scores"][0])) for answer in answers]
        for size in (65536, 200, 0):
            out, _ = self.run_client("predict", "reference", test, "--scores", "--name-table-size", size)
            *rows, predicted, wrong = out.splitlines()
            self.assertEqual([predicted, wrong], list(self.error_by_perceptronctl("reference").groups()))
            self.assertEqual([(label, float32(score)) for label, score in (row.split("\t") for row in rows)], expected)

    @only_if(LANGUAGE == "asyncio")
    def test_one_loop_learns_watches_the_model_and_predicts(self):
        out, _ = self.learn_all("--predict", self.file("test.tsv", TEST))
        for said in self.error_by_perceptronctl("spam").groups():
            self.assertIn(said + "\n", out)
        self.assertIn("  revision 0: 0 examples", out)

    def test_vectors_from_an_svmlight_file_are_learned_as_perceptronctl_learns_them(self):
        rows = self.file("rows.svm", [b"+1 1:1 3:0.1 # a comment\n", b"-1 2:0.7\r\n", b"\n", b"-1 1:-1e-3 2:0.25 3:4\n", b"+1 3:0.3\n"])
        self.ctl("create", "reference", "--dimension", 3)
        self.ctl("learn", "reference", rows, "--format", "svmlight", "--index-base", 1, "--passes", 4)
        self.run_client("learn", "rows", rows, "--format", "svmlight", "--dimension", 3, "--producer", "rows", "--passes", 4)
        self.assert_same_model(self.model("rows"), self.model("reference"))

    def assert_learns_and_predicts_as_perceptronctl(self, name, train, test, file_format, *create):
        """Learns `train` and predicts `test` with a model created before. Returns the last line of the predictions."""
        flags = ["--format", file_format]
        by_us = [*flags, *(["--index-base", 1] if file_format == "svmlight" else [])]
        for model in (name, f"{name}-reference"):
            self.ctl("create", model, *create)
        self.ctl("learn", f"{name}-reference", train, *by_us, "--passes", 3)
        asyncio = "predict" not in PROGRAMS
        out, _ = self.run_client("learn", name, train, *flags, "--producer", "train", "--passes", 3, *(["--predict", test] if asyncio else []))
        for part in ("weights", "revision", "labelNames"):
            self.assertEqual(self.model(name).get(part), self.model(f"{name}-reference").get(part))
        if not asyncio:
            out, _ = self.run_client("predict", name, test, *flags, "--scores")
            shown = [line.split("\t")[:2] for line in self.ctl("predict", name, test, *by_us).splitlines()]
            self.assertEqual([[label, float32(score)] for label, score in (line.split("\t") for line in out.splitlines() if "\t" in line)],
                             [[label, float32(score)] for label, score in shown])
        said = self.ctl("predict", name, test, *by_us, "--summary").splitlines()
        expected = [line.partition(";")[0] for line in said if " predicted at revision " in line or line.startswith("errors: ")]
        self.assertEqual(out.splitlines()[-len(expected):], expected)
        return expected[-1]

    def test_named_classes_are_learned_and_predicted_by_name(self):
        rows = [f"{colour}\t{words}\n".encode() for colour, words in (("red", "rose blood"), ("green", "grass tree"), ("blue", "sky sea"), ("red", "rose sea"))]
        train = self.file("colours.tsv", rows * 3)
        # Of the last four rows one has a class's number, one a wrong label, one an unknown label, one none.
        test = self.file("more.tsv", [*rows, b"2\tsky\n", b"green\tsky\n", b"pink\tgrass\n", b"no label\n"])
        wrong = self.assert_learns_and_predicts_as_perceptronctl("colours", train, test, "text", "--named", "--classes", 3, "--labels", "red,green,blue")
        self.assertEqual(wrong, "errors: 1 of 6 (16.67 %)")

    def test_new_classes_are_learned_and_predicted_by_name(self):
        rows = [b"red\trose\n", b"green\tgrass\n", b"blue\tsky\n"]
        train = self.file("colours.tsv", rows * 3)
        test = self.file("more.tsv", [*rows, b"pink\trose\n", b"red\tsky\n", b"rose\n"])
        wrong = self.assert_learns_and_predicts_as_perceptronctl("colours", train, test, "text", "--named", "--classes", 9, "--new-classes", "named")
        self.assertEqual(wrong, "errors: 2 of 5 (40.00 %)")

    def test_numbered_classes_are_learned_and_predicted_by_number(self):
        rows = [b"0 1:1\n", b"1 2:1\n", b"2 3:1\n", b"2 1:0.1 3:0.5\n"]
        train = self.file("rows.svm", rows * 3)
        test = self.file("more.svm", [*rows, b"1 3:1\n", b"0 3:1\n", b"3:1\n", b"7 1:1\n"])
        for name, more in (("all", []), ("new", ["--new-classes", "numbered"])):
            wrong = self.assert_learns_and_predicts_as_perceptronctl(name, train, test, "svmlight", "--dimension", 3, "--classes", 3, *more)
            self.assertEqual(wrong, "errors: 2 of 6 (33.33 %)")

    def test_files_without_labels_are_predicted_without_an_error_count(self):
        rows = [b"+1 1:1\n", b"-1 2:1\n"]
        said = self.assert_learns_and_predicts_as_perceptronctl("rows", self.file("rows.svm", rows), self.file("plain.svm", [b"1:1\n", b"3 2:1\n"]), "svmlight",
                                                                "--dimension", 2)
        self.assertRegex(said, r"^2 predicted at revision \d+$")
        texts = self.file("plain.tsv", [b"no label here\n", b"none\teither, but a tab\n"])
        said = self.assert_learns_and_predicts_as_perceptronctl("spam", self.file("train.tsv", TRAIN[:50]), texts, "text", *CREATE)
        self.assertRegex(said, r"^2 predicted at revision \d+$")
        self.assertEqual(self.predicted("rows", self.file("empty", [])), "nothing to predict: there are no examples in the file")

    def predicted(self, name, test):
        """The last line."""
        asyncio = ["--producer", "again", "--predict", test]
        out, _ = self.run_client("predict", name, test) if "predict" in PROGRAMS else self.run_client("learn", name, self.file("none", []), *asyncio)
        return out.splitlines()[-1]

    # ---- Addresses ----

    def test_a_server_on_a_unix_socket_can_be_used(self):
        address = f"unix:{self.directory / 'socket'}"
        with Server(PERCEPTROND, self.directory / "other", self.directory / "other.log", address=address) as self.server:
            self.run_client("learn", "spam", self.file("train.tsv", TRAIN[:50]), *CREATE, "--producer", "train")
            self.assertEqual(self.examples("spam"), 50)

    def test_a_server_with_tls_is_used_only_if_its_certificate_authority_is_trusted(self):
        for who in ("server", "other"):
            subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", f"/CN={who}",
                            "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", self.directory / f"{who}.key", "-out", self.directory / f"{who}.pem"],
                           check=True, capture_output=True)
        flags = ["--tls-cert", self.directory / "server.pem", "--tls-key", self.directory / "server.key"]
        with Server(PERCEPTROND, self.directory / "tls", self.directory / "tls.log", flags) as self.server:
            job = ["learn", "spam", self.file("train.tsv", TRAIN[:50]), *CREATE, "--producer", "train", "--give-up-after", "0.3"]
            out, _ = self.run_client(*job[:-1], "60", "--tls-ca", self.directory / "server.pem")
            self.assertIn("50 examples", out)
            for distrustful in ([], ["--tls-ca", self.directory / "other.pem"]):
                _, error = self.run_client(*job, *distrustful, expect=1)
                self.assertIn("UNAVAILABLE", error)

    # ---- Failures ----

    def test_a_server_killed_in_the_middle_of_a_stream_loses_nothing_and_learns_nothing_twice(self):
        lines, step = TRAIN[:2500], 500
        reference = self.reference(lines)
        # Names are appended again and again to the smaller table; each new connection has an empty one.
        for size in (200, 65536):
            with self.subTest(name_table_size=size):
                self.learn_while_the_server_is_killed(f"spam{size}", lines, step, "--name-table-size", size)
                self.assert_same_model(self.model(f"spam{size}"), reference)

    def learn_while_the_server_is_killed(self, name, lines, step, *more):
        # Killed three times and terminated once.
        kills = [signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGKILL]
        with Client(self.server, "learn", name, "-", *CREATE, "--producer", "pipe", "--batch", 20, "--window", 200, *more) as client:
            for i, how in enumerate(kills):
                client.feed(lines[i * step:(i + 1) * step])
                # Killed while the rest of these lines is in flight.
                wait_for("some of them", lambda: self.is_created(name) and self.examples(name) > i * step)
                self.restart_server(how)
            client.feed(lines[len(kills) * step:])
            code, out, error = client.finish()
        self.assertEqual(code, 0, error)
        self.assertGreaterEqual(error.count("the connection was lost; reconnecting: UNAVAILABLE"), len(kills))
        self.assertIn(f"pass 1: {len(lines)} examples", out)

    @only_if("predict" in PROGRAMS)
    def test_a_server_killed_in_the_middle_of_predictions_loses_none(self):
        self.reference(TRAIN)
        test = self.file("test.tsv", TEST)
        with Client(self.server, "predict", "reference", "-", "--scores", "--batch", 20, "--name-table-size", 200) as client:
            client.feed(TEST[:1000])
            self.assertRegex(client.process.stdout.readline(), rb"\t")
            self.restart_server()
            client.feed(TEST[1000:])
            code, out, error = client.finish()
        self.assertEqual(code, 0, error)
        self.assertIn("the connection was lost; reconnecting: UNAVAILABLE", error)
        expected, _ = self.run_client("predict", "reference", test, "--scores")
        self.assertEqual(out.splitlines()[-100:], expected.splitlines()[-100:])

    def is_created(self, name):
        return subprocess.run([PERCEPTRONCTL, "--server", self.server.address, "get", name], capture_output=True).returncode == 0

    def test_a_client_killed_or_interrupted_in_the_middle_continues_at_its_position(self):
        lines = TRAIN[:1200]
        train = self.file("train.tsv", lines)
        reference = self.reference(lines, "--passes", 2)
        job = [*CREATE, "--producer", "train", "--batch", 20, "--window", 100]
        said = []
        for how, learned in ((signal.SIGKILL, 400), (signal.SIGINT, 800)):
            with Client(self.server, "learn", "spam", "-", *job) as client:
                client.feed(lines[:learned])
                wait_for("examples before the end", lambda: self.is_created("spam") and self.examples("spam") > learned - 200)
                client.process.send_signal(how)
                # It ends before its input, whose end would end the pass.
                client.process.wait(timeout=60)
                said.append(client.finish())
        self.assertEqual([code for code, _, _ in said], [-signal.SIGKILL, 130])
        self.assertRegex(said[1][2], r"learn\S*: interrupted; what was answered is learned, and the same command goes on from there\n$")
        self.assertLess(self.examples("spam"), len(lines))
        out, _ = self.run_client("learn", "spam", train, *job, "--passes", 2)
        self.assert_same_model(self.model("spam"), reference)
        self.assertIn("pass 1: 1200 examples", out)
        # Once more: nothing is left to learn.
        self.run_client("learn", "spam", train, *job, "--passes", 2)
        self.assert_same_model(self.model("spam"), reference)

    @only_if("watch" in PROGRAMS)
    def test_an_interrupted_watch_does_not_mention_learning(self):
        self.ctl("create", "rows", "--dimension", 1)
        with Client(self.server, "watch", "rows") as client:
            client.process.stdout.readline()
            client.process.send_signal(signal.SIGINT)
            code, _, error = client.finish()
        self.assertEqual(code, 130)
        self.assertRegex(error, r"^watch\S*: interrupted\n$")

    @only_if("watch" in PROGRAMS)
    def test_a_model_is_watched_across_a_restart_of_the_server(self):
        self.ctl("create", "rows", "--dimension", 1)
        learn = lambda lines: self.ctl("learn", "rows", self.file("rows.svm", lines), "--format", "svmlight", "--index-base", 1)
        with Client(self.server, "watch", "rows", "--interval", "0.05") as client:
            said = lambda: client.process.stdout.readline().decode()
            self.assertEqual(said(), "revision 0: 0 examples, 0 mistakes, 0 updates, learning\n")
            learn([b"+1 1:1\n"])
            self.assertRegex(said(), "^revision 1: 1 examples")
            self.restart_server()
            learn([b"-1 1:1\n"])
            while not re.search("^revision 2: 2 examples", line := said()):
                self.assertRegex(line, "^revision 1: 1 examples")
            self.ctl("delete", "rows")
            code, _, error = client.finish()
        self.assertEqual(code, 1)
        self.assertIn("reconnecting: UNAVAILABLE", error)
        self.assertIn("NOT_FOUND (MODEL_NOT_FOUND)", error)

    # ---- Errors ----

    def test_an_unknown_model_is_an_error_with_its_reason(self):
        _, error = self.run_client("learn", "nothing", self.file("train.tsv", TRAIN[:10]), "--producer", "train", expect=1)
        self.assertRegex(error, r'^learn\S*: NOT_FOUND \(MODEL_NOT_FOUND\): there is no model "models/nothing"')

    def test_a_malformed_line_is_an_error_with_its_file_and_number(self):
        rows = self.file("train.tsv", [b"ham\tgood\n", b"no tab\n"])
        _, error = self.run_client("learn", "spam", rows, *CREATE, "--producer", "train", expect=1)
        self.assertRegex(error, r"train.tsv:2: there is no tab: expected a label, a tab and a text\n")

    def test_an_index_beyond_uint32_or_a_repeated_index_is_an_error_with_its_line(self):
        for wrong, said in ((b"-1 1:-1 4294967298:3\n", '"4294967298:3" is not a feature: expected index:value'), (b"-1 2:1 3:1 2:3\n", "index 1 occurs twice")):
            rows = self.file("rows.svm", [b"+1 1:1 2:-1\n", wrong])
            job = ["rows", rows, "--format", "svmlight"]
            _, error = self.run_client("learn", *job, "--dimension", 5, "--producer", "rows", expect=1)
            self.assertIn(f"rows.svm:2: {said}", error)
            # Its lines count from 1.
            of_ctl = said.replace("index 1", "index 1 (counted from 0)")
            self.assertIn(f"rows.svm:2: {of_ctl}", self.ctl_error("learn", *job, "--index-base", 1))
            if "predict" in PROGRAMS:
                _, error = self.run_client("predict", *job, expect=1)
                self.assertIn(f"rows.svm:2: {said}", error)
        # perceptronctl learned the first lines.
        self.assertEqual(self.model("rows")["weights"]["vectors"][0]["indices"], [0, 1])

    def ctl_error(self, *arguments):
        done = subprocess.run([PERCEPTRONCTL, "--server", self.server.address, *map(str, arguments)], capture_output=True, text=True)
        self.assertNotEqual(done.returncode, 0, done.stdout)
        return done.stderr

    def test_examples_with_validation_errors_are_counted_and_the_others_learned(self):
        rows = self.file("rows.svm", [b"+1 1:1\n", b"-1 3:1\n", b"-1 1:-1\n"])
        _, error = self.run_client("learn", "rows", rows, "--format", "svmlight", "--dimension", 2, "--producer", "rows", expect=3)
        self.assertIn("1 examples had validation errors; the first: line 2: INVALID_ARGUMENT (INDEX_OUT_OF_RANGE): columns.indices[1]", error)
        self.assertEqual(self.examples("rows"), 2)

    def test_an_unreachable_server_is_an_error_after_the_time_to_give_up(self):
        self.server.kill()
        _, error = self.run_client("learn", "spam", self.file("train.tsv", TRAIN[:10]), "--producer", "train", "--give-up-after", "0.3", expect=1)
        self.assertRegex(error, r"(?m)^learn\S*: the connection was lost; reconnecting: UNAVAILABLE.*(\n.*)*^learn\S*: UNAVAILABLE")

    def test_invalid_usage_has_its_own_exit_code(self):
        for wrong in (["--no-such-flag"], ["spam"], ["spam", "/nowhere/train.tsv", "--producer", "train"],
                      ["spam", self.file("train.tsv", TRAIN[:1]), "--producer", "train", "--batch", "0"]):
            with self.subTest(arguments=wrong):
                out, error = self.run_client("learn", *wrong, expect=2)
                self.assertNotEqual(error, "")
                self.assertNotIn("Traceback", error)

    def assert_wrong_usage(self, verb, *arguments, said):
        with self.subTest(verb=verb, arguments=arguments):
            out, error = self.run_client(verb, *arguments, expect=2)
            self.assertEqual(out, "")
            # The last line is the program's own; argparse prints the usage before it.
            self.assertRegex(error.splitlines()[-1], rf"^{verb}\S*: .*{said}")
            self.assertNotRegex(error, r"Traceback|\n +at ")

    def test_numbers_out_of_range_are_invalid_usage(self):
        rows = self.file("rows.svm", [b"+1 1:1\n"])
        job = ["rows", rows, "--format", "svmlight", "--producer", "rows"]
        wrong = {"dimension": ["0", "-5", "4294967301", "99999999999", ""], "batch": ["65537"], "passes": ["1e300"], "window": ["0"], "index-base": ["2"], "give-up-after": ["nan"]}
        for flag, texts in wrong.items():
            for text in texts:
                self.assert_wrong_usage("learn", *job, f"--{flag}={text}", said=f"--{flag}.*expected")
        if "watch" in PROGRAMS:
            for flag, text in (("interval", "nan"), ("interval", "1e300"), ("interval", "0.01"), ("count", "")):
                self.assert_wrong_usage("watch", "rows", f"--{flag}={text}", said=f"--{flag}.*expected")
            self.assert_wrong_usage("predict", "rows", rows, "--batch=0", said="--batch.*expected")
        self.assertFalse(self.is_created("rows"))

    def test_calls_carry_the_trace_that_the_program_is_a_part_of(self):
        train = self.file("train.tsv", TRAIN[:1])
        trace = "4bf92f3577b34da6a3ce929d0e0e4736"
        # Every call counts as slow, so that the log states it.
        with Server(PERCEPTROND, self.directory / "traced", self.directory / "traced.log", ["--slow-call", "1us"]) as server:
            with mock.patch.dict(os.environ, TRACEPARENT=f"00-{trace}-00f067aa0ba902b7-01"):
                self.run_client("learn", "spam", train, *CREATE, "--producer", "p", "--server", server.address)
            for method in ("CreateModel", "LearnStream"):
                server.said(rf"slow call method=\S*/{method} .* trace_id={trace} ")

    def test_a_trace_that_no_header_may_hold_is_left_out(self):
        train = self.file("train.tsv", TRAIN[:1])
        with mock.patch.dict(os.environ, TRACEPARENT="two\nlines"):
            self.run_client("learn", "spam", train, *CREATE, "--producer", "p")

    @only_if("watch" in PROGRAMS)
    def test_the_longest_durations_are_accepted(self):
        self.ctl("create", "rows", "--dimension", 1)
        out, _ = self.run_client("watch", "rows", "--interval", 315576000000, "--give-up-after", 315576000000, "--count", 1)
        self.assertIn("revision 0: 0 examples", out)

    @only_if(LANGUAGE != "node")  # whose command line is already decoded
    def test_arguments_that_are_not_utf8_are_invalid_usage(self):
        train = self.file("train.tsv", TRAIN[:1])
        for arguments in (["\udcff", train, "--producer", "p"], ["m", train, "--producer", "\udcff"], ["m", train, "--producer", "p", "--named", "--labels", "\udcff,b"],
                          ["m", train, "--producer", "p", "--server", "\udcff"]):
            self.assert_wrong_usage("learn", *arguments, said="not valid UTF-8")

    def test_help_describes_the_program_and_its_flags(self):
        for verb, command in PROGRAMS.items():
            out = subprocess.run([*map(str, command), "--help"], check=True, capture_output=True, text=True).stdout
            self.assertIn("--server", out)
            self.assertIn(f"{verb}", out)


if __name__ == "__main__":
    # A shell's background jobs, and their children, ignore SIGINT.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    unittest.main(argv=sys.argv[:1] + sys.argv[4:])
