"""Files of examples, on a disk or from a pipe, whose reading can be interrupted."""

import argparse
import io
import select
from typing import BinaryIO


class _Patient(io.RawIOBase):
    """Waits a while at a time. Python notices a signal between two of its own steps: one that comes when it is about to read is noticed after it
    has read, which from a pipe that nobody writes into is never."""

    def __init__(self, file: BinaryIO):
        self._file, self.name = file, file.name

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:
        while not select.select([self._file], [], [], 0.2)[0]:
            pass
        return self._file.raw.readinto(buffer)


def open_input(path: str) -> BinaryIO:
    """As an argument's type; - is standard input."""
    file = argparse.FileType("rb")(path)
    return file if file.seekable() else io.BufferedReader(_Patient(file))
