"""A server that writes all of thousands of models dies: those in use are learned on at once, the others are loaded when they are used.

    python3 many_models_test.py PERCEPTROND [--models N]
"""

import argparse
import collections
import signal
import tempfile
import time

import grpc

import cluster
from clients import Load, settings
from perceptrond.columns import pack
from perceptrond.rows import Row
from perceptrond.v1 import learning_service_pb2, model_service_pb2

SIZE = cluster.SIZE
IN_FLIGHT = 64
# Models that are in use while the server dies, and what a take-over may load beyond them.
BUSY, MOST_LOADS = 2, 20
# A server is taken for dead after a second; clients look for another one meanwhile.
MOST_WITHOUT_LEARNING = 10


def all_of(requests, call):
    """Sends all requests, some at once, and each again while it is UNAVAILABLE or shed. Returns the time until the last answer."""
    begin, waiting, under_way = time.monotonic(), collections.deque(requests), collections.deque()
    while waiting or under_way:
        while waiting and len(under_way) < IN_FLIGHT:
            request = waiting.popleft()
            under_way.append((request, call.future(request, timeout=30)))
        request, answer = under_way.popleft()
        try:
            answer.result()
        except grpc.RpcError as error:
            # Also shed: loading takes longer than answering.
            if error.code() not in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.RESOURCE_EXHAUSTED):
                raise
            waiting.append(request)
    return time.monotonic() - begin


def rows(models, offset):
    """A mistake for each model, in turn of both labels."""
    columns = pack([Row({0: 1.0}, 1 if offset % 2 == 0 else -1)])
    return [learning_service_pb2.LearnRequest(model=f"models/{model}", columns=columns, producer_id="p", first_offset=offset) for model in models]


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("perceptrond")
    arguments.add_argument("--models", type=int, default=10_000)
    options = arguments.parse_args()
    models = [f"m{i}" for i in range(options.models)]
    with tempfile.TemporaryDirectory(prefix="perceptrond-models.") as directory, cluster.Fleet(
            options.perceptrond, directory, ["--metrics-max-models", "10"], max_file="4G", partitions=1) as fleet:
        fleet.settle()
        creations = [model_service_pb2.CreateModelRequest(model_id=model, model=settings()) for model in [*(f"busy{i}" for i in range(BUSY)), *models]]
        print(f"created in {all_of(creations, fleet.stubs[0].models.CreateModel):.1f} s", flush=True)
        # At the writer: a server that passes rows on keeps copies, and loads them again, one by one, when the partition moves twice.
        writer = next(i for i in range(SIZE) if fleet.metric(i, "perceptrond_fleet_partitions_written"))
        learn = fleet.stubs[writer].learning.Learn
        print(f"each learned a row in {all_of(rows(models, 0), learn):.1f} s", flush=True)
        loads = [Load(fleet, f"busy{i}") for i in range(BUSY)]
        try:
            check(fleet, loads, models)
        finally:
            for load in loads:
                load.abandon()


def check(fleet, loads, models):
    for load in loads:
        load.await_progress()
    dying = fleet.writer(loads[0].model)
    left = [i for i in range(SIZE) if i != dying]
    before = sum(fleet.metric(i, "perceptrond_loads_total") for i in left)
    begin = time.monotonic()
    fleet.end(dying, signal.SIGKILL)
    for load in loads:
        load.await_progress()
    gaps = [load.without_learning(begin, time.monotonic()) for load in loads]
    loaded = sum(fleet.metric(i, "perceptrond_loads_total") for i in left) - before
    print(f"one of {SIZE} servers, which wrote all models, died: without learning {max(gaps):.2f} s; {loaded:.0f} models loaded", flush=True)
    assert loaded <= MOST_LOADS, loaded
    assert max(gaps) < MOST_WITHOUT_LEARNING, gaps
    print(f"each model learned another row in {all_of(rows(models, 1), fleet.stubs[left[0]].learning.Learn):.1f} s", flush=True)
    for load in loads:
        load.await_progress()
        load.stop()


if __name__ == "__main__":
    main()
