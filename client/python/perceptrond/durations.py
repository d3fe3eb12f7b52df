"""Durations, as people write them, and as the API has them."""

import datetime
import re
from typing import Union

from google.protobuf import duration_pb2

# A timedelta; or a text such as "30d", "12h", "1h30m" or "1.5s".
Duration = Union[datetime.timedelta, str, duration_pb2.Duration]

_NANOSECONDS = {"d": 86_400 * 10**9, "h": 3600 * 10**9, "m": 60 * 10**9, "s": 10**9, "ms": 10**6, "us": 1000, "ns": 1}
_PART = r"(\d+(?:\.\d*)?|\.\d+)(d|h|ms|m|s|us|ns)"


def duration(given: Duration, what: str = "duration") -> duration_pb2.Duration:
    """Raises ValueError for a text that is no duration, TypeError for what is neither. Ranges are the server's to check."""
    if isinstance(given, duration_pb2.Duration):
        return given
    made = duration_pb2.Duration()
    if isinstance(given, datetime.timedelta):
        made.FromTimedelta(given)
    elif not isinstance(given, str):
        raise TypeError(f"{what}={given!r}: expected a timedelta or a text such as \"12h\", not {type(given).__name__}")
    elif not re.fullmatch(f"(?:{_PART})+", given, re.ASCII):
        raise ValueError(f"{what}={given!r} is no time such as \"90s\", \"12h\" or \"30d\"")
    else:
        made.FromNanoseconds(sum(round(float(number) * _NANOSECONDS[unit]) for number, unit in re.findall(_PART, given, re.ASCII)))
    return made
