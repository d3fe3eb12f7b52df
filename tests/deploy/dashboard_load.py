"""A load under which every figure of the dashboard moves: a stream; data that can be separated, and then more of it; rows that are
no rows; calls that fail; more models than fit into memory; drift; more connections, calls and answers than the flags allow; a disk that
fails; a crash, and a start without the end of the log, on a read-only directory."""

import contextlib
import os
import pathlib
import random
import resource
import socket
import struct
import subprocess
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "support"))

from http2_attacks import DATA, END_STREAM, Connection, continuation_flood, frame

DIMENSION = 20
MODEL = "watched.1"
# A regular expression of the first's name has this one, too, unless its dot is escaped.
TWIN = "watched-1"
# Models of 4 * 2^20 bytes, of which two fit.
OTHERS = ["other0", "other1", "other2"]
# Its rows have labels at random: it never stops updating.
HOPELESS = "hopeless"
# So do its members' mistakes and votes.
AUTO = "auto"
# Its labels come later, or too late.
DELAYED = "delayed"
# Expires.
UNUSED = "unused"
# An answer with their weights has 40 KB, for which the server reserves 64 KiB, or 1 MB. A client may take a second to receive the first
# (--write-timeout), and a quarter of a minute for the second: enough time for WIDEST_CALLS of them to exceed the memory budget.
WIDE = "wide"
WIDEST = "widest"
DIMENSIONS = {WIDE: 5000, WIDEST: 1 << 17}
WIDEST_CALLS = 24
MAX_CALLS = 50
MAX_CONNECTIONS = 20
SERVER_FLAGS = ["--memory-budget", "16MiB", "--snapshot-bytes", "4KiB", "--write-timeout", "1s", "--max-connections", str(MAX_CONNECTIONS),
                "--max-streams-per-connection", str(MAX_CALLS)]


def obeying_file_modes(binary, directory):
    """The program; for root a script that runs it without root's right to ignore file modes."""
    if os.geteuid() != 0:
        return binary
    program = pathlib.Path(directory) / "perceptrond"
    program.write_text(f'#!/bin/sh\nexec setpriv --bounding-set=-dac_override "{pathlib.Path(binary).resolve()}" "$@"\n')
    program.chmod(0o755)
    return program


class Load:
    """`seen` takes an expression and returns once Prometheus has an answer to it."""

    def __init__(self, ctl, server, directory, seen):
        self.ctl = ctl
        self.server = server
        self.directory = pathlib.Path(directory)
        self.store = self.directory / "store"
        self.seen = seen
        self.random = random.Random(1)
        self.separator = [self.random.gauss(0, 1) for _ in range(DIMENSION)]
        self.sent = 0

    def command(self, *arguments):
        return [self.ctl, "--server", self.server.address, *map(str, arguments)]

    def call(self, *arguments, expect=(0,)):
        done = subprocess.run(self.command(*arguments), capture_output=True, text=True)
        if done.returncode not in expect:
            raise AssertionError(f"perceptronctl {arguments}: {done.returncode}\n{done.stdout}{done.stderr}")
        return done

    def create(self):
        self.call("create", MODEL, "--dimension", DIMENSION, "--store-sample", 100000, "--margin-of-interest", 0.0001)
        self.call("create", TWIN, "--dimension", DIMENSION)
        self.call("create", HOPELESS, "--dimension", DIMENSION, "--store-updates", 100)
        self.call("create", AUTO, "--dimension", DIMENSION, "--learner", "auto")
        self.call("create", DELAYED, "--dimension", DIMENSION, "--keep-predictions", "4s")
        for name, dimension in DIMENSIONS.items():
            self.call("create", name, "--dimension", dimension, "--store-updates", 0)
            self.learn("+1" + "".join(f" {i}:1" for i in range(dimension)) + "\n", "--unnumbered", model=name)
        for name in OTHERS:
            self.call("create", name, "--hash-bits", 20)

    def rows(self, count, margin=0.0, scale=1.0, flipped=False, chance=False):
        """Lines in svmlight form, separated with at least this margin, of this size; labels changed over, or by chance."""
        lines = []
        while len(lines) < count:
            x = [self.random.uniform(-1, 1) * scale for _ in range(DIMENSION)]
            score = sum(a * b for a, b in zip(self.separator, x))
            if abs(score) < margin * scale:
                continue
            positive = self.random.random() < 0.5 if chance else (score > 0) != flipped
            lines.append(("+1" if positive else "-1") + "".join(f" {i}:{value:.5f}" for i, value in enumerate(x)) + "\n")
        return "".join(lines)

    def learn(self, text, *flags, model=MODEL, expect=(0,), batch=20):
        path = self.directory / "rows.svm"
        path.write_text(text)
        return self.call("learn", model, path, "--index-base", 0, "--batch", batch, *flags, expect=expect)

    # ---- Once, before anything else: they need a model that knows nothing of passes, or of contradictions. ----

    def stream(self):
        """A producer that sends on and on: the dashboard shows its answers and its open stream."""
        command = self.command("learn", MODEL, "-", "--format", "svmlight", "--index-base", 0, "--batch", 20, "--unnumbered")
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as producer:
            for examples in (2000, 2500, 3000):
                producer.stdin.write(self.rows(examples - self.sent, 2))
                producer.stdin.flush()
                self.sent = examples
                self.seen(f'perceptrond_model_examples_total{{model_name="{MODEL}"}} == {examples} and perceptrond_model_error_ceiling_ratio')
        if producer.returncode != 0:
            raise AssertionError(f"the stream ended with {producer.returncode}")

    def separable(self, step):
        """More examples, larger ones that lie closer to the boundary: another floor, another bound, another best margin. Then the
        same again, which are known. The analysis is of everything there is, until more comes."""
        text = self.rows(150, 1.0 / (1 + step), 1 + 0.2 * step)
        producer = f"pass{step}"
        self.learn(text, "--analyze", "--producer", producer, "--start-offset", 0)
        self.seen("perceptrond_model_updates_left" + ("" if step == 0 else " > 0"))
        # Once it has converged none are left.
        self.learn(text, "--until-converged", "--producer", producer)
        self.learn(text, "--producer", producer, "--start-offset", 0)
        self.seen("perceptrond_model_updates_left == 0 and perceptrond_model_margin_floor"
                  + ("" if step == 0 else " and changes(perceptrond_model_updates_left[5m]) > 0"))

    # ---- Again and again. ----

    def endpoint(self):
        host, port = self.server.address.rsplit(":", 1)
        return host, int(port)

    @contextlib.contextmanager
    def unread(self, model, calls):
        """A client that asks for the model's weights this many times and reads no answer. Without window updates of HTTP/2 it has room for
        64 KiB of them."""
        name = f"models/{model}".encode()
        # GetModelRequest: name, and MODEL_VIEW_WEIGHTS.
        request = b"\x0a" + bytes([len(name)]) + name + b"\x10\x02"
        with Connection(self.endpoint()) as connection:
            for _ in range(calls):
                stream = connection.open_stream("/perceptron.v1.ModelService/GetModel")
                connection.send(frame(DATA, END_STREAM, stream, b"\x00" + struct.pack(">I", len(request)) + request))
            yield

    def slow_clients(self):
        """The server refuses the calls beyond a connection's limit, and ends the others, whose answers take more than an eighth of the
        memory budget. It refuses larger answers that do not fit the budget."""
        # GetModel has some calls beyond the limit.
        with self.unread(WIDE, MAX_CALLS + 40):
            self.seen("sum(perceptrond_calls_refused_total) > 0")
            self.seen("perceptrond_slow_consumers_total > 0")
        with self.unread(WIDEST, WIDEST_CALLS):
            self.seen("sum(perceptrond_memory_refusals_total) > 0")

    def connections(self):
        """More connections than --max-connections, which the server refuses, and one with endless headers, which it closes."""
        with contextlib.ExitStack() as connections:
            for _ in range(MAX_CONNECTIONS + 10):
                connections.enter_context(socket.create_connection(self.endpoint(), timeout=10))
            self.seen("sum(perceptrond_connections_refused_total) > 0")
        # Calls have room again.
        self.seen("perceptrond_connections_open < 5")
        with Connection(self.endpoint()) as connection:
            continuation_flood(connection, seconds=10, limit=4 << 20)
            self.seen("sum(perceptrond_connections_closed_total) > 0")

    def malformed(self):
        """A feature beyond the dimension."""
        self.learn(self.rows(20, 1) + f"+1 {DIMENSION + 5}:1\n" * 20, "--unseen-indices", "refuse", expect=(3,))

    def unary(self):
        """Calls that are answered, and one that is not: there is no such model."""
        for _ in range(5):
            self.call("get", MODEL)
        self.call("list")
        self.call("get", "nobody", expect=(1,))

    def others(self):
        """Each in turn: they do not fit into memory together, and the watched one leaves it too."""
        for name in OTHERS + OTHERS:
            self.learn("+1 1:1 2:1\n-1 1:1 3:1\n", "--unnumbered", model=name)
        self.call("get", MODEL)

    def drift(self):
        """Much of one kind, then the opposite."""
        self.learn(self.rows(1500, 1), "--unnumbered", batch=50)
        self.learn(self.rows(600, 1, flipped=True), "--unnumbered", batch=50)

    def busy(self):
        """Many small messages, each with updates that somebody waits for."""
        self.learn(self.rows(4000, chance=True), "--unnumbered", model=HOPELESS, batch=1)

    def members(self):
        """Members of `auto` that are wrong, lose votes and are retired."""
        # Only a model in memory has them, and only what a scrape has seen before is a rate.
        self.call("get", AUTO)
        self.seen(f'perceptrond_model_member_mistakes_total{{model_name="{AUTO}"}}')
        self.learn(self.rows(2000, 1) + self.rows(500, chance=True), "--unnumbered", model=AUTO)

    def later_labels(self):
        """Every other prediction gets its label; the others expire."""
        path = self.directory / "labels.csv"
        (self.directory / "unlabelled.svm").write_text(self.rows(40))
        predicted = self.call("predict", DELAYED, self.directory / "unlabelled.svm", "--index-base", 0, "--ids", "--quiet").stdout
        path.write_text("".join(line.split("\t")[-1] + ",1\n" for line in predicted.splitlines()[::2]))
        self.seen("perceptrond_predictions_waiting > 0")
        # Some may have expired by now.
        self.call("learn", DELAYED, path, "--format", "ids", "--quiet", expect=(0, 3))
        # A crash would end those that wait.
        self.seen("perceptrond_predictions_expired_total > 0")

    def expiry(self):
        """A model that nobody uses."""
        # A journal without its end may have it again.
        self.call("create", UNUSED, "--dimension", 1, "--expire-after", "1s", expect=(0, 1))
        self.seen("perceptrond_models_expired_total > 0")

    def again(self):
        for step in (self.slow_clients, self.connections, self.malformed, self.unary, self.others, self.busy, self.members, self.later_labels, self.expiry,
                     self.drift, self.unary):
            step()

    def journal(self):
        """The file that the journal is being written to."""
        return max(self.store.glob("*.log"), key=lambda path: path.stat().st_mtime)

    def failing_disk(self):
        """The journal's file may grow by a few records, not by a snapshot: that fails, then every update, until a restart. Returns the
        file, and the size that it had before the last acknowledged updates."""
        journal = self.journal()
        size = journal.stat().st_size
        self.learn(self.rows(20, chance=True), "--unnumbered", model=HOPELESS)
        limit = self.journal().stat().st_size + (16 << 10)
        resource.prlimit(self.server.process.pid, resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
        while self.learn(self.rows(20, chance=True), "--unnumbered", "--timeout", 2, model=HOPELESS, expect=(0, 1, 4)).returncode == 0:
            pass
        return journal, size

    def damage(self, journal, size):
        """Cuts the killed server's log to this size, or, if a new file was begun since, all of that; and makes the directory read-only.
        With --accept-data-loss the next server starts and answers reads."""
        last = self.journal()
        os.truncate(last, size if last == journal else 0)
        self.store.chmod(0o500)

    def recover(self):
        """Once Prometheus has seen that, makes the directory writable. The next update ends the server's read-only state."""
        self.seen("perceptrond_journal_lost_writes > 0 and perceptrond_journal_read_only == 1")
        self.store.chmod(0o700)
        self.learn(self.rows(20, chance=True), "--unnumbered", model=HOPELESS)
