"""An example client that knows two servers of a fleet: it goes on at a model's writer once most of its rows were forwarded there, and
at the other server when one dies or answers no more.

    python3 fleet_test.py LANGUAGE PERCEPTROND PERCEPTRONCTL
"""

import random
import re
import signal
import sys
import unittest

from examples_fixture import CREATE, LANGUAGE, PERCEPTROND, TRAIN, Client, ExamplesFixture, only_if
from processes import Program, await_settled, free_ports, get, wait_for

# Many more rows than a client sends before its first answers.
COPIES = 20
# Three times as long as a new server waits for its share of the partitions.
QUIET_SECONDS = 5


class FleetTest(ExamplesFixture):
    def setUp(self):
        super().setUp()
        ports = free_ports(7)
        nats = ports.pop()
        config = self.directory / "nats.conf"
        config.write_text(f'listen: 127.0.0.1:{nats}\njetstream {{ store_dir: "{self.directory}/nats" }}\n')
        self.enterContext(Program(["nats-server", "-c", config], self.directory / "nats.log"))
        self.servers = []
        for i in range(2):
            address, fleet, metrics = (f"127.0.0.1:{ports.pop()}" for _ in range(3))
            server = self.enterContext(Program(
                [PERCEPTROND, "--journal", f"nats://127.0.0.1:{nats}", "--fleet-replicas", 1, "--fleet-partitions", 1, "--fleet-timeout", "1s",
                 "--address", address, "--fleet-address", fleet, "--metrics-address", metrics], self.directory / f"server{i}.log"))
            server.said("info serving ")
            server.address, server.metrics = address, metrics
            self.servers.append(server)
        # The first server hands its partition over to the second, if that comes first in the partition's order.
        await_settled([server.metrics for server in self.servers], QUIET_SECONDS)

    def metric(self, server, name):
        lines = (get(f"http://{server.metrics}/metrics") or "").splitlines()
        return next((float(line.split()[-1]) for line in lines if line.startswith(name + " ")), 0.0)

    def learning_streams(self, server):
        """How many are open."""
        page = get(f"http://{server.metrics}/metrics")
        started, handled = (sum(map(float, re.findall(rf'^grpc_server_{what}_total{{.*"LearnStream".*}} (\S+)$', page, re.MULTILINE)))
                            for what in ("started", "handled"))
        return started - handled

    def writer_and_follower(self):
        writes = lambda server: self.metric(server, "perceptrond_fleet_partitions_written") == 1
        writer = wait_for("a server writes the model", lambda: next(filter(writes, self.servers), None))
        return writer, self.servers[1 - self.servers.index(writer)]

    def test_goes_on_at_the_writer_and_then_at_the_server_that_is_left(self):
        writer, follower = self.writer_and_follower()
        self.server.address = f"{follower.address},{writer.address}"
        # Random labels: nearly every message has updates.
        generator = random.Random(17)
        rows = [generator.choice((b"ham\t", b"spam\t")) + line.split(b"\t", 1)[1] for line in TRAIN] * COPIES
        half = len(rows) // 2
        with Client(self.server, "learn", "noise", "-", *CREATE, "--producer", "p", "--batch", 64, "--window", 512) as client:
            client.feed(rows[:half])
            wait_for("most of the rows are learned", lambda: self.examples("noise") > half - 2000)
            self.assertLess(self.metric(follower, 'perceptrond_fleet_rows_total{evaluated="writer"}'), half / 2)
            writer.kill()
            client.feed(rows[half:])
            code, out, error = client.finish()
        self.assertEqual(code, 0, out + error)
        self.server.address = follower.address
        self.assertEqual(self.examples("noise"), len(rows))

    def leave_a_server_that_answers_no_more(self, *arguments):
        writer, follower = self.writer_and_follower()
        self.server.address = f"{follower.address},{writer.address}"
        with Client(self.server, *arguments, "--producer", "p", "--batch", 64, "--window", 512) as client:
            client.feed(TRAIN)
            wait_for("most of the rows are learned", lambda: self.examples("mail") > len(TRAIN) - 600)
            # Its machine may be lost as well: connections to it stay, and new ones are never answered.
            used = next(server for server in self.servers if self.learning_streams(server))
            used.process.send_signal(signal.SIGSTOP)
            self.server.address = f"{used.address},{self.servers[1 - self.servers.index(used)].address}"
            client.feed(TRAIN)
            code, out, error = client.finish()
        self.assertEqual(code, 0, out + error)
        wait_for("all rows are learned", lambda: self.examples("mail") == 2 * len(TRAIN))

    def test_leaves_a_server_that_answers_no_more(self):
        self.leave_a_server_that_answers_no_more("learn", "mail", "-", *CREATE)

    @only_if(LANGUAGE == "python")
    def test_perceptronctl_leaves_a_server_that_answers_no_more(self):
        self.server.address = self.servers[0].address
        self.ctl("create", "mail", *CREATE)
        self.leave_a_server_that_answers_no_more("perceptronctl", "learn", "mail", "-", "--format", "text")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
