"""Window: the unanswered messages of a learn stream, for exactly-once learning.

It has no connection; learn_stream.py and learn_stream_aio.py send the messages. The producer's examples are numbered
from 0. After a lost connection the server returns the number it expects next: messages below it were learned, the rest
is sent again, and the server acknowledges duplicates without learning them.
"""

import collections
from dataclasses import dataclass
from typing import Deque, Optional

from errors import StatusError, describe_status
from perceptron.v1 import example_pb2, learning_service_pb2, report_pb2


class ProtocolError(Exception):
    """The server broke the protocol, or the model was replaced."""


@dataclass
class _Message:
    request: learning_service_pb2.LearnStreamRequest
    rows: int


@dataclass
class Totals:
    """Totals over all answers received. Lost answers are missing here but are in the model's report."""

    examples: int = 0
    mistakes: int = 0
    updates: int = 0
    duplicates: int = 0
    row_errors: int = 0
    first_row_error: str = ""
    lost_answers: int = 0


class Window:
    """Threads: one at a time."""

    def __init__(self, model: str, producer: str, capacity: int):
        """capacity: most unanswered examples; a message is accepted while there are fewer."""
        self._model, self._producer, self._capacity = model, producer, capacity
        self._messages: Deque[_Message] = collections.deque()
        self._rows = self._sent = self._answered = 0
        self._opened: Optional[learning_service_pb2.StreamOpened] = None
        self._ready = False
        self._acknowledged = -1
        self.next_offset = 0
        self.passes = 0
        self.last_pass: Optional[report_pb2.PassSummary] = None
        self.totals = Totals()

    def ready(self) -> bool:
        """Whether the server has sent the producer's position."""
        return self._ready

    def empty(self) -> bool:
        return not self._messages

    def has_room(self) -> bool:
        return self._opened is not None and self._rows < self._capacity

    def add(self, columns: Optional[example_pb2.ExampleColumns], completed_pass: int = 0) -> None:
        """Numbers a message and keeps it until it is answered."""
        rows = len(columns.row_ends) if columns else 0
        request = learning_service_pb2.LearnStreamRequest(columns=columns, first_offset=self.next_offset, completed_pass=completed_pass)
        self._messages.append(_Message(request, rows))
        self.next_offset += rows
        self._rows += rows

    # ---- Connections ----

    def opening(self) -> learning_service_pb2.LearnStreamRequest:
        """Returns the first message of a stream: the producer and what was acknowledged before."""
        self._sent = self._answered = 0
        self._ready = False
        first = learning_service_pb2.LearnStreamRequest(model=self._model, result_detail=learning_service_pb2.RESULT_DETAIL_UPDATES)
        first.producer.id = self._producer
        if self._opened is not None and self._acknowledged >= 0:
            first.producer.resume.model_uid = self._opened.model_uid
            first.producer.resume.acknowledged_offset = self._acknowledged
        return first

    def opened(self, opened: learning_service_pb2.StreamOpened) -> None:
        """Handles the first response: the producer's position."""
        if self._opened is None:
            self.next_offset, self.passes = opened.next_offset, opened.passes
        elif opened.model_uid != self._opened.model_uid:
            raise ProtocolError(f"{self._model} was deleted and created again while examples were being sent to it")
        elif opened.next_offset <= self._acknowledged:
            raise ProtocolError(f"the server acknowledged examples through {self._acknowledged} but now expects {opened.next_offset}")
        self._opened = opened
        self._settle(opened.next_offset)
        self._ready = True

    def next_to_send(self) -> Optional[learning_service_pb2.LearnStreamRequest]:
        if not self._ready or self._sent == len(self._messages):
            return None
        self._sent += 1
        return self._messages[self._sent - 1].request

    def answered(self, result: learning_service_pb2.LearnResult) -> bool:
        """Handles an answer; true if its message had rows or a mark."""
        if result.message_number == 0:
            return False
        if result.HasField("error"):
            raise StatusError(result.error)
        if result.message_number != self._answered + 1 or self._sent == 0:
            raise ProtocolError(f"the server answered message {result.message_number} out of order")
        self._answered += 1
        self._sent -= 1
        message = self._messages.popleft()
        self._rows -= message.rows
        self._acknowledged = max(self._acknowledged, result.acknowledged_offset)
        self._count(message, result)
        return True

    # ----

    def _settle(self, next_offset: int) -> None:
        """Drops messages whose rows are all below this offset: they were learned but their answers were lost. Pass
        marks stay."""
        kept: Deque[_Message] = collections.deque()
        for message in self._messages:
            if message.rows == 0 or message.request.first_offset + message.rows > next_offset:
                kept.append(message)
                continue
            self._rows -= message.rows
            self.totals.lost_answers += message.rows
            if message.request.completed_pass:
                mark = learning_service_pb2.LearnStreamRequest(completed_pass=message.request.completed_pass)
                kept.append(_Message(mark, 0))
        self._messages = kept
        self._acknowledged = max(self._acknowledged, next_offset - 1)

    def _count(self, message: _Message, result: learning_service_pb2.LearnResult) -> None:
        for name in ("examples", "mistakes", "updates", "duplicates"):
            setattr(self.totals, name, getattr(self.totals, name) + getattr(result, name))
        if result.row_errors and not self.totals.row_errors:
            number = message.request.first_offset + result.row_errors[0].row
            self.totals.first_row_error = f"example {number}: {describe_status(result.row_errors[0].status)}"
        self.totals.row_errors += len(result.row_errors)
        if result.HasField("completed_pass"):
            self.last_pass = result.completed_pass
            self.passes = max(self.passes, self.last_pass.number)
