"""What a served model predicts with, without a server."""

from typing import Union

from .kernel import KernelModel
from .linear import LinearModel
from .served import ServedModel
from .v1 import learner_pb2, model_pb2
from .votes import VotingModel

LocalModel = Union[LinearModel, KernelModel, VotingModel]

# columns: of the matrices that the model predicts; 0: it predicts names. ABORTED (REVISION_MISMATCH) if it learns meanwhile.


def local_model(served: ServedModel, found: model_pb2.Model, columns: int = 0) -> LocalModel:
    """Exports a model with these settings."""
    learner, slots = found.learner, _slots(found, columns)
    local: LocalModel
    if learner.HasField("kernel_perceptron"):
        local = KernelModel(served.terms(), learner, columns or slots, slots > 0)
    elif learner.HasField("auto") or learner.HasField("voted"):
        local = VotingModel(served.terms(), learner, columns or slots, slots > 0)
    else:
        local = LinearModel(served.weights(), columns or slots, slots > 0)
    local.positive_ties = learner.tie_rule == learner_pb2.TIE_RULE_POSITIVE
    return local


def linear_model(served: ServedModel, columns: int) -> LinearModel:
    """Exports the weights of a model. NOT_LINEAR: it predicts by votes or a kernel."""
    return LinearModel(served.weights(), columns)


def _slots(model: model_pb2.Model, columns: int) -> int:
    """Of hashed names; 0: they are not hashed."""
    space = model.feature_space
    return 1 << space.hashed.bits if space.HasField("hashed") and not columns else 0
