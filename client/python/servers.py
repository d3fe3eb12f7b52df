"""Which of several servers a stream goes to: the one that gRPC chooses, or its model's writer, once an answer has named it."""

from typing import Any, Callable, Optional


class Servers:
    def __init__(self, stub: Any, writer_stub: Callable[[str], Optional[Any]] = lambda address: None):
        """writer_stub: the stub of the server that clients reach at this address, if the program knows it."""
        self._any, self._writer_stub = stub, writer_stub
        self._writer: Optional[Any] = None
        self._named = ""

    @property
    def stub(self) -> Any:
        return self._writer or self._any

    def prefer(self, address: str) -> bool:
        """Whether the stream should go on at this address. Not if that was named last: a server that could not be reached,
        or did not remain the writer, is not tried again at once."""
        if not address or address == self._named:
            return False
        self._named = address
        self._writer = self._writer_stub(address)
        return self._writer is not None

    def reset(self) -> None:
        """The connection was lost: any server will do."""
        self._writer = None
