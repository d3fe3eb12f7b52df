"""Labels: what a model calls its classes, and their numbers."""

import numbers
import re
import warnings
from typing import Any, Iterable, Optional

from .rows import Label, check_real, is_missing
from .v1 import learner_pb2, model_pb2, prediction_service_pb2

NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?", re.ASCII)


def number_of(text: str) -> Optional[float]:
    return float(text) if NUMBER.fullmatch(text) else None


class Labels:
    """Labels are numbers: -1 and +1, or for multiclass models the class from 0, in the order of the model's names. If
    the model adds classes by name, examples are labelled by name."""

    def __init__(self, model: model_pb2.Model):
        classes = model.learner.classes
        self._multiclass = model.learner.HasField("classes")
        self._new_names = classes.new_classes == learner_pb2.Classes.NEW_CLASSES_NAMED
        self._allowed = range(classes.max_classes) if self._multiclass else (-1, +1)
        self._names = dict(zip(self._allowed, model.label_names))
        self._numbers = {name: number for number, name in self._names.items()}
        # The names that are numbers, by their values. If there are any, numbers are names only, and equal numbers one name.
        self._name_of = {number_of(name): name for name in reversed(model.label_names) if number_of(name) is not None}

    def read(self, text: str) -> Label:
        """Returns the label to send. Raises ValueError if it is not a label of the model."""
        if self._new_names:
            if not text:
                raise ValueError("the label is empty")
            return text
        number = self._numbers.get(text, self._by_number(number_of(text)))
        if number is None:
            raise ValueError(f'label "{text[:40]}" is {self._expected_labels()}')
        return number

    def _by_number(self, number: Optional[float]) -> Optional[int]:
        if self._name_of:
            return self._numbers.get(self._name_of.get(number, ""))
        return int(number) if number is not None and number in self._allowed else None

    def names_numbers(self) -> bool:
        """Whether numbers are names."""
        return bool(self._name_of)

    def accepts(self, text: str) -> bool:
        """Whether a label of this name may be sent."""
        return bool(text) if self._new_names else text in self._numbers

    def read_value(self, value: Any) -> Label:
        """The same for what a program has: texts as they are, if they may be sent; 1.0 and True are 1; with two labels 0 is -1,
        unless it is a name."""
        if isinstance(value, str):
            return value if self.accepts(value) else self.read(value)
        if is_missing(value):
            raise ValueError("the label is missing; leave such rows out")
        check_real(value, "label")
        value = value.item() if hasattr(value, "item") else value
        if isinstance(value, numbers.Real) and value in self._name_of:
            return self._name_of[float(value)]
        if not isinstance(value, numbers.Real) or not float(value).is_integer():
            raise ValueError(f"label {value!r} is {self._expected_labels()}")
        number = int(value)
        if self._new_names:
            return str(number)
        label = self._by_number(number)
        if label is None and number == 0 and not self._name_of:
            label = -1
        if label is None:
            raise ValueError(f"label {number} is {self._expected_labels()}")
        return label

    def _expected_labels(self) -> str:
        numbers = [] if self._name_of else [f"0 to {len(self._allowed) - 1}" if self._multiclass else "-1 or +1"]
        if self._multiclass:
            return "not a class of the model: " + ", or ".join(["its label names"] * bool(self._names) + numbers)
        return "not a label of the model: " + ", ".join([f'"{name}"' for name in self._numbers] + numbers) if self._names else "neither -1 nor +1"

    def number(self, label: Label) -> Optional[int]:
        """Returns the number of a class, or None if its name was unknown when this object was made."""
        return label if isinstance(label, int) else self._numbers.get(label)

    def name(self, number: int) -> str:
        """Returns the name of a predicted label, else its number. "-": the model has no class yet."""
        if self._multiclass:
            return "-" if number < 0 else self._names.get(number, str(number))
        return self._names.get(number, f"{number:+d}")

    def lacks(self, numbers: Iterable[int]) -> bool:
        """Whether one of these predicted labels is a class that got its name after this object was made."""
        return self._new_names and any(number >= 0 and number not in self._names for number in set(numbers))

    def name_or_number(self, number: int) -> Label:
        """Returns the name of a predicted label, if the model has names, else its number."""
        return self._names.get(number, number)


class AnswerLabels:
    """The labels of the model that answers a stream of predictions: an alias may name another one meanwhile."""

    def __init__(self, model: model_pb2.Model):
        self.read(model)

    def read(self, model: model_pb2.Model) -> None:
        self._model, self.labels = model.name, Labels(model)

    def lack(self, answer: prediction_service_pb2.PredictResponse) -> bool:
        """Whether the model is to be read again: the answer is another one's, or has a class that is new."""
        return answer.model not in ("", self._model) or self.labels.lacks(answer.predicted_labels)


class LabelReader(dict[Any, Label]):
    """From the labels of a program to those to send, each read once: reader[label]. ValueError for a label that the model has
    not."""

    def __init__(self, model: model_pb2.Model):
        super().__init__()
        self._labels = Labels(model)
        self._two_labels = not model.learner.HasField("classes")

    def __missing__(self, label: Any) -> Label:
        sent = self._labels.read_value(label)
        if self._two_labels and label in (0, -1) and not self._labels.names_numbers():
            if {0, -1} - {label} <= self.keys():
                raise ValueError("label 0 beside the label -1: if both mean -1, change one of them to the other")
            if sent != label:
                warnings.warn("label 0 is read as -1", stacklevel=2)
        self[label] = sent
        return sent
