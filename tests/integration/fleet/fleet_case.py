"""What tests of a degraded fleet share: a fleet, a model, producers and readers, and a checker at the end."""

import contextlib
import pathlib
import queue
import tempfile
import time
import unittest

import grpc

import checker
import cluster
from clients import DIMENSION, Load, failure_of, longest_gap, settings
from perceptrond.columns import pack
from perceptrond.rows import Row
from perceptrond.v1 import learning_service_pb2, model_service_pb2, prediction_service_pb2
from processes import wait_for

SIZE = cluster.SIZE
# Of a reader that asks one server, on a busy machine.
MOST_WITHOUT_PREDICTIONS = 10
READS = 100


def create(fleet, model):
    request = model_service_pb2.CreateModelRequest(model_id=model, model=settings())
    cluster.eventually(f"{model} is created", lambda: fleet.stubs[0].models.CreateModel(request, timeout=10))


# The feature of a row besides those of the producers.
PROBE = DIMENSION - 1


def learn(fleet, server, model, offset=0):
    """What a row of one producer comes to at a server: None, or a Failure. The first one is an update."""
    request = learning_service_pb2.LearnRequest(model=f"models/{model}", columns=pack([Row({PROBE: 1.0}, 1)]), producer_id="probe", first_offset=offset)
    try:
        fleet.stubs[server].learning.Learn(request, timeout=30)
        return None
    except grpc.RpcError as error:
        return failure_of(error, server)


def predict(fleet, server, model):
    request = prediction_service_pb2.PredictRequest(model=f"models/{model}", columns=pack([Row({PROBE: 1.0}, 1)]))
    return fleet.stubs[server].predictions.Predict(request, timeout=30)


class Stream:
    """A stream without a producer, of messages that are answered one by one."""

    def __init__(self, fleet, server, model):
        self._requests, self._model = queue.SimpleQueue(), model
        self._answers = fleet.stubs[server].learning.LearnStream(iter(self._requests.get, None), timeout=60)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._requests.put(None)
        self._answers.cancel()

    def learn(self, label):
        """The result of one row."""
        self._requests.put(learning_service_pb2.LearnStreamRequest(model=f"models/{self._model}", columns=pack([Row({0: 1.0}, label)])))
        return next(self._answers).results[0]


class FleetCase(unittest.TestCase):
    """Has one fleet for all of its tests."""

    PERCEPTROND = None
    ARGUMENTS = {}

    @classmethod
    def setUpClass(cls):
        cls.stack = contextlib.ExitStack()
        cls.addClassCleanup(cls.stack.close)
        cls.directory = pathlib.Path(cls.stack.enter_context(tempfile.TemporaryDirectory(prefix="perceptrond-degraded.")))
        cls.fleet = cls.stack.enter_context(cluster.Fleet(cls.PERCEPTROND, cls.directory, **cls.ARGUMENTS))

    def setUp(self):
        self.model = self._testMethodName.replace("_", "-")[:60].rstrip("-")
        self.fleet.settle()
        create(self.fleet, self.model)
        self.load = None

    def begin(self):
        self.load = Load(self.fleet, self.model)
        self.addCleanup(self.load.abandon)
        self.load.await_progress()
        return self.load

    def end(self):
        if self.load is not None:
            load, self.load = self.load, None
            load.stop()

    def finish(self, may_diverge=False):
        """Ends the load and checks all of it."""
        load = self.load
        self.end()
        by_revision = checker.check_history(load.producers)
        # One that was refused may have been learned.
        wait_for("the probe is learned", lambda: learn(self.fleet, 0, self.model) is None)
        checker.check_servers(self.fleet, self.model, load.producers, PROBE)
        checker.check_log(self.fleet, self.model, load.producers, by_revision, may_diverge)

    def await_same_writer(self, fault):
        """Calls `fault` with the model's writer, and how often it was called, until it returns that the writer is still the same. On a
        busy machine a writer may be silent for long enough to be taken for dead: not each time."""
        if not any(fault(self.fleet.writer(self.model), times) for times in range(3)):
            self.fail("another server took over each time")

    def await_reads(self, readers=None):
        """Until each reader has asked its server often."""
        readers = self.load.readers if readers is None else readers
        before = [len(reader.times) for reader in readers]
        try:
            wait_for("all servers predict", lambda: all(len(reader.times) >= first + READS for reader, first in zip(readers, before)))
        except AssertionError as late:
            raise AssertionError(f"{late}: {[(len(reader.times), reader.failures[-1:]) for reader in readers]} after {before}") from late

    def refused(self, servers=range(SIZE)):
        """Learning is refused at these servers, with a time to try again."""
        for server in servers:
            self.check_refusal(server, learn(self.fleet, server, self.model))

    def check_refusal(self, server, failure):
        self.assertIsNotNone(failure, f"server {server} learned")
        self.assertEqual((failure.code, failure.retry), ("UNAVAILABLE", True), failure)
        print(f"{self.model}: server {server} refuses: {failure.reason}: {failure.message}", flush=True)

    def rows_evaluated_at(self, server):
        """Of a stream there, how many were evaluated by the server itself."""
        evaluated_here = lambda: self.fleet.metric(server, 'perceptrond_fleet_rows_total{evaluated="here"}')
        before = evaluated_here()
        with Stream(self.fleet, server, self.model) as stream:
            for _ in range(4):
                stream.learn(1)
        return evaluated_here() - before

    def predicted_throughout(self, since, servers=range(SIZE)):
        now = time.monotonic()
        gaps = [longest_gap(self.load.readers[server].times, since, now) for server in servers]
        print(f"{self.model}: without predictions, by server {[round(gap, 2) for gap in gaps]}", flush=True)
        self.assertLess(max(gaps), MOST_WITHOUT_PREDICTIONS)
