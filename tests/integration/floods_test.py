"""Hostile clients against the real server on the loopback address: each flood ends soon, costs the server bounded memory, and a
well-behaved client beside it is answered. tests/server/rpc/connection_watch_test.cc has the clients that go on.

    python3 floods_test.py PERCEPTROND        # needs python3-grpcio
"""

import contextlib
import pathlib
import re
import resource
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/support"), str(ROOT / "tests/deploy")]

import grpc
import http2_attacks as attacks
from http2_attacks import Connection
from processes import Server, get, wait_for

MIB = 1 << 20
HEALTH = attacks.HEALTH


def peak_bytes(server):
    status = pathlib.Path(f"/proc/{server.process.pid}/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+)", status)[1]) << 10


def endpoint(server):
    host, port = server.address.rsplit(":", 1)
    return host, int(port)


def metric(server, name):
    found = re.search(rf"^{re.escape(name)} (\S+)$", get(f"http://{server.metrics}/metrics"), re.MULTILINE)
    return float(found[1]) if found else None


def closed(server, *reasons):
    return sum(metric(server, f'perceptrond_connections_closed_total{{reason="{reason}"}}') for reason in reasons)


def connect(server):
    return grpc.insecure_channel(server.address, options=[("grpc.use_local_subchannel_pool", 1)])


class GoodClient(threading.Thread):
    """Asks for health again and again on a connection of its own."""

    def __init__(self, server):
        super().__init__(daemon=True)
        self.channel = connect(server)
        self.check = self.channel.unary_unary(HEALTH)
        self.check(b"", timeout=30)
        self.answered = 0
        self.errors = []
        self.ended = threading.Event()

    def run(self):
        while not self.ended.wait(0.01):
            try:
                self.check(b"", timeout=30)
                self.answered += 1
            except grpc.RpcError as error:
                self.errors.append(error)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        self.join()
        self.channel.close()


class ServerTest(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)

    def serve(self, *flags, files=None):
        binary = [sys.argv[1]]
        if files is not None:
            wrapper = self.directory / "limited"
            wrapper.write_text(f'#!/bin/sh\nulimit -n {files}\nexec "{sys.argv[1]}" "$@"\n')
            wrapper.chmod(0o755)
            binary = [wrapper]
        server = Server(binary[0], self.directory / "data", self.directory / "log", flags)
        self.addCleanup(server.kill)
        return server


class FloodTest(ServerTest):
    def test_a_flood_ends_with_its_connection_with_little_memory_while_others_are_answered(self):
        # Which reason is noticed first for resets depends on how much arrives before a call ends.
        for attack, reasons in ((attacks.continuation_flood, ["no_call"]), (attacks.small_continuation_flood, ["no_call"]),
                                (attacks.rapid_reset, ["no_call", "resets"]), (attacks.settings_flood, ["no_call"])):
            with self.subTest(attack=attack.__name__):
                server = self.serve()
                before = peak_bytes(server)
                with GoodClient(server) as good, Connection(endpoint(server)) as connection:
                    attack(connection, seconds=100)
                self.assertEqual(closed(server, *reasons), 1)
                self.assertLess(peak_bytes(server) - before, 700 * MIB)
                self.assertEqual(good.errors, [])
                self.assertGreater(good.answered, 0)
                server.kill()


class UnfinishedTest(ServerTest):
    def test_unfinished_messages_of_many_connections_stay_within_the_documented_size(self):
        """docs/operate.md, Size; and what one connection adds before it is noticed, twice for gRPC's parts and a busy machine."""
        server = self.serve("--memory-budget", "128MiB", "--max-message-bytes", "2MiB")
        streams, each = 12, 15 * MIB // 2
        with contextlib.ExitStack() as stack:
            good = stack.enter_context(GoodClient(server))
            for _ in range(5):
                connection = stack.enter_context(Connection(endpoint(server), ignore_answers=False))
                attacks.unfinished_messages(connection, streams, each, message=8 * MIB)
                # Not all at once: what arrives within 0.2 s is beside the size.
                connection.wait_closed(1)
        self.assertEqual(good.errors, [])
        self.assertGreaterEqual(closed(server, "memory"), 1)
        self.assertLess(peak_bytes(server), 3 * 128 * MIB // 2 + 100_000_000 + 2 * streams * each)

    def test_a_request_that_does_not_arrive_ends_with_words(self):
        server = self.serve("--receive-timeout", "1s")
        with grpc.insecure_channel(server.address) as channel:
            never = threading.Event()

            def requests():
                never.wait(30)
                yield from ()

            methods = ["perceptron.v1.ModelService/GetModel", "perceptron.v1.ModelService/WatchModel", "perceptron.v1.AnalysisService/Analyze",
                       "grpc.health.v1.Health/Check", "grpc.health.v1.Health/Watch", "grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"]
            calls = [channel.stream_stream(f"/{method}")(requests(), timeout=20) for method in methods]
            for method, call in zip(methods, calls):
                with self.subTest(method=method):
                    with self.assertRaises(grpc.RpcError) as caught:
                        list(call)
                    self.assertEqual(caught.exception.code(), grpc.StatusCode.DEADLINE_EXCEEDED)
                    self.assertIn("--receive-timeout", caught.exception.details())
                    self.assertIn(b"REQUEST_TIMEOUT", dict(caught.exception.trailing_metadata())["grpc-status-details-bin"])
            never.set()


class LimitsTest(ServerTest):
    def test_a_client_may_send_as_far_ahead_as_the_budget_says(self):
        """A 2048th of the budget, on a stream as on the connection."""
        for flags, window in ([], 1 << 19), (["--memory-budget=1TiB"], 1 << 20):
            server = self.serve(*flags)
            with Connection(endpoint(server), ignore_answers=False) as connection:
                of_streams, of_connection = None, 0xffff
                while of_streams is None or of_connection < window:
                    kind, stream, payload = connection.read_frame()
                    if kind == attacks.SETTINGS and payload:
                        of_streams = dict(struct.iter_unpack(">HI", payload))[attacks.INITIAL_WINDOW_SIZE]
                    elif kind == attacks.WINDOW_UPDATE and stream == 0:
                        of_connection += int.from_bytes(payload, "big")
                self.assertEqual((of_streams, of_connection), (window, window))
            server.kill()

    def test_two_thousand_held_connections(self):
        server = self.serve(files=1024)
        with grpc.insecure_channel(server.address) as early:
            check = early.unary_unary(HEALTH)
            check(b"", timeout=10)
            held = [socket.create_connection(endpoint(server), timeout=10) for _ in range(2000)]
            wait_for("the connections are accepted", lambda: metric(server, "perceptrond_connections_open") >= 384)
            self.assertEqual(metric(server, "perceptrond_connections_open"), 384)
            # Those that are there go on; another is refused at once and not left waiting, with words unless too many are.
            check(b"", timeout=10)

            def refused_with_words():
                with connect(server) as late, self.assertRaises(grpc.RpcError) as caught:
                    late.unary_unary("/perceptron.v1.ModelService/ListModels")(b"", timeout=30)
                if caught.exception.code() == grpc.StatusCode.UNAVAILABLE:
                    return False
                self.assertEqual(caught.exception.code(), grpc.StatusCode.RESOURCE_EXHAUSTED)
                self.assertIn(b"TOO_MANY_CONNECTIONS", dict(caught.exception.trailing_metadata())["grpc-status-details-bin"])
                return True

            wait_for("a client is refused with words", refused_with_words)
            for one in held:
                one.close()
            wait_for("the connections end", lambda: metric(server, "perceptrond_connections_open") < 10)
            with connect(server) as late:
                late.unary_unary(HEALTH)(b"", timeout=10)

    def test_more_connections_than_descriptors_are_refused_at_the_start(self):
        run = subprocess.run(["sh", "-c", f"ulimit -n 1024; exec '{sys.argv[1]}' --max-connections 1000 --address 127.0.0.1:0 --metrics-address off --journal memory"],
                             capture_output=True, text=True, timeout=30)
        self.assertEqual(run.returncode, 1)
        self.assertIn("LimitNOFILE", run.stderr)

    def test_a_server_that_cannot_accept_any_more_exits_for_its_supervisor(self):
        server = self.serve("--self-probe-interval", "100ms")
        with grpc.insecure_channel(server.address) as channel:
            channel.unary_unary(HEALTH)(b"", timeout=10)
        resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE, (3, 3))
        self.assertEqual(server.process.wait(60), 1)
        self.assertIn("no longer answers at its own address", server.log.read_text())


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[2:])
