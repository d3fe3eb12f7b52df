"""Predicts with one model after the other, 25 times a second, and prints how many seconds each answer took. A process of its own,
so that the soak's other threads, which share an interpreter, are not in the figures.

Usage: latency_probe.py ADDRESS MODEL:SPACE..."""

import itertools
import sys
import time

import grpc

from perceptrond.columns import pack
from perceptrond.v1 import prediction_service_pb2, prediction_service_pb2_grpc
from workload import Examples

PERIOD_SECONDS = 0.04


def main(address, *models):
    channel = grpc.insecure_channel(address, [("grpc.initial_reconnect_backoff_ms", 50), ("grpc.max_reconnect_backoff_ms", 500)])
    service = prediction_service_pb2_grpc.PredictionServiceStub(channel)
    requests = []
    for model, space in (named.split(":") for named in models):
        rows = [row._replace(label=None) for row in Examples(7, "probe", space).rows(0, 5)]
        requests.append(prediction_service_pb2.PredictRequest(model=f"models/{model}", columns=pack(rows)))
    due = time.monotonic()
    for request in itertools.cycle(requests):
        time.sleep(max(0, due - time.monotonic()))
        begin = time.monotonic()
        due = max(due + PERIOD_SECONDS, begin)
        try:
            service.Predict(request, timeout=60)
        except grpc.RpcError as error:
            # The server has ended: what the next start takes is not a latency.
            if error.code() not in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED):
                raise
            grpc.channel_ready_future(channel).result(timeout=60)
        else:
            print(time.monotonic() - begin, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
