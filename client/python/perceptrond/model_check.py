"""ModelCheck: labels and dimensions are checked before examples are sent, since what a model learns without the refused ones is biased."""

from typing import Any, Iterable, Iterator, Mapping, Optional

from .labels import LabelReader
from .rows import Label, Row, is_missing, position_of
from .v1 import feature_space_pb2, model_pb2


class ModelCheck:
    """What a model takes: labels, and indices below its dimension."""

    def __init__(self, model: model_pb2.Model):
        self._labels = LabelReader(model)
        self._dimension, self._model = _dimension(model.feature_space), model.name
        self._is_dense = _is_dense(model.feature_space)
        # What ended rows().
        self.error: Optional[ValueError] = None

    def labels(self, labels: Optional[Iterable[Any]]) -> list[Label]:
        """Returns the labels to send. Raises ValueError for the first that the model has not, and names its row."""
        if labels is None:
            raise ValueError("there are no labels: give one for each example")
        read: list[Label] = []
        try:
            read.extend(map(self._labels.__getitem__, labels))
        except (TypeError, ValueError) as error:
            raise ValueError(f"row {len(read)}: {error}") from None
        return read

    def matrix(self, matrix: Any) -> None:
        """Raises ValueError for a NumPy array or scipy.sparse matrix that is not of the dimension."""
        self.names(matrix)
        if not self._dimension or hasattr(matrix, "names"):
            return
        width = matrix.shape[1] if matrix.ndim == 2 else 0
        if not hasattr(matrix, "indptr"):
            if width not in (0, self._dimension):
                raise ValueError(f"the rows have {width} values, and {self._model} the dimension {self._dimension}: {_ADVICE}")
        elif width > self._dimension and (wide := (matrix.indices >= self._dimension)).any():
            first = int(wide.argmax())
            row = int((matrix.indptr <= first).sum()) - 1
            raise ValueError(f"row {row}: {self._beyond(matrix.indices[first])}")

    def names(self, matrix: Any) -> None:
        """Raises ValueError for a NamedMatrix, which a frame is, of a dense model: nothing would tell that later columns are others."""
        if self._is_dense and hasattr(matrix, "names"):
            raise ValueError(f"the columns have names, and {self._model} is dense, which keeps none: pass frame.to_numpy(), or create the model "
                             f"with features=\"named\" (--named)")

    def rows(self, rows: Iterable[Row]) -> Iterator[Row]:
        """Yields rows with the labels to send; ends before the first that the model does not take, and keeps the error of it."""
        for number, row in enumerate(rows):
            try:
                label = self._labels[row.label]
                if self._dimension:
                    self._check_indices(row.features)
            except (TypeError, ValueError) as error:
                why = "the label is missing; leave such rows out" if is_missing(row.label) else error
                self.error = ValueError(f"{position_of([row], 0, number)}: {why}")
                return
            yield row if type(label) is type(row.label) and label == row.label else row._replace(label=label)

    def _check_indices(self, features: Any) -> None:
        if not isinstance(features, (dict, Mapping)) or not features or not isinstance(next(iter(features)), int):
            return
        try:
            highest = max(features)
        except TypeError:
            # Names among indices, which packing refuses.
            return
        if highest >= self._dimension:
            raise ValueError(self._beyond(highest))

    def _beyond(self, index: int) -> str:
        return f"the feature {index} is not below the dimension {self._dimension} of {self._model}: {_ADVICE}"


_ADVICE = "create a model of the dimension of the data, or give it the features that the model has"


def _is_dense(space: feature_space_pb2.FeatureSpace) -> bool:
    return _is_dense(space.composition.example_space) if space.HasField("composition") else space.HasField("dense")


def _dimension(space: feature_space_pb2.FeatureSpace) -> int:
    """0: it takes no indices."""
    kind = space.WhichOneof("space")
    if kind == "composition":
        return _dimension(space.composition.example_space)
    return {"dense": space.dense.dimension, "hashed": 1 << space.hashed.bits}.get(str(kind), 0)
