"""Progress of learning, and a line of text that shows it."""

import sys
import time
from typing import Callable, NamedTuple, Optional, TextIO, Union

from .v1 import report_pb2


class Progress(NamedTuple):
    """How far learn() is."""

    # From 1; of a producer that resumes, with its earlier passes.
    pass_number: int
    # The rows of this pass that were sent; those learned by an earlier run are among them.
    sent: int
    # The rows of a pass; None for an iterator.
    rows: Optional[int]
    # Over all answers that this call received.
    examples: int
    mistakes: int
    updates: int
    # Present once the pass is complete.
    summary: Optional[report_pb2.PassSummary]


OnProgress = Callable[[Progress], None]


def shown(progress: Union[bool, OnProgress, None]) -> OnProgress:
    """Returns the callback. True: a line on standard error."""
    if not progress:
        return lambda now: None
    if isinstance(progress, bool):
        return Line(sys.stderr)
    return progress


class Line:
    """Prints a line for each pass; on a terminal it also shows how far the pass is, ten times a second."""

    def __init__(self, file: TextIO):
        self._file, self._next = file, 0.0

    def __call__(self, now: Progress) -> None:
        if now.summary is not None:
            self._print(f"pass {now.pass_number}: {now.summary.examples} examples, {now.summary.mistakes} mistakes, {now.summary.updates} updates"
                        + (", converged" if now.summary.converged else ""), "\n")
        elif self._file.isatty() and time.monotonic() >= self._next:
            self._next = time.monotonic() + 0.1
            of = f" of {now.rows}" if now.rows is not None else ""
            self._print(f"pass {now.pass_number}: {now.sent}{of} examples sent", "")

    def _print(self, text: str, end: str) -> None:
        erase = "\r\x1b[K" if self._file.isatty() else ""
        print(f"{erase}{text}", end=end, file=self._file, flush=True)
