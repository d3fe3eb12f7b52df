#!/usr/bin/python3
"""Learns a file of labelled examples exactly once, even if the server or this program is restarted.

    learn.py spam train.tsv --named --labels ham,spam --producer train.tsv --until-converged

A producer is the name of one sequence of examples: this file, pass after pass. The server stores the producer's
position, so the same command, run again after an interruption, continues there. Use another name for another job.
"""

import argparse

import grpc

import connection
import job
import model
import program
from columns import batches, pack
from labels import Labels
from learn_stream import LearnStream
from perceptron.v1 import learning_service_pb2_grpc, model_pb2, model_service_pb2, model_service_pb2_grpc
from retry import with_retries
from window import Totals


def ensure_model(stub: model_service_pb2_grpc.ModelServiceStub, flags: argparse.Namespace) -> None:
    request = model.create_request(flags)
    try:
        with_retries(lambda: stub.CreateModel(request, timeout=30), flags.response_timeout)
    except grpc.RpcError as error:
        if error.code() is not grpc.StatusCode.ALREADY_EXISTS:
            raise


def get_model(stub: model_service_pb2_grpc.ModelServiceStub, flags: argparse.Namespace) -> model_pb2.Model:
    request = model_service_pb2.GetModelRequest(name=f"models/{flags.model}")
    return with_retries(lambda: stub.GetModel(request, timeout=30), flags.response_timeout)


def learn(channel: grpc.Channel, flags: argparse.Namespace) -> Totals:
    stub, models = learning_service_pb2_grpc.LearningServiceStub(channel), model_service_pb2_grpc.ModelServiceStub(channel)
    with LearnStream(stub, f"models/{flags.model}", flags.producer, window=flags.window, response_timeout=flags.response_timeout,
                     on_reconnect=program.reconnecting) as stream:
        # Read after the stream is open, when the server is reachable.
        labels = Labels(get_model(models, flags))
        for rows in job.passes_left(flags, labels, stream.next_offset, stream.passes):
            for part in batches(rows, flags.batch):
                stream.send(pack(part))
            summary = stream.end_pass()
            print(model.pass_sentence(summary), flush=True)
            if flags.until_converged and summary.converged:
                break
        return stream.finish()


def main() -> int:
    flags = job.learning_flags(__doc__).parse_args()
    channel = connection.channel(flags)
    models = model_service_pb2_grpc.ModelServiceStub(channel)
    if model.is_wanted(flags):
        ensure_model(models, flags)
    totals = learn(channel, flags)
    now = get_model(models, flags)
    print(f"{flags.model} is at {model.sentence(now)}")
    return program.code_of(totals)


if __name__ == "__main__":
    program.run(main, program.GOES_ON)
