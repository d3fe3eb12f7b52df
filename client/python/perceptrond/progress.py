"""Progress of learning and of files, and a line of text that shows it."""

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


class Transfer(NamedTuple):
    """How far export_model() or import_model() is."""

    # From 0 again when a lost connection has the file begin again.
    bytes: int
    # Of the whole file; None while it is unknown.
    total: Optional[int]
    # In the last call: the file is whole, or the model created.
    complete: bool


OnProgress = Callable[[Progress], None]
OnTransfer = Callable[[Transfer], None]


def shown(progress: Union[bool, OnProgress, None]) -> OnProgress:
    """Returns the callback. True: a line on standard error."""
    if not progress:
        return lambda now: None
    return Line(sys.stderr).learning if isinstance(progress, bool) else progress


def shown_transfer(progress: Union[bool, OnTransfer, None]) -> OnTransfer:
    """The same for a file."""
    if not progress:
        return lambda now: None
    return Line(sys.stderr).transferring if isinstance(progress, bool) else progress


class Line:
    """Prints a line for each pass or file; on a terminal it also shows how far that is, ten times a second."""

    def __init__(self, file: TextIO):
        self._file, self._next = file, 0.0

    def learning(self, now: Progress) -> None:
        if now.summary is not None:
            self._print(f"pass {now.pass_number}: {now.summary.examples} examples, {now.summary.mistakes} mistakes, {now.summary.updates} updates"
                        + (", converged" if now.summary.converged else ""), "\n")
        elif self._due():
            of = f" of {now.rows}" if now.rows is not None else ""
            self._print(f"pass {now.pass_number}: {now.sent}{of} examples sent", "")

    def transferring(self, now: Transfer) -> None:
        if now.complete:
            self._print(f"{now.bytes} bytes", "\n")
        elif self._due():
            of = f" of {now.total / 1e6:.1f}" if now.total is not None else ""
            self._print(f"{now.bytes / 1e6:.1f}{of} MB", "")

    def _due(self) -> bool:
        if not self._file.isatty() or time.monotonic() < self._next:
            return False
        self._next = time.monotonic() + 0.1
        return True

    def _print(self, text: str, end: str) -> None:
        erase = "\r\x1b[K" if self._file.isatty() else ""
        print(f"{erase}{text}", end=end, file=self._file, flush=True)
