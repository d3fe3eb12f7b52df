"""Examples: read from files, with their labels. The formats are two of perceptronctl's:

text:      label<TAB>text; the server splits the text into words.
svmlight:  label index:value index:value ... # comment

If no label is required, a line of text without a tab, or with an unknown label before its first tab, is all text, and a
line of svmlight may start with its first feature.
"""

import argparse
import io
import math
import re
import select
import struct
from typing import BinaryIO, Callable, Iterator, Optional

from perceptrond.columns import MOST_UINT32
from perceptrond.labels import Labels
from perceptrond.rows import Label, Row

# A uint32 has at most ten digits.
FEATURE = re.compile(rb"0*(\d{1,10}):([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)")

Parse = Callable[[bytes], Optional[Row]]


class BadLine(Exception):
    """A malformed line; the text says where and why."""


def _read_label(word: bytes, labels: Labels, required: bool) -> Optional[Label]:
    """Raises ValueError if a label is required and the text is not one of the model."""
    try:
        return labels.read(word.decode())
    except ValueError:
        if required:
            raise
        return None


def text_parser(labels: Labels, required: bool) -> Parse:
    def parse(line: bytes) -> Row:
        word, tab, text = line.partition(b"\t")
        if required and not tab:
            raise ValueError("there is no tab: expected a label, a tab and a text")
        label = _read_label(word, labels, required) if tab else None
        return Row((line if label is None else text).decode(), label)

    return parse


def svmlight_parser(index_base: int, labels: Labels, required: bool) -> Parse:
    """For files whose first index is this, 0 or 1."""

    def parse(line: bytes) -> Optional[Row]:
        words = line.partition(b"#")[0].split()
        if not words:
            return None
        label = None
        if b":" not in words[0]:
            label = _read_label(words.pop(0), labels, required)
        elif required:
            raise ValueError("no label before the first feature")
        features: dict[int, float] = {}
        for word in words:
            index, value = _feature(word, index_base)
            if index in features:
                raise ValueError(f"index {index} occurs twice")
            features[index] = value
        return Row(features, label)

    return parse


def _feature(word: bytes, index_base: int) -> tuple[int, float]:
    """Returns (index, value) with indices from 0."""
    feature = FEATURE.fullmatch(word)
    if not feature or int(feature[1]) > MOST_UINT32 or not _is_float32(float(feature[2])):
        raise ValueError(f'"{word.decode()[:40]}" is not a feature: expected index:value, an integer and a finite number')
    index = int(feature[1]) - index_base
    if index < 0:
        raise ValueError("index 0 with --index-base 1; if indices start at 0, give --index-base 0")
    return index, float(feature[2])


def _is_float32(number: float) -> bool:
    """Parses a finite float32."""
    try:
        return math.isfinite(struct.unpack("f", struct.pack("f", number))[0])
    except OverflowError:
        return False


def read_rows(file: BinaryIO, parse: Parse) -> Iterator[Row]:
    """Yields the examples of the file. Raises BadLine at the first malformed line."""
    for number, line in enumerate(file, start=1):
        line = line.rstrip(b"\r\n")
        if not line:
            continue
        try:
            row = parse(line)
        except ValueError as error:
            raise BadLine(f"{file.name}:{number}: {error}") from None
        if row is not None:
            yield row._replace(line=number)


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
