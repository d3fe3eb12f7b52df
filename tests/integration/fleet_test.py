"""Three servers over three nats-servers learn one model from streams of perceptronctl that arrive at all of them, while servers end
and start: every example is learned at most once, every update is kept, and all servers end with the same model. fleet/ has the other
faults.

    python3 fleet_test.py PERCEPTROND PERCEPTRONCTL
"""

import contextlib
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/deploy")]

from processes import Program, await_jetstream, await_settled, free_ports, get, logs_on_failure, wait_for

# The large data sets, which the project does not carry.
DATA = pathlib.Path(os.environ.get("PERCEPTROND_DATA", ROOT.parent / "shared/data"))
# Of the mushrooms: (R / margin)^2 with the best margin there is.
MUSHROOM_BOUND = 308
SPAM = ROOT / "deploy/data/sms_spam.tsv"
SERVERS = 3
# A server that is silent for this time is taken for dead.
TIMEOUT_SECONDS = 1
# Each stream's examples, and how often it sends them: some seconds.
COPIES = 60
PASSES = 20
# The part of all rows, correct ones, that streams send at most until a server tells the writer of them, or until another is the
# writer.
MOST_LOST = 0.2


class Nats:
    """A cluster of nats-servers, each with a directory of its own."""

    def __init__(self, directory):
        self.directory = directory
        ports = free_ports(3 * SERVERS)
        self.ports, self.routes, self.monitors = ports[:SERVERS], ports[SERVERS : 2 * SERVERS], ports[2 * SERVERS :]
        self.programs = [None] * SERVERS
        routes = ", ".join(f"nats-route://127.0.0.1:{port}" for port in self.routes)
        for i in range(SERVERS):
            (directory / f"nats{i}.conf").write_text(
                f'server_name: n{i}\nlisten: 127.0.0.1:{self.ports[i]}\nhttp: 127.0.0.1:{self.monitors[i]}\n'
                f'jetstream {{ store_dir: "{directory}/nats{i}", max_mem: 64M, max_file: 1G }}\n'
                f"cluster {{ name: c, listen: 127.0.0.1:{self.routes[i]}, routes: [{routes}] }}\n")
            self.start(i)

    def start(self, i):
        self.programs[i] = Program(["nats-server", "-c", self.directory / f"nats{i}.conf"], self.directory / f"nats{i}.log")

    def await_ready(self):
        with logs_on_failure(self.directory):
            await_jetstream([f"127.0.0.1:{port}" for port in self.monitors])

    def url(self):
        return ",".join(f"nats://127.0.0.1:{port}" for port in self.ports)

    def kill(self):
        for program in self.programs:
            program.kill()


class FleetTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.stack = contextlib.ExitStack()
        cls.addClassCleanup(cls.stack.close)
        cls.directory = pathlib.Path(cls.stack.enter_context(tempfile.TemporaryDirectory(prefix="perceptrond-fleet.")))
        cls.nats = Nats(cls.directory)
        cls.stack.callback(cls.nats.kill)
        cls.nats.await_ready()
        ports = free_ports(3 * SERVERS)
        cls.ports = [ports[3 * i : 3 * i + 3] for i in range(SERVERS)]
        cls.programs = [None] * SERVERS
        cls.stack.callback(lambda: [program.kill() for program in cls.programs])
        for i in range(SERVERS):
            cls.start(i)
        rows = SPAM.read_text().splitlines(keepends=True)[1:]
        (cls.directory / "rows.tsv").write_text("".join(rows))
        cls.streams = [rows[i::SERVERS] * COPIES for i in range(SERVERS)]
        for i, stream in enumerate(cls.streams):
            (cls.directory / f"stream{i}.tsv").write_text("".join(stream))
        for i in range(SERVERS):
            cls.serving(i)

    @classmethod
    def start(cls, i):
        serve, fleet, metrics = cls.ports[i]
        cls.programs[i] = Program(
            [PERCEPTROND, "--journal", cls.nats.url(), "--fleet-partitions", 4, "--fleet-timeout", f"{TIMEOUT_SECONDS}s",
             "--address", f"127.0.0.1:{serve}", "--fleet-address", f"127.0.0.1:{fleet}", "--metrics-address", f"127.0.0.1:{metrics}"],
            cls.directory / f"server{i}.log")

    @classmethod
    def serving(cls, i):
        def serves():
            if cls.programs[i].process.poll() is not None:
                raise AssertionError(f"server {i} ended:\n" + cls.programs[i].log.read_text()[-4000:])
            return cls.ctl(i, "health").returncode == 0

        wait_for(f"server {i} serves", serves)

    @classmethod
    def ctl(cls, i, *arguments):
        command = [PERCEPTRONCTL, "--server", f"127.0.0.1:{cls.ports[i][0]}", *map(str, arguments)]
        return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)

    @classmethod
    def addresses(cls, i):
        """Those of all servers, beginning with this one."""
        return ",".join(f"127.0.0.1:{cls.ports[(i + k) % SERVERS][0]}" for k in range(SERVERS))

    def answer(self, i, *arguments):
        said = self.ctl(i, *arguments)
        self.assertEqual(said.returncode, 0, said.stderr)
        return said.stdout

    def report(self, i, model):
        return json.loads(self.answer(i, "get", model, "-o", "json"))

    def writer(self, model):
        """Which server writes the model: the one whose metrics say so."""

        def find():
            for i in range(SERVERS):
                page = get(f"http://127.0.0.1:{self.ports[i][2]}/metrics") or ""
                if f'perceptrond_model_written{{model_name="{model}"}} 1\n' in page:
                    return (i,)
            return None

        return wait_for(f"{model} has a writer", find)[0]

    def metrics(self, name):
        """A figure of each server; None while one does not answer."""
        pages = [get(f"http://127.0.0.1:{ports[2]}/metrics") or "" for ports in self.ports]
        values = [line.rpartition(" ")[2] for page in pages for line in page.splitlines() if line.startswith(name + " ")]
        return [float(value) for value in values] if len(values) == SERVERS else None

    def learn_during(self, model, fail, loses=True):
        """A stream at each server, with a producer of its own; fails the fleet meanwhile; checks what came of it. `loses`:
        correct rows that were evaluated just before a server ended, or a commit failed, may be missing from the counts."""
        if not loses:
            # A server that hands a partition over may lose counts, too.
            await_settled([f"127.0.0.1:{ports[2]}" for ports in self.ports], 3 * TIMEOUT_SECONDS)
        wait_for(f"{model} is created", lambda: self.ctl(0, "create", model, "--named", "--labels", "ham,spam").returncode == 0)
        streams = []
        for i in range(SERVERS):
            log = self.directory / f"{model}{i}.log"
            command = [PERCEPTRONCTL, "--server", self.addresses(i), "learn", model, self.directory / f"stream{i}.tsv", "--producer", f"p{i}", "--start-offset", 0, "--passes", PASSES]
            streams.append(self.enterContext(Program(command, log)))
        wait_for("they learn", lambda: int(self.report(0, model)["report"].get("examples", 0)) > 0)
        fail(model)
        for i, stream in enumerate(streams):
            self.assertEqual(stream.process.wait(120), 0, stream.log.read_text())
        self.check(model, loses)

    def check(self, model, loses):
        expected = PASSES * sum(map(len, self.streams))
        for i in range(SERVERS):
            self.serving(i)
        report = self.report(0, model)
        examples = int(report["report"]["examples"])
        print(f"{model}: {expected - examples} of {expected} correct rows were not counted", flush=True)
        self.assertLessEqual(examples, expected)
        self.assertGreaterEqual(examples, (1 - (MOST_LOST if loses else 0)) * expected)
        self.assertGreater(int(report["revision"]), 0)
        # A server's own copy has what the writer has soon after.
        rows = ("predict", model, self.directory / "rows.tsv", "--format", "text", "-o", "json", "--min-revision", report["revision"])
        wait_for("all have its revision", lambda: all(self.ctl(i, *rows).returncode == 0 for i in range(SERVERS)))
        answers = {self.answer(i, *rows) for i in range(SERVERS)}
        self.assertEqual(len(answers), 1)
        # What is in the journal is what they have.
        self.assertEqual([self.report(i, model) for i in range(SERVERS)], [report] * SERVERS)

    def restart(self, i, by):
        self.programs[i].process.send_signal(by)
        self.programs[i].process.wait(60)
        self.start(i)
        self.serving(i)

    def test_nothing_fails(self):
        # A server that a busy machine lets stand still is taken for dead: another stream then.
        for attempt in range(3):
            before = self.take_overs()
            try:
                return self.learn_during(f"calm{attempt}", lambda model: None, loses=False)
            except AssertionError:
                if self.take_overs() == before:
                    raise
        self.fail("servers took over from one another each time")

    def take_overs(self):
        return wait_for("all have metrics", lambda: self.metrics("perceptrond_fleet_take_overs_total"))

    def test_the_writer_is_killed(self):
        self.learn_during("killed", lambda model: self.restart(self.writer(model), signal.SIGKILL))

    def test_servers_restart_one_after_the_other(self):
        self.learn_during("rolling", lambda model: [self.restart(i, signal.SIGTERM) for i in range(SERVERS)])

    @unittest.skipUnless((DATA / "agaricus.train").exists(), "set PERCEPTROND_DATA to the directory of the shared data sets")
    def test_mushrooms_at_three_servers_converge_within_the_bound_of_one_perceptron(self):
        wait_for("it is created", lambda: self.ctl(0, "create", "mushrooms", "--dimension", 127).returncode == 0)
        rows = (DATA / "agaricus.train").read_text().splitlines(keepends=True)
        (self.directory / "mushrooms.svm").write_text("".join(rows))
        streams = []
        for i in range(SERVERS):
            random.Random(i).shuffle(rows)
            (self.directory / f"mushrooms{i}.svm").write_text("".join(rows))
            command = [PERCEPTRONCTL, "--server", f"127.0.0.1:{self.ports[i][0]}", "learn", "mushrooms",
                       self.directory / f"mushrooms{i}.svm", "--format", "svmlight", "--index-base", 1, "--producer", f"p{i}",
                       "--start-offset", 0, "--passes", 30]
            streams.append(self.enterContext(Program(command, self.directory / f"mushrooms{i}.log")))
        for stream in streams:
            self.assertEqual(stream.process.wait(120), 0, stream.log.read_text())
        report = self.report(0, "mushrooms")
        self.assertEqual(report["report"]["state"], "CONVERGENCE_STATE_CONVERGED")
        # Of a young fleet, which is still sharing its partitions out.
        self.assertLessEqual(int(report["report"]["examples"]), 30 * SERVERS * len(rows))
        self.assertGreaterEqual(int(report["report"]["examples"]), (1 - MOST_LOST) * 30 * SERVERS * len(rows))
        self.assertLessEqual(int(report["report"]["updates"]), MUSHROOM_BOUND)
        alone = self.updates_alone(rows)
        print(f"mushrooms: {report['report']['updates']} updates; by one server {min(alone)} to {max(alone)}", flush=True)
        # Of 21 equal draws one of the fleet is outside the range of the others in two of 21 runs: half a range more.
        half = (max(alone) - min(alone)) / 2
        self.assertGreaterEqual(int(report["report"]["updates"]), min(alone) - half)
        self.assertLessEqual(int(report["report"]["updates"]), max(alone) + half)
        # CONVERGED is right, and no pass anywhere changes anything any more.
        answers = {self.answer(i, "predict", "mushrooms", self.directory / "mushrooms.svm", "--format", "svmlight", "--index-base",
                               1, "--summary", "-o", "json", "--min-revision", report["revision"]) for i in range(SERVERS)}
        self.assertEqual([json.loads(answer)["errors"] for answer in answers], ["0"])
        # Each server's copy has the same weights: the scores of each feature alone.
        (self.directory / "units.svm").write_text("".join(f"1 {i}:1\n" for i in range(1, 128)))
        scores = {self.answer(i, "predict", "mushrooms", self.directory / "units.svm", "--format", "svmlight", "--index-base", 1, "-o", "json",
                              "--min-revision", report["revision"]) for i in range(SERVERS)}
        self.assertEqual(len(scores), 1)
        weights = self.weights("mushrooms")
        for i in range(SERVERS):
            self.answer(i, "learn", "mushrooms", self.directory / "mushrooms.svm", "--format", "svmlight", "--index-base", 1,
                        "--unnumbered")
        self.assertEqual(self.report(0, "mushrooms")["revision"], report["revision"])
        # The log has all of it.
        for i in range(SERVERS):
            self.restart(i, signal.SIGTERM)
        self.assertEqual(self.weights("mushrooms"), weights)

    def updates_alone(self, rows):
        """Of one server, for 20 orders of the rows, until it converges."""
        address = f"127.0.0.1:{free_ports(1)[0]}"
        alone = self.enterContext(Program([PERCEPTROND, "--journal", "memory", "--address", address, "--metrics-address", "off"], self.directory / "alone.log"))

        def answer(*arguments):
            done = subprocess.run([PERCEPTRONCTL, "--server", address, *map(str, arguments)], stdin=subprocess.DEVNULL, capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            return done.stdout

        alone.said("serving")
        updates = []
        for order in range(20):
            random.Random(100 + order).shuffle(rows)
            (self.directory / "order.svm").write_text("".join(rows))
            answer("create", f"order{order}", "--dimension", 127)
            answer("learn", f"order{order}", self.directory / "order.svm", "--format", "svmlight", "--index-base", 1, "--passes", 30, "--until-converged")
            updates.append(int(json.loads(answer("get", f"order{order}", "-o", "json"))["report"]["updates"]))
        return updates

    def weights(self, model):
        return json.loads(self.answer(0, "get", model, "--weights", "-o", "json"))["weights"]


if __name__ == "__main__":
    PERCEPTROND, PERCEPTRONCTL = sys.argv[1:3]
    unittest.main(argv=[sys.argv[0], "-v", *sys.argv[3:]])
