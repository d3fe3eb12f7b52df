#!/usr/bin/python3
"""Learns a file of labelled examples exactly once, even if the server or this program is restarted.

    learn.py spam train.tsv --named --labels ham,spam --producer train.tsv --until-converged

A producer is the name of one sequence of examples: this file, pass after pass. The server stores the producer's
position, so the same command, run again after an interruption, continues there. Use another name for another job.
"""

import argparse
import itertools
import uuid
from typing import Iterator

import grpc

import connection
import program
from errors import with_retries
from examples import Labels, Row, batches
from learn_stream import LearnStream
from perceptron.v1 import learning_service_pb2_grpc, model_pb2, model_service_pb2, model_service_pb2_grpc
from window import Totals

MOST_UNTIL_CONVERGED = 1000


def add_settings(flags: argparse.ArgumentParser) -> None:
    space = flags.add_mutually_exclusive_group()
    space.add_argument("--named", action="store_true", help="create the model if it does not exist, with a weight for each feature name")
    space.add_argument("--dimension", type=connection.whole(1, connection.MOST_UINT32), metavar="D", help="create the model if it does not exist, for vectors of this dimension")
    flags.add_argument("--labels", type=connection.utf8_list, default=[], metavar="NEGATIVE,POSITIVE", help="names of the labels")


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


def learning_flags(description: str) -> argparse.ArgumentParser:
    flags = connection.parser(description)
    program.add_input(flags)
    add_settings(flags)
    flags.add_argument("--producer", type=connection.utf8, required=True, metavar="NAME", help="producer id: the name of this sequence of examples")
    flags.add_argument("--passes", type=connection.whole(), default=1, metavar="N", help="number of passes over the file (default: 1)")
    flags.add_argument("--until-converged", action="store_true", help=f"repeat passes until one has no update, at most {MOST_UNTIL_CONVERGED}")
    flags.add_argument("--window", type=connection.whole(), default=8192, metavar="N", help="most unanswered examples (default: 8192)")
    return flags


def passes_left(flags: argparse.Namespace, labels: Labels, next_offset: int, passes: int) -> Iterator[Iterator[Row]]:
    """Yields the rows of each pass that a producer at this offset, with this many finished passes, has not sent yet."""
    read = lambda: program.rows_of(flags, labels, labels_required=True)
    most = MOST_UNTIL_CONVERGED if flags.until_converged else flags.passes
    if most == 1:
        # Sent while it is read: the input may be a pipe without end.
        if passes == 0:
            yield itertools.islice(read(), next_offset, None)
        return
    rows = list(read())
    for number in range(passes, most):
        yield itertools.islice(rows, max(next_offset - number * len(rows), 0), None)


def ensure_model(stub: model_service_pb2_grpc.ModelServiceStub, flags: argparse.Namespace) -> None:
    request = create_request(flags)
    try:
        with_retries(lambda: stub.CreateModel(request, timeout=30), flags.give_up_after)
    except grpc.RpcError as error:
        if error.code() is not grpc.StatusCode.ALREADY_EXISTS:
            raise


def get_model(stub: model_service_pb2_grpc.ModelServiceStub, flags: argparse.Namespace) -> model_pb2.Model:
    request = model_service_pb2.GetModelRequest(name=f"models/{flags.model}")
    return with_retries(lambda: stub.GetModel(request, timeout=30), flags.give_up_after)


def learn(channel: grpc.Channel, flags: argparse.Namespace) -> Totals:
    stub, models = learning_service_pb2_grpc.LearningServiceStub(channel), model_service_pb2_grpc.ModelServiceStub(channel)

    def writer_stub(address: str) -> learning_service_pb2_grpc.LearningServiceStub | None:
        server = connection.known_server(flags, address)
        return server and learning_service_pb2_grpc.LearningServiceStub(connection.channel(flags, server))

    with LearnStream(stub, f"models/{flags.model}", flags.producer, window=flags.window, name_table_size=flags.name_table_size,
                     give_up_after=flags.give_up_after, on_reconnect=program.reconnecting, writer_stub=writer_stub) as stream:
        # Read after the stream is open, when the server is reachable.
        labels = Labels(get_model(models, flags))
        for rows in passes_left(flags, labels, stream.next_offset, stream.passes):
            for part in batches(rows, flags.batch):
                stream.send(part)
            summary = stream.end_pass()
            print(program.pass_sentence(summary), flush=True)
            if flags.until_converged and summary.converged:
                break
        return stream.finish()


def main() -> int:
    flags = learning_flags(__doc__).parse_args()
    channel = connection.channel(flags)
    models = model_service_pb2_grpc.ModelServiceStub(channel)
    if is_wanted(flags):
        ensure_model(models, flags)
    totals = learn(channel, flags)
    now = get_model(models, flags)
    print(f"{flags.model} is at {program.sentence(now)}")
    return program.code_of(totals)


if __name__ == "__main__":
    program.run(main, program.GOES_ON)
