"""Which of several servers a stream goes to: the one that gRPC chooses, or its model's writer, once an answer has named it."""

from typing import Any, Callable, Optional


class Servers:
    def __init__(self, stub: Any, writer_stub: Callable[[str], Optional[Any]] = lambda address: None):
        """writer_stub: the stub of the server that clients reach at this address, if the program knows it."""
        self._any, self._writer_stub = stub, writer_stub
        self._writer: Optional[Any] = None
        # The address that was named last, until it is reached.
        self._unreached = ""

    @property
    def stub(self) -> Any:
        return self._writer or self._any

    def prefer(self, address: str) -> bool:
        """Whether the stream should go on at this address. Not if that was named last and could not be reached."""
        if not address or address == self._unreached:
            return False
        self._unreached = address
        try:
            self._writer = self._writer_stub(address)
        except OSError:  # of a file with certificates or a token
            self._writer = None
        return self._writer is not None

    def reached(self) -> None:
        """The server has opened the stream."""
        if self._writer is not None:
            self._unreached = ""

    def reset(self) -> None:
        """The connection was lost: any server will do."""
        self._writer = None
