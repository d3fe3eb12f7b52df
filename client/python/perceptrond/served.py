"""ServedModel: a model on a server that answers for an estimator; one that is owned is deleted with it."""

import atexit
import datetime
import multiprocessing
import os
import queue
import threading
import uuid
import weakref
from typing import Any, Iterable, NamedTuple, Optional

import grpc
import numpy

from . import calls
from .client import Client
from .errors import PerceptrondError
from .v1 import learner_pb2, model_pb2, model_service_pb2, report_pb2
from .window import Examples


class Answers(NamedTuple):
    """One item a row in each array."""

    # -1 and +1, or classes.
    labels: Any
    scores: Any
    # A column for each of several classes, if asked for.
    class_scores: Any


# What a killed process leaves on the server is deleted once it was not used for this time. joblib kills its workers, also while they
# fit, when one of them fails: what they had begun is deleted soon.
EXPIRE_AFTER = datetime.timedelta(days=7)
EXPIRE_AFTER_IN_FIT_OF_WORKER = datetime.timedelta(hours=1)


def in_worker() -> bool:
    """Whether this process is a worker of joblib or another pool: it alone uses the models that it makes."""
    return multiprocessing.parent_process() is not None


class ServedModel:
    """Threads: any number, but for learning."""

    def __init__(self, client: Client, name: str, owned: bool):
        self.client, self.name = client, name
        # The newest state that this object has seen: predictions are of no older one.
        self.revision = 0
        # Where examples that it learns are counted.
        self.producer = f"estimator-{uuid.uuid4().hex[:16]}"
        self._finalizer = weakref.finalize(self, _janitor.delete, client, name, os.getpid()) if owned else None
        self._process = os.getpid()

    @classmethod
    def create(cls, client: Client, settings: model_pb2.Model, in_fit: bool = False) -> "ServedModel":
        """Creates a model under a fresh name. in_fit: finish_fit() follows."""
        name = f"sklearn-{uuid.uuid4().hex[:12]}"
        settings.expire_after.FromTimedelta(EXPIRE_AFTER_IN_FIT_OF_WORKER if in_fit and in_worker() else EXPIRE_AFTER)
        client.create(name, settings)
        return cls(client, name, owned=True)

    def finish_fit(self) -> None:
        if in_worker():
            self.client.update(self.name, expire_after=EXPIRE_AFTER)

    def copy(self, name: str) -> "ServedModel":
        """Copies the model under a name, where it stays."""
        made = ServedModel(self.client, name, owned=False)
        made.revision = self.client.history.copy(self.name, name).revision
        if self._finalizer is not None:
            self.client.update(name, expire_after="never")
        return made

    def discard(self) -> None:
        """Deletes an owned model, which cannot be used afterwards, and waits for that: the process may be killed soon."""
        if self._finalizer is not None and self._finalizer.detach() is not None and self._process == os.getpid():
            _delete(self.client, self.name)

    def answers(self, messages: Iterable[Examples], classes: int = 0) -> Answers:
        """Predicts. classes: how many, for the scores of each; 0: without them."""
        fields = {"predicted_labels": numpy.int64, "scores": numpy.float64, "class_scores": numpy.float64}
        parts: dict[str, list[Any]] = {field: [] for field in fields}
        rows = 0
        for _, answer in self.client.predict_stream(self.name, messages, class_scores=classes > 0, min_revision=self.revision):
            if answer.row_errors:
                raise ValueError(str(PerceptrondError.at(f"row {rows + answer.row_errors[0].row}", answer.row_errors[0].status)))
            rows += len(answer.predicted_labels)
            for field, kind in fields.items():
                values = getattr(answer, field)
                parts[field].append(numpy.fromiter(values, kind, len(values)))
        labels, scores, class_scores = (numpy.concatenate(part) if part else numpy.empty(0) for part in parts.values())
        return Answers(labels, scores, class_scores.reshape(-1, max(classes, 1)))

    def weights(self) -> learner_pb2.Weights:
        return self.client.weights(self.name)

    def terms(self) -> calls.WeightPages:
        """All that its scores are made of."""
        pages = calls.WeightPages(self.name, terms=True)
        while pages.add(self.client._call(self.client._models.ListWeights, pages.request)):
            pass
        return pages

    def report(self) -> report_pb2.ConvergenceReport:
        return self.client.report(self.name)


class _Janitor:
    """Deletes models in a thread of its own: a finalizer may run in any thread, gRPC's among them, which must not wait."""

    def __init__(self) -> None:
        self._left: "queue.SimpleQueue[Optional[tuple[Client, str]]]" = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._thread: Optional[threading.Thread] = None

    def start(self) -> None:
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, daemon=True)
                self._thread.start()

    def delete(self, client: Client, name: str, process: int) -> None:
        # A forked process has the parent's objects, but not its models.
        if process == os.getpid():
            self._left.put((client, name))

    def finish(self) -> None:
        """Waits until all are deleted, at most a few seconds."""
        if self._thread is not None:
            self._left.put(None)
            self._thread.join(5)

    def _run(self) -> None:
        while (work := self._left.get()) is not None:
            _delete(*work)


def _delete(client: Client, name: str) -> None:
    request = model_service_pb2.DeleteModelRequest(name=calls.name_of(name), allow_missing=True)
    try:
        client._models.DeleteModel(request, timeout=2)
    except (grpc.RpcError, ValueError):
        # The server is gone; the model's name and description say whose it was.
        pass


_janitor = _Janitor()
atexit.register(_janitor.finish)

_clients: dict[Any, Client] = {}
_clients_lock = threading.Lock()


def shared_client(**settings: Any) -> Client:
    """The process's one client with these settings: estimators come and go, connections are kept."""
    key = (os.getpid(), *sorted((name, str(value)) for name, value in settings.items()))
    _janitor.start()
    with _clients_lock:
        if key not in _clients:
            _clients[key] = Client(**settings)
        return _clients[key]
