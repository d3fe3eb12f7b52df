"""Producers: the names under which a client sends examples that belong to no sequence of the user's."""

import collections
import contextlib
import threading
import uuid
import zlib
from typing import Iterator, Optional


class Producers:
    """A model keeps the position of each producer for its whole life, and only a limited number of them. So names are used again; two streams
    that are open at once have different ones. Threads: any number."""

    def __init__(self) -> None:
        self._prefix = f"python-{uuid.uuid4().hex[:16]}"
        self._lock = threading.Lock()
        self._lent: collections.defaultdict[str, set[int]] = collections.defaultdict(set)

    @contextlib.contextmanager
    def lent(self, model: str, name: Optional[str]) -> Iterator[str]:
        """Yields the name that was given, else one that no open stream to this model has."""
        if name is not None:
            yield name
            return
        with self._lock:
            # A model may be learned under its own name at the same time.
            of_alias = f"{zlib.crc32(model.encode()):08x}-" if model.startswith("aliases/") else ""
            lent = self._lent[model]
            number = next(number for number in range(len(lent) + 1) if number not in lent)
            lent.add(number)
        try:
            yield f"{self._prefix}-{of_alias}{number}"
        finally:
            with self._lock:
                lent.discard(number)
                if not lent:
                    del self._lent[model]
