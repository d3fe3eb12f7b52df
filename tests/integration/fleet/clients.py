"""Producers and readers of a fleet that note each answer.

A producer's rows are such that the order of the producers does not matter to what the model must become: producer p has two features
of its own. Every EVERY messages the first row has the one, with the label +1 and -1 in turn, which is a mistake whenever it is learned
in its turn; all other rows have the other one with the label +1, which is a mistake the first time."""

import collections
import queue
import threading
import time
from typing import NamedTuple

import grpc

from cluster import SIZE, eventually
from perceptrond.columns import pack
from perceptrond.errors import error_info, reason, status_of
from perceptrond.rows import Row
from perceptrond.google_rpc import error_details_pb2
from perceptrond.v1 import learning_service_pb2, model_pb2, model_service_pb2, prediction_service_pb2
from processes import wait_for

DIMENSION = 16
# The feature of a row besides those of the producers.
PROBE = DIMENSION - 1
ROWS, EVERY, WINDOW = 20, 10, 5
# An answer that takes longer is taken for lost, and the next server is tried.
ANSWER_SECONDS = 4
PREDICT_SECONDS = 5
# A client waits for this time between messages.
PAUSE_SECONDS = 0.005
# A reader counts as reading after so many answers.
READS = 20


def settings():
    model = model_pb2.Model()
    model.feature_space.dense.dimension = DIMENSION
    model.learner.perceptron.SetInParent()
    model.learner.bias_input = 0
    return model


def create(fleet, model):
    request = model_service_pb2.CreateModelRequest(model_id=model, model=settings(), request_id=model)
    eventually(f"{model} is created", lambda: fleet.stubs[0].models.CreateModel(request, timeout=30))


def learn(fleet, server, model, rows, offset=None, timeout=30):
    """Returns None, or a Failure. With an offset the rows are learned once, however often they are sent."""
    request = learning_service_pb2.LearnRequest(model=f"models/{model}", columns=pack(rows))
    if offset is not None:
        request.producer_id, request.first_offset = "probe", offset
    try:
        fleet.stubs[server].learning.Learn(request, timeout=timeout)
        return None
    except grpc.RpcError as error:
        return failure_of(error, server)


def learn_once(fleet, server, model, timeout=30):
    """Learns one more row, an update once however often it is sent."""
    return learn(fleet, server, model, [Row({PROBE: 1.0}, 1)], 0, timeout)


def alternates(message):
    return message % EVERY == 0


def rows_of(producer, message):
    right = Row({2 * producer + 1: 1.0}, 1)
    if not alternates(message):
        return [right] * ROWS
    return [Row({2 * producer: 1.0}, 1 if message // EVERY % 2 == 0 else -1)] + [right] * (ROWS - 1)


def updates_in(messages):
    """The rows of a producer's first messages that are updates: their offsets."""
    alternating = [message * ROWS for message in range(0, messages, EVERY)]
    return sorted(alternating + [1]) if messages else []


def weights_after(messages):
    """All weights after each producer's messages, which are numbers by producer."""
    weights = [0.0] * DIMENSION
    for producer, count in enumerate(messages):
        if count:
            weights[2 * producer] = float(len(range(0, count, EVERY)) % 2)
            weights[2 * producer + 1] = 1.0
    return weights


class Answer(NamedTuple):
    server: int
    # The first offset of the rows that it is for.
    first: int
    acknowledged: int
    revision: int
    duplicates: int
    # Offsets that were updates, each with its revision.
    updates: list


class Failure(NamedTuple):
    server: int
    code: str
    reason: str
    message: str
    # The server says when to try again.
    retry: bool


def failure_of(error, server):
    status = status_of(error)
    retry = error_details_pb2.RetryInfo()
    return Failure(server, error.code().name, reason(error), status.message, any(detail.Unpack(retry) for detail in status.details))


class Client(threading.Thread):
    """Runs until it is stopped; an exception is raised by stop()."""

    def __init__(self, name, fleet, servers):
        super().__init__(name=name, daemon=True)
        self.fleet, self.servers = fleet, list(servers)
        self.failures, self._stopping, self._error, self._abandoned = [], threading.Event(), None, False
        self._turn = 0

    def run(self):
        try:
            while not (self._abandoned or self.is_done()):
                self.step(self.servers[self._turn % len(self.servers)])
        except Exception as error:
            self._error = error

    def is_done(self):
        return self._stopping.is_set()

    def failed(self, error, server):
        self.failures.append(failure_of(error, server))
        self._turn += 1
        self._stopping.wait(0.05)

    def check(self):
        if self._error is not None:
            raise AssertionError(f"{self.name} failed") from self._error

    def abandon(self):
        """Ends soon, whatever was not acknowledged."""
        self._abandoned = True
        self._stopping.set()

    def stop(self, seconds=60):
        self._stopping.set()
        self.join(seconds)
        self.check()
        assert not self.is_alive(), f"{self.name} does not end; last failures: {self.failures[-3:]}"


class Producer(Client):
    """Sends its messages in order, each until it is acknowledged; stops once all that were sent are."""

    def __init__(self, number, model, fleet, servers):
        super().__init__(f"producer-{number}", fleet, servers)
        self.number, self.model = number, model
        self.answers, self.opened = [], []
        self.sent, self.acknowledged, self.revision, self.epoch = 0, -1, 0, 0
        self._opened = None

    def is_done(self):
        return self._stopping.is_set() and self.acknowledged + 1 == self.sent * ROWS

    @property
    def messages(self):
        return (self.acknowledged + 1) // ROWS

    def opening(self):
        """The first message of a stream, with the claim to what was acknowledged."""
        request = learning_service_pb2.LearnStreamRequest(model=f"models/{self.model}", result_detail=learning_service_pb2.RESULT_DETAIL_UPDATES)
        request.producer.id = f"p{self.number}"
        if self._opened is not None:
            resume = request.producer.resume
            resume.model_uid, resume.acknowledged_offset = self._opened.model_uid, max(self.acknowledged, 0)
            resume.acknowledged_revision, resume.acknowledged_epoch = self.revision, self.epoch
            if self.acknowledged < 0:
                request.producer.ClearField("resume")
        return request

    def step(self, server):
        requests, watch = queue.SimpleQueue(), None
        requests.put(self.opening())
        answers = self.fleet.stubs[server].learning.LearnStream(iter(requests.get, None))
        watch = Watchdog(answers)
        try:
            self._exchange(server, requests, answers, watch)
        except grpc.RpcError as error:
            self.failed(error, server)
        finally:
            watch.stop()
            requests.put(None)
            answers.cancel()

    def _exchange(self, server, requests, answers, watch):
        first = next(answers)
        watch.feed()
        opened = self._opened = first.opened
        self.opened.append((server, opened.next_offset, opened.revision, self.acknowledged, self.revision))
        self._acknowledge(opened.next_offset - 1, opened)
        waiting, results = collections.deque(), collections.deque(first.results)
        following = opened.next_offset // ROWS
        assert following <= self.sent, f"{self.name}: {opened.next_offset} is accounted for, of {self.sent} messages"
        is_first = True
        while not self.is_done():
            while len(waiting) < WINDOW and (following < self.sent or not self._stopping.is_set()):
                request = learning_service_pb2.LearnStreamRequest(first_offset=following * ROWS)
                request.columns.CopyFrom(pack(rows_of(self.number, following)))
                requests.put(request)
                waiting.append(following)
                following += 1
                self.sent = max(self.sent, following)
            if not results:
                results.extend(next(answers).results)
                watch.feed()
            result = results.popleft()
            if is_first:
                is_first = False
                continue
            assert not result.HasField("error"), f"{self.name}: {result.error}"
            self._note(server, waiting.popleft(), result)
            self._stopping.wait(PAUSE_SECONDS)

    def _note(self, server, message, result):
        updates = [(message * ROWS + row, revision) for row, revision in zip(result.updated_rows, result.update_revisions)]
        self.answers.append(Answer(server, message * ROWS, result.acknowledged_offset, result.revision, result.duplicates, updates))
        self._acknowledge(result.acknowledged_offset, result)

    def _acknowledge(self, offset, answer):
        self.acknowledged = max(self.acknowledged, offset)
        self.revision, self.epoch = max((self.revision, self.epoch), (answer.revision, answer.epoch))


class Watchdog:
    """Cancels a call whose next answer does not come in time."""

    def __init__(self, call):
        self._call, self._fed, self._stopped = call, time.monotonic(), threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def feed(self):
        self._fed = time.monotonic()

    def stop(self):
        self._stopped.set()

    def _run(self):
        while not self._stopped.wait(0.1):
            if time.monotonic() - self._fed > ANSWER_SECONDS:
                self._call.cancel()
                return


class Reader(Client):
    """Predicts again and again at one server."""

    def __init__(self, model, fleet, server):
        super().__init__(f"reader-{server}", fleet, [server])
        self.answers = 0
        self._request = prediction_service_pb2.PredictRequest(model=f"models/{model}", columns=pack([Row({0: 1.0}, None)]))

    def step(self, server):
        try:
            self.fleet.stubs[server].predictions.Predict(self._request, timeout=PREDICT_SECONDS)
            self.answers += 1
            self._stopping.wait(4 * PAUSE_SECONDS)
        except grpc.RpcError as error:
            self.failed(error, server)


class Load:
    """A producer at each server, which goes to the others when it fails there, and a reader at each."""

    def __init__(self, fleet, model):
        self.fleet, self.model = fleet, model
        self.producers = [Producer(i, model, fleet, [(i + k) % SIZE for k in range(SIZE)]) for i in range(SIZE)]
        self.readers = [Reader(model, fleet, i) for i in range(SIZE)]
        self.clients = [*self.producers, *self.readers]
        for client in self.clients:
            client.start()

    def _await(self, what, count, clients, more):
        before = [count(client) for client in clients]

        def enough():
            self.fleet.check_running()
            for client in self.clients:
                client.check()
            return all(count(client) >= first + more for client, first in zip(clients, before))

        try:
            wait_for(what, enough)
        except AssertionError as late:
            raise AssertionError(f"{late}; {[count(client) for client in clients]} after {before}; {self.failures()}") from late

    def await_progress(self, messages=2 * EVERY):
        """Until each producer has this many more messages acknowledged."""
        self._await("each producer goes on", lambda producer: producer.messages, self.producers, messages)

    def await_reads(self):
        self._await("all servers predict", lambda reader: reader.answers, self.readers, READS)

    def failures(self):
        return dict(collections.Counter((failure.code, failure.reason) for producer in self.producers for failure in producer.failures))

    def stop(self):
        for client in self.clients:
            client.stop()

    def abandon(self):
        for client in self.clients:
            client.abandon()
