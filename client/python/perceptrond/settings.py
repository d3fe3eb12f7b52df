"""Settings of a model, from keyword arguments."""

import difflib
from typing import Any, Mapping, Optional, Sequence, Union

from google.protobuf import duration_pb2
from google.protobuf.descriptor import Descriptor, FieldDescriptor

from .durations import duration
from .v1 import feature_space_pb2, learner_pb2, model_pb2

# Learner.rule and Learner.prediction, as the API names them.
LEARNERS = tuple(field.name for field in learner_pb2.Learner.DESCRIPTOR.oneofs_by_name["rule"].fields)
PREDICTIONS = tuple(field.name for field in learner_pb2.Learner.DESCRIPTOR.oneofs_by_name["prediction"].fields)
SPACES = ("dense", "hashed", "named", "text")
# Default, as the server has it for texts.
HASHED_BITS = 20

Features = Union[int, str, feature_space_pb2.FeatureSpace]


def model_settings(features: Features, *, feature_options: Optional[Mapping[str, Any]] = None, labels: Sequence[str] = (), classes: int = 0,
                   learner: str = "perceptron", learner_options: Optional[Mapping[str, Any]] = None, prediction: Optional[str] = None,
                   prediction_options: Optional[Mapping[str, Any]] = None, **others: Any) -> model_pb2.Model:
    """Returns a model to create.

    features: a number: vectors of this dimension, 1 to 2^28. "named": a weight for each name. "hashed": names hashed into
      2^bits slots; default: feature_options={"bits": 20}. "text": texts, which the server splits. Or a FeatureSpace, as it is.
    labels: names of the labels, that of -1 first; of several classes those of the classes in order. Default: numbers.
    classes: 2 to 10,000; 0: two labels, -1 and +1.
    learner: one of LEARNERS, also with hyphens, with learner_options as the API has them: {"step_size": 0.5}.
    prediction: one of PREDICTIONS. Default: the weights that are learned predict.
    others: bias_input, class_weights, tie_rule of Learner; description, margin_of_interest, stored_examples,
      stored_predictions, expire_after of Model, messages as dicts: {"max_age": "12h"}. Durations are timedelta or "30d";
      named values "STEPS_ADAPTIVE" or "adaptive".

    Raises ValueError for a name or an option that the API does not have; ranges are the server's to check."""
    if isinstance(labels, str):
        raise ValueError(f"labels={labels!r} is one text; expected a list of names")
    if len(labels) > 2 and not classes:
        raise ValueError(f"labels has {len(labels)} names, and a model without classes has two labels: give classes={len(labels)} as well")
    model = model_pb2.Model(label_names=labels)
    if isinstance(features, feature_space_pb2.FeatureSpace):
        model.feature_space.CopyFrom(features)
    elif isinstance(features, str):
        options = {"bits": HASHED_BITS, **(feature_options or {})} if features == "hashed" else feature_options
        _choose(model.feature_space, "features", features, SPACES, options)
    else:
        _choose(model.feature_space, "features", "dense", SPACES, {"dimension": features})
    _choose(model.learner, "learner", learner, LEARNERS, learner_options)
    if prediction is not None:
        _choose(model.learner, "prediction", prediction, PREDICTIONS, prediction_options)
    if classes:
        model.learner.classes.max_classes = classes
    for name, value in others.items():
        message = model.learner if name in learner_pb2.Learner.DESCRIPTOR.fields_by_name else model
        _merge(message, {name: value})
    return model


def api_name(name: str) -> str:
    """The API's name of what the command line calls passive-aggressive-i."""
    return name.replace("-", "_")


def _hint(what: str, chosen: str, among: Sequence[str]) -> str:
    prediction, _, rule = chosen.partition("_")
    if what == "learner" and prediction in PREDICTIONS and rule in LEARNERS:
        return f'give prediction="{prediction}" and learner="{rule}"'
    near = difflib.get_close_matches(chosen, among, n=1)
    return (f"did you mean {near[0]!r}? " if near else "") + f"there are {', '.join(among)}"


def _choose(message: Any, what: str, given: str, among: Sequence[str], options: Optional[Mapping[str, Any]]) -> None:
    chosen = api_name(given)
    if chosen not in among:
        raise ValueError(f"{what}={given!r}: there is none of this name; {_hint(what, chosen, among)}")
    getattr(message, chosen).SetInParent()
    _check_options(what, message, chosen, options or {}, among)
    _merge(getattr(message, chosen), options or {})


def _options_of(message: Any, name: str) -> list[str]:
    return [field.name for field in message.DESCRIPTOR.fields_by_name[name].message_type.fields]


def _check_options(what: str, message: Any, chosen: str, options: Mapping[str, Any], among: Sequence[str]) -> None:
    known = _options_of(message, chosen)
    for option in options:
        if option in known:
            continue
        others = [name for name in among if option in _options_of(message, name)]
        raise ValueError(f"{what}={chosen!r} has no option {option!r}; it has {', '.join(known) or 'none'}"
                         + (f"; those that have it: {', '.join(others)}" if others else ""))


def _merge(message: Any, fields: Mapping[str, Any]) -> None:
    try:
        message.MergeFrom(type(message)(**_as_api(message.DESCRIPTOR, fields)))
    except (TypeError, ValueError) as error:
        raise ValueError(f"{message.DESCRIPTOR.name}: {error}") from None


def _as_api(message: Descriptor, fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a message, with durations and named values, at any depth, as the API has them."""
    return {name: _value_of(message.fields_by_name.get(name), value) for name, value in fields.items()}


def _value_of(field: Any, value: Any) -> Any:
    if field is None or field.label == FieldDescriptor.LABEL_REPEATED:
        return value
    if field.enum_type is not None and isinstance(value, str):
        return _enum_value(field, value)
    if field.message_type is None:
        return value
    if field.message_type is duration_pb2.Duration.DESCRIPTOR and not isinstance(value, Mapping):
        return None if value is None else duration(value, field.name)
    return _as_api(field.message_type, value) if isinstance(value, Mapping) else value


def _enum_value(field: Any, name: str) -> int:
    """Of STEPS_ADAPTIVE, also as the command line has it: adaptive."""
    values = field.enum_type.values_by_name
    prefix = field.enum_type.values_by_number[0].name.removesuffix("UNSPECIFIED")
    found = values.get(name) or values.get(prefix + api_name(name).upper())
    if found is None or found.number == 0:
        there = ", ".join(repr(value.removeprefix(prefix).lower()) for value, described in values.items() if described.number)
        raise ValueError(f"{field.name}={name!r}: there are {there}")
    return int(found.number)
