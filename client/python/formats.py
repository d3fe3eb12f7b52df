"""Example files, read row by row: two of the formats that perceptronctl takes.

text:      label<TAB>text; the features are the text's words, valued by how often each occurs.
svmlight:  label index:value index:value ... # comment
"""

import collections
import re
from typing import BinaryIO, Callable, Iterator, NamedTuple, Union

# ASCII letters, digits, apostrophes, and whatever is beyond ASCII.
WORD = re.compile(rb"[a-z0-9'\x80-\xff]+")
FEATURE = re.compile(rb"(\d+):([-+]?[\d.]+(?:[eE][-+]?\d+)?)")


class Row(NamedTuple):
    """One example: features by name or by index; the label by name, -1 or +1, or None where there is none."""

    features: Union[dict[str, float], dict[int, float]]
    label: Union[str, int, None]


class BadLine(Exception):
    """A line that is no example; the text says where and why."""


def parse_text(line: bytes) -> Row:
    label, tab, text = line.partition(b"\t")
    if not tab:
        raise ValueError("no tab: expected a label, a tab and a text")
    # bytes.lower() knows ASCII only, which is what is wanted.
    words = collections.Counter(WORD.findall(text.lower()))
    return Row({word.decode(): float(times) for word, times in words.items()}, label.decode())


def svmlight_parser(index_base: int) -> Callable[[bytes], Union[Row, None]]:
    """For files whose first feature has this number, 0 or 1."""

    def parse(line: bytes) -> Union[Row, None]:
        words = line.partition(b"#")[0].split()
        if not words:
            return None
        features: dict[int, float] = {}
        for word in words[1:]:
            feature = FEATURE.fullmatch(word)
            if not feature:
                raise ValueError(f'"{word.decode()}" is no feature: expected index:value')
            index = int(feature[1]) - index_base
            if index < 0:
                raise ValueError("index 0 in a file whose indices start at 1; if they start at 0, say --index-base 0")
            features[index] = float(feature[2])
        label = float(words[0])
        if label not in (-1, 1):
            raise ValueError(f'label "{words[0].decode()}" is neither -1 nor +1')
        return Row(features, int(label))

    return parse


def read_rows(file: BinaryIO, parse: Callable[[bytes], Union[Row, None]]) -> Iterator[Row]:
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
