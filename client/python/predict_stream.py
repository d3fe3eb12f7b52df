"""Predictions on a stream that reconnects: several messages are on their way at once, and each name is sent once.

    for rows, answer in PredictStream(stub, "models/spam").predict(batches):
        print(answer.predicted_labels)
"""

import collections
import queue
import time
from typing import Callable, Deque, Iterable, Iterator, Optional, Sequence

import grpc

from columns import copy
from errors import Backoff, StatusError, is_transient, reason
from examples import Row
from name_table import NameTable
from perceptron.v1 import prediction_service_pb2, prediction_service_pb2_grpc
from window import NAME_TABLE_SIZE, ProtocolError

Request = prediction_service_pb2.PredictRequest
Response = prediction_service_pb2.PredictResponse
Batch = Sequence[Row]


class PredictStream:
    """Predicting changes nothing, so what is unanswered when a connection is lost is sent again.

    Threads: one at a time.
    """

    def __init__(self, stub: prediction_service_pb2_grpc.PredictionServiceStub, model: str, *, window: int = 4,
                 name_table_size: int = NAME_TABLE_SIZE, give_up_after: float = 60,
                 on_reconnect: Callable[[grpc.RpcError], None] = lambda error: None):
        """window: most unanswered messages. name_table_size: most names in the stream's table, which sends each name once; 0:
        each message has its names. give_up_after: seconds without progress before giving up."""
        self._stub, self._model, self._window, self._name_table_size = stub, model, window, name_table_size
        self._on_reconnect = on_reconnect
        self._backoff = Backoff(give_up_after)
        self._revision = 0

    def predict(self, batches: Iterable[Batch]) -> Iterator[tuple[Batch, Response]]:
        """Yields rows with their answer, in order: those of a batch, or of a part of one with many new names. Rows with
        validation errors are in answer.row_errors. No answer comes from an older revision than one before it. Raises
        grpc.RpcError; errors.StatusError if a message was refused; window.ProtocolError."""
        remaining = iter(batches)
        unanswered: Deque[Batch] = collections.deque()
        while True:
            try:
                yield from self._connect(unanswered, remaining)
                return
            except grpc.RpcError as error:
                self._reconnect_or_raise(error)

    def _reconnect_or_raise(self, error: grpc.RpcError) -> None:
        if self._name_table_size > 0 and reason(error) == "UNSUPPORTED_FIELD":
            # The server has no tables of names.
            self._name_table_size = 0
            return
        wait = self._backoff.next_wait(error)
        if wait is None or not is_transient(error):
            raise error
        self._on_reconnect(error)
        time.sleep(wait)

    def _connect(self, unanswered: Deque[Batch], remaining: Iterator[Batch]) -> Iterator[tuple[Batch, Response]]:
        """Runs one connection: sends what was unanswered before, then the rest. When it is lost, `unanswered` has what is
        unanswered then."""
        requests: queue.SimpleQueue[Optional[Request]] = queue.SimpleQueue()
        call = self._stub.PredictStream(iter(requests.get, None))
        names: Optional[NameTable] = None
        sent: Deque[Batch] = collections.deque()
        try:
            while True:
                # The first answer tells the size of the table; the message before it has its own names.
                while len(sent) < (self._window if names else 1):
                    batch = unanswered.popleft() if unanswered else next(remaining, None)
                    if batch is None:
                        break
                    columns, count = (names or NameTable(0)).pack(batch)
                    request = Request(model=self._model, min_revision=self._revision)
                    copy(columns, request.columns)
                    if names is None:
                        request.name_table_size = self._name_table_size
                    requests.put(request)
                    sent.append(batch[:count])
                    if count < len(batch):
                        unanswered.appendleft(batch[count:])
                if not sent:
                    return
                answer = self._next(call)
                names = names or NameTable(answer.name_table_size)
                yield sent.popleft(), answer
        finally:
            unanswered.extendleft(reversed(sent))
            requests.put(None)
            call.cancel()

    def _next(self, call: Iterator[Response]) -> Response:
        answer = next(call, None)
        if answer is None:
            raise ProtocolError("the server ended the stream early")
        if answer.HasField("error"):
            raise StatusError(answer.error)
        self._backoff.progress()
        self._revision = answer.revision
        return answer
