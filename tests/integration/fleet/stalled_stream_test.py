"""A nats-server stands still, and with it the streams of some partitions: it refuses nothing, and answers nothing. Models of the other
partitions are acknowledged as ever.

    python3 stalled_stream_test.py PERCEPTROND
"""

import concurrent.futures
import contextlib
import pathlib
import signal
import sys
import tempfile
import time
import unittest

import grpc

import cluster
from clients import settings
from perceptrond.columns import pack
from perceptrond.rows import Row
from perceptrond.v1 import learning_service_pb2, model_service_pb2
from proxy import Faults

MODELS = [f"m{i}" for i in range(12)]


class StalledStreamTest(unittest.TestCase):
    def setUp(self):
        self.stack = self.enterContext(contextlib.ExitStack())

    def start(self):
        """A fleet whose streams are on one nats-server each, and that of each model. False if all are on one server, or on the catalogue's."""
        directory = self.stack.enter_context(tempfile.TemporaryDirectory(prefix="perceptrond-stalled."))
        self.fleet = self.stack.enter_context(cluster.Fleet(PERCEPTROND, pathlib.Path(directory), flags=("--fleet-replicas", 1)))
        self.fleet.settle()
        self.hosts = {}
        for model in MODELS:
            request = model_service_pb2.CreateModelRequest(model_id=model, model=settings())
            cluster.eventually(f"{model} is created", lambda: self.fleet.stubs[0].models.CreateModel(request, timeout=10))
            before = self.streams()
            self.learn(model, 0)
            (self.hosts[model],) = {i for name, (i, messages) in self.streams().items() if messages > before[name][1]}
        (catalogue,) = {i for name, (i, _) in self.streams().items() if name.endswith("-catalogue")}
        self.lost = next((host for host in self.hosts.values() if host != catalogue), None)
        return self.lost is not None and len(set(self.hosts.values())) > 1

    def streams(self):
        """By name: the nats-server that has it, and its messages."""
        return {name: (i, one["state"]["messages"]) for i in range(cluster.SIZE) for name, one in self.fleet.nats.streams(i).items()}

    def update(self, model, offset):
        """Learns a row that is an update, once however often it is sent."""
        columns = pack([Row({0: 1.0}, 1 if offset % 2 == 0 else -1)])
        request = learning_service_pb2.LearnRequest(model=f"models/{model}", columns=columns, producer_id="p", first_offset=offset)
        return self.fleet.stubs[0].learning.Learn(request, timeout=30)

    def learn(self, model, offset):
        cluster.eventually(f"{model} learns", lambda: self.update(model, offset))

    def test_models_of_other_streams_are_acknowledged_as_ever(self):
        # Where JetStream puts them is up to chance.
        while not self.start():
            self.stack.close()
        fleet, lost = self.fleet, self.lost
        # No server talks to NATS through it.
        for ways in fleet.nats_ways:
            ways[lost].fail(Faults.CUT)
        for model in MODELS:
            self.learn(model, 1)
        stalled = [model for model in MODELS if self.hosts[model] == lost]
        others = [model for model in MODELS if self.hosts[model] != lost]
        program = fleet.nats.programs[lost].process
        self.stack.callback(program.send_signal, signal.SIGCONT)
        program.send_signal(signal.SIGSTOP)
        with concurrent.futures.ThreadPoolExecutor(len(stalled)) as pool:
            waiting = [pool.submit(self.update, model, 2) for model in stalled]
            begin = time.monotonic()
            for model in others:
                self.assertEqual(self.update(model, 2).result.updates, 1)
            taken = time.monotonic() - begin
            # These give up after 5 s.
            self.assertFalse([one for one in waiting if one.done()])
            print(f"{len(others)} models were updated within {taken:.2f} s, while {len(stalled)} waited", flush=True)
            for one in waiting:
                self.assertEqual(one.exception().code(), grpc.StatusCode.UNAVAILABLE)
        program.send_signal(signal.SIGCONT)
        fleet.heal()
        for model in MODELS:
            self.learn(model, 2)


if __name__ == "__main__":
    PERCEPTROND = sys.argv.pop(1)
    unittest.main()
