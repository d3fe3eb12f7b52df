"""A learn stream that reconnects, for asyncio: each example is learned exactly once.

    async with LearnStream(stub, "models/spam", "mail-reader") as stream:
        await stream.send(rows)
        summary = await stream.end_pass()
        await stream.finish()
"""

import asyncio
from typing import AsyncIterator, Callable, Optional

import grpc

from .errors import Backoff, PerceptrondError, is_transient, reason
from .google_rpc import status_pb2
from .servers import Servers
from .v1 import learning_service_pb2, learning_service_pb2_grpc, report_pb2
from .window import NAME_TABLE_SIZE, OUT_OF_ORDER, Examples, Totals, Window

Request = learning_service_pb2.LearnStreamRequest


class LearnStream:
    """One task may send. A task of this class reads the answers.

    Every method raises what ended the stream: a PerceptrondError, or what packing a row raised.
    """

    def __init__(self, stub: learning_service_pb2_grpc.LearningServiceStub, model: str, producer: str, *, window: int = 8192,
                 name_table_size: int = NAME_TABLE_SIZE, give_up_after: float = 60,
                 on_reconnect: Callable[[PerceptrondError], None] = lambda error: None,
                 writer_stub: Callable[[str], Optional[learning_service_pb2_grpc.LearningServiceStub]] = lambda address: None, proxy: str = ""):
        """window: most unanswered examples. name_table_size: most names in the stream's table, which sends each name once;
        0: each message has its names. give_up_after: seconds without progress before giving up. writer_stub: as Servers has it. proxy: as PerceptrondError has it."""
        self._servers, self._on_reconnect, self._proxy = Servers(stub, writer_stub), on_reconnect, proxy
        self._backoff = Backoff(give_up_after)
        self._window = Window(model, producer, window, name_table_size)
        self._changed = asyncio.Condition()
        self._connection = 0
        # The connection ends once what was sent is answered, and another one follows.
        self._moving = False
        self._finishing = False
        self._ended: Optional[BaseException] = None
        self._reader: Optional[asyncio.Task[None]] = None
        self.next_offset = self.passes = 0

    async def __aenter__(self) -> "LearnStream":
        """Opens the stream and waits for the position of the producer."""
        self._reader = asyncio.create_task(self._run())
        try:
            await self._wait_until(self._window.ready)
        except BaseException:
            await self.cancel()
            raise
        self.next_offset, self.passes = self._window.next_offset, self._window.passes
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.cancel()

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

    async def send(self, examples: Examples, completed_pass: int = 0) -> None:
        """Sends rows with their labels, which must not change until they are answered; waits while the window is full."""
        await self._wait_until(self._window.has_room)
        async with self._changed:
            self._window.add(examples, completed_pass)
            self._changed.notify_all()

    async def end_pass(self) -> report_pb2.PassSummary:
        """Marks the end of a pass over the data and waits for all answers."""
        await self.send((), self._window.passes + 1)
        await self._wait_until(self._window.empty)
        return self._window.last_pass()

    async def finish(self) -> Totals:
        """Waits for all answers and ends the stream."""
        await self._wait_until(self._window.empty)
        async with self._changed:
            self._finishing = True
            self._changed.notify_all()
        assert self._reader is not None
        await self._reader
        return self.totals

    async def cancel(self) -> None:
        """Cancels the stream. Unanswered examples may have been learned; sent again, they count once."""
        if self._reader is not None:
            self._reader.cancel()
            await asyncio.wait([self._reader])

    async def _wait_until(self, condition: Callable[[], bool]) -> None:
        async with self._changed:
            await self._changed.wait_for(lambda: self._ended is not None or condition())
            if self._ended is not None:
                raise self._ended

    # ---- The task that reads answers ----

    async def _run(self) -> None:
        try:
            while True:
                try:
                    if await self._connect():
                        return
                except grpc.RpcError as error:
                    await self._reconnect_or_raise(error)
        except Exception as error:
            async with self._changed:
                self._end(error)

    def _end(self, error: Exception) -> None:
        """Makes waiting callers raise the first error."""
        self._ended = self._ended or error
        self._changed.notify_all()

    async def _reconnect_or_raise(self, error: grpc.RpcError) -> None:
        if self._window.do_without_table(reason(error)):
            return
        wait = self._backoff.next_wait(error)
        if wait is None or not is_transient(error):
            raise PerceptrondError.of(error, self._proxy) from None
        self._servers.reset()
        self._on_reconnect(PerceptrondError.of(error, self._proxy))
        await asyncio.sleep(wait)

    async def _connect(self) -> bool:
        """Runs one connection until it ends: whether it was the last one. Raises grpc.RpcError."""
        self._connection += 1
        self._moving = False
        call = self._servers.stub.LearnStream(self._requests(self._connection, self._window.opening()))
        try:
            async for response in call:
                await self._handle(response)
            if not self._finishing and not self._moving:
                raise PerceptrondError.from_parts(grpc.StatusCode.INTERNAL, OUT_OF_ORDER, "the server ended the stream early")
            return self._finishing
        finally:
            # The sending task can outlive a lost connection; it must not take messages of the next one.
            self._connection += 1
            call.cancel()
            async with self._changed:
                self._changed.notify_all()

    async def _handle(self, response: learning_service_pb2.LearnStreamResponse) -> None:
        async with self._changed:
            if response.HasField("opened"):
                self._window.opened(response.opened)
                self._servers.reached()
            for result in response.results:
                if self._window.answered(result):
                    self._backoff.progress()
            self._moving = self._moving or self._servers.prefer(response.writer_address)
            self._changed.notify_all()

    # ---- gRPC's task, which sends ----

    async def _requests(self, connection: int, opening: Request) -> AsyncIterator[Request]:
        """Yields the messages of this connection; returns after finish(), which half-closes the stream."""
        yield opening
        while (request := await self._next(connection)) is not None:
            yield request

    async def _next(self, connection: int) -> Optional[Request]:
        async with self._changed:
            while self._connection == connection and not self._moving:
                try:
                    request = self._window.next_to_send()
                except Exception as error:  # rows that cannot be packed, which would end as an unknown error of gRPC's
                    self._end(error)
                    return None
                if request is not None or self._finishing:
                    return request
                await self._changed.wait()
            return None
