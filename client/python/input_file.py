"""Example files, on disk or from a pipe, whose reading can be interrupted."""

import argparse
import io
import select
from typing import BinaryIO


class _InterruptibleFile(io.RawIOBase):
    """Waits for input in short intervals: Python handles signals only between bytecodes, so a blocking read from a
    quiet pipe could delay Ctrl-C forever."""

    def __init__(self, file: BinaryIO):
        self._file, self.name = file, file.name

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:
        while not select.select([self._file], [], [], 0.2)[0]:
            pass
        return self._file.raw.readinto(buffer)


def open_input(path: str) -> BinaryIO:
    """Type of an argument; - is standard input."""
    file = argparse.FileType("rb")(path)
    return file if file.seekable() else io.BufferedReader(_InterruptibleFile(file))
