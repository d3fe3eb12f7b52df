"""Labels: what a model calls its classes, and their numbers."""

import decimal
import numbers
import re
import warnings
from typing import Any, Iterable, Optional

from .rows import Label, check_real, is_missing
from .v1 import learner_pb2, model_pb2, prediction_service_pb2

NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d{1,9})?", re.ASCII)


def number_of(text: str) -> Optional[decimal.Decimal]:
    """Exactly, so that equal numbers are equal and others are not. None: the text is none."""
    return decimal.Decimal(text) if NUMBER.fullmatch(text) else None


def _is_code(text: str) -> bool:
    return len(text) > 1 and text[0] == "0" and text[1] in "0123456789"


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
        self._name_of: dict[Optional[decimal.Decimal], str] = {}
        for name in model.label_names:
            self._note(name)

    def _note(self, name: str) -> None:
        """Keeps a name that is a number. If there are any, numbers are names only, and equal numbers one name; but where classes are
        added by name a code, such as 007, is a name of its own."""
        if number_of(name) is not None and not (self._new_names and _is_code(name)):
            self._name_of.setdefault(number_of(name), name)

    def _find(self, text: str) -> Optional[str]:
        """The name that the text is, or the one that is an equal number."""
        if text in self._numbers:
            return text
        is_name_of_its_own = not self._name_of or self._new_names and _is_code(text)
        return None if is_name_of_its_own else self._name_of.get(number_of(text))

    def read(self, text: str) -> Label:
        """Returns the label to send. Raises ValueError if it is not a label of the model."""
        name = self._find(text)
        if self._new_names:
            if not text:
                raise ValueError("the label is empty")
            if name is None and len(self._name_of) < len(self._allowed):
                self._note(text)
            return name or text
        label = self._by_number(number_of(text)) if name is None else self._numbers[name]
        if label is None:
            raise ValueError(f'label "{text[:40]}" is {self._expected_labels()}')
        return label

    def _by_number(self, number: Any) -> Optional[int]:
        return int(number) if number is not None and number in self._allowed and not self._name_of else None

    def names_numbers(self) -> bool:
        """Whether numbers are names."""
        return bool(self._name_of)

    def read_value(self, value: Any) -> Label:
        """The same for what a program has: the name for a text that is one; 1.0 and True are 1; with two labels 0 is -1, unless it is a
        name."""
        if isinstance(value, str):
            return self._find(value) or self.read(value)
        if is_missing(value):
            raise ValueError("the label is missing; leave such rows out")
        check_real(value, "label")
        value = value.item() if hasattr(value, "item") else value
        if not isinstance(value, numbers.Real):
            raise ValueError(f"label {value!r} is {self._expected_labels()}")
        is_whole = isinstance(value, numbers.Integral) or float(value).is_integer()
        text = str(int(value)) if is_whole else repr(float(value))
        if self._new_names and is_whole:
            return self.read(text)
        name = self._find(text) if NUMBER.fullmatch(text) else None
        if name is not None:
            return name
        label = self._by_number(int(value)) if is_whole else None
        if label is None and value == 0 and not self._name_of:
            label = -1
        if label is None:
            raise ValueError(f"label {text if is_whole else repr(value)} is {self._expected_labels()}")
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
