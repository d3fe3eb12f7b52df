"""Retries: which errors to retry, and how long to wait before."""

import asyncio
import random
import time
from typing import Awaitable, Callable, Optional, TypeVar

import grpc

Answer = TypeVar("Answer")


def is_transient(error: grpc.RpcError) -> bool:
    """Whether the same request may succeed later: the server is unreachable or shutting down."""
    return error.code() is grpc.StatusCode.UNAVAILABLE


class Backoff:
    """Waits between attempts: doubled each time and drawn from the upper half, so that clients disconnected together do
    not reconnect together."""

    def __init__(self, response_timeout: float = 60, first: float = 0.1, longest: float = 5):
        """response_timeout: seconds without progress before giving up. first, longest: bounds of the waits in
        seconds."""
        self._response_timeout, self._first, self._longest = response_timeout, first, longest
        self.progress()

    def progress(self) -> None:
        """Call after progress: restarts the timeout and the waits."""
        self._give_up = time.monotonic() + self._response_timeout
        self._ceiling = self._first

    def next_wait(self) -> Optional[float]:
        """Returns the seconds to wait; None: give up."""
        wait = self._ceiling * random.uniform(0.5, 1)
        self._ceiling = min(2 * self._ceiling, self._longest)
        return wait if time.monotonic() + wait < self._give_up else None


def with_retries(call: Callable[[], Answer], response_timeout: float = 60) -> Answer:
    """Makes a unary call that is safe to repeat, until it succeeds, fails permanently, or the timeout is over."""
    backoff = Backoff(response_timeout)
    while True:
        try:
            return call()
        except grpc.RpcError as error:
            wait = backoff.next_wait()
            if not is_transient(error) or wait is None:
                raise
        time.sleep(wait)


async def with_retries_async(call: Callable[[], Awaitable[Answer]], response_timeout: float = 60) -> Answer:
    """The same for asyncio."""
    backoff = Backoff(response_timeout)
    while True:
        try:
            return await call()
        except grpc.RpcError as error:
            wait = backoff.next_wait()
            if not is_transient(error) or wait is None:
                raise
        await asyncio.sleep(wait)
