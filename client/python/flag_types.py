"""Types of flags for argparse. Needs no proto."""

import argparse
from typing import Callable

MOST_UINT32 = 2**32 - 1
# Largest google.protobuf.Duration: 10,000 years.
MOST_SECONDS = 315_576_000_000


def whole(least: int = 1, most: int = 1_000_000_000) -> Callable[[str], int]:
    def parse(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            number = least - 1
        if not least <= number <= most:
            raise argparse.ArgumentTypeError(f"{text}: expected an integer from {least} to {most}")
        return number

    return parse


def seconds(least: float = 0) -> Callable[[str], float]:
    def parse(text: str) -> float:
        try:
            number = float(text)
        except ValueError:
            number = least - 1
        # This comparison is false for NaN too.
        if not least <= number <= MOST_SECONDS:
            raise argparse.ArgumentTypeError(f"{text}: expected seconds, from {least} to {MOST_SECONDS}")
        return number

    return parse


def utf8(text: str) -> str:
    """A text that is UTF-8. Other bytes of the command line become surrogates, which protos do not accept."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise argparse.ArgumentTypeError(f"{text!a}: not valid UTF-8") from None
    return text


def utf8_list(text: str) -> list[str]:
    return utf8(text).split(",")
