"""Durations, as people write them, and as the API has them."""

import datetime
import re
from typing import Any, Mapping, Union

from google.protobuf import duration_pb2
from google.protobuf.descriptor import Descriptor, FieldDescriptor

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


def with_durations(message: Descriptor, fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a message, with those that are durations, at any depth, as the API has them."""
    return {name: _converted(message.fields_by_name.get(name), value) for name, value in fields.items()}


def _converted(field: Any, value: Any) -> Any:
    if field is None or field.message_type is None or field.label == FieldDescriptor.LABEL_REPEATED:
        return value
    if field.message_type is duration_pb2.Duration.DESCRIPTOR and not isinstance(value, Mapping):
        return None if value is None else duration(value, field.name)
    return with_durations(field.message_type, value) if isinstance(value, Mapping) else value
