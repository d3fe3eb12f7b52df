"""The dashboard's row of a fleet, asked of a real Prometheus that scrapes three real servers over three nats-servers: each query returns
data, and none is a constant. And figures of a model, which each of its servers has, count once.

    python3 fleet_dashboard_test.py PERCEPTROND PERCEPTRONCTL        # as root; needs nats-server, prometheus, openssl
"""

import contextlib
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import yaml

from containers import Compose, enter_network, serving
from dashboards import Asker, panels_of, queries, write_config
from deployed import DEPLOY
from processes import Program, Prometheus, get, wait_for

SERVERS = ["perceptrond1", "perceptrond2", "perceptrond3"]
NATS = ["nats1", "nats2", "nats3"]
# The first converges, and servers evaluate its rows where they arrive. A third of the others' labels is wrong: each commit of their
# writer has entries of all.
CALM = "calm"
MODELS = [CALM, "noisy1", "noisy2", "noisy3"]
DEADLINE_SECONDS = 150


class FleetDashboardTest(unittest.TestCase):
    def setUp(self):
        self.stack = self.enterContext(contextlib.ExitStack())
        self.directory = pathlib.Path(self.stack.enter_context(tempfile.TemporaryDirectory(prefix="perceptrond-fleet-dashboard.")))
        subprocess.run(["sh", DEPLOY / "fleet/certificates.sh", self.directory / "certificates"], check=True)
        self.compose = Compose(DEPLOY / "fleet/compose.yaml", PERCEPTROND, self.directory, self.directory / "certificates")
        self.programs = {}
        self.paused = None
        self.stack.callback(lambda: [program.kill() for program in self.programs.values()])
        for name in [*NATS, *SERVERS]:
            self.start(name)
        for name in SERVERS:
            serving(self.programs[name], lambda name=name: self.ctl(name, "health").returncode == 0)
        config = write_config(self.directory, [f"{name}:7601" for name in SERVERS])
        prometheus = self.stack.enter_context(Prometheus(config, self.directory / "tsdb", self.directory / "prometheus.log"))
        self.asker = Asker(prometheus.url)
        for model in MODELS:
            (self.directory / model).write_text(self.rows(2000, 1000 if model == CALM else 3))

    @staticmethod
    def rows(count, wrong):
        """One label in `wrong` is wrong."""
        sign = lambda i: (1 if i % 2 else -1) * (1 if i % wrong else -1)
        return "".join(f"{sign(i):+d} 0:{1 if i % 2 else -1} {1 + i % 50}:1\n" for i in range(count))

    def start(self, name):
        container = self.compose.container(name)
        if name in SERVERS:
            # Models of one partition: what a writer commits has an entry of each.
            container.environment |= {"PERCEPTROND_FLEET_PARTITIONS": "1"}
        self.programs[name] = container.start(self.directory / f"{name}.log")

    @staticmethod
    def ctl(name, *arguments):
        return subprocess.run([PERCEPTRONCTL, "--server", f"{name}:7600", *map(str, arguments)], stdin=subprocess.DEVNULL, capture_output=True, text=True)

    def stream(self, model, name):
        """Learns on and on, at whichever server is there."""
        others = ",".join(f"{one}:7600" for one in [name, *(other for other in SERVERS if other != name)])
        # The majority may be lost for a minute.
        command = [PERCEPTRONCTL, "--server", others, "--timeout", 300, "learn", model, self.directory / model, "--format", "svmlight",
                   "--index-base", 0, "--batch", 50, "--passes", 1000000, "--producer", name, "--start-offset", 0]
        return self.stack.enter_context(Program(command, self.directory / f"{model}-{name}.log"))

    def writer(self):
        """As the servers say; a paused one says nothing."""
        return wait_for("a server writes", lambda: [name for name in SERVERS if name != self.paused and "\nperceptrond_fleet_partitions_written 1\n" in (
            get(f"http://{name}:7601/metrics") or "")])[0]

    @contextlib.contextmanager
    def pause(self, name):
        self.paused = name
        self.programs[name].process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self.programs[name].process.send_signal(signal.SIGCONT)
            self.paused = None

    def pause_a_follower(self):
        """Again and again, for less than it takes to be missed: each time it has something to read when it goes on, and the first scrape
        after that may find it reading."""
        writer = self.writer()
        follower = next(name for name in SERVERS if name != writer)
        for _ in range(20):
            with self.pause(follower):
                before = self.appended(writer)
                wait_for("something is appended", lambda: self.appended(writer) > before + 20)
            wait_for("it goes on", lambda: self.metrics_of_a_running(follower))

    def metrics_of_a_running(self, name):
        program = self.programs[name]
        self.assertIsNone(program.process.poll(), program.log.read_text(errors="replace")[-3000:])
        return get(f"http://{name}:7601/metrics")

    @staticmethod
    def appended(name):
        return int(re.search(r"\nperceptrond_journal_commits_total (\d+)\n", get(f"http://{name}:7601/metrics"))[1])

    def pause_the_writer(self):
        """Until another has taken over: then it writes what it was about to."""
        with self.pause(self.writer()):
            self.writer()

    def lose_the_majority(self):
        for name in NATS[1:]:
            self.programs[name].kill()
        self.asker.seen("perceptrond_fleet_partitions_without_quorum > 0")
        for name in NATS[1:]:
            self.start(name)
        self.asker.seen("max(perceptrond_fleet_partitions_without_quorum) == 0")

    def test_every_query_returns_data_and_none_is_a_constant_and_models_count_once(self):
        for model in MODELS:
            wait_for("it is created", lambda model=model: self.ctl("perceptrond1", "create", model, "--dimension", 60).returncode == 0)
        streams = [self.stream(CALM, name) for name in SERVERS] + [self.stream(model, name) for model, name in zip(MODELS[1:], SERVERS)]
        self.asker.seen("sum(perceptrond_model_examples_total) > 0")
        asked = queries(panels_of("Fleet"), MODELS[0])
        deadline = time.monotonic() + DEADLINE_SECONDS
        stale = {which for which, query in asked.items() if "superseded" in query}
        while asked and time.monotonic() < deadline:
            if asked.keys() - stale:
                self.pause_a_follower()
            self.pause_the_writer()
            if asked.keys() - stale:
                self.lose_the_majority()
            asked = self.asker.unmoved(asked)
        # Whether a paused writer was about to write is up to chance.
        missed = asked.keys() <= stale and asked
        self.assertTrue(not asked or missed, "\n".join(self.asker.describe(asked)))
        self.assertEqual([stream.process.poll() for stream in streams], [None] * len(streams), [stream.log.read_text()[-500:] for stream in streams])
        if missed:
            print("not seen:", sorted(asked))
        else:
            self.asker.seen('max_over_time(ALERTS{alertname="PerceptrondFleetStaleEpoch", alertstate="firing"}[10m])')
        for stream in streams:
            stream.kill()
        self.models_count_once()
        self.the_adapter_s_rule_finds_each_server()

    def models_count_once(self):
        """Once no more comes."""
        reports = {}

        def settled():
            before = dict(reports)
            for model in MODELS:
                said = self.ctl("perceptrond1", "get", model, "-o", "json")
                if said.returncode == 0:
                    reports[model] = int(json.loads(said.stdout)["report"]["examples"])
            return len(reports) == len(MODELS) and reports == before

        wait_for("the counts stay", settled)
        (total,) = [target["expr"] for panel in panels_of("Service") if panel["title"] == "Examples" for target in panel["targets"]]
        counters = re.sub(r"rate\((.*?)\[\$__rate_interval\]\)", r"\1", total).replace("$instance", ".+")
        examples = sum(reports.values())
        wait_for("the dashboard's sum is that of the reports", lambda: [int(one["value"][1]) for one in self.asker.now(counters)] == [examples])
        self.asker.seen(f"sum(perceptrond_model_examples_total) > 2 * {examples}")
        for which, query in queries(panels_of("Model $model"), MODELS[0]).items():
            # Two servers may say for a scrape that they write it.
            wait_for(f"a figure comes once: {which}", lambda query=query: self.is_once(query))
        (models,) = [queries([panel], "")[f"{panel['id']} Models A"] for panel in panels_of("Service") if panel["title"] == "Models"]
        self.assertEqual([one["value"][1] for one in self.asker.now(models)], [str(len(MODELS))])

    def is_once(self, query):
        figures = [tuple(sorted((name, value) for name, value in one["metric"].items() if name not in ("instance", "__name__")))
                   for one in self.asker.now(query)]
        return len(figures) == len(set(figures))

    def the_adapter_s_rule_finds_each_server(self):
        """With the labels that the servers have here in the place of a cluster's."""
        (rule,) = yaml.safe_load((DEPLOY / "fleet/kubernetes/adapter-values.yaml").read_text())["rules"]["custom"]
        query = rule["metricsQuery"]
        for word, value in {"<<.Series>>": rule["seriesQuery"].split("{")[0], "<<.LabelMatchers>>": 'job="perceptrond"', "<<.GroupBy>>": "instance"}.items():
            query = query.replace(word, value)
        self.assertEqual({one["metric"]["instance"] for one in self.asker.now(query)}, {f"{name}:7601" for name in SERVERS})


if __name__ == "__main__":
    PERCEPTROND, PERCEPTRONCTL = (str(pathlib.Path(path).resolve()) for path in sys.argv[1:3])
    if os.geteuid() != 0:
        sys.exit("fleet_dashboard_test.py needs root: it mounts, and makes another user's files")
    enter_network([*NATS, *SERVERS])
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
