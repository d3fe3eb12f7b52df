"""Predictions on a stream that reconnects: several messages are on their way at once, and each name is sent once.

    for rows, answer in PredictStream(stub, "models/spam").predict(batches):
        print(answer.predicted_labels)
"""

import collections
import queue
import time
from typing import Any, Callable, Deque, Iterable, Iterator, Optional, Sequence

import grpc

from .columns import PACKING_ERRORS, at_its_row, copy, count
from .errors import Backoff, PerceptrondError, is_too_large, is_transient, reason
from .name_table import NameTable
from .rows import Row, position_of
from .v1 import example_pb2, prediction_service_pb2, prediction_service_pb2_grpc
from .window import NAME_TABLE_SIZE, OUT_OF_ORDER, Examples, as_messages

Request = prediction_service_pb2.PredictRequest
Response = prediction_service_pb2.PredictResponse


class PredictStream:
    """Predicting changes nothing, so what is unanswered when a connection is lost is sent again.

    Threads: one at a time.
    """

    def __init__(self, stub: prediction_service_pb2_grpc.PredictionServiceStub, model: str, *, window: int = 4,
                 name_table_size: int = NAME_TABLE_SIZE, class_scores: bool = False, ids: bool = False, min_revision: int = 0, give_up_after: float = 60,
                 on_reconnect: Callable[[PerceptrondError], None] = lambda error: None, proxy: str = ""):
        """window: most unanswered messages. name_table_size: most names in the stream's table, which sends each name once; 0:
        each message has its names. class_scores: answers have the score of each class. ids: answers have
        prediction_ids, by which the labels are learned later. min_revision: no answer is from an
        older state. give_up_after: seconds without progress before giving up. proxy: as PerceptrondError has it."""
        self._stub, self._model, self._window, self._name_table_size = stub, model, window, name_table_size
        self._class_scores, self._ids, self._on_reconnect = class_scores, ids, on_reconnect
        self._proxy = proxy
        self._backoff = Backoff(give_up_after)
        self._revision = min_revision
        # The rows that are answered.
        self._answered = 0

    def predict(self, batches: Iterable[Any]) -> Iterator[tuple[Examples, Response]]:
        """Yields rows with their answer, in order: those of a batch, or of a part of one with many new names. Rows with
        validation errors are in answer.row_errors. Of a model, no answer comes from an older revision than one before it. Raises
        PerceptrondError, also if a message was refused."""
        remaining = as_messages(batches)
        unanswered: Deque[Examples] = collections.deque()
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
            raise PerceptrondError.of(error, self._proxy) from None
        self._on_reconnect(PerceptrondError.of(error, self._proxy))
        time.sleep(wait)

    def _connect(self, unanswered: Deque[Examples], remaining: Iterator[Examples]) -> Iterator[tuple[Examples, Response]]:
        """Runs one connection: sends what was unanswered before, then the rest. When it is lost, `unanswered` has what is
        unanswered then."""
        def take() -> Optional[Examples]:
            if unanswered:
                return unanswered.popleft()
            return next(remaining, None)

        requests: queue.SimpleQueue[Optional[Request]] = queue.SimpleQueue()
        call = self._stub.PredictStream(iter(requests.get, None))
        names: Optional[NameTable] = None
        most_bytes = 0
        sent: Deque[Examples] = collections.deque()
        try:
            while True:
                # The first answer tells the size of the table; the message before it has its own names.
                while len(sent) < (self._window if names else 1):
                    batch = take()
                    if batch is None:
                        break
                    request = Request(model=self._model, min_revision=self._revision, include_class_scores=self._class_scores,
                                      include_prediction_ids=self._ids)
                    if isinstance(batch, example_pb2.ExampleColumns):
                        copy(batch, request.columns)
                        sent.append(batch)
                    else:
                        columns, packed = self._pack(batch, names or NameTable(0), self._answered + sum(map(count, sent)))
                        copy(columns, request.columns)
                        sent.append(batch[:packed])
                        if packed < len(batch):
                            unanswered.appendleft(batch[packed:])
                    if names is None:
                        request.name_table_size = self._name_table_size
                    if 0 < most_bytes < request.ByteSize() and count(sent[-1]) == 1:
                        self._raise_too_large(sent, request, most_bytes)
                    requests.put(request)
                if not sent:
                    return
                try:
                    answer = self._next(call)
                except grpc.RpcError as error:
                    # The first message was sent alone.
                    if names is None and count(sent[0]) == 1 and is_too_large(PerceptrondError.of(error)):
                        self._raise_too_large(sent, request, 0)
                    raise
                if names is None:
                    names, most_bytes = NameTable(answer.name_table_size), answer.max_message_bytes
                self._answered += count(sent[0])
                yield sent.popleft(), answer
        finally:
            unanswered.extendleft(reversed(sent))
            requests.put(None)
            call.cancel()

    def _raise_too_large(self, sent: Deque[Examples], request: Request, most_bytes: int) -> None:
        """Of the last message, a row that is not to be split."""
        number = self._answered + sum(map(count, sent)) - 1
        raise PerceptrondError.row_too_large(position_of(sent[-1], 0, number), request.ByteSize(), most_bytes) from None

    def _pack(self, rows: Sequence[Row], names: NameTable, first: int) -> tuple[example_pb2.ExampleColumns, int]:
        """As the table does. first: the number of the first row, for errors."""
        try:
            return names.pack(rows)
        except PACKING_ERRORS as error:
            raise at_its_row(rows, error, lambda index: first + index) from error

    def _next(self, call: Iterator[Response]) -> Response:
        answer = next(call, None)
        if answer is None:
            raise PerceptrondError.from_parts(grpc.StatusCode.INTERNAL, OUT_OF_ORDER, "the server ended the stream early")
        if answer.HasField("error"):
            raise PerceptrondError(answer.error)
        self._backoff.progress()
        # An alias may name another model at the next message, whose revisions are its own.
        if not self._model.startswith("aliases/"):
            self._revision = answer.revision
        return answer
