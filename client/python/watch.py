#!/usr/bin/python3
"""Prints a line whenever the report of a model has changed, until interrupted or the model is deleted.

    watch.py spam --interval 0.5
"""

import argparse
import time
from typing import Iterator

import grpc

import connection
import program
from errors import Backoff, is_transient
from perceptron.v1 import model_pb2, model_service_pb2, model_service_pb2_grpc


def parse_flags() -> argparse.Namespace:
    flags = connection.parser(__doc__)
    flags.add_argument("model", type=connection.utf8, help="name of the model")
    flags.add_argument("--interval", type=connection.seconds(0.05), default=1, metavar="S", help="shortest time between two lines, at least 0.05 (default: 1)")
    flags.add_argument("--count", type=connection.whole(), metavar="N", help="end after this many lines")
    return flags.parse_args()


def watch(stub: model_service_pb2_grpc.ModelServiceStub, request: model_service_pb2.WatchModelRequest, backoff: Backoff) -> Iterator[model_pb2.Model]:
    """Yields the model whenever it has changed, across restarts of the server."""
    while True:
        try:
            for response in stub.WatchModel(request):
                backoff.progress()
                yield response.model
        except grpc.RpcError as error:
            wait = backoff.next_wait(error)
            if wait is None or not is_transient(error):
                raise
            program.reconnecting(error)
            time.sleep(wait)


def main() -> int:
    flags = parse_flags()
    request = model_service_pb2.WatchModelRequest(name=f"models/{flags.model}")
    request.min_interval.FromMilliseconds(int(1000 * flags.interval))
    channel = connection.channel(flags)
    stub = model_service_pb2_grpc.ModelServiceStub(channel)
    for number, now in enumerate(watch(stub, request, Backoff(flags.give_up_after)), start=1):
        print(program.sentence(now), flush=True)
        if number == flags.count:
            break
    return 0


if __name__ == "__main__":
    program.run(main)
