"""The threads of a soak: producers that learn, readers that predict, and one that creates and deletes models. Each goes on through every end
of the server."""

import collections
import itertools
import queue
import random
import threading

import grpc

from perceptrond import errors
from perceptrond.columns import pack
from perceptrond.name_table import NameTable
from perceptrond.v1 import example_pb2, learning_service_pb2, model_service_pb2, prediction_service_pb2
from workload import Examples, settings

TIMEOUT = dict(wait_for_ready=True, timeout=60)
Detail = learning_service_pb2.ResultDetail


class Broken(Exception):
    """A call failed as it never should; promises.py has noted it."""


class Actor(threading.Thread):
    def __init__(self, name, services, promises, stop):
        super().__init__(name=name, daemon=True)
        self.services, self.promises, self._stop_event = services, promises, stop
        self.counts, self.failure = collections.Counter(), None

    def run(self):
        try:
            while not self._stop_event.is_set():
                self.step()
        except Exception as error:
            self.failure = error

    def step(self):
        raise NotImplementedError

    def call(self, name, make, expected=()):
        """Makes a call until it succeeds: its answer, or the reason if that is one of those expected."""
        while True:
            epoch = self.promises.epoch()
            try:
                answer = make()
                self.counts[f"calls of {name}"] += 1
                return answer
            except grpc.RpcError as error:
                if self.promises.failed(name, error, epoch, expected):
                    self.promises.await_server()
                    continue
                reason = errors.reason(error)
                if reason in expected:
                    return reason
                raise Broken(name) from error


def nested(rows):
    """Rows by name, as nested examples."""
    return [example_pb2.Example(named=example_pb2.NamedFeatures(names=list(row.features), values=list(row.features.values())), label=row.label) for row in rows]


class Position:
    """A producer's, as its answers tell."""

    def __init__(self, model, producer, steps=False):
        self.model, self.producer, self.steps = f"models/{model}", producer, steps
        self.acknowledged, self.revision = -1, 0


class UnaryProducers(Actor):
    """The only producer of each of some models, by unary calls with numbered examples: what was not answered is sent again."""

    def __init__(self, name, services, promises, models, stop, seed):
        super().__init__(name, services, promises, stop)
        self._models = {model: (examples, Position(model, "p", settings_.learner.HasField("batch_perceptron"))) for model, examples, settings_ in models}
        self._next = itertools.cycle(self._models)
        self._random = random.Random(f"{seed} {name}")

    def positions(self):
        return {model: position.acknowledged + 1 for model, (_, position) in self._models.items()}

    def step(self):
        self.send(next(self._next), self._random.randrange(1, 60))

    def send_up_to(self, end, batch):
        """Sends the examples of the only model from the first on."""
        (model,) = self._models
        while (position := self.positions()[model]) < end:
            self.send(model, min(batch, end - position))

    def send(self, model, count):
        examples, position = self._models[model]
        first = position.acknowledged + 1
        rows = examples.rows(first, count)
        # Names in columns would be numbered, and so summed, in an order that depends on the other rows of the message.
        as_nested = isinstance(next(iter(rows[0].features)), str)
        request = learning_service_pb2.LearnRequest(model=f"models/{model}", producer_id="p", first_offset=first,
                                                    result_detail=Detail.RESULT_DETAIL_FULL if as_nested else Detail.RESULT_DETAIL_UPDATES)
        if as_nested:
            request.examples.extend(nested(rows))
        else:
            request.columns.CopyFrom(pack(rows))
        result = self.call("Learn", lambda: self.services.learning.Learn(request, **TIMEOUT)).result
        self.promises.check("full detail has one label a row", len(result.predicted_labels) == (count if as_nested else 0), model=model, first=first)
        self.promises.learned(position, result, first, count, sole=True)
        self.counts["examples learned by unary calls"] += count

    def probe(self, model):
        """The model's answer to some rows, as bytes."""
        examples, _ = self._models[model]
        request = prediction_service_pb2.PredictRequest(model=f"models/{model}", columns=pack(examples.rows(10 ** 9, 50)))
        return self.call("Predict", lambda: self.services.predictions.Predict(request, **TIMEOUT)).SerializeToString()


class StreamProducer(Actor):
    """One producer on a LearnStream: opens it again after each end of the server, goes on where the server says, and marks passes."""

    WINDOW = 4

    def __init__(self, model, producer, services, promises, examples, stop, names=False, sole=False, pass_rows=0):
        super().__init__(f"stream-{model}-{producer}", services, promises, stop)
        self.model, self.examples, self._names, self._sole, self._pass_rows = model, examples, names, sole, pass_rows
        self._state = Position(model, producer)
        self._uid, self._history_id, self._passes, self._acknowledged_passes = "", "", 0, 0
        self._random = random.Random(self.name)
        # The next example to send.
        self.position = 0

    def step(self):
        epoch = self.promises.epoch()
        try:
            self._stream()
        except grpc.RpcError as error:
            if not self.promises.failed("LearnStream", error, epoch):
                raise Broken("LearnStream") from error
            self.counts["streams lost"] += 1
            self.promises.await_server()

    def _opening(self):
        request = learning_service_pb2.LearnStreamRequest(model=self._state.model, result_detail=Detail.RESULT_DETAIL_UPDATES, include_report=self._pass_rows > 0,
                                                          name_table_size=256 if self._names else 0)
        request.producer.id = self._state.producer
        if self._uid and self._state.acknowledged >= 0:
            request.producer.resume.model_uid = self._uid
            request.producer.resume.acknowledged_offset = self._state.acknowledged
            request.producer.resume.acknowledged_revision = self._state.revision
            request.producer.resume.history_id = self._history_id
        return request

    def _stream(self):
        requests = queue.SimpleQueue()
        requests.put(self._opening())
        answers = self.services.learning.LearnStream(iter(requests.get, None), wait_for_ready=True)
        try:
            self._opened(next(answers).opened)
            table = NameTable(256) if self._names else None
            waiting, number, results = collections.deque(), 0, collections.deque()
            while True:
                while len(waiting) < self.WINDOW and not self._stop_event.is_set():
                    request = self._message(table)
                    waiting.append((request.first_offset, len(request.columns.row_ends), request.completed_pass))
                    requests.put(request)
                if not waiting:
                    break
                while not results:
                    response = next(answers)
                    # The first message has a result too, and no examples.
                    results.extend(result for result in response.results if result.message_number > 0)
                    if response.HasField("report"):
                        self._check_report(response.report)
                number += 1
                self._answered(results.popleft(), number, *waiting.popleft())
            requests.put(None)
            self.promises.check("a stream ends after a half-close", next(answers, None) is None, model=self.model)
        finally:
            requests.put(None)
            answers.cancel()

    def _opened(self, opened):
        facts = {"model": self.model, "producer": self._state.producer, "next_offset": opened.next_offset, "acknowledged": self._state.acknowledged}
        self.promises.check("nothing acknowledged is lost", opened.next_offset > self._state.acknowledged and opened.passes >= self._acknowledged_passes and
                            opened.revision >= self._state.revision, **facts, revision=opened.revision, before=self._state.revision, passes=opened.passes)
        self.promises.check("nothing is accounted for that was not sent", opened.next_offset <= self.position, **facts, sent=self.position)
        self.promises.check("a model keeps its uid", self._uid in ("", opened.model_uid), **facts)
        self._uid, self._history_id, self._passes = opened.model_uid, opened.history_id, opened.passes
        self.position = opened.next_offset
        self._state.acknowledged = opened.next_offset - 1
        self._state.revision = opened.revision

    def _message(self, table):
        request = learning_service_pb2.LearnStreamRequest(first_offset=self.position)
        done = self.position // self._pass_rows if self._pass_rows else 0
        if self._pass_rows and self.position % self._pass_rows == 0 and self._passes < done:
            # The examples of a pass were learned, but its mark was lost.
            self._passes = request.completed_pass = done
            return request
        count = self._random.randrange(1, 80)
        if self._pass_rows:
            count = min(count, self._pass_rows - self.position % self._pass_rows)
        rows = self.examples.rows(self.position, count)
        columns, count = table.pack(rows) if table else (pack(rows), count)
        request.columns.CopyFrom(columns)
        self.position += count
        if self._pass_rows and self.position % self._pass_rows == 0:
            self._passes = request.completed_pass = self.position // self._pass_rows
        return request

    def _answered(self, result, number, first, count, completed_pass):
        self.promises.check("results come in the order of the messages", result.message_number == number, model=self.model, number=number,
                            found=result.message_number)
        if not self.promises.check("no message of a stream is refused", not result.HasField("error"), model=self.model, error=str(result.error)):
            raise Broken("LearnStream")
        self.promises.learned(self._state, result, first, count, self._sole)
        if completed_pass:
            self._acknowledged_passes = completed_pass
            self.promises.check("a completed pass has its summary", result.completed_pass.number == completed_pass, model=self.model, expected=completed_pass,
                                found=result.completed_pass.number)
        self.counts["examples learned by streams"] += count

    def _check_report(self, report):
        self.promises.check("a report's counters fit together", report.mistakes <= report.examples and report.streak <= report.examples, model=self.model)
        self.promises.check("the norm is within its bound", not report.HasField("bound_in_use") or report.bound_in_use <= 1, model=self.model,
                            bound_in_use=report.bound_in_use)


class Reader(Actor):
    """Predicts with any model, at any revision that it must have."""

    def __init__(self, name, services, promises, models, stop, seed, on_stream):
        super().__init__(name, services, promises, stop)
        self._models, self._on_stream = models, on_stream
        self._random = random.Random(f"{seed} {name}")
        self._probes = {space: [pack([row._replace(label=None) for row in Examples(7, "probe", space).rows(10 * i, i + 1)]) for i in range(5)]
                        for space in ("dense", "hashed", "named")}

    def _request(self):
        model, space = self._random.choice(self._models)
        probe = self._random.randrange(5)
        return probe, prediction_service_pb2.PredictRequest(model=f"models/{model}", columns=self._probes[space][probe],
                                                            min_revision=self.promises.durable_revision(f"models/{model}"))

    def step(self):
        if self._on_stream:
            self._stream()
            return
        probe, request = self._request()
        response = self.call("Predict", lambda: self.services.predictions.Predict(request, **TIMEOUT))
        self._check(probe, request, response)

    def _check(self, probe, request, response):
        self.promises.check("answers come in the order of the questions", len(response.scores) == len(response.predicted_labels) == probe + 1,
                            model=request.model, rows=probe + 1, found=len(response.scores))
        response.ClearField("name_table_size")
        self.promises.predicted(request.model, probe, response, request.min_revision)
        self.counts["rows predicted"] += probe + 1

    def _stream(self):
        asked = [self._request() for _ in range(20)]
        epoch = self.promises.epoch()
        try:
            answers = self.services.predictions.PredictStream(iter([request for _, request in asked]), **TIMEOUT)
            count = 0
            for (probe, request), response in zip(asked, answers):
                self.promises.check("no question of a stream is refused", not response.HasField("error"), model=request.model, error=str(response.error))
                self._check(probe, request, response)
                count += 1
            self.promises.check("every question is answered", count == len(asked), found=count)
        except grpc.RpcError as error:
            if not self.promises.failed("PredictStream", error, epoch):
                raise Broken("PredictStream") from error
            self.promises.await_server()


class Churn(Actor):
    """One model after the other of three names: created, taught, deleted."""

    def __init__(self, name, services, promises, stop, seed):
        super().__init__(name, services, promises, stop)
        self._seed, self._round = seed, 0

    def step(self):
        self._round += 1
        name, models = f"churn-{self._round % 3}", self.services.models
        create = model_service_pb2.CreateModelRequest(model_id=name, model=settings(), request_id=f"{self._round}")
        created = self.call("CreateModel", lambda: models.CreateModel(create, **TIMEOUT))
        self.promises.check("a new model is at revision 0", created.revision == 0, model=name)
        producer = UnaryProducers(self.name, self.services, self.promises, [(name, Examples(self._seed, f"churn {self._round}", "dense"), settings())], None, 0)
        # Another model of the same name has revisions of its own.
        self.promises.start_again(created.name)
        for _ in range(3):
            producer.send(name, 30)
        self.call("DeleteModel", lambda: models.DeleteModel(model_service_pb2.DeleteModelRequest(name=created.name, allow_missing=True), **TIMEOUT))
        deleted = self.call("GetModel", lambda: models.GetModel(model_service_pb2.GetModelRequest(name=created.name), **TIMEOUT), ("MODEL_NOT_FOUND",))
        self.promises.check("a deleted model is not found", deleted == "MODEL_NOT_FOUND", model=name)
        self.counts["models created and deleted"] += 1
