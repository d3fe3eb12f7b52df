"""What a flag's text must be, as argparse's types: whatever else is wrong usage, said in a line. Needs no proto."""

import argparse
from typing import Callable

MOST_UINT32 = 2**32 - 1
# What a google.protobuf.Duration holds: 10,000 years.
MOST_SECONDS = 315_576_000_000


def whole(least: int = 1, most: int = 1_000_000_000) -> Callable[[str], int]:
    def parse(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            number = least - 1
        if not least <= number <= most:
            raise argparse.ArgumentTypeError(f"{text}: expected a whole number from {least} to {most}")
        return number

    return parse


def seconds(least: float = 0) -> Callable[[str], float]:
    def parse(text: str) -> float:
        try:
            number = float(text)
        except ValueError:
            number = least - 1
        # Written so that what is no number ("nan") is out of it too.
        if not least <= number <= MOST_SECONDS:
            raise argparse.ArgumentTypeError(f"{text}: expected seconds, from {least} to {MOST_SECONDS}")
        return number

    return parse


def utf8(text: str) -> str:
    """Bytes of the command line that are not UTF-8 come as surrogates, which no proto takes."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise argparse.ArgumentTypeError(f"{text!a}: it is not UTF-8") from None
    return text


def utf8_list(text: str) -> list[str]:
    return utf8(text).split(",")
