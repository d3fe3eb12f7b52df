"""A fleet without parts of what it needs: models go on predicting, learning is refused with a reason, nothing acknowledged is lost, and
the fleet goes on by itself.

    python3 degraded_test.py PERCEPTROND WALL_CLOCK [CLASS]...        # the library tests/support/wall_clock.cc
"""

import contextlib
import pathlib
import shutil
import signal
import struct
import sys
import tempfile
import time
import unittest

import grpc

import cluster
from clients import failure_of
from fleet_case import SIZE, FleetCase, Stream, create, learn, predict
from journal_records import fleet_pb2
from nats_client import NatsClient
from perceptrond.v1 import model_service_pb2
from processes import wait_for
from proxy import Faults
from replicas import Replicas


class WithoutNats(FleetCase):
    def without(self, nats_servers):
        self.begin()
        since = time.monotonic()
        for i in nats_servers:
            self.fleet.nats.kill(i)
            # Also for the next test, if this one fails.
            self.addCleanup(self.fleet.nats.start_if_ended, i)
        # The writer finds out with its next commit, the others by its silence.
        self.refused()
        self.await_reads()
        self.predicted_throughout(since)
        for i in nats_servers:
            self.fleet.nats.start(i)
        self.load.await_progress()
        self.finish(may_diverge=True)

    def test_no_nats_server(self):
        self.without(range(SIZE))

    def test_no_quorum(self):
        self.without([0, 1])


class OneNatsServerLost(FleetCase):
    def test_models_are_loaded_and_listed_nevertheless(self):
        """For minutes NATS gives consumers to the server that it lost, and these never answer."""
        fleet, models = self.fleet, [f"cold{i}" for i in range(24)]
        for model in models:
            create(fleet, model)
            wait_for("it learns", lambda: learn(fleet, 0, model) is None)
        # It comes back without any of them in memory.
        who = SIZE - 1
        fleet.end(who, signal.SIGTERM)
        lost = fleet.nats.leader("perceptrond-p0")
        fleet.nats.kill(lost)
        self.addCleanup(fleet.nats.start_if_ended, lost)
        fleet.start(who)
        fleet.await_serving(who)
        wait_for("learning goes on", lambda: learn(fleet, who, self.model) is None)
        listed = fleet.stubs[who].models.ListModels(model_service_pb2.ListModelsRequest(page_size=100), timeout=30)
        self.assertEqual(list(listed.unreachable), [])
        times = []
        for model in models:
            begin = time.monotonic()
            predict(fleet, who, model)
            times.append(time.monotonic() - begin)
        print(f"{len(models)} models were loaded, each within {max(times):.2f} s", flush=True)


class Ways(FleetCase):
    def test_a_writer_without_nats_says_since_when_its_state_may_be_old(self):
        """An idle one: no commit shows it that another server has taken over."""
        fleet = self.fleet
        wait_for("it learns", lambda: learn(fleet, 0, self.model) is None)
        # Servers show the models that they have in memory.
        for server in range(SIZE):
            predict(fleet, server, self.model)
        former = fleet.writer(self.model)
        others = [i for i in range(SIZE) if i != former]
        request = model_service_pb2.GetModelRequest(name=f"models/{self.model}")
        self.assertFalse(fleet.stubs[former].models.GetModel(request, timeout=10).HasField("stale_since"))
        cut = time.time()
        self.addCleanup(fleet.heal)
        fleet.cut_from_nats(former, Faults.BLACK_HOLE)
        writer = fleet.writer(self.model, others)
        stale = wait_for("it says so", lambda: next((found for found in [fleet.stubs[former].models.GetModel(request, timeout=10)] if found.HasField("stale_since")), None))
        # Of the last moment that it read the log.
        self.assertLess(abs(stale.stale_since.ToNanoseconds() / 1e9 - cut), 5)
        wait_for("one server writes it", lambda: fleet.writers(self.model) == [writer])
        self.assertFalse(fleet.stubs[writer].models.GetModel(request, timeout=10).HasField("stale_since"))
        fleet.heal()
        wait_for("it follows", lambda: learn(fleet, former, self.model) is None)

    def test_strict_streams_at_a_server_without_nats_go_on_by_way_of_the_writer(self):
        """Its copy does not get the updates that its streams' rows are to be evaluated after."""
        wait_for("it learns", lambda: learn(self.fleet, 0, self.model) is None)
        self.addCleanup(self.fleet.heal)
        # Again, if another server takes over meanwhile.
        parted, failure = cluster.eventually("streams go on", self.part_a_server_with_streams)
        self.assertEqual((failure.code, failure.reason, failure.retry), ("UNAVAILABLE", "WRITER_UNREACHABLE", True), failure)
        self.fleet.heal()
        cluster.eventually("rows are evaluated there again", lambda: self.rows_evaluated_at(parted) > 0)

    def part_a_server_with_streams(self):
        """Parts a server from NATS, and then from the writer: its number, and what its streams end with."""
        fleet = self.fleet
        fleet.heal()
        writer = fleet.writer(self.model)
        parted = next(i for i in range(SIZE) if i != writer)
        wait_for("rows are evaluated there", lambda: self.rows_evaluated_at(parted) > 0)
        with Stream(fleet, parted, self.model) as stream:
            wait_for("the row is learned", lambda: stream.learn(1).updates == 0)
            fleet.cut_from_nats(parted, Faults.BLACK_HOLE)
            self.assertEqual([stream.learn(label).updates for label in (-1, -1, -1, 1)], [1, 1, 0, 1])
            # That of the partition that lost contact first. The others lost it soon after.
            wait_for("it cannot commit", lambda: fleet.metric(parted, "perceptrond_fleet_contact_seconds") > 4 * cluster.TIMEOUT_SECONDS)
            with Stream(fleet, parted, self.model) as later:
                later.learn(1)
                # Of several, since a busy machine delays some.
                times = []
                for _ in range(5):
                    begin = time.monotonic()
                    self.assertEqual(later.learn(1).updates, 0)
                    times.append(time.monotonic() - begin)
                self.assertLess(min(times), cluster.TIMEOUT_SECONDS)
            fleet.fleet_ways[writer].fail(Faults.BLACK_HOLE, fleet.programs[parted].process.pid)
            try:
                stream.learn(1)
            except grpc.RpcError as error:
                failure = failure_of(error, parted)
                if failure.reason == "WRITER_CHANGED":
                    raise
                return parted, failure
        self.fail("it learned without the writer")

    def test_one_server_does_not_reach_the_writer(self):
        self.begin()
        self.await_same_writer(lambda writer, _: self.stays_with_a_server_parted(writer))
        self.finish()

    def stays_with_a_server_parted(self, writer):
        """Whether the model's writer is the same after one server did not reach it for some time, while others did."""
        parted, other = (i for i in range(SIZE) if i != writer)
        since = time.monotonic()
        self.addCleanup(self.fleet.heal)
        self.fleet.fleet_ways[writer].fail(Faults.BLACK_HOLE, self.fleet.programs[parted].process.pid)
        failures = [learn(self.fleet, server, self.model) for server in (parted, other)]
        # Producers go to other servers.
        self.load.await_progress()
        self.await_reads()
        self.predicted_throughout(since)
        stays = self.fleet.writers(self.model) == [writer]
        self.fleet.heal()
        wait_for("it learns there", lambda: learn(self.fleet, parted, self.model) is None)
        self.load.await_progress()
        if stays:
            self.check_refusal(parted, failures[0])
            self.assertIsNone(failures[1])
        return stays

    def test_slow_nats(self):
        self.begin()
        self.await_same_writer(lambda writer, _: self.stays_with_slow_nats(writer))
        self.finish()

    def stays_with_slow_nats(self, writer):
        """Whether the model's writer is the same, and no call failed, after all of NATS was slow for some time."""
        before = [len(producer.failures) for producer in self.load.producers]
        for ways in self.fleet.nats_ways:
            for proxy in ways:
                proxy.delay(0.1)
        since = time.monotonic()
        self.load.await_progress()
        self.predicted_throughout(since)
        stays = self.fleet.writer(self.model) == writer
        if stays:
            self.assertEqual([len(producer.failures) for producer in self.load.producers], before)
        self.fleet.heal()
        self.load.await_progress()
        return stays


class Clocks(FleetCase):
    """Each server has a wall clock of its own, which is set while it runs."""

    @classmethod
    def setUpClass(cls):
        clocks = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory(prefix="perceptrond-clocks.")))
        cls.clocks = [clocks / str(i) for i in range(SIZE)]
        for i in range(SIZE):
            cls.set(i, 0)
        cls.ARGUMENTS = {"environment": {i: {"LD_PRELOAD": WALL_CLOCK, "WALL_CLOCK": cls.clocks[i]} for i in range(SIZE)}}
        super().setUpClass()

    @classmethod
    def set(cls, i, seconds):
        """The clock is ahead by this; below 0: late."""
        cls.clocks[i].touch()
        with open(cls.clocks[i], "r+b") as clock:
            clock.write(struct.pack("<q", int(seconds * 1e9)))

    def jump(self, who, seconds):
        since = time.monotonic()
        self.set(who, seconds)
        self.load.await_progress()
        print(f"{self.model}: {seconds:+} s: without learning {self.load.without_learning(since, time.monotonic()):.2f} s", flush=True)

    def test_a_clock_is_set_forward(self):
        """Nor does a server whose clock is ahead seem late to read what the others, or NATS, have written."""
        self.begin()
        self.await_same_writer(self.stays_with_clocks_ahead)
        self.finish()

    def stays_with_clocks_ahead(self, writer, times):
        """Whether the model's writer is the same after each clock was set forward."""
        since = time.monotonic()
        for who in range(SIZE):
            self.jump(who, 3600 * (times + 1))
            lags = [self.fleet.metric(i, "perceptrond_fleet_delay_seconds") for i in range(SIZE) for _ in range(20)]
            self.assertLess(max(lags), 60)
        self.predicted_throughout(since)
        return self.fleet.writer(self.model) == writer

    def test_a_clock_is_set_back(self):
        """A server whose waits take longer then is taken for dead, at worst, and comes back."""
        self.begin()
        since = time.monotonic()
        for who in range(SIZE):
            self.jump(who, -3)
        self.predicted_throughout(since)
        self.fleet.settle()
        self.finish()

    def test_a_clock_is_set_back_by_an_hour(self):
        """Its server ends: threads of it would stand still for as long. The others go on."""
        self.begin()
        since = time.monotonic()
        who = self.fleet.writer(self.model)
        self.set(who, -3600)
        self.assertEqual(self.fleet.programs[who].process.wait(60), 1)
        self.assertIn("the wall clock was set back", self.fleet.programs[who].log.read_text())
        self.load.await_progress()
        print(f"{self.model}: without learning {self.load.without_learning(since, time.monotonic()):.2f} s", flush=True)
        self.predicted_throughout(since, [i for i in range(SIZE) if i != who])
        self.fleet.start(who)
        self.fleet.await_serving(who)
        self.fleet.settle()
        self.finish()


class FullStore(FleetCase):
    ARGUMENTS = {"max_file": "48M"}

    def test_no_space_in_jetstream(self):
        self.begin()
        with NatsClient(self.fleet.nats.ports[0]) as nats:
            nats.api("STREAM.CREATE.filler", name="filler", subjects=["filler"], num_replicas=SIZE, storage="file")
            # What does not fit is refused, or not answered if JetStream ends there.
            with contextlib.suppress(OSError):
                wait_for("the store is full", lambda: "error" in nats.request("filler", bytes(900_000)))
        since = time.monotonic()
        failures = wait_for("learning is refused everywhere", lambda: self.refusals())
        for failure in failures:
            print(f"{self.model}: {failure.reason}: {failure.message}", flush=True)
            self.assertIn(failure.code, ("UNAVAILABLE", "RESOURCE_EXHAUSTED"))
            self.assertTrue(failure.retry)
        self.await_reads()
        self.predicted_throughout(since)
        self.fleet.nats.max_file = "1G"
        for i in range(SIZE):
            self.fleet.nats.kill(i)
            self.fleet.nats.start(i)
        self.load.await_progress()
        self.finish(may_diverge=True)

    def refusals(self):
        failures = [learn(self.fleet, server, self.model) for server in range(SIZE)]
        return None if None in failures else failures


class OlderLog(FleetCase):
    """The store of all nats-servers is one from before, as after restoring a backup of it."""

    def copy_stores(self):
        self.fleet.nats.kill_all()
        copies = [self.directory / f"copy{i}-{self._testMethodName}" for i in range(SIZE)]
        for i, copy in enumerate(copies):
            shutil.copytree(self.fleet.nats.store(i), copy)
            self.fleet.nats.start(i)
        return copies

    def restore(self, stop_servers):
        load = self.begin()
        copies = self.copy_stores()
        load.await_progress(messages=100)
        self.end()
        newest = [producer.messages for producer in load.producers]
        if stop_servers:
            for i in range(SIZE):
                self.fleet.end(i, signal.SIGTERM)
        self.fleet.nats.restart_with(copies)
        for i in range(SIZE):
            if not stop_servers:
                # What it has in memory is no longer in the log.
                wait_for(f"server {i} ends", lambda: self.fleet.programs[i].process.poll() is not None)
                self.assertIn("the journal has lost entries", self.fleet.programs[i].log.read_text())
            self.fleet.start(i)
        for i in range(SIZE):
            self.fleet.await_serving(i)
        for producer, messages in zip(load.producers, newest):
            lost = wait_for(f"{producer.name} is answered", lambda: self.claim(producer))
            self.assertEqual((lost.code, lost.reason), ("DATA_LOSS", "UPDATES_LOST"), lost)
            self.assertIn("send the examples from", lost.message)

    def claim(self, producer):
        """What a stream with the producer's claim comes to, unless it is to be tried again."""
        for server in range(SIZE):
            try:
                next(self.fleet.stubs[server].learning.LearnStream(iter([producer.opening()]), timeout=20))
                self.fail(f"{producer.name} goes on")
            except grpc.RpcError as error:
                failure = failure_of(error, server)
                if failure.code not in ("UNAVAILABLE", "DEADLINE_EXCEEDED"):
                    return failure
        return None

    def test_servers_start_on_an_older_log(self):
        self.restore(stop_servers=True)

    def test_servers_run_while_an_older_log_comes(self):
        self.restore(stop_servers=False)


class NewerVersion(FleetCase):
    def test_a_record_of_a_newer_arithmetic_is_followed_by_nobody_and_does_not_hold_up_other_models(self):
        """As if a newer server had written the model."""
        fleet = self.fleet
        create(fleet, "other")
        for model in (self.model, "other"):
            wait_for(f"{model} learns", lambda: learn(fleet, 0, model) is None)
        before = [predict(fleet, server, self.model).scores for server in range(SIZE)]
        replicas = Replicas(fleet.nats)
        model_id = replicas.model_id(self.model)
        stream = replicas.stream_of(model_id, cluster.PARTITIONS)
        newer = fleet_pb2.LogEntry()
        newer.CopyFrom(replicas.committed(model_id, cluster.PARTITIONS)[0][-1])
        record = newer.records[-1]
        record.first_revision += len(record.labels)
        record.arithmetic_version = 1000
        newer.counters.report.updates += len(record.labels)
        with NatsClient(fleet.nats.ports[0]) as nats:
            answer = nats.request(f"{stream.replace('-p', '.p')}.m.{model_id}", newer.SerializeToString())
            self.assertNotIn("error", answer)
        for server in range(SIZE):
            failure = wait_for("it is refused", lambda: next((found for found in [learn(fleet, server, self.model, offset=1)] if found and found.reason == "NEWER_ARITHMETIC"), None))
            print(f"server {server} refuses: {failure.message}", flush=True)
            self.assertEqual((failure.code, failure.retry), ("UNAVAILABLE", True), failure)
            # Of what it has in memory.
            self.assertEqual(predict(fleet, server, self.model).scores, before[server])
            wait_for("other models learn there", lambda: learn(fleet, server, "other", offset=1 + server) is None)
            self.assertIsNone(fleet.programs[server].process.poll())


if __name__ == "__main__":
    FleetCase.PERCEPTROND, WALL_CLOCK = sys.argv[1:3]
    unittest.main(argv=[sys.argv[0], "-v", *sys.argv[3:]])
