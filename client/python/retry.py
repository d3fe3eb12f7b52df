"""When to try again, and how long to wait before."""

import asyncio
import random
import time
from typing import Awaitable, Callable, Optional, TypeVar

import grpc

Answer = TypeVar("Answer")


def is_transient(error: grpc.RpcError) -> bool:
    """The same may succeed later without anybody's help: the server is away, or stopping."""
    return error.code() is grpc.StatusCode.UNAVAILABLE


class Backoff:
    """The waits between attempts: twice as long each time, each drawn from half to the whole of that, so that clients which
    were cut off together do not come back together."""

    def __init__(self, patience: float = 60, first: float = 0.1, longest: float = 5):
        """Seconds: patience, after which it gives up; the first and the longest wait."""
        self._patience, self._first, self._longest = patience, first, longest
        self.progress()

    def progress(self) -> None:
        """Something was achieved: patience and waits begin anew."""
        self._give_up = time.monotonic() + self._patience
        self._ceiling = self._first

    def next_wait(self) -> Optional[float]:
        """Seconds to wait; None: it is time to give up."""
        wait = self._ceiling * random.uniform(0.5, 1)
        self._ceiling = min(2 * self._ceiling, self._longest)
        return wait if time.monotonic() + wait < self._give_up else None


def with_retries(call: Callable[[], Answer], patience: float = 60) -> Answer:
    """A unary call that may be repeated, until it answers, fails for good, or patience is over."""
    backoff = Backoff(patience)
    while True:
        try:
            return call()
        except grpc.RpcError as error:
            wait = backoff.next_wait()
            if not is_transient(error) or wait is None:
                raise
        time.sleep(wait)


async def with_retries_async(call: Callable[[], Awaitable[Answer]], patience: float = 60) -> Answer:
    """The same for asyncio."""
    backoff = Backoff(patience)
    while True:
        try:
            return await call()
        except grpc.RpcError as error:
            wait = backoff.next_wait()
            if not is_transient(error) or wait is None:
                raise
        await asyncio.sleep(wait)
