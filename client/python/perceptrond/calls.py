"""What Client and AsyncClient share: requests, and the passes of learn()."""

import time
import uuid
from typing import Any, Iterator, Mapping, Optional, Union

import grpc

from .columns import copy, count, packed
from .datasets import Dataset
from .durations import Duration, duration
from .errors import PerceptrondError
from .model_check import ModelCheck
from .progress import OnProgress, Progress, shown
from .settings import model_settings
from .v1 import analysis_service_pb2, learner_pb2, model_pb2, model_service_pb2, prediction_service_pb2, report_pb2
from .window import OUT_OF_ORDER, Examples, Totals

MOST_UNTIL_CONVERGED = 1000
# The class scores of a message.
MOST_SCORES = 1 << 20
# The examples of one call.
MOST_EXPLAINED = 100


def name_of(model: str) -> str:
    """Of an alias, "aliases/prod", its own."""
    return model if model.startswith(("models/", "aliases/")) else f"models/{model}"


def create_request(model: str, settings: Optional[model_pb2.Model], keywords: Mapping[str, Any]) -> model_service_pb2.CreateModelRequest:
    """With a request id, so that it can be repeated after a lost answer."""
    if settings is not None and keywords:
        raise TypeError("settings or keyword arguments, not both")
    return model_service_pb2.CreateModelRequest(model_id=name_of(model).removeprefix("models/"), model=settings or model_settings(**keywords),
                                                request_id=str(uuid.uuid4()))


def get_request(model: str, learning_curve: bool) -> model_service_pb2.GetModelRequest:
    view = model_service_pb2.MODEL_VIEW_LEARNING_CURVE if learning_curve else model_service_pb2.MODEL_VIEW_BASIC
    return model_service_pb2.GetModelRequest(name=name_of(model), view=view)


def update_request(model: str, description: Optional[str], margin_of_interest: Optional[float], expire_after: Optional[Duration],
                   etag: str) -> model_service_pb2.UpdateModelRequest:
    request = model_service_pb2.UpdateModelRequest(model=model_pb2.Model(name=name_of(model), etag=etag), request_id=str(uuid.uuid4()))
    for field, value in (("description", description), ("margin_of_interest", margin_of_interest)):
        if value is not None:
            setattr(request.model, field, value)
            request.update_mask.paths.append(field)
    if expire_after is not None:
        request.update_mask.paths.append("expire_after")
        if expire_after != "never":
            request.model.expire_after.CopyFrom(duration(expire_after, "expire_after"))
    if not request.update_mask.paths:
        raise ValueError("nothing to change: give description, margin_of_interest or expire_after")
    return request


def freeze_request(model: str, frozen: bool) -> Any:
    kind = model_service_pb2.FreezeModelRequest if frozen else model_service_pb2.UnfreezeModelRequest
    return kind(name=name_of(model), request_id=str(uuid.uuid4()))


def watch_request(model: str, interval: float) -> model_service_pb2.WatchModelRequest:
    request = model_service_pb2.WatchModelRequest(name=name_of(model))
    request.min_interval.FromMilliseconds(int(1000 * interval))
    return request


def explain_request(model: str, examples: Any, max_features: int) -> prediction_service_pb2.ExplainRequest:
    request = prediction_service_pb2.ExplainRequest(model=name_of(model), max_features=max_features)
    messages = list(Dataset(examples, batch=MOST_EXPLAINED).messages())
    if len(messages) != 1:
        raise ValueError(f"expected 1 to {MOST_EXPLAINED} examples")
    copy(packed(messages[0]), request.columns)
    return request


def analyze_request(model: str, replace_weights: bool, expected_revision: Optional[int], time_limit: Optional[Duration],
                    limits: Mapping[str, Any]) -> analysis_service_pb2.AnalyzeRequest:
    return analysis_service_pb2.AnalyzeRequest(model=name_of(model), replace_weights=replace_weights, expected_revision=expected_revision,
                                               time_limit=None if time_limit is None else duration(time_limit, "time_limit"), **limits)


def ended_early() -> PerceptrondError:
    return PerceptrondError.from_parts(grpc.StatusCode.INTERNAL, OUT_OF_ORDER, "the server ended the stream early")


def most_rows(batch: int, model: model_pb2.Model, class_scores: bool) -> int:
    """The rows of a message of predictions."""
    classes = model.learner.classes.max_classes if class_scores else 0
    return min(batch, MOST_SCORES // classes) if classes else batch


def state_name(model: model_pb2.Model) -> str:
    """"learning", "converged", ..."""
    return report_pb2.ConvergenceState.Name(model.report.state).removeprefix("CONVERGENCE_STATE_").lower()


class WeightPages:
    """The pages of ListWeights put together."""

    def __init__(self, model: str, terms: bool = False):
        self.request = model_service_pb2.ListWeightsRequest(model=name_of(model), page_size=65536, terms=terms)
        self.weights = learner_pb2.Weights()
        # One for each vector, if asked for.
        self.terms: list[model_service_pb2.ScoreTerm] = []
        self.revision = 0

    def add(self, page: model_service_pb2.ListWeightsResponse) -> bool:
        """Whether another page follows."""
        while len(self.weights.vectors) < page.vectors:
            self.weights.vectors.add()
        for number, vector in enumerate(page.weights.vectors, start=page.first_vector):
            self.weights.vectors[number].MergeFrom(vector)
        self.terms[page.first_vector:] = page.terms
        self.request.page_token, self.revision = page.next_page_token, page.revision
        return bool(page.next_page_token)


class Deadline:
    """A time to end at, if any."""

    def __init__(self, timeout: Optional[float]):
        self._end = None if timeout is None else time.monotonic() + timeout

    def left(self) -> Optional[float]:
        return None if self._end is None else max(self._end - time.monotonic(), 0)


class Passes:
    """The passes of learn() that are left, where each begins, and their progress."""

    def __init__(self, data: Dataset, passes: Optional[int], until_converged: bool, resumes: bool, progress: Union[bool, OnProgress, None] = None):
        self._most = passes if passes is not None else MOST_UNTIL_CONVERGED if until_converged and data.rows is not None else 1
        if self._most < 1:
            raise ValueError(f"passes={passes}: expected at least 1")
        if self._most > 1 and data.rows is None:
            raise ValueError("an iterator can be read once: give a list, or passes=1")
        self._data, self._rows, self._until_converged, self._resumes = data, data.rows, until_converged, resumes
        self._say = shown(progress)
        self._offset = self._before = self._begin = self._sent = 0
        # Completed by the producer, earlier runs included.
        self.completed = 0
        # Of the last pass that was completed here; None: there is none.
        self.summary: Optional[report_pb2.PassSummary] = None

    def start(self, next_offset: int, passes: int) -> None:
        """The producer's position when the stream was opened. One that resumes has sent what is below it."""
        self.completed = passes
        self._before, self._offset = (0, next_offset) if self._resumes else (passes, 0)
        self._begin = 0 if self._resumes else next_offset

    def check(self, model: model_pb2.Model) -> None:
        """Raises ValueError for rows that the model does not take, before any is sent. Of an iterator, check_complete() does."""
        self._data.check(ModelCheck(model))

    def row_of(self, offset: int) -> int:
        """The row of the examples that has this offset."""
        return (offset - self._begin) % self._rows if self._rows else offset - self._begin

    def left(self) -> bool:
        """Whether there is another pass. Without rows there is none."""
        converged = self._until_converged and self.summary is not None and self.summary.converged
        return self._rows != 0 and not converged and not self.refused and self.completed - self._before < self._most

    def messages(self, totals: Totals) -> Iterator[Examples]:
        """Yields what of this pass was not sent yet. Each message counts as sent when the next one is asked for."""
        self._sent = self._first()
        for message in self._data.messages(self._sent):
            yield message
            self._sent += count(message)
            self._progress(self.completed + 1, totals, None)

    def check_complete(self) -> None:
        """Raises ValueError for the row that an iterator ended before."""
        if self._data.refused is not None:
            raise ValueError(f"{self._data.refused}; the rows before it were learned")

    @property
    def refused(self) -> bool:
        """Whether the pass ended before a row that the model does not take."""
        return self._data.refused is not None

    def end(self, summary: report_pb2.PassSummary, totals: Totals) -> None:
        self.completed += 1
        self.summary = summary
        self._progress(self.completed, totals, summary)

    def _first(self) -> int:
        begin = (self.completed - self._before) * (self._rows or 0)
        first = max(self._offset - begin, 0)
        return first if self._rows is None else min(first, self._rows)

    def _progress(self, number: int, totals: Totals, summary: Optional[report_pb2.PassSummary]) -> None:
        self._say(Progress(number, self._sent, self._rows, totals.examples, totals.mistakes, totals.updates, summary))
