"""NameTable: the client's copy of the table of names of one stream (ExampleColumns.stream_names).

A name is sent once, and then its number until the table, which holds the latest names, has lost it. The copy is of one
stream: another one starts with an empty table.
"""

import collections
import itertools
from typing import Sequence

from .columns import MOST_UINT32, AddedNames, append_names, assemble, has_names, has_texts, number, pack, pack_first
from .rows import Row
from .v1 import example_pb2


class NameTable:
    """Threads: one at a time."""

    def __init__(self, size: int):
        """size: how many names the server's table holds; below 4: each message has its names."""
        # A message appends at most a quarter. So names that three quarters of the table are newer than stay in it until the
        # message ends; older ones are removed here, and appended again.
        self._most_new, self._most_kept = size // 4, size - size // 4
        self._appended = 0
        # In the order of the numbers: a new name gets the next one, and goes to the end.
        self._numbers: collections.defaultdict[str, int] = collections.defaultdict()

    def pack(self, rows: Sequence[Row]) -> tuple[example_pb2.ExampleColumns, int]:
        """Packs the first rows into one message, and returns how many: fewer than all if the others have too many or too long new
        names.
        Messages must be sent in the order in which they are packed."""
        if has_texts(rows) or not has_names(rows) or self._most_new == 0 or self._appended + self._most_new > MOST_UINT32:
            return pack_first(rows)
        self._remove_oldest()
        self._numbers.default_factory = itertools.count(self._appended).__next__
        added = AddedNames(self._numbers, self._most_new)
        numbered = number(rows, self._numbers, added.fit)
        names = added.names()
        count = len(numbered.row_ends)
        if count == 0:
            # One row has too many new names.
            return pack(rows[:1]), 1
        columns = assemble(rows[:count], numbered)
        self._appended += len(names)
        append_names(columns.stream_names, names)
        return columns, count

    def _remove_oldest(self) -> None:
        # The numbers are consecutive.
        for name in list(itertools.islice(self._numbers, max(len(self._numbers) - self._most_kept, 0))):
            del self._numbers[name]
