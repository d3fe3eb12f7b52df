"""Producers: the names under which a client sends examples that belong to no sequence of the user's."""

import collections
import contextlib
import threading
import uuid
import zlib
from typing import Iterator, Optional, Sequence, Union


class Producers:
    """A model keeps the position of each producer for its whole life, and only a limited number of them. So names are used again; two streams
    that are open at once have different ones. Threads: any number."""

    def __init__(self) -> None:
        self._prefix = f"python-{uuid.uuid4().hex[:16]}"
        self._lock = threading.Lock()
        # Of several models: those whose positions may differ since a call failed are not used again.
        self._generation: collections.defaultdict[str, int] = collections.defaultdict(int)
        self._lent: collections.defaultdict[str, set[int]] = collections.defaultdict(set)

    @contextlib.contextmanager
    def lent(self, models: Union[str, Sequence[str]], name: Optional[str]) -> Iterator[str]:
        """Yields the name that was given, else one that no open stream to these models has. Several models have names of their
        own, whose position is the same in all of them."""
        if name is not None:
            yield name
            return
        model = models if isinstance(models, str) else "\n".join(models)
        with self._lock:
            of_several = "" if isinstance(models, str) else f"{zlib.crc32(model.encode()):08x}-{self._generation[model]}-"
            # A model may be learned under its own name at the same time.
            of_alias = f"{zlib.crc32(model.encode()):08x}-" if model.startswith("aliases/") and not of_several else ""
            lent = self._lent[model]
            number = next(number for number in range(len(lent) + 1) if number not in lent)
            lent.add(number)
        try:
            yield f"{self._prefix}-{of_several}{of_alias}{number}"
        except BaseException:
            if of_several:
                with self._lock:
                    self._generation[model] += 1
            raise
        finally:
            with self._lock:
                lent.discard(number)
                if not lent:
                    del self._lent[model]
