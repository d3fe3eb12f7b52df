"""PerceptrondError: code, reason and invalid fields; which errors to retry, and how long to wait before."""

import asyncio
import random
import time
import warnings
from typing import Awaitable, Callable, NamedTuple, Optional, TypeVar

import grpc

from .google_rpc import error_details_pb2, status_pb2

CODES = {code.value[0]: code for code in grpc.StatusCode}
# The trailing metadata with the google.rpc.Status of a failed call.
DETAILS = "grpc-status-details-bin"


# Seconds: a longer wait for a server is reported.
NOTICE_AFTER = 3.0

# Words of gRPC's messages below a call, and what to do.
_HINTS = (
    ("wrong version number", "the server does not seem to use TLS: leave out tls_ca"),
    ("certificate verify failed", "the server's certificate is not signed by an authority in tls_ca"),
    ("not in peer certificate", "the server's certificate has another name: give that as the host"),
    ("http1.x server", "a web server answers there, perhaps perceptrond's metrics and status page (port 7601): give the address of gRPC (port 7600)"),
    ("Socket closed", "is perceptrond running there? If it uses TLS, give tls_ca"),
    ("Connection reset", "is perceptrond running there? If it uses TLS, give tls_ca"),
    ("", "is perceptrond running there? `server` or $PERCEPTROND_SERVER sets the address"),
)


class Violation(NamedTuple):
    """A field with an invalid value."""

    # Its path in the request: "columns.values[40]".
    field: str
    description: str


class PerceptrondError(Exception):
    """A call or a stream failed. The one exception that this package raises for what a server answers or does not answer;
    wrong arguments are ValueError and TypeError."""

    def __init__(self, status: status_pb2.Status, proxy: str = ""):
        """proxy: what to say of the proxy that the server is called through, if it was not reached."""
        super().__init__(describe_status(status) + _hint(status, proxy))
        self.status, self._proxy = status, proxy

    @classmethod
    def of(cls, error: grpc.RpcError, proxy: str = "") -> "PerceptrondError":
        return cls(status_of(error), proxy)

    @classmethod
    def at(cls, position: str, status: status_pb2.Status) -> "PerceptrondError":
        """Of a row: the message begins with its position."""
        placed = status_pb2.Status()
        placed.CopyFrom(status)
        placed.message = f"{position}: {status.message}"
        return cls(placed)

    @classmethod
    def from_parts(cls, code: grpc.StatusCode, reason: str, message: str) -> "PerceptrondError":
        """An error that this package found itself."""
        status = status_pb2.Status(code=code.value[0], message=message)
        status.details.add().Pack(error_details_pb2.ErrorInfo(reason=reason, domain="perceptrond"))
        return cls(status)

    @classmethod
    def row_too_large(cls, position: str, size: int, most: int) -> "PerceptrondError":
        """Of a message with one row, which is not to be split. most: 0, if the server has not said it."""
        limit = f"at most {most}" if most else "less"
        return cls.from_parts(grpc.StatusCode.RESOURCE_EXHAUSTED, "MESSAGE_TOO_LARGE", f"{position}: this row alone is too large: it takes {size} bytes "
                              f"of a message, of which the server accepts {limit} (its --max-message-bytes)")

    @property
    def code(self) -> grpc.StatusCode:
        return CODES.get(self.status.code, grpc.StatusCode.UNKNOWN)

    @property
    def reason(self) -> str:
        """"MODEL_NOT_FOUND", ...: what programs compare. Empty if no server answered."""
        info = error_info(self.status)
        return info.reason if info else ""

    @property
    def message(self) -> str:
        return self.status.message

    @property
    def violations(self) -> list[Violation]:
        """The invalid fields. Empty for errors that name none."""
        bad = error_details_pb2.BadRequest()
        return [Violation(violation.field, violation.description) for detail in self.status.details if detail.Unpack(bad)
                for violation in bad.field_violations]

    def __reduce__(self) -> tuple[Callable[[bytes, str], "PerceptrondError"], tuple[bytes, str]]:
        # Messages cannot be pickled.
        return _from_bytes, (self.status.SerializeToString(), self._proxy)


def _from_bytes(status: bytes, proxy: str) -> PerceptrondError:
    return PerceptrondError(status_pb2.Status.FromString(status), proxy)


def status_of(error: grpc.RpcError) -> status_pb2.Status:
    """Returns the google.rpc.Status of an error, or gRPC's own status if no server answered."""
    for key, value in error.trailing_metadata() or ():
        if key == DETAILS:
            return status_pb2.Status.FromString(value)
    return status_pb2.Status(code=error.code().value[0], message=error.details() or "")


def error_info(status: status_pb2.Status) -> Optional[error_details_pb2.ErrorInfo]:
    """Returns the ErrorInfo: programs compare its reason, not the message."""
    info = error_details_pb2.ErrorInfo()
    return info if any(detail.Unpack(info) for detail in status.details) else None


def reason(error: grpc.RpcError) -> str:
    """"MODEL_NOT_FOUND", ...; empty if the error is not the server's."""
    info = error_info(status_of(error))
    return info.reason if info else ""


def describe(error: grpc.RpcError) -> str:
    return describe_status(status_of(error))


def describe_status(status: status_pb2.Status) -> str:
    """Returns the error as a line or two of text."""
    info = error_info(status)
    code = CODES.get(status.code, grpc.StatusCode.UNKNOWN).name
    text = f"{code} ({info.reason}): {status.message}" if info else f"{code}: {status.message}"
    bad = error_details_pb2.BadRequest()
    for detail in status.details:
        if detail.Unpack(bad):
            text += "".join(f"\n  {violation.field}: {violation.description}" for violation in bad.field_violations
                            if violation.description not in status.message)
    return text


def _hint(status: status_pb2.Status, proxy: str) -> str:
    if status.code != grpc.StatusCode.UNAVAILABLE.value[0] or status.details:
        return ""
    return "; ".join(["", next(hint for words, hint in _HINTS if words in status.message), *([proxy] if proxy else [])])


Answer = TypeVar("Answer")


def is_too_large(error: PerceptrondError) -> bool:
    """Whether the message was longer than the server takes. One that gRPC itself refuses has no reason."""
    return error.code is grpc.StatusCode.RESOURCE_EXHAUSTED and error.reason in ("", "MESSAGE_TOO_LARGE")


def is_transient(error: grpc.RpcError) -> bool:
    """Whether the same request may succeed later: the server is unreachable or shutting down, or says when to try again."""
    # A proxy that ends the connection after the server's answer leaves CANCELLED in the place of its code.
    code = CODES.get(status_of(error).code)
    return code is grpc.StatusCode.UNAVAILABLE or code is grpc.StatusCode.RESOURCE_EXHAUSTED and retry_delay(error) is not None


def retry_delay(error: grpc.RpcError) -> Optional[float]:
    """The seconds that the server asks to wait; None if it does not say."""
    retry = error_details_pb2.RetryInfo()
    if not any(detail.Unpack(retry) for detail in status_of(error).details):
        return None
    return retry.retry_delay.ToTimedelta().total_seconds()


class Backoff:
    """Waits between attempts: doubled each time and drawn from the upper half, so that clients disconnected together do
    not reconnect together."""

    def __init__(self, give_up_after: float = 60, first: float = 0.1, longest: float = 5):
        """give_up_after: seconds without progress before giving up. first, longest: bounds of the waits in
        seconds."""
        self._give_up_after, self._first, self._longest = give_up_after, first, longest
        self.progress()

    def progress(self) -> None:
        """Call after progress: restarts the timeout and the waits."""
        self._since = time.monotonic()
        self._deadline = self._since + self._give_up_after
        self._ceiling = self._first
        self._noticed = False

    def next_wait(self, error: grpc.RpcError) -> Optional[float]:
        """Returns the seconds to wait after this error, at least as long as the server asks; None: give up. Warns once of a
        wait that lasts."""
        wait = max(self._ceiling * random.uniform(0.5, 1), retry_delay(error) or 0)
        self._ceiling = min(2 * self._ceiling, self._longest)
        now = time.monotonic()
        if now + wait >= self._deadline:
            return None
        if not self._noticed and now - self._since >= NOTICE_AFTER and is_transient(error):
            self._noticed = True
            warnings.warn(f"no answer for {now - self._since:.0f} s; trying for another {self._deadline - now:.0f} s (give_up_after): {describe(error)}", stacklevel=3)
        return wait


def with_retries(call: Callable[[], Answer], give_up_after: float = 60, proxy: str = "") -> Answer:
    """Makes a unary call that is safe to repeat, until it succeeds, fails permanently, or the timeout is over. Raises
    PerceptrondError."""
    backoff = Backoff(give_up_after)
    while True:
        try:
            return call()
        except grpc.RpcError as error:
            wait = backoff.next_wait(error)
            if not is_transient(error) or wait is None:
                raise PerceptrondError.of(error, proxy) from None
        time.sleep(wait)


async def with_retries_async(call: Callable[[], Awaitable[Answer]], give_up_after: float = 60, proxy: str = "") -> Answer:
    """The same for asyncio."""
    backoff = Backoff(give_up_after)
    while True:
        try:
            return await call()
        except grpc.RpcError as error:
            wait = backoff.next_wait(error)
            if not is_transient(error) or wait is None:
                raise PerceptrondError.of(error, proxy) from None
        await asyncio.sleep(wait)
