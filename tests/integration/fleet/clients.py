"""Producers and readers of a fleet that note each answer and when it came.

A producer's rows are such that the order of the producers does not matter to what the model must become: producer p has two features
of its own. Every EVERY messages the first row has the one, with the label +1 and -1 in turn, which is a mistake whenever it is learned
in its turn; all other rows have the other one with the label +1, which is a mistake the first time."""

import collections
import queue
import threading
import time
from typing import NamedTuple

import grpc

from cluster import SIZE
from perceptrond.columns import pack
from perceptrond.errors import error_info, reason, status_of
from perceptrond.rows import Row
from perceptrond.google_rpc import error_details_pb2
from perceptrond.v1 import learning_service_pb2, model_pb2, prediction_service_pb2
from processes import wait_for

DIMENSION = 16
ROWS, EVERY, WINDOW = 20, 10, 5
# An answer that takes longer is taken for lost, and the next server is tried.
ANSWER_SECONDS = 4
# Progress that takes longer is reported.
SLOW_SECONDS = 30
PREDICT_SECONDS = 0.5
# Of how often a client sends.
PAUSE_SECONDS = 0.005


def settings():
    model = model_pb2.Model()
    model.feature_space.dense.dimension = DIMENSION
    model.learner.perceptron.SetInParent()
    model.learner.bias_input = 0
    return model


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
    time: float
    server: int
    # The first offset and number of the rows that it is for.
    first: int
    rows: int
    acknowledged: int
    revision: int
    duplicates: int
    # Offsets that were updates, each with its revision.
    updates: list


class Failure(NamedTuple):
    time: float
    server: int
    code: str
    reason: str
    message: str
    # The server says when to try again.
    retry: bool


def failure_of(error, server):
    status = status_of(error)
    retry = error_details_pb2.RetryInfo()
    return Failure(time.monotonic(), server, error.code().name, reason(error), status.message, any(detail.Unpack(retry) for detail in status.details))


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
        self.sent, self.acknowledged, self.revision = 0, -1, 0
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
            resume.model_uid, resume.history_id = self._opened.model_uid, self._opened.history_id
            resume.acknowledged_offset, resume.acknowledged_revision = max(self.acknowledged, 0), self.revision
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
        self.opened.append((time.monotonic(), server, opened.next_offset, opened.revision, self.acknowledged, self.revision))
        self.acknowledged, self.revision = max(self.acknowledged, opened.next_offset - 1), max(self.revision, opened.revision)
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
        self.answers.append(Answer(time.monotonic(), server, message * ROWS, ROWS, result.acknowledged_offset, result.revision, result.duplicates, updates))
        self.acknowledged, self.revision = max(self.acknowledged, result.acknowledged_offset), max(self.revision, result.revision)


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
    """Predicts again and again, at the first of its servers that answers."""

    def __init__(self, name, model, fleet, servers):
        super().__init__(f"reader-{name}", fleet, servers)
        self.times = []
        self._request = prediction_service_pb2.PredictRequest(model=f"models/{model}", columns=pack([Row({0: 1.0}, None)]))

    def step(self, server):
        try:
            self.fleet.stubs[server].predictions.Predict(self._request, timeout=PREDICT_SECONDS)
            self.times.append(time.monotonic())
            self._stopping.wait(4 * PAUSE_SECONDS)
        except grpc.RpcError as error:
            self.failed(error, server)


def longest_gap(times, begin, end):
    """The longest time between two of these moments, from `begin` to `end`."""
    moments = [begin, *(moment for moment in times if begin < moment < end), end]
    return max(after - before for before, after in zip(moments, moments[1:]))


class Load:
    """A producer and a reader at each server, and a reader that may go to any."""

    def __init__(self, fleet, model):
        self.fleet, self.model = fleet, model
        turn = lambda i: [(i + k) % SIZE for k in range(SIZE)]
        self.producers = [Producer(i, model, fleet, turn(i)) for i in range(SIZE)]
        self.readers = [Reader(f"at-{i}", model, fleet, [i]) for i in range(SIZE)]
        self.roaming = [Reader(f"from-{i}", model, fleet, turn(i)) for i in range(SIZE)]
        for client in self.clients():
            client.start()

    def clients(self):
        return [*self.producers, *self.readers, *self.roaming]

    def await_progress(self, messages=2 * EVERY, seconds=180, producers=None):
        """Until each producer has this many more messages acknowledged. NATS stood still for about a minute in a few of many runs."""
        producers = self.producers if producers is None else producers
        before, begin = [producer.messages for producer in producers], time.monotonic()

        def progressed():
            for client in self.clients():
                client.check()
            return all(producer.messages >= first + messages for producer, first in zip(producers, before))

        def failures():
            """How often producers failed, why, and the last failure."""
            return {producer.name: (collections.Counter((failure.server, failure.code, failure.reason) for failure in producer.failures if failure.time >= begin),
                                    producer.failures[-1:]) for producer in producers}

        try:
            wait_for("each producer goes on", progressed, seconds)
        except AssertionError as late:
            raise AssertionError(f"{late}; {[producer.messages for producer in producers]} after {before}; {failures()}") from late
        if time.monotonic() - begin > SLOW_SECONDS:
            print(f"producers went on after {time.monotonic() - begin:.0f} s: {failures()}", flush=True)

    def stop(self):
        for client in self.clients():
            client.stop()

    def abandon(self):
        for client in self.clients():
            client.abandon()

    def without_learning(self, begin, end):
        return max(longest_gap([answer.time for answer in producer.answers], begin, end) for producer in self.producers)

    def without_predictions(self, begin, end):
        """Of a client that knows all servers; and by server."""
        return (max(longest_gap(reader.times, begin, end) for reader in self.roaming), [longest_gap(reader.times, begin, end) for reader in self.readers])
