"""Window: the unanswered messages of a learn stream, for exactly-once learning.

It has no connection; learn_stream and learn_stream_aio send the messages. The producer's examples are numbered
from 0. After a lost connection the server returns the number it expects next: messages below it were learned, the rest
is sent again, and the server acknowledges duplicates without learning them.

Rows are packed when they are sent, because each connection has a table of names of its own.
"""

import collections
import itertools
from dataclasses import dataclass
from typing import Any, Callable, Deque, Iterable, Iterator, Mapping, Optional, Sequence, Union

import grpc

from .columns import PACKING_ERRORS, at_its_row, copy, count
from .errors import PerceptrondError, describe_status
from .google_rpc import status_pb2
from .name_table import NameTable
from .rows import Row, as_row, position_of
from .v1 import example_pb2, learning_service_pb2, report_pb2


# Rows, or what columns made of them.
Examples = Union[Sequence[Row], example_pb2.ExampleColumns]
NAME_TABLE_SIZE = 262144
# The server broke the protocol.
OUT_OF_ORDER = "OUT_OF_ORDER"


def as_message(given: Any) -> Examples:
    """What a user streams: rows of any kind, or one row. Raises TypeError."""
    if isinstance(given, example_pb2.ExampleColumns):
        return given
    if isinstance(given, (dict, str, Mapping, Row)):
        return [as_row(given, 0)]
    if not isinstance(given, (list, tuple)):
        raise TypeError(f"a message is a row, a list of rows, or what pack_matrix() makes, not {type(given).__name__}")
    return given if set(map(type, given)) <= {Row} else list(map(as_row, given, itertools.count()))


def as_messages(given: Iterable[Any]) -> Iterator[Examples]:
    """The same for each; the TypeError has its number."""
    for number, message in enumerate(given):
        try:
            yield as_message(message)
        except TypeError as error:
            raise TypeError(f"message {number}: {error}") from None


@dataclass
class _Message:
    examples: Examples
    rows: int
    # None: after the message before it. Of a message without rows.
    first_offset: Optional[int]
    completed_pass: int


@dataclass
class Totals:
    """Totals over all answers received. Lost answers are missing here but are in the model's report."""

    examples: int = 0
    mistakes: int = 0
    updates: int = 0
    duplicates: int = 0
    row_errors: int = 0
    # The offset of the first row with an error, and what was wrong with it.
    first_row_error_offset: int = -1
    first_row_error: str = ""
    # Where that row is in what the user gave: "row 12", from 0, or "line 13" of a file.
    first_row_error_position: str = ""
    lost_answers: int = 0


class Window:
    """Threads: one at a time."""

    def __init__(self, model: str, producer: str, capacity: int, name_table_size: int = NAME_TABLE_SIZE):
        """capacity: most unanswered examples; a message is accepted while there are fewer. name_table_size: most names in a
        stream's table; 0: each message has its names."""
        if capacity < 1:
            raise ValueError(f"window={capacity}: expected at least 1 example")
        # Once a connection was opened, as the server names it.
        self.model = model
        self._producer, self._capacity, self._name_table_size = producer, capacity, name_table_size
        self._names = NameTable(0)
        self._messages: Deque[_Message] = collections.deque()
        self._rows = self._sent = self._answered = 0
        self._opened: Optional[learning_service_pb2.StreamOpened] = None
        self._acknowledged = -1
        self._ready = False
        # Of a message, as the server accepts; 0: it does not say.
        self._most_bytes = 0
        self._last_pass = report_pb2.PassSummary()
        # The server's error of the first row that it refused.
        self.first_refused: Optional[status_pb2.Status] = None
        # The largest received, and the epoch received with it.
        self.revision = self._epoch = 0
        self.totals = Totals()
        self.next_offset = 0
        self.passes = 0
        # From an offset to the row of what the user gave, for errors.
        self.row_of: Callable[[int], int] = lambda offset: offset

    def last_pass(self) -> report_pb2.PassSummary:
        """Its number alone, if the model had completed it before."""
        return self._last_pass if self._last_pass.number == self.passes else report_pb2.PassSummary(number=self.passes)

    def ready(self) -> bool:
        """Whether the server has sent the producer's position."""
        return self._ready

    def empty(self) -> bool:
        return not self._messages

    def has_room(self) -> bool:
        return self._opened is not None and self._rows < self._capacity

    def add(self, examples: Examples, completed_pass: int = 0) -> None:
        """Numbers a message and keeps it until it is answered. Its rows must not change until then."""
        examples = as_message(examples)
        rows = count(examples)
        self._messages.append(_Message(examples, rows, self.next_offset, completed_pass))
        self.next_offset += rows
        self._rows += rows

    # ---- Connections ----

    def opening(self) -> learning_service_pb2.LearnStreamRequest:
        """Returns the first message of a stream: the producer and what was acknowledged before."""
        self._sent = self._answered = 0
        self._ready = False
        first = learning_service_pb2.LearnStreamRequest(model=self.model, result_detail=learning_service_pb2.RESULT_DETAIL_UPDATES,
                                                        name_table_size=self._name_table_size)
        first.producer.id = self._producer
        if self._opened is not None and self._acknowledged >= 0:
            first.producer.resume.CopyFrom(learning_service_pb2.Producer.Resume(
                model_uid=self._opened.model_uid, acknowledged_offset=self._acknowledged, acknowledged_revision=self.revision,
                acknowledged_epoch=self._epoch))
        return first

    def opened(self, opened: learning_service_pb2.StreamOpened) -> None:
        """Handles the first response: the producer's position."""
        if self._opened is None:
            self.next_offset, self.passes = opened.next_offset, opened.passes
        else:
            self._check_same(self._opened, opened)
        self._settle(opened.next_offset)
        self._opened = opened
        # Later connections stay on the model of an alias.
        self.model = opened.model or self.model
        self._acknowledge(opened.next_offset - 1, opened.revision, opened.epoch)
        self._names = NameTable(opened.name_table_size)
        self._most_bytes = opened.max_message_bytes
        self._ready = True

    def do_without_table(self, reason: str) -> bool:
        """Whether the server refused the stream because it has no tables of names; the next one asks for none."""
        if self._name_table_size == 0 or reason != "UNSUPPORTED_FIELD":
            return False
        self._name_table_size = 0
        return True

    def next_to_send(self) -> Optional[learning_service_pb2.LearnStreamRequest]:
        if not self._ready or self._sent == len(self._messages):
            return None
        message = self._messages[self._sent]
        columns = self._pack(message)
        self._sent += 1
        request = learning_service_pb2.LearnStreamRequest(first_offset=message.first_offset, completed_pass=message.completed_pass)
        if columns is not None:
            copy(columns, request.columns)
            if message.rows == 1 and 0 < self._most_bytes < request.ByteSize():
                offset = message.first_offset or 0
                raise PerceptrondError.row_too_large(position_of(message.examples, 0, self.row_of(offset)), request.ByteSize(), self._most_bytes)
        return request

    def answered(self, result: learning_service_pb2.LearnResult) -> bool:
        """Handles an answer; true if its message had rows or a mark."""
        if result.message_number == 0:
            return False
        if result.HasField("error"):
            raise PerceptrondError(result.error)
        if result.message_number != self._answered + 1 or self._sent == 0:
            raise PerceptrondError.from_parts(grpc.StatusCode.INTERNAL, OUT_OF_ORDER, f"the server answered message {result.message_number} out of order")
        message = self._messages.popleft()
        self._acknowledge(result.acknowledged_offset, result.revision, result.epoch)
        self._count(message, result)
        self._answered += 1
        self._sent -= 1
        self._rows -= message.rows
        self.passes = max(self.passes, message.completed_pass)
        return True

    # ----

    def _acknowledge(self, offset: int, revision: int, epoch: int) -> None:
        self._acknowledged = max(self._acknowledged, offset)
        self.revision, self._epoch = max((self.revision, self._epoch), (revision, epoch))

    def _check_same(self, first: learning_service_pb2.StreamOpened, opened: learning_service_pb2.StreamOpened) -> None:
        if opened.model_uid != first.model_uid:
            raise PerceptrondError.from_parts(
                grpc.StatusCode.FAILED_PRECONDITION, "MODEL_REPLACED",
                f"{self.model} was {'moved' if self.model.startswith('aliases/') else 'deleted and created again'} while examples were being sent to it")
        if opened.next_offset <= self._acknowledged:
            raise PerceptrondError.from_parts(grpc.StatusCode.DATA_LOSS, "UPDATES_LOST",
                                              f"the server acknowledged examples through {self._acknowledged} but now expects {opened.next_offset}")

    def _pack(self, message: _Message) -> Optional[example_pb2.ExampleColumns]:
        """Packs the message, after splitting off the rows that the table of names has no room for."""
        if isinstance(message.examples, example_pb2.ExampleColumns):
            return message.examples
        if message.rows == 0:
            return None
        try:
            columns, count = self._names.pack(message.examples)
        except PACKING_ERRORS as error:
            first = message.first_offset or 0
            raise at_its_row(message.examples, error, lambda index: self.row_of(first + index)) from error
        if count < message.rows:
            rest = _Message(message.examples[count:], message.rows - count, (message.first_offset or 0) + count, message.completed_pass)
            self._messages.insert(self._sent + 1, rest)
            message.examples, message.rows, message.completed_pass = message.examples[:count], count, 0
        return columns

    def _settle(self, next_offset: int) -> None:
        """Drops messages whose rows are all below this offset: they were learned but their answers were lost. Pass
        marks stay."""
        kept: Deque[_Message] = collections.deque()
        for message in self._messages:
            if message.rows == 0 or (message.first_offset or 0) + message.rows > next_offset:
                kept.append(message)
                continue
            self._rows -= message.rows
            self.totals.lost_answers += message.rows
            if message.completed_pass:
                kept.append(_Message((), 0, None, message.completed_pass))
        self._messages = kept

    def _count(self, message: _Message, result: learning_service_pb2.LearnResult) -> None:
        totals = self.totals
        for name in ("examples", "mistakes", "updates", "duplicates"):
            setattr(totals, name, getattr(totals, name) + getattr(result, name))
        if result.row_errors and not totals.row_errors:
            row = result.row_errors[0].row
            offset = (message.first_offset or 0) + row
            totals.first_row_error_offset = offset
            totals.first_row_error_position = position_of(message.examples, row, self.row_of(offset))
            self.first_refused = result.row_errors[0].status
            totals.first_row_error = describe_status(self.first_refused)
        totals.row_errors += len(result.row_errors)
        if result.HasField("completed_pass"):
            self._last_pass = result.completed_pass
