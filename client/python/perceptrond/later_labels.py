"""LaterLabels: labels of predictions whose features the server keeps, as the messages of a stream."""

from typing import Any, Iterator, Optional, Sequence

from .columns import pack_labels
from .datasets import Dataset
from .model_check import ModelCheck
from .rows import check_all_real
from .v1 import example_pb2
from .window import Examples


class LaterLabels(Dataset):
    """ids: of Predictions.ids. labels, weights: one each.

    Raises ValueError if the lengths differ."""

    def __init__(self, ids: Sequence[str], labels: Optional[Sequence[Any]], weights: Optional[Sequence[float]], batch: int):
        if labels is None or len(labels) != len(ids):
            raise ValueError(f"{len(ids)} ids and {0 if labels is None else len(labels)} labels: expected as many")
        if weights is not None and len(weights) != len(ids):
            raise ValueError(f"{len(ids)} ids and {len(weights)} weights: expected as many")
        super().__init__((), batch=batch)
        check_all_real(labels, "label")
        check_all_real(weights, "weight")
        self._ids = list(ids)
        self._given = [label.item() if hasattr(label, "item") else label for label in labels]
        self._counts = None if weights is None else list(weights)
        self.rows = len(self._ids)

    def check(self, check: ModelCheck) -> None:
        self._given = check.labels(self._given)

    def messages(self, first: int = 0) -> Iterator[Examples]:
        """Yields the rows from this one on, in messages."""
        for begin in range(first, len(self._ids), self._batch):
            chosen = slice(begin, begin + self._batch)
            columns = example_pb2.ExampleColumns(prediction_ids=self._ids[chosen])
            pack_labels(self._given[chosen], columns)
            if self._counts is not None:
                columns.weights.extend(self._counts[chosen])
            yield columns


def examples_of(examples: Any, labels: Optional[Sequence[Any]], weights: Optional[Sequence[float]], ids: Optional[Sequence[str]],
                batch: int) -> Dataset:
    """What learn() is given."""
    if ids is None:
        return Dataset(examples, labels, weights, batch)
    if examples is not None:
        raise TypeError("examples or ids, not both")
    return LaterLabels(ids, labels, weights, batch)
