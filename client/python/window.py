"""What a learn stream must remember to lose nothing and learn nothing twice: messages that are not answered yet.

Pure bookkeeping, without a connection: learn_stream.py and learn_stream_aio.py move the messages. The producer's examples are
numbered from 0. After a connection broke the server says which number it expects next; what lies below is settled, the
rest is sent again, and numbers the server knows already it only acknowledges.
"""

import collections
from dataclasses import dataclass
from typing import Deque, Optional

from errors import StatusError, describe_status
from perceptron.v1 import example_pb2, learning_service_pb2, model_pb2


class ProtocolError(Exception):
    """The server answered what its contract rules out, or serves another model by now."""


@dataclass
class _Message:
    request: learning_service_pb2.LearnStreamRequest
    rows: int


@dataclass
class Totals:
    """What the answers that came add up to. Answers lost with a connection are missing here; the model's report has all."""

    examples: int = 0
    mistakes: int = 0
    updates: int = 0
    duplicates: int = 0
    refused: int = 0
    first_refusal: str = ""
    settled_unseen: int = 0


class Window:
    """Not for several threads at once."""

    def __init__(self, model: str, producer: str, capacity: int):
        """Capacity: examples that may be unanswered; a message is let in as long as there are fewer."""
        self._model, self._producer, self._capacity = model, producer, capacity
        self._messages: Deque[_Message] = collections.deque()
        self._rows = self._sent = self._answered = 0
        self._opened: Optional[learning_service_pb2.StreamOpened] = None
        self._ready = False
        self._acknowledged = -1
        self.next_offset = 0
        self.passes = 0
        self.last_pass: Optional[model_pb2.PassSummary] = None
        self.totals = Totals()

    def ready(self) -> bool:
        """The server has said where to go on."""
        return self._ready

    def empty(self) -> bool:
        return not self._messages

    def has_room(self) -> bool:
        return self._opened is not None and self._rows < self._capacity

    def add(self, columns: Optional[example_pb2.ExampleColumns], end_of_pass: int = 0) -> None:
        """Numbers a message; it stays here until it is answered."""
        rows = len(columns.row_ends) if columns else 0
        request = learning_service_pb2.LearnStreamRequest(columns=columns, first_offset=self.next_offset, end_of_pass=end_of_pass)
        self._messages.append(_Message(request, rows))
        self.next_offset += rows
        self._rows += rows

    # ---- One connection after another ----

    def opening(self) -> learning_service_pb2.LearnStreamRequest:
        """A new stream's first message: who sends, and what was acknowledged before."""
        self._sent = self._answered = 0
        self._ready = False
        first = learning_service_pb2.LearnStreamRequest(model=self._model, answer_detail=learning_service_pb2.ANSWER_DETAIL_UPDATES)
        first.producer.id = self._producer
        if self._opened is not None and self._acknowledged >= 0:
            first.producer.resume.model_uid = self._opened.model_uid
            first.producer.resume.acknowledged_through = self._acknowledged
        return first

    def opened(self, opened: learning_service_pb2.StreamOpened) -> None:
        """The server's first answer: where it stands."""
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
        """Takes an answer; true if it is that of a message with something in it."""
        if result.message_number == 0:
            return False
        if result.HasField("error"):
            raise StatusError(result.error)
        if result.message_number != self._answered + 1 or self._sent == 0:
            raise ProtocolError(f"the server answered message {result.message_number} out of turn")
        self._answered += 1
        self._sent -= 1
        message = self._messages.popleft()
        self._rows -= message.rows
        self._acknowledged = max(self._acknowledged, result.acknowledged_through)
        self._count(message, result)
        return True

    # ----

    def _settle(self, next_offset: int) -> None:
        """Rows below it are durable, though their answer was lost. The mark of a pass still wants its answer."""
        kept: Deque[_Message] = collections.deque()
        for message in self._messages:
            if message.rows == 0 or message.request.first_offset + message.rows > next_offset:
                kept.append(message)
                continue
            self._rows -= message.rows
            self.totals.settled_unseen += message.rows
            if message.request.end_of_pass:
                mark = learning_service_pb2.LearnStreamRequest(end_of_pass=message.request.end_of_pass)
                kept.append(_Message(mark, 0))
        self._messages = kept
        self._acknowledged = max(self._acknowledged, next_offset - 1)

    def _count(self, message: _Message, result: learning_service_pb2.LearnResult) -> None:
        for name in ("examples", "mistakes", "updates", "duplicates"):
            setattr(self.totals, name, getattr(self.totals, name) + getattr(result, name))
        if result.errors and not self.totals.refused:
            number = message.request.first_offset + result.errors[0].row
            self.totals.first_refusal = f"example {number}: {describe_status(result.errors[0].status)}"
        self.totals.refused += len(result.errors)
        if result.HasField("pass"):
            self.last_pass = getattr(result, "pass")
            self.passes = max(self.passes, self.last_pass.number)
