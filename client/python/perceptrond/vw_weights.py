"""Weights in the readable form of Vowpal Wabbit 8 and 9. perceptrond.weights has the functions to call.

After a header a line has a weight: `slot:weight`, or with names `namespace^feature:slot:weight`. With --oaa K the weights of a
feature lie side by side, as many as the next power of two from K on; the name of class k, from 1, has `[k]` at its end.
"""

import re
from typing import Iterator, NamedTuple

import numpy
import scipy.sparse

from .rows import Label
from .weights import LinearClassifier

# The hash of the feature that is 1 in every example.
CONSTANT = 11650396
# vw's own default, and the most bits that have a slot for the constant above those of the features.
FEWEST_BITS, MOST_BITS = 18, 24
# The options that change neither features nor what the weights of a linear model mean.
_OPTIONS = {"--oaa", "--binary", "--loss_function", "--noconstant", "--link", "--hash", "--hash_seed", "--bit_precision", "--random_seed", "--l1", "--l2",
            "--min_prediction", "--max_prediction", "--sgd", "--adaptive", "--normalized", "--invariant"}
_VALUE = re.compile(r"[-+]?(\d|\.\d|inf|nan)", re.ASCII)


class _Line(NamedTuple):
    number: int
    # Empty: the line has none.
    name: str
    slot: int
    value: float


def write(linear: LinearClassifier) -> str:
    shift = 0 if linear.two_labels else (len(linear.labels) - 1).bit_length()
    named = linear.space == "named"
    bits = FEWEST_BITS if named else _bits_above(linear.coef.shape[1])
    hashes = [_feature_hash(name) for name in linear.names]
    lines: list[tuple[int, str]] = []
    for row, bias in enumerate(numpy.asarray(linear.bias).tolist()):
        of_class = f"[{row}]" if row else ""

        def add(name: str, position: int, weight: float) -> None:
            slot = (position << shift | row) & ((1 << bits + shift) - 1)
            lines.append((slot, f"{name}{of_class}:{slot}:{weight:.9g}" if named else f"{slot}:{weight:.9g}"))

        if bias:
            add("Constant", CONSTANT, bias)
        begin, end = linear.coef.indptr[row], linear.coef.indptr[row + 1]
        for column, weight in zip(linear.coef.indices[begin:end].tolist(), linear.coef.data[begin:end].tolist()):
            if weight:
                add(linear.names[column] if named else "", hashes[column] if named else column, weight)
    lowest, highest = (-1, 1) if linear.two_labels else (1, len(linear.labels))
    options = " --binary" if linear.two_labels else f" --oaa {len(linear.labels)}"
    header = ["Version 9.11.2", "Id ", f"Min label:{lowest}", f"Max label:{highest}", f"bits:{bits + shift}", "lda:0", "0 ngram:", "0 skip:",
              f"options:{options}", "Checksum: 0", ":0"]
    return "".join(f"{line}\n" for line in [*header, *(text for _, text in sorted(lines))])


def _bits_above(features: int) -> int:
    """The slots of which the constant's is not a feature's."""
    for bits in range(max(FEWEST_BITS, (features - 1).bit_length()), MOST_BITS + 1):
        if CONSTANT & ((1 << bits) - 1) >= features:
            return bits
    raise ValueError(f"Vowpal Wabbit has its constant in slot {CONSTANT}, which one of the {features} features has")


def _feature_hash(name: str) -> int:
    namespace, caret, feature = name.rpartition("^")
    return _hash(feature, _hash(namespace, 0) if caret else 0)


def _hash(text: str, seed: int) -> int:
    """vw's --hash strings: a number is its own hash."""
    data = text.strip(" ").encode()
    if data.isdigit() or not data:
        return (int(data or b"0") + seed) & 0xFFFFFFFF
    return murmur3(data, seed)


def murmur3(data: bytes, seed: int) -> int:
    """MurmurHash3_x86_32 (Appleby)."""
    word = 0xFFFFFFFF

    def mixed(block: int) -> int:
        block = block * 0xCC9E2D51 & word
        return (block << 15 | block >> 17) * 0x1B873593 & word

    whole = len(data) // 4 * 4
    state = seed
    for begin in range(0, whole, 4):
        state ^= mixed(int.from_bytes(data[begin:begin + 4], "little"))
        state = (state << 13 | state >> 19) & word
        state = state * 5 + 0xE6546B64 & word
    if whole < len(data):
        state ^= mixed(int.from_bytes(data[whole:], "little"))
    state ^= len(data)
    state = (state ^ state >> 16) * 0x85EBCA6B & word
    state = (state ^ state >> 13) * 0xC2B2AE35 & word
    return state ^ state >> 16


# ---- Reading ----


def read(text: str) -> LinearClassifier:
    header = dict(re.findall(r"^(bits|options): *(.*?) *$", text, re.M))
    if not text.startswith("Version") or "bits" not in header or "options" not in header:
        raise ValueError("expected a file of `vw --readable_model` or `--invert_hash`, which begins with Version, bits and options")
    classes = _classes(header["options"], text)
    shift = (classes - 1).bit_length() if classes else 0
    labels: list[Label] = [str(number) for number in range(1, classes + 1)] if classes else [-1, 1]
    slots = 1 << int(header["bits"]) - shift
    constant = None if "--noconstant" in header["options"] else CONSTANT & (slots - 1)
    lines = list(_lines(text))
    named = any(line.name for line in lines)
    bias = numpy.zeros(max(classes, 1))
    numbers: dict[str, int] = {}
    rows, columns, values = [], [], []
    for line in lines:
        row, slot = line.slot & ((1 << shift) - 1), line.slot >> shift
        if row >= len(bias) or slot >= slots:
            raise ValueError(f"line {line.number}: slot {line.slot} is not one of {slots} features and {max(classes, 1)} classes")
        name = line.name.removesuffix(f"[{row}]") if row else line.name
        if name == "Constant" or not named and slot == constant:
            bias[row] = line.value
            continue
        if named and not name:
            raise ValueError(f"line {line.number} has no name: no example had the feature when --invert_hash was written; "
                             f"write it with the data that the model learned, or read the --readable_model")
        if "*" in name:
            raise ValueError(f"line {line.number}: {name} is of several features; interactions cannot be imported")
        rows.append(row)
        columns.append(numbers.setdefault(name, len(numbers)) if named else slot)
        values.append(line.value)
    width = len(numbers) if named else slots
    coef = scipy.sparse.csr_matrix((numpy.array(values, numpy.float64), (rows, columns)), shape=(len(bias), width))
    return LinearClassifier("named" if named else "hashed", list(numbers), labels, coef, bias)


def _classes(options: str, text: str) -> int:
    """Of --oaa; 0: two labels."""
    words = options.replace("=", " ").split()
    unknown = [word for word in words if word.startswith("--") and word not in _OPTIONS]
    if unknown or re.search(r"^([1-9]\d* (ngram|skip|pairs|triples|interactions):|(lda|rank):[1-9])", text, re.M):
        raise ValueError(f"the model's options are \"{options}\": a linear model of two labels or --oaa can be imported, without "
                         f"{' '.join(unknown) or 'n-grams and interactions'}")
    return int(words[words.index("--oaa") + 1]) if "--oaa" in words else 0


def _lines(text: str) -> Iterator[_Line]:
    started = False
    for number, line in enumerate(text.splitlines(), 1):
        # ":0" ends the header; after ":1" (--save_resume) come more lines of it, and after a weight what its rule remembers.
        started = started or line in (":0", ":1")
        position, colon, values = line.rpartition(":")
        name, _, slot = position.rpartition(":")
        if started and colon and slot.isdigit() and _VALUE.match(values):
            yield _Line(number, name, int(slot), float(values.split()[0]))
