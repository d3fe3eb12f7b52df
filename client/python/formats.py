"""Example files, read row by row: two of the formats that perceptronctl takes.

text:      label<TAB>text; the features are the text's words, valued by how often each occurs.
svmlight:  label index:value index:value ... # comment

Where no label is required, a line of text is all text if it has no tab, or no label of the model before the first; and svmlight may
begin with its first feature.
"""

import collections
import math
import re
import struct
from typing import BinaryIO, Callable, Iterator, NamedTuple, Optional, Union

from flag_types import MOST_UINT32
from labels import Label, Labels

# ASCII letters, digits, apostrophes, and whatever is beyond ASCII.
WORD = re.compile(rb"[a-z0-9'\x80-\xff]+")
# A uint32 has ten digits at most.
FEATURE = re.compile(rb"0*(\d{1,10}):([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)")

Parse = Callable[[bytes], "Optional[Row]"]


class Row(NamedTuple):
    """One example: features by name or by index; the label as Labels.read() has it, or None where there is none."""

    features: Union[dict[str, float], dict[int, float]]
    label: Optional[Label]


class BadLine(Exception):
    """A line that is no example; the text says where and why."""


def _read_label(word: bytes, labels: Labels, required: bool) -> Optional[Label]:
    """Raises ValueError if it is none of the model's and one is required."""
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
            raise ValueError("no tab: expected a label, a tab and a text")
        label = _read_label(word, labels, required) if tab else None
        # bytes.lower() knows ASCII only, which is what is wanted.
        words = collections.Counter(WORD.findall((line if label is None else text).lower()))
        return Row({word.decode(): float(times) for word, times in words.items()}, label)

    return parse


def svmlight_parser(index_base: int, labels: Labels, required: bool) -> Parse:
    """For files whose first feature has this number, 0 or 1."""

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
    """(index, value), the index from 0 on."""
    feature = FEATURE.fullmatch(word)
    if not feature or int(feature[1]) > MOST_UINT32 or not _is_float32(float(feature[2])):
        raise ValueError(f'"{word.decode()[:40]}" is no feature: expected index:value, a whole number and a finite one')
    index = int(feature[1]) - index_base
    if index < 0:
        raise ValueError("index 0 in a file whose indices start at 1; if they start at 0, say --index-base 0")
    return index, float(feature[2])


def _is_float32(number: float) -> bool:
    """A finite one: what the wire holds."""
    try:
        return math.isfinite(struct.unpack("f", struct.pack("f", number))[0])
    except OverflowError:
        return False


def read_rows(file: BinaryIO, parse: Parse) -> Iterator[Row]:
    """The file's examples in their order. Raises BadLine at the first line that is none."""
    for number, line in enumerate(file, start=1):
        line = line.rstrip(b"\r\n")
        if not line:
            continue
        try:
            row = parse(line)
        except ValueError as error:
            raise BadLine(f"{file.name}:{number}: {error}") from None
        if row is not None:
            yield row
