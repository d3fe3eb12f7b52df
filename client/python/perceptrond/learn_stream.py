"""A learn stream that reconnects, for programs with threads: each example is learned exactly once.

    with LearnStream(stub, "models/spam", "mail-reader") as stream:
        stream.send(rows)
        summary = stream.end_pass()
        stream.finish()
"""

import threading
from typing import Callable, Iterator, Optional

import grpc

from .errors import Backoff, PerceptrondError, is_transient, reason
from .google_rpc import status_pb2
from .servers import Servers
from .v1 import learning_service_pb2, learning_service_pb2_grpc, report_pb2
from .window import NAME_TABLE_SIZE, OUT_OF_ORDER, Examples, Totals, Window

Request = learning_service_pb2.LearnStreamRequest


class LearnStream:
    """One thread may send. A thread of this class reads the answers, and gRPC's thread sends the messages.

    Every method raises what ended the stream: a PerceptrondError, or what packing a row raised.
    """

    def __init__(self, stub: learning_service_pb2_grpc.LearningServiceStub, model: str, producer: str, *, window: int = 8192,
                 name_table_size: int = NAME_TABLE_SIZE, give_up_after: float = 60,
                 on_reconnect: Callable[[PerceptrondError], None] = lambda error: None,
                 writer_stub: Callable[[str], Optional[learning_service_pb2_grpc.LearningServiceStub]] = lambda address: None, proxy: str = ""):
        """Opens the stream and waits for the position of the producer.

        window: most unanswered examples. name_table_size: most names in the stream's table, which sends each name once; 0: each
        message has its names. give_up_after: seconds without progress before giving up. writer_stub: as Servers has it. proxy: as PerceptrondError has it.
        """
        self._servers, self._on_reconnect, self._proxy = Servers(stub, writer_stub), on_reconnect, proxy
        self._backoff = Backoff(give_up_after)
        self._window = Window(model, producer, window, name_table_size)
        self._changed = threading.Condition()
        self._connection = 0
        self._call: Optional[grpc.Call] = None
        # The connection ends once what was sent is answered, and another one follows.
        self._moving = False
        self._finishing = False
        self._cancelled = threading.Event()
        self._ended: Optional[BaseException] = None
        self._reader = threading.Thread(target=self._run, daemon=True)
        self._reader.start()
        self._wait_until(self._window.ready)
        self.next_offset, self.passes = self._window.next_offset, self._window.passes

    def __enter__(self) -> "LearnStream":
        return self

    def __exit__(self, *_: object) -> None:
        self.cancel()

    @property
    def totals(self) -> Totals:
        return self._window.totals

    @property
    def first_refused(self) -> Optional[status_pb2.Status]:
        """The server's error of the first row that it refused."""
        return self._window.first_refused

    def number_rows(self, row_of: Callable[[int], int]) -> None:
        """Errors name the row row_of(offset) instead of the offset."""
        self._window.row_of = row_of

    @property
    def revision(self) -> int:
        """The model's revision, as of the latest answer."""
        return self._window.revision

    def send(self, examples: Examples, completed_pass: int = 0) -> None:
        """Sends Rows with their labels, or what pack_matrix() makes, which must not change until they are answered; waits while the window is full."""
        self._wait_until(self._window.has_room)
        with self._changed:
            self._window.add(examples, completed_pass)
            self._changed.notify_all()

    def end_pass(self) -> report_pb2.PassSummary:
        """Marks the end of a pass over the data and waits for all answers."""
        self.send((), self._window.passes + 1)
        self._wait_until(self._window.empty)
        return self._window.last_pass()

    def finish(self) -> Totals:
        """Waits for all answers and ends the stream."""
        self._wait_until(self._window.empty)
        with self._changed:
            self._finishing = True
            self._changed.notify_all()
        self._reader.join()
        return self.totals

    def cancel(self) -> None:
        """Cancels the stream. Unanswered examples may have been learned; sent again, they count once."""
        self._cancelled.set()
        with self._changed:
            self._connection += 1
            if self._call is not None:
                self._call.cancel()
            self._changed.notify_all()
        self._reader.join()

    def _wait_until(self, condition: Callable[[], bool]) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._ended is not None or condition())
            if self._ended is not None:
                raise self._ended

    # ---- The thread that reads answers ----

    def _run(self) -> None:
        try:
            while not self._cancelled.is_set():
                try:
                    if self._connect():
                        return
                except grpc.RpcError as error:
                    self._reconnect_or_raise(error)
        except BaseException as error:
            with self._changed:
                self._end(error)

    def _end(self, error: BaseException) -> None:
        """Makes waiting callers raise the first error."""
        self._ended = self._ended or error
        self._changed.notify_all()

    def _reconnect_or_raise(self, error: grpc.RpcError) -> None:
        if self._window.do_without_table(reason(error)):
            return
        wait = self._backoff.next_wait(error)
        if wait is None or not is_transient(error):
            raise PerceptrondError.of(error, self._proxy) from None
        self._servers.reset()
        self._on_reconnect(PerceptrondError.of(error, self._proxy))
        self._cancelled.wait(wait)

    def _connect(self) -> bool:
        """Runs one connection until it ends: whether it was the last one. Raises grpc.RpcError."""
        with self._changed:
            self._connection += 1
            self._moving = False
            self._call = self._servers.stub.LearnStream(self._requests(self._connection, self._window.opening()))
            call = self._call
        try:
            for response in call:
                self._handle(response)
            if not self._finishing and not self._moving:
                raise PerceptrondError.from_parts(grpc.StatusCode.INTERNAL, OUT_OF_ORDER, "the server ended the stream early")
            return self._finishing
        finally:
            with self._changed:
                self._connection += 1
                self._changed.notify_all()
            call.cancel()

    def _handle(self, response: learning_service_pb2.LearnStreamResponse) -> None:
        with self._changed:
            if response.HasField("opened"):
                self._window.opened(response.opened)
                self._servers.reached()
            for result in response.results:
                if self._window.answered(result):
                    self._backoff.progress()
            self._moving = self._moving or self._servers.prefer(response.writer_address)
            self._changed.notify_all()

    # ---- gRPC's thread, which sends ----

    def _requests(self, connection: int, opening: Request) -> Iterator[Request]:
        """Yields the messages of this connection; returns after finish(), which half-closes the stream."""
        yield opening
        while (request := self._next(connection)) is not None:
            yield request

    def _next(self, connection: int) -> Optional[Request]:
        with self._changed:
            while self._connection == connection and not self._moving:
                try:
                    request = self._window.next_to_send()
                except Exception as error:  # rows that cannot be packed, which would end as an unknown error of gRPC's
                    self._end(error)
                    return None
                if request is not None or self._finishing:
                    return request
                self._changed.wait()
            return None
