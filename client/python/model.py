"""Creates the model if it does not exist, and describes it."""

import argparse
import uuid

import flag_types
from perceptron.v1 import model_pb2, model_service_pb2, report_pb2


def add_settings(flags: argparse.ArgumentParser) -> None:
    space = flags.add_mutually_exclusive_group()
    space.add_argument("--named", action="store_true", help="create the model if it does not exist, with a weight for each feature name")
    space.add_argument("--dimension", type=flag_types.whole(1, flag_types.MOST_UINT32), metavar="D", help="create the model if it does not exist, for vectors of this dimension")
    flags.add_argument("--labels", type=flag_types.utf8_list, default=[], metavar="NEGATIVE,POSITIVE", help="names of the labels")


def is_wanted(flags: argparse.Namespace) -> bool:
    return flags.named or flags.dimension is not None


def create_request(flags: argparse.Namespace) -> model_service_pb2.CreateModelRequest:
    """Creates the model with a request id, so that the request can be repeated after a lost answer."""
    settings = model_pb2.Model(label_names=flags.labels)
    if flags.named:
        settings.feature_space.named.SetInParent()
    else:
        settings.feature_space.dense.dimension = flags.dimension
    return model_service_pb2.CreateModelRequest(model_id=flags.model, model=settings, request_id=str(uuid.uuid4()))


def sentence(model: model_pb2.Model) -> str:
    """Returns the state of the model as a line."""
    report = model.report
    state = report_pb2.ConvergenceState.Name(report.state).removeprefix("CONVERGENCE_STATE_").lower()
    return f"revision {model.revision}: {report.examples} examples, {report.mistakes} mistakes, {report.updates} updates, {state}"


def pass_sentence(summary: report_pb2.PassSummary) -> str:
    return (f"pass {summary.number}: {summary.examples} examples, {summary.mistakes} mistakes, {summary.updates} updates"
            + (", converged" if summary.converged else ""))
