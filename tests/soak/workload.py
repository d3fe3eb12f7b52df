"""The models and examples of a soak: models of every learner in every space, and examples that depend on nothing but a seed, a producer and a
number, so that they can be sent again in the same order to another server."""

import dataclasses
import random
import re

from perceptrond import Row, model_settings
from perceptrond.v1 import learner_pb2

VOCABULARY = [f"w{i}" for i in range(400)]
DIMENSION = 12
SEPARABLE_DIMENSION = 20
# Every separable example is at least so far from the boundary.
SEPARABLE_MARGIN = 1.0
# So low that batches end and rows are replaced.
LIMITS = {"batch_perceptron": {"mini_batch": 50}, "kernel_perceptron": {"budget": 40}, "voted": {"budget": 30}, "pocket": {"ratchet_examples": 30}}


def learner_names():
    """Every rule, alone and under each wrapper that it allows, as the client's model_settings() takes them."""
    wrappers = {"perceptron": ("averaged", "pocket", "voted"), "passive_aggressive": ("averaged", "pocket", "voted"),
                "passive_aggressive_i": ("averaged", "pocket", "voted"), "passive_aggressive_ii": ("averaged", "pocket", "voted"),
                "arow": ("pocket",), "soft_confidence_weighted": ("pocket",), "logistic_regression": ("averaged",)}
    rules = [field.name for field in learner_pb2.Learner.DESCRIPTOR.oneofs_by_name["rule"].fields]
    return [(rule, wrapper) for rule in rules for wrapper in (None, *wrappers.get(rule, ()))]


def settings(rule="perceptron", wrapper=None, space="dense", bits=10, **others):
    options = {"hashed": {"bits": bits}, "named": {"max_features": 2 * len(VOCABULARY)}}.get(space)
    return model_settings(DIMENSION if space == "dense" else space, feature_options=options, learner=rule, learner_options=LIMITS.get(rule), prediction=wrapper,
                          prediction_options=LIMITS.get(wrapper), **others)


class Examples:
    """The examples of one producer, by number; the same for the same seed."""

    def __init__(self, seed, producer, space, classes=0):
        self._seed, self._producer, self.space, self._classes = seed, producer, space, classes

    def rows(self, first, count):
        return [self._row(number) for number in range(first, first + count)]

    def _row(self, number):
        random_ = random.Random(f"{self._seed} {self._producer} {number}")
        keys = VOCABULARY if self.space == "named" else range(DIMENSION if self.space == "dense" else 1 << 10)
        features = {key: random_.randrange(-1000, 1001) / 512 for key in random_.sample(keys, random_.randrange(1, 9))}
        # Mostly the label of a fixed rule, so that there are runs; one in ten is at random, so that updates never end.
        score = sum(value * (1 if hash_of(key) % 2 else -1) for key, value in features.items())
        if self._classes:
            label = f"class {int(abs(score)) % self._classes if random_.randrange(10) else random_.randrange(self._classes)}"
        else:
            label = (1 if score > 0 else -1) if random_.randrange(10) else random_.choice((-1, 1))
        return Row(dict(sorted(features.items())), label)


def hash_of(key):
    """Equal in every process, unlike hash()."""
    return int(re.sub(r"\D", "", str(key)) or 0) * 2654435761 >> 7


class SeparableExamples:
    """Examples of one producer that a hyperplane through 0 separates by SEPARABLE_MARGIN, over and over the same ones."""

    def __init__(self, seed, producer, distinct=200):
        random_ = random.Random(f"{seed} separable {producer}")
        # One normal vector for all producers.
        normal = [1 if i % 3 else -1 for i in range(SEPARABLE_DIMENSION)]
        length = SEPARABLE_DIMENSION ** 0.5
        self._rows = []
        while len(self._rows) < distinct:
            values = [random_.randrange(-2, 3) for _ in range(SEPARABLE_DIMENSION)]
            distance = sum(a * b for a, b in zip(values, normal)) / length
            if abs(distance) >= SEPARABLE_MARGIN:
                self._rows.append(Row({i: float(v) for i, v in enumerate(values)}, 1 if distance > 0 else -1))
        self.squared_radius = max(sum(v * v for v in row.features.values()) for row in self._rows)

    def rows(self, first, count):
        return [self._rows[number % len(self._rows)] for number in range(first, first + count)]


@dataclasses.dataclass
class Sequence:
    """What one producer sends to a model, and how much of it is acknowledged."""

    model: str
    examples: Examples | SeparableExamples
    producer: str = "p"
    # No other producer changes the model.
    sole: bool = True
    # 0: the producer marks no passes.
    pass_rows: int = 0
    # Names in columns are numbered, and so summed, in an order that depends on the rows before them. With 0 a message has
    # a row, so that what is learned depends on the rows alone.
    name_table_size: int = 256
    position: int = 0
    # Of a sole producer: acknowledged rows that the model's counts lack, since a kill took them.
    uncounted: int = 0
    # The server was not ended any more when it was last sent to.
    settled: bool = False

    @property
    def most_rows(self):
        """Of a message."""
        return 60 if self.name_table_size else 1
