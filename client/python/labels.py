"""What the labels of a file mean to a model, and what the model's answers are called."""

import re
from typing import Optional, Union

from perceptron.v1 import model_pb2

Label = Union[int, str]

NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?", re.ASCII)


def number_of(text: str) -> Optional[float]:
    return float(text) if NUMBER.fullmatch(text) else None


class Labels:
    """A label is a number to the server: -1 or +1, or of several classes the class's, from 0. The model's names stand for them in
    that order. Where classes may come up by name, examples are labelled by name, and the server gives the numbers."""

    def __init__(self, model: model_pb2.Model):
        classes = model.learner.classes
        self._several = model.learner.HasField("classes")
        self._new_names = classes.new_classes == model_pb2.Classes.NEW_CLASSES_NAMED
        self._allowed = range(classes.max_classes) if self._several else (-1, +1)
        self._names = dict(zip(self._allowed, model.label_names))
        self._numbers = {name: number for number, name in self._names.items()}
        # Then a number in a file is a name or nothing.
        self._names_are_numbers = any(number_of(name) is not None for name in self._numbers)

    def read(self, text: str) -> Label:
        """The label that an example is sent with. Raises ValueError if the model has none that is called so."""
        if self._new_names:
            if not text:
                raise ValueError("the label is empty")
            return text
        if text in self._numbers:
            return self._numbers[text]
        number = None if self._names_are_numbers else number_of(text)
        if number not in self._allowed:
            raise ValueError(f'label "{text[:40]}" is {self._what_it_is_not()}')
        return int(number)

    def _what_it_is_not(self) -> str:
        numbers = [] if self._names_are_numbers else [f"0 to {len(self._allowed) - 1}" if self._several else "-1 or +1"]
        if self._several:
            return "none of the model's classes: " + ", or ".join(["its label names"] * bool(self._names) + numbers)
        return "none of the model's: " + ", ".join([f'"{name}"' for name in self._numbers] + numbers) if self._names else "neither -1 nor +1"

    def number(self, label: Label) -> Optional[int]:
        """None: a name that none of the model's classes had when this was made."""
        return label if isinstance(label, int) else self._numbers.get(label)

    def name(self, number: int) -> str:
        """What an answer is called: by its number where it has no name. "-": no class has come up yet."""
        if self._several:
            return "-" if number < 0 else self._names.get(number, str(number))
        return self._names.get(number, f"{number:+d}")
