"""Hostile clients against the real server on the loopback address. In each attack the server has its default budget, and runs without
swap in a memory cgroup of exactly the documented size (docs/operate.md, Size): it lives, answers a well-behaved client beside the attack
and after it, gives all reserved memory back, and ends in order. Prints the peak of each.

    python3 attacks_test.py PERCEPTROND [-k NAME]...      # needs python3-grpcio, the Python client, and root for the cgroup

What the cgroup counts: the process's memory, the kernel's for its threads, files and sockets, and cached pages of its files, which the
kernel drops first. The journal is therefore on a disk and not in /dev/shm, whose pages stay. Version 1 counts buffers of sockets apart.
"""

import array
import collections
import concurrent.futures
import contextlib
import itertools
import os
import pathlib
import random
import re
import resource
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import zlib
from typing import Callable, NamedTuple

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/support"), str(ROOT / "tests/deploy")]

import grpc
import http2_attacks as attacks
from http2_attacks import Closed, Connection, frame
from perceptrond import model_settings
from perceptrond.v1 import example_pb2, learning_service_pb2, model_service_pb2, prediction_service_pb2
from processes import Server, get, wait_for

MIB = 1 << 20
BUDGET, DRAIN_SECONDS = 1 << 30, 30
# A stopping server that has to cancel calls ends its work and closes the journal within this time after its drain, on a busy machine too.
MARGIN_SECONDS = 20
FLOOD_SECONDS = 10
HEALTH, LEARN_STREAM, CREATE = attacks.HEALTH, attacks.LEARN_STREAM, attacks.CREATE
HEALTH_WATCH, REFLECTION = "/grpc.health.v1.Health/Watch", "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"
INFER, ANALYZE, LEARN = "/inference.GRPCInferenceService/ModelInfer", "/perceptron.v1.AnalysisService/Analyze", "/perceptron.v1.LearningService/Learn"
PREDICT, PREDICT_STREAM, EXPLAIN = (f"/perceptron.v1.PredictionService/{method}" for method in ("Predict", "PredictStream", "Explain"))
MODELS, HISTORY = "/perceptron.v1.ModelService/", "/perceptron.v1.HistoryService/"
UPDATE, IMPORT, EXPORT = MODELS + "UpdateModel", HISTORY + "ImportModel", HISTORY + "ExportModel"


def documented_size(streams):
    """docs/operate.md, Size."""
    return BUDGET * 3 // 2 + 100_000_000 + streams * max(BUDGET // 2000, 100_000)


class Cgroup:
    """One of its own below the root, which systemd leaves to root. A context manager."""

    def __init__(self, size):
        v1, v2 = pathlib.Path("/sys/fs/cgroup/memory"), pathlib.Path("/sys/fs/cgroup")
        is_v1 = (v1 / "memory.limit_in_bytes").exists()
        self.path = (v1 if is_v1 else v2) / f"perceptrond-attacked-{os.getpid()}"
        self.peak_name, self.kills_name = ("memory.max_usage_in_bytes", "memory.oom_control") if is_v1 else ("memory.peak", "memory.events")
        try:
            self.path.mkdir()
            (self.path / ("memory.limit_in_bytes" if is_v1 else "memory.max")).write_text(str(size))
            # Memory and swap; buffers of TCP, which are counted only if they have a limit. Version 2: swap.
            for name, most in (("memory.memsw.limit_in_bytes", size), ("memory.kmem.tcp.limit_in_bytes", 64 << 30), ("memory.swap.max", 0)):
                if (self.path / name).exists():
                    (self.path / name).write_text(str(most))
        except OSError as error:
            self.__exit__()
            raise unittest.SkipTest(f"no memory cgroup can be made (root; version 1, or 2 with the memory controller at the root): {error}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with contextlib.suppress(OSError):
            self.path.rmdir()

    def read(self, name):
        return (self.path / name).read_text() if (self.path / name).exists() else ""

    def peak(self):
        return int(self.read(self.peak_name) or 0)

    def socket_peak(self):
        return int(self.read("memory.kmem.tcp.max_usage_in_bytes") or 0)

    def kills(self):
        return int(re.search(r"^oom_kill (\d+)", self.read(self.kills_name), re.MULTILINE)[1])


def closed_connections(server):
    found = re.findall(r'^perceptrond_connections_closed_total{reason="(\w+)"} ([1-9]\d*)$', get(f"http://{server.metrics}/metrics") or "", re.MULTILINE)
    return ", ".join(f"{count} closed: {reason}" for reason, count in found)


def resident_peak(process):
    try:
        return int(re.search(r"VmHWM:\s+(\d+)", pathlib.Path(f"/proc/{process.pid}/status").read_text())[1]) << 10
    except (OSError, TypeError):
        return 0


def endpoint(server):
    host, port = server.address.rsplit(":", 1)
    return host, int(port)


def metric(server, name):
    """The sum over the labels that are not given; 0 if there is none."""
    return sum(float(value) for value in re.findall(rf"^{re.escape(name)}(?:{{.*}})? (\S+)$", get(f"http://{server.metrics}/metrics") or "", re.MULTILINE))


def connect(server):
    return grpc.insecure_channel(server.address, options=[("grpc.use_local_subchannel_pool", 1), ("grpc.enable_retries", 0),
                                                          ("grpc.max_receive_message_length", -1), ("grpc.max_metadata_size", 1 << 20)])


def together(function, items):
    """What the function returns for each, all at once."""
    items = list(items)
    with concurrent.futures.ThreadPoolExecutor(len(items)) as pool:
        return list(pool.map(function, items))


def codes_of(calls):
    """How many ended with which code."""
    return collections.Counter(call.code().name for call in calls)


# ---- Requests, valid and not ----


def varint(number):
    out = b""
    while number > 127:
        out += bytes([number & 127 | 128])
        number >>= 7
    return out + bytes([number])


def field(number, payload=b""):
    return varint(number << 3 | 2) + varint(len(payload)) + payload


def filled(part, *within, size=14 * MIB):
    """A message of so many bytes: the part again and again, in the fields with these numbers, the outermost first."""
    body = part * (size // len(part)) if isinstance(part, bytes) else b"".join(map(part, range(size // len(part(1 << 20)))))
    for number in reversed(within):
        body = field(number, body)
    return body


def columns(count, first=0, rows=1, **others):
    """Rows with so many features each, each 1."""
    made = example_pb2.ExampleColumns(row_ends=[count * (row + 1) for row in range(rows)], **others)
    made.indices.extend(array.array("I", range(first, first + count)) * rows)
    made.values.extend(array.array("f", [1]) * count * rows)
    return made


def create(model, *settings, **others):
    return model_service_pb2.CreateModelRequest(model_id=model, model=model_settings(*settings, **others))


def learn(model, **fields):
    return learning_service_pb2.LearnRequest(model=f"models/{model}", **fields)


def predict(model, **fields):
    return prediction_service_pb2.PredictRequest(model=f"models/{model}", **fields)


def named(model):
    """Most requests have the model, or its name, in field 1."""
    return field(1, f"models/{model}".encode())


class GoodClient(threading.Thread):
    """Asks for a prediction again and again on a connection of its own."""

    REQUEST = predict("plain", columns=columns(4)).SerializeToString()

    def __init__(self, server):
        super().__init__(daemon=True)
        self.channel = connect(server)
        self.answered, self.slowest, self.errors, self.ended = 0, 0, collections.Counter(), threading.Event()
        self.channel.unary_unary(CREATE)(create("plain", 4).SerializeToString())
        self.predict = self.channel.unary_unary(PREDICT)

    def run(self):
        while not self.ended.wait(0.01):
            begin = time.monotonic()
            try:
                self.predict(self.REQUEST)
                self.answered += 1
                self.slowest = max(self.slowest, time.monotonic() - begin)
            except grpc.RpcError as error:
                self.errors[error.code().name] += 1

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        self.join()


class ServerTest(unittest.TestCase):
    def setUp(self):
        # /tmp may be in memory.
        self.directory = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(dir="/var/tmp")))

    def serve(self, *flags, before=":"):
        """A server whose process has run this shell command before."""
        wrapper = self.directory / "perceptrond"
        wrapper.write_text(f'#!/bin/sh\n{before}\nexec "{sys.argv[1]}" "$@"\n')
        wrapper.chmod(0o755)
        server = Server(wrapper, self.directory / "data", self.directory / "log", flags)
        self.addCleanup(server.kill)
        return server


# ---- Attacks in a cgroup ----


class Target:
    """The server, and the attackers' ways to it, which stay open until close()."""

    def __init__(self, server):
        self.server, self.held = server, contextlib.ExitStack()
        self.close = self.held.close

    def channel(self):
        return self.held.enter_context(connect(self.server))

    def connection(self, **options):
        return self.held.enter_context(Connection(endpoint(self.server), timeout=60, **options))

    def wait(self, what, condition):
        def look():
            assert self.server.process.poll() is None, "the server has ended"
            return condition()

        wait_for(what, look)

    def call(self, path, requests, connections=8):
        """Some hundreds at once, on so many connections."""
        channels, codes, requests = [self.channel() for _ in range(connections)], collections.Counter(), iter(requests)
        while some := list(itertools.islice(requests, 500)):
            codes += codes_of([channels[i % connections].unary_unary(path).future(request if isinstance(request, bytes) else request.SerializeToString())
                               for i, request in enumerate(some)])
        return codes

    def must(self, path, *requests):
        for request in requests:
            self.wait(f"{path} is answered", lambda: self.call(path, [request], 1).get("OK"))

    def large(self, model, bits=22):
        """A model with 2^bits weights."""
        self.must(CREATE, create(model, "hashed", feature_options={"bits": bits}))
        for i in range(1 << bits - 20):
            self.must(LEARN, learn(model, columns=columns(1 << 20, i << 20, labels=[1 - i % 2 * 2])))

    def send(self, path, messages, streams=8):
        """Each stream gets all of the messages, ends, and is read to its end."""
        channels = [self.channel() for _ in range(streams)]
        calls = [channel.stream_stream(path)(iter(messages)) for channel in channels]

        def end(call):
            with contextlib.suppress(grpc.RpcError):
                collections.deque(call, 0)

        together(end, calls)
        return codes_of(calls)

    def unread(self, path, message, streams=1000, connections=4):
        """Calls whose answers nobody receives, until the server has begun all of them."""
        before = metric(self.server, "grpc_server_started_total")
        for _ in range(connections):
            one = self.connection(ignore_answers=False)
            for _ in range(streams // connections):
                one.ask(path, message)
        self.wait("all calls have begun", lambda: metric(self.server, "grpc_server_started_total") + metric(
            self.server, "perceptrond_calls_refused_total") - before >= streams)

    def fill(self, path, message, streams=1000):
        """The same again and again, until these answers take so much that clients who do not read are ended, or do not fit."""
        def full():
            return metric(self.server, 'perceptrond_memory_reserved_bytes{use="answers"}') > BUDGET / 8 or metric(
                self.server, 'perceptrond_memory_refusals_total{use="answers"}') > 0

        while not full():
            self.unread(path, message, streams)

    def flood(self, attack, connections=2, **options):
        """On each of the connections, again as soon as the server closes it."""
        def again(_):
            end = time.monotonic() + FLOOD_SECONDS
            while (left := end - time.monotonic()) > 0:
                with contextlib.suppress(OSError, Closed), Connection(endpoint(self.server), timeout=60, **options) as connection:
                    attack(connection, left)

        together(again, range(connections))

    def bodies(self, body, streams, connections, **options):
        """A call with this body on each of the streams."""
        def send(connection):
            with contextlib.suppress(Closed, OSError):
                attacks.send_bodies(connection, streams // connections, body, seconds=60, **options)

        together(send, [self.connection(ignore_answers=False) for _ in range(connections)])

    def http(self, count, request):
        """So many requests of the metrics port whose answers nobody reads. The server closes most of the connections."""
        for _ in range(count):
            with contextlib.suppress(OSError):
                self.held.enter_context(socket.create_connection(self.server.metrics.split(":"), timeout=60)).sendall(request)


class Attack(NamedTuple):
    run: Callable
    # How many streams are open at once: each adds to the documented size.
    streams: int = 0
    flags: tuple = ()
    # Whether the server is stopped while they are open.
    stops: bool = False


# Messages of 14 MiB of parts that are small in bytes and large once they are parsed: method, part, and the fields that it is in.
PARTS = {
    "infer_inputs": (INFER, field(5)),
    "infer_outputs": (INFER, field(6)),
    "infer_parameters": (INFER, lambda i: field(4, field(1, b"%x" % i))),
    "infer_raw_contents": (INFER, field(7)),
    "infer_bytes": (INFER, field(8), 5, 5),
    "infer_integers": (INFER, b"\x01", 5, 5, 2),
    "learning_curve": (CREATE, field(15), 2),
    "members": (CREATE, field(30), 2),
    "ignored_weights": (CREATE, field(1), 2, 14),
    "row_errors_of_a_report": (CREATE, lambda i: field(7, field(1, b"%x" % i)), 2, 13),
    "label_names": (CREATE, field(7), 2),
    "starting_vectors": (CREATE, field(1), 2, 6, 33),
    "starting_names": (CREATE, field(2), 2, 6, 33, 1),
    "starting_indices": (CREATE, b"\x01", 2, 6, 33, 1, 1),
    "composition_inputs": (CREATE, field(1), 2, 5, 4),
    "pairs_of_groups": (CREATE, field(1), 2, 5, 5, 2),
    "update_mask": (UPDATE, field(1), 2),
    "updated_learning_curve": (UPDATE, field(15), 1),
    "unknown_fields": (CREATE, field(1000)),
    "unknown_numbers": (LEARN, varint(1000 << 3) + b"\0"),
    "unknown_groups": (PREDICT, varint(1000 << 3 | 3) + varint(1000 << 3 | 4)),
    "examples": (LEARN, field(2)),
    "dense_examples": (PREDICT, field(2, field(1))),
    "names_of_an_example": (LEARN, field(1), 2, 3),
    "label_names_of_columns": (LEARN, field(7), 3),
    "texts_of_columns": (LEARN, field(12), 3),
    "prediction_ids": (LEARN, field(13), 3),
    "row_ends": (PREDICT, b"\x01", 3, 1),
    "lengths_of_names": (LEARN, b"\x01", 3, 5, 2),
    "index_differences": (PREDICT, b"\x01", 3, 10),
    "labels": (LEARN, b"\x01", 3, 6),
    "explained_examples": (EXPLAIN, field(2)),
    "examples_of_a_stream": (LEARN_STREAM, field(8)),
    "unknown_fields_of_a_stream": (LEARN_STREAM, field(1000)),
    "predicted_examples_of_a_stream": (PREDICT_STREAM, field(2)),
    "unknown_fields_of_an_import": (IMPORT, field(1000)),
}


def parts(path, *part):
    """Eight such messages at once, each of a call."""
    model = {INFER: field(1, b"plain"), CREATE: b"", UPDATE: b""}.get(path, named("plain"))
    return Attack(lambda target: target.send(path, [model + filled(*part)]), 8)


# Floods, which go on for ten seconds on two connections.


def small_frames(kind, payload=b"", on_stream=True):
    """Frames beside or on an open stream."""
    def send(connection, seconds):
        stream = connection.open_stream(LEARN_STREAM)
        attacks.flood(connection, frame(kind, 0, stream * on_stream, payload) * 1000, seconds)

    return send


def calls_of(one):
    """Calls, each of the frames that this makes for its stream, after another."""
    def send(connection, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            connection.next_stream += 2
            connection.send(one(connection.next_stream))

    return send


def large_headers(stream):
    """Metadata of a megabyte, in frames of 16 KiB."""
    block = attacks.header("x-large", "a" * MIB)
    return frame(attacks.HEADERS, attacks.END_STREAM, stream, attacks.call_headers(HEALTH)) + b"".join(
        frame(attacks.CONTINUATION, 0, stream, block[at:at + (1 << 14)]) for at in range(0, len(block), 1 << 14)) + frame(
            attacks.CONTINUATION, attacks.END_HEADERS, stream)


def expanding_headers(stream):
    """A header block that has an entry of 4 KB 12,000 times."""
    return frame(attacks.HEADERS, attacks.END_HEADERS, stream, attacks.call_headers(HEALTH) + attacks.header("x", "a" * 4000, b"\x40") + b"\xbe" * 12000)


def reset_request(stream):
    return frame(attacks.HEADERS, attacks.END_HEADERS, stream, attacks.call_headers(CREATE)) + frame(
        attacks.DATA, 0, stream, UNFINISHED[:16000]) + frame(attacks.RST_STREAM, 0, stream, b"\0\0\0\x08")


def resets_beside_a_call(connection, seconds):
    """Until gRPC hands them over they look like a part of the open call's message."""
    connection.open_stream(LEARN_STREAM)
    calls_of(reset_request)(connection, seconds)


FLOODS = {
    "resets": attacks.rapid_reset,
    "resets_of_streams": lambda *given: attacks.rapid_reset(*given, path=LEARN_STREAM),
    "resets_of_requests": calls_of(reset_request),
    "resets_of_requests_beside_a_call": resets_beside_a_call,
    "continuations": attacks.continuation_flood,
    "small_continuations": attacks.small_continuation_flood,
    "settings": attacks.settings_flood,
    "pings": attacks.ping_flood,
    "empty_data": small_frames(attacks.DATA),
    "priorities": small_frames(2, bytes(5)),
    "window_updates": small_frames(attacks.WINDOW_UPDATE, b"\0\0\0\1", False),
    "unknown_frames": small_frames(200, bytes(1000), False),
    "large_headers": calls_of(large_headers),
    "expanding_headers": calls_of(expanding_headers),
}

UNFINISHED = struct.pack(">BI", 0, 64 << 20) + b"\x0a" * 60_000_000
ATTACKS = {f"parts_{name}": parts(*part) for name, part in PARTS.items()} | {
    f"flood_of_{name}": Attack(lambda target, flood=flood: target.flood(flood)) for name, flood in FLOODS.items()} | {
    f"flood_of_{flood.__name__}_unread": Attack(lambda target, flood=flood: target.flood(flood, ignore_answers=False)) for flood in (attacks.ping_flood, attacks.settings_flood)} | {
    "unfinished_messages_of_60_mb": Attack(lambda target: target.bodies(UNFINISHED, 40, 5), 40),
    "unfinished_requests_of_60_mb": Attack(lambda target: target.bodies(UNFINISHED, 40, 40, path=CREATE), 40),
    "a_window_on_each_of_2000_streams": Attack(lambda target: target.bodies(UNFINISHED[:500_000], 2000, 4), 2000),
    "whole_messages_of_60_mb": Attack(lambda target: target.call(LEARN, [bytes(60_000_000)] * 40, 40), 40),
    "watchers_of_health": Attack(lambda target: target.unread(HEALTH_WATCH, b"", 2500), 2500),
    "reflection_unread": Attack(lambda target: target.unread(REFLECTION, field(4, b"perceptron.v1.ModelService")), 1000),
    "many_models": Attack(lambda target: target.call(CREATE, (create(f"m{i}", 4, description="d" * 1000) for i in range(5000)))),
    "page_requests_that_never_end": Attack(lambda target: target.http(2000, b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 15000)),
    "page_bodies_that_never_end": Attack(lambda target: target.http(500, b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999\r\n\r\n" + bytes(MIB))),
}


def attack(streams=0, *flags, **others):
    def add(run):
        ATTACKS[run.__name__] = Attack(run, streams, flags, **others)
        return run

    return add


@attack(8)
def compressed_messages(target):
    """Of 256 MiB each, in 256 KiB."""
    packed = zlib.compress(b"\x0a\x00" * (128 * MIB), 9)
    target.bodies(struct.pack(">BI", 1, len(packed)) + packed, 8, 8, path=PREDICT, encoding="deflate")


@attack(40)
def valid_messages_of_16_mb(target):
    target.must(CREATE, create("m", "hashed"))
    return target.call(LEARN, [learn("m", columns=columns(1 << 20, labels=[1]))] * 40, 40) + target.call(
        PREDICT, [predict("m", columns=columns(1 << 16, rows=31))] * 40, 40)


@attack(40)
def streams_of_large_messages(target):
    target.must(CREATE, create("m", "hashed"))
    request = learning_service_pb2.LearnStreamRequest(model="models/m", columns=columns(1 << 20, labels=[1])).SerializeToString()
    return target.send(LEARN_STREAM, [request] * 5, 40)


@attack(16)
def tables_of_names(target):
    """Each stream has a table of 2^18 names of 1 KiB."""
    target.must(CREATE, create("m", "named"))

    def messages():
        for first in range(0, 1 << 18, 1 << 13):
            names = "".join(f"{i:01024}" for i in range(first, first + (1 << 13)))
            yield prediction_service_pb2.PredictRequest(model="models/m" * (first == 0), name_table_size=(1 << 18) * (first == 0), columns=example_pb2.ExampleColumns(
                stream_names=example_pb2.NameColumn(text=names, lengths=[1024] * (1 << 13)), indices=range(first, first + (1 << 13)), row_ends=[1 << 13])).SerializeToString()

    return target.send(PREDICT_STREAM, list(messages()), 16)


@attack(10000, stops=True)
def a_hundred_thousand_streams(target):
    """On a hundred connections, held while the server stops. --max-streams are open, the others refused."""
    def open_streams(connection):
        with contextlib.suppress(Closed):
            for _ in range(1000):
                connection.open_stream(LEARN_STREAM)

    together(open_streams, [target.connection() for _ in range(100)])


@attack()
def connections_without_a_call(target):
    """As many as the server takes, and more."""
    for _ in range(9000):
        with contextlib.suppress(OSError, Closed):
            target.connection()


@attack()
def connections_that_come_and_go(target):
    for _ in range(20000):
        with contextlib.suppress(OSError, Closed), Connection(endpoint(target.server)) as connection:
            connection.open_stream(HEALTH)


@attack(2500)
def watchers_of_a_model(target):
    """Of 10,000 names of labels, which changes, and which nobody reads."""
    target.must(CREATE, create("m", 4, classes=10000, labels=[f"{i:0800}" for i in range(10000)]))
    target.unread(MODELS + "WatchModel", named("m"), 2500, 10)
    slowest = 0
    for i in range(40):
        begin = time.monotonic()
        target.must(LEARN, learn("m", columns=columns(1, labels=[0], label_names=[f"{1 + i % 2:0800}"])))
        slowest = max(slowest, time.monotonic() - begin)
    return f"Learn in at most {slowest:.2f} s"


@attack(1000, "--write-timeout=2s")
def weights_that_are_not_read(target):
    target.large("m")
    target.fill(MODELS + "ListWeights", named("m") + varint(2 << 3) + varint(1 << 16))


@attack(1000, "--write-timeout=2s")
def models_that_are_not_read(target):
    target.call(CREATE, [create(f"m{i}", 4, classes=100, labels=[f"{j:01000}" for j in range(100)], description="d" * 1000) for i in range(200)])
    target.fill(MODELS + "ListModels", varint(1 << 3) + varint(1000))


@attack(100, "--write-timeout=2s")
def exports_that_are_not_read(target):
    target.large("m")
    target.unread(EXPORT, named("m"), 100)


@attack(60, "--write-timeout=2s")
def predictions_that_are_not_read(target):
    """Streams that send rows until the server takes no more."""
    target.must(CREATE, create("m", "hashed"))
    request = predict("m", columns=columns(1, rows=60000)).SerializeToString()
    target.bodies((struct.pack(">BI", 0, len(request)) + request) * 40, 60, 6, path=PREDICT_STREAM)


@attack(100)
def class_scores_that_are_not_read(target):
    target.must(CREATE, create("m", 4, classes=10000))
    target.fill(PREDICT, predict("m", columns=columns(1, rows=100), include_class_scores=True).SerializeToString(), 100)


@attack(40)
def explanations_of_large_rows(target):
    target.must(CREATE, create("m", "named"))
    target.must(LEARN, learn("m", examples=[example_pb2.Example(named={"names": [f"{i:01000}" for i in range(12000)]}, label=1)]))
    one = example_pb2.ExampleColumns(row_ends=range(12000, 12000 * 60, 12000), indices=list(range(12000)) * 59, feature_names=example_pb2.NameColumn(
        text="".join(f"{i:01000}" for i in range(12000)), lengths=[1000] * 12000))
    request = prediction_service_pb2.ExplainRequest(model="models/m", columns=one, max_features=10000)
    return target.call(EXPLAIN, [request] * 40)


@attack(40)
def explanations_of_many_features(target):
    """Rows of 600,000 products, and texts of seven million n-grams, of which the largest contributions are listed."""
    products = model_settings("named")
    products.feature_space.map.polynomial.degree = 4
    target.must(CREATE, model_service_pb2.CreateModelRequest(model_id="products", model=products),
                create("texts", "text", feature_options={"max_words": 5, "min_characters": 1, "max_characters": 10}))
    named = example_pb2.Example(named={"names": [f"{i:02}" for i in range(60)]}, label=1)
    text = "".join(random.Random(1).choices("abcdefghijklmnopqrstuvwxyz ", k=650_000))
    target.must(LEARN, learn("products", examples=[named]), learn("texts", columns=example_pb2.ExampleColumns(texts=[text], labels=[1])))
    named.ClearField("label")
    return target.call(EXPLAIN, [prediction_service_pb2.ExplainRequest(model="models/products", examples=[named]),
                                 prediction_service_pb2.ExplainRequest(model="models/texts", columns=example_pb2.ExampleColumns(texts=[text]))] * 20)


@attack(40)
def large_nested_examples(target):
    target.must(CREATE, create("m", "hashed"))
    example = example_pb2.Example(sparse=example_pb2.SparseFeatures(indices=range(1 << 20), values=[1] * (1 << 20)), label=1)
    return target.call(LEARN, [learn("m", examples=[example])] * 20) + target.call(
        PREDICT, [predict("m", examples=[example])] * 20)


@attack(40)
def claimed_sizes(target):
    """Packed columns that say that there is far more."""
    target.must(CREATE, create("dense", 1 << 26), create("m", "named"))
    huge = 2**32 - 1
    lies = [{"row_ends": [huge]}, {"row_ends": [huge] * 65536}, {"dense_width": huge, "values": [1]}, {"dense_width": 1 << 28}, {"row_ends": [1], "indices": [huge]},
            {"row_ends": [1], "feature_names": {"text": "a", "lengths": [huge] * 1000}}, {"row_ends": [1], "stream_names": {"text": "a", "lengths": [huge]}},
            {"index_deltas": [huge] * 65536, "row_ends": [65536]}]
    return sum((target.call(LEARN, [learn(model, columns=lie | {"labels": [1]}) for lie in lies] * 3) + target.call(
        PREDICT, [predict(model, columns=lie) for lie in lies] * 3) for model in ("dense", "m", "plain")), collections.Counter())


@attack(40)
def rows_of_text(target):
    target.must(CREATE, create("m", "text", feature_options={"max_words": 5, "min_characters": 1, "max_characters": 10}))
    word = "".join(chr(0x4e00 + i % 20000) for i in range(300_000))
    letters = " ".join(f"{i:x}" for i in range(150_000))
    texts = [example_pb2.ExampleColumns(texts=[text] * 14, labels=[1] * 14) for text in (word, letters[:1_000_000], letters[:100_000])]
    return target.call(LEARN, [learn("m", columns=one) for one in texts] * 4) + target.call(
        PREDICT, [predict("m", columns=one) for one in texts] * 4)


@attack(16)
def products_of_features(target):
    """Rows that become a million features each."""
    for name, space in (("products", "hashed"), ("names", "named")):
        model = model_settings(space)
        model.feature_space.map.polynomial.degree = 4
        target.must(CREATE, model_service_pb2.CreateModelRequest(model_id=name, model=model))
    rows = columns(60, rows=200, labels=[1] * 200)
    names = example_pb2.Example(named={"names": [f"{i:0200}" for i in range(60)]}, label=1)
    return target.call(LEARN, [learn("products", columns=rows), learn("names", examples=[names] * 20)] * 8)


@attack(16)
def fourier_features(target):
    model = model_settings(1000)
    model.feature_space.map.fourier.dimension = 1 << 20
    model.feature_space.map.fourier.gamma = 1
    created = target.call(CREATE, [model_service_pb2.CreateModelRequest(model_id=f"m{i}", model=model) for i in range(8)])
    return created + target.call(PREDICT, [predict(f"m{i % 8}", columns=columns(1, rows=1000)) for i in range(16)])


@attack()
def large_models(target):
    """Of the largest dimensions, each of which learns."""
    spaces = [(1 << 28,), ("hashed", {"bits": 28}), (1 << 26,), (1 << 24,), ("text", {"bits": 24, "inverse_document_frequency": True})]
    learners = [{"learner": "arow"}, {"prediction": "averaged"}, {"prediction": "pocket", "prediction_options": {"ratchet_examples": 100_000}},
                {"prediction": "voted", "prediction_options": {"budget": 100_000}}, {"learner": "auto"}, {"classes": 10000}, {"classes": 16}, {},
                {"learner": "kernel_perceptron", "learner_options": {"budget": 100_000}}]
    requests = [create(f"m{i}", space[0], feature_options=(space[1:] or [None])[0], **learner)
                for i, (space, learner) in enumerate((space, learner) for space in spaces for learner in learners)]
    created = target.call(CREATE, requests)
    rows = columns(1 << 20, labels=[1])
    return created + target.call(LEARN, [learn(f"m{i}", columns=rows) for i in range(len(requests))])


@attack()
def many_producers(target):
    """Ten thousand of 128 bytes, of each of five models."""
    target.must(CREATE, *[create(f"m{i}", 4) for i in range(5)])
    return target.call(LEARN, (learn(f"m{i % 5}", columns=columns(1, labels=[1]), producer_id=f"{i // 5:0128}", first_offset=0) for i in range(50_000)))


@attack()
def many_request_ids(target):
    """Of creations that are repeated, and one of 14 MiB."""
    codes = target.call(CREATE, [field(3, b"r" * (14 * MIB)) + create("m", 4).SerializeToString()] * 8)
    return codes + target.call(HISTORY + "CopyModel", [named("plain") + field(2, b"models/c%d" % i) + field(3, b"%0128d" % i) for i in range(3000)])


@attack(40)
def long_names(target):
    """New features of 1 KiB each, as fast as they are taken."""
    target.must(CREATE, create("m", "named", feature_options={"max_features": 1 << 24}), create("n", "named"))

    def request(i):
        names = [f"{i:03}{j:01021}" for j in range(10000)]
        return learn("mn"[i % 2], columns=example_pb2.ExampleColumns(row_ends=[10000], indices=range(10000), labels=[1 - i // 2 % 2 * 2], feature_names=example_pb2.NameColumn(
            text="".join(names), lengths=[1024] * 10000)))

    return target.call(LEARN, [request(i) for i in range(80)])


@attack(40)
def predictions_that_wait(target):
    """For labels that never come."""
    target.must(CREATE, create("m", "hashed", stored_predictions={"max_age": "1h", "max_bytes": 1 << 40}))
    return target.call(PREDICT, [predict("m", columns=columns(1 << 18), include_prediction_ids=True)] * 400)


@attack(40)
def stored_examples(target):
    target.must(CREATE, *[create(f"m{i}", "hashed", stored_examples={"max_updates": 100_000, "max_sample": 100_000}) for i in range(8)])
    return target.call(LEARN, [learn(f"m{i % 8}", columns=columns(1 << 19, labels=[i // 8 % 2 * 2 - 1])) for i in range(160)])


@attack(2)
def samples_that_models_keep(target):
    """Of examples that are learned without a mistake."""
    target.must(CREATE, *[create(f"m{i}", "hashed", stored_examples={"max_updates": 10, "max_sample": 100_000}) for i in range(8)])
    return sum((target.call(LEARN, [learn(f"m{k}", columns=columns(1 << 19, i, labels=[1])) for k in range(8)], 2) for i in range(230)), collections.Counter())


@attack(64)
def analyses(target):
    target.must(CREATE, create("m", "hashed", stored_examples={"max_updates": 10_000, "max_sample": 10_000}))
    target.call(LEARN, [learn("m", columns=columns(1000, 1000 * i, rows=50, labels=[1, -1] * 25)) for i in range(40)])
    target.unread(ANALYZE, named("m") + varint(6 << 3) + varint(20000), 64)


@attack(32)
def imports(target):
    """Of a large model, whose end does not come."""
    target.large("m")
    pieces = list(target.channel().unary_stream(EXPORT)(named("m")))
    never = threading.Event()
    target.held.callback(never.set)

    def import_one(i):
        def messages():
            for piece in pieces[:-1]:
                # A response has it in field 1, a request in field 2.
                yield field(1, b"models/n%d" % i) * (piece is pieces[0]) + b"\x12" + piece[1:]
            never.wait()

        return target.channel().stream_unary(IMPORT).future(messages())

    calls = [import_one(i) for i in range(32)]
    target.wait("imports are refused", lambda: any(call.done() for call in calls))
    return codes_of(call for call in calls if call.done())


@attack(8)
def import_of_empty_parts(target):
    """ModelFileFrame.state.rows, and a frame that says it has 2 GiB."""
    empty = filled(field(7), 4)
    files = [b"perceptrond model 1\n" + varint(len(empty)) + empty, b"perceptrond model 1\n" + varint(2**31 - 1) + bytes(14 * MIB)]
    return sum((target.send(IMPORT, [field(1, b"models/n") + field(2, file)] + [field(2, file[20:])] * 4) for file in files), collections.Counter())


@attack(40)
def copies_and_snapshots(target):
    target.large("m", 23)
    codes = target.call(HISTORY + "CopyModel", [named("m") + field(2, b"models/c%d" % i) for i in range(8)])
    return codes + target.call(HISTORY + "CreateSnapshot", [named("m") + field(2, b"s%d" % i) for i in range(16)])


@attack()
def page_answers_that_are_not_read(target):
    target.call(CREATE, [create(f"m{i}", 4) for i in range(2000)])
    target.http(500, b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
    target.http(500, b"GET /api/models?page_size=100 HTTP/1.1\r\nHost: localhost\r\n\r\n")


@attack(80, "--write-timeout=2s")
def all_at_once(target):
    """Models, streams, answers and analyses."""
    for i in range(12):
        target.must(CREATE, create(f"m{i}", "hashed", feature_options={"bits": 24}))
        target.must(LEARN, learn(f"m{i}", columns=columns(1 << 20, labels=[1])))
        target.unread(ANALYZE, named(f"m{i}"), 1, 1)
        target.unread(EXPORT, named(f"m{i}"), 2, 1)
    predictions_that_are_not_read(target)


class AttackTest(ServerTest):
    LINE = "{:40} {:>8} {:>8} {:>8} {:>8}  {:>8} {:>8}  {}"

    @classmethod
    def setUpClass(cls):
        print(cls.LINE.format("attack, sizes in MiB", "allowed", "peak", "process", "sockets", "answered", "slowest", "codes, connections closed"), flush=True)

    def check(self, name, one):
        cgroup = self.enterContext(Cgroup(documented_size(one.streams)))
        server = self.serve(*one.flags, before=f"echo $$ >{cgroup.path}/cgroup.procs")
        target, good, said, resident = Target(server), GoodClient(server), "", 0
        self.addCleanup(target.close)
        try:
            with good:
                said = one.run(target) or ""
                self.assertIsNone(server.process.poll(), "the server has ended")
                said = f"{said} {closed_connections(server)}"
                before = good.answered
                if not one.stops:
                    target.wait("a prediction is answered", lambda: good.answered > before)
            self.assertGreater(good.answered, 0)
            # What does not fit the budget is refused, and the client comes again.
            self.assertLessEqual(good.errors.keys(), {"RESOURCE_EXHAUSTED"})
            if not one.stops:
                target.close()
                target.must(PREDICT, good.REQUEST)
                for use in "requests", "answers", "analyses":
                    target.wait(f"no {use} are reserved", lambda: metric(server, f'perceptrond_memory_reserved_bytes{{use="{use}"}}') == 0)
            resident = resident_peak(server.process)
            begin = time.monotonic()
            server.process.send_signal(signal.SIGTERM)
            self.assertEqual(server.process.wait(DRAIN_SECONDS + MARGIN_SECONDS), 0)
            said = f"{said}, stopped in {time.monotonic() - begin:.0f} s"
            self.assertEqual(cgroup.kills(), 0)
        finally:
            sizes = (documented_size(one.streams), cgroup.peak(), resident or resident_peak(server.process), cgroup.socket_peak())
            codes = ", ".join(f"{count} {code} beside" for code, count in good.errors.items())
            print(self.LINE.format(name, *(size >> 20 for size in sizes), good.answered, f"{good.slowest:.2f}s", f"{said} {codes}{' KILLED' * cgroup.kills()}"),
                  flush=True)


for each in ATTACKS.items():
    setattr(AttackTest, f"test_{each[0]}", lambda self, each=each: self.check(*each))


# ---- Other limits ----


class LimitsTest(ServerTest):
    def test_a_request_that_does_not_arrive_ends_with_words(self):
        server = self.serve("--receive-timeout", "1s")
        with connect(server) as channel:
            never = threading.Event()
            self.addCleanup(never.set)

            def nothing():
                never.wait()
                yield b""

            def slowly():
                yield field(1, b"models/n") + field(2, b"perceptrond model 1\n" + varint(MIB))
                while not never.wait(0.01):
                    yield field(2, b"\0")

            methods = [MODELS + "GetModel", MODELS + "WatchModel", ANALYZE, HEALTH, HEALTH_WATCH, REFLECTION, IMPORT]
            calls = [(method, channel.stream_stream(method)(nothing())) for method in methods] + [
                ("slowly", channel.stream_stream(IMPORT)(slowly()))]
            for method, call in calls:
                with self.subTest(method=method):
                    with self.assertRaises(grpc.RpcError) as caught:
                        list(call)
                    self.assertEqual(caught.exception.code(), grpc.StatusCode.DEADLINE_EXCEEDED)
                    self.assertIn(b"REQUEST_TIMEOUT", dict(caught.exception.trailing_metadata())["grpc-status-details-bin"])

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
        server = self.serve(before="ulimit -n 1024")
        with connect(server) as early:
            check = early.unary_unary(HEALTH)
            check(b"", timeout=10)
            held = [socket.create_connection(endpoint(server), timeout=10) for _ in range(2000)]
            wait_for("the connections are accepted", lambda: metric(server, "perceptrond_connections_open") >= 384)
            self.assertEqual(metric(server, "perceptrond_connections_open"), 384)
            # Those that are there go on; another is refused at once and not left waiting, with words unless too many are.
            check(b"", timeout=10)

            def refused_with_words():
                with connect(server) as late, self.assertRaises(grpc.RpcError) as caught:
                    late.unary_unary(MODELS + "ListModels")(b"", timeout=30)
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
        with connect(server) as channel:
            channel.unary_unary(HEALTH)(b"", timeout=10)
        resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE, (3, 3))
        self.assertEqual(server.process.wait(60), 1)
        self.assertIn("no longer answers at its own address", server.log.read_text())

    def test_a_model_that_cannot_be_allocated_is_refused_and_the_server_goes_on(self):
        """The budget is larger than the memory that the process may have: a model of 2^28 weights needs far more."""
        server = self.serve("--memory-budget", "64GiB")
        most = (int(re.search(r"VmSize:\s+(\d+)", pathlib.Path(f"/proc/{server.process.pid}/status").read_text())[1]) << 10) + 400 * MIB
        resource.prlimit(server.process.pid, resource.RLIMIT_AS, (most, most))
        target = Target(server)
        self.addCleanup(target.close)
        for model in "large", "another":
            with self.assertRaises(grpc.RpcError) as caught:
                target.channel().unary_unary(CREATE)(create(model, "hashed", feature_options={"bits": 28}).SerializeToString())
            self.assertIn(b"OUT_OF_MEMORY", dict(caught.exception.trailing_metadata())["grpc-status-details-bin"])
        self.assertEqual(target.call(CREATE, [create("small", 4)]), {"OK": 1})
        server.process.terminate()
        self.assertEqual(server.process.wait(), 0)


if __name__ == "__main__":
    # Attackers have as many connections as they can.
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    unittest.main(argv=sys.argv[:1] + sys.argv[2:])
