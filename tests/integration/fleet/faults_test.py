"""A table of faults of a fleet: while producers learn and readers predict at all servers, each fault begins, lasts until learning goes on
(or is refused, where nothing can be learned), and ends. Then a checker finds that nothing that was acknowledged is lost, nothing is
learned twice, and all servers have the same bits; after the last one again from the log alone.

    python3 faults_test.py PERCEPTROND [--rounds N] [--only FAULT]...
"""

import argparse
import contextlib
import signal
import sys
import tempfile

import grpc

import checker
import cluster
from clients import Load, create, failure_of, learn_once
from nats_client import NatsClient
from processes import wait_for

SIZE = cluster.SIZE


def others(i):
    return [k for k in range(SIZE) if k != i]


@contextlib.contextmanager
def killed(fleet, load, server):
    fleet.end(server, signal.SIGKILL)
    yield
    fleet.start(server)


@contextlib.contextmanager
def parted(fleet, load, ways):
    for way in ways:
        way.cut()
    yield
    fleet.heal()


@contextlib.contextmanager
def paused(fleet, load, process, taken_over_from=None):
    process.send_signal(signal.SIGSTOP)
    try:
        if taken_over_from is not None:
            fleet.writer(load.model, others(taken_over_from))
        yield
    finally:
        process.send_signal(signal.SIGCONT)


@contextlib.contextmanager
def without_nats(fleet, load):
    fleet.nats.program.kill()
    yield
    fleet.nats.start()


@contextlib.contextmanager
def slow(fleet, load):
    for way in fleet.nats_ways:
        way.delay(0.1)
    yield
    fleet.heal()


@contextlib.contextmanager
def full(fleet, load):
    with NatsClient(fleet.nats.port) as nats:
        nats.api("STREAM.CREATE.filler", name="filler", subjects=["filler"], storage="file")
        with contextlib.suppress(OSError):
            wait_for("the store is full", lambda: "error" in nats.request("filler", bytes(900_000)))
    yield
    fleet.nats.max_file = "1G"
    fleet.nats.restart()


@contextlib.contextmanager
def restarted(fleet, load, servers):
    for i in servers:
        fleet.programs[i].process.send_signal(signal.SIGTERM)
    for i in servers:
        fleet.end(i, signal.SIGTERM)
        fleet.start(i)
    yield


@contextlib.contextmanager
def restarted_in_turn(fleet, load):
    for i in range(SIZE):
        with restarted(fleet, load, [i]):
            load.await_progress()
    yield


# Each begins with the model's writer, and whether learning goes on while it lasts.
FAULTS = {
    "the writer is killed": (True, lambda fleet, load, writer: killed(fleet, load, writer)),
    "a follower is killed": (True, lambda fleet, load, writer: killed(fleet, load, others(writer)[0])),
    "the writer is cut from NATS": (True, lambda fleet, load, writer: parted(fleet, load, [fleet.nats_ways[writer]])),
    "a follower is cut from NATS": (True, lambda fleet, load, writer: parted(fleet, load, [fleet.nats_ways[others(writer)[0]]])),
    "the writer is cut from the other servers": (True, lambda fleet, load, writer: parted(fleet, load, [fleet.fleet_ways[writer]])),
    "the writer stands still until another one writes": (True, lambda fleet, load, writer: paused(fleet, load, fleet.programs[writer].process, writer)),
    "servers restart one after the other": (True, lambda fleet, load, writer: restarted_in_turn(fleet, load)),
    "all servers restart": (True, lambda fleet, load, writer: restarted(fleet, load, range(SIZE))),
    "NATS is slow": (True, lambda fleet, load, writer: slow(fleet, load)),
    "NATS is killed": (False, lambda fleet, load, writer: without_nats(fleet, load)),
    "NATS stands still": (False, lambda fleet, load, writer: paused(fleet, load, fleet.nats.program.process)),
    "NATS has no space": (False, lambda fleet, load, writer: full(fleet, load)),
}


def check_degraded(fleet, load):
    """All servers refuse to learn, say when to try again, and go on predicting."""
    for server in range(SIZE):
        failure = wait_for("learning is refused", lambda: learn_once(fleet, server, load.model))
        checker.require(failure.retry and failure.code in ("UNAVAILABLE", "RESOURCE_EXHAUSTED"), "learning fails otherwise", failure)
    load.await_reads()


def run(fleet, fault, model):
    goes_on, begin = FAULTS[fault]
    create(fleet, model)
    load = Load(fleet, model)
    try:
        load.await_progress()
        with begin(fleet, load, fleet.writer(model)):
            load.await_progress() if goes_on else check_degraded(fleet, load)
        load.await_progress()
        load.stop()
    finally:
        load.abandon()
    checker.check_history(load.producers)
    if not goes_on:
        # A refused row may have been learned.
        wait_for("the probe is learned", lambda: learn_once(fleet, 0, model) is None)
    learned = load.producers, 0 if goes_on else 1
    missing, sent = checker.check_servers(fleet, model, *learned)
    print(f"{fault}: {missing} of {sent} correct rows were not counted; refused: {load.failures()}", flush=True)
    return learned


def check_older_log(fleet):
    """A copy of the log from before takes its place: servers that have read more end, and producers that were acknowledged more hear it."""
    create(fleet, "older")
    load = Load(fleet, "older")
    try:
        load.await_progress()
        fleet.nats.copy_store("before")
        load.await_progress(messages=100)
        load.stop()
    finally:
        load.abandon()
    fleet.nats.restart_with("before")
    for i in range(SIZE):
        checker.require(fleet.programs[i].process.wait() != 0, f"server {i} went on")
    for i in range(SIZE):
        fleet.start(i)
    for producer in load.producers:

        def claim():
            try:
                next(fleet.stubs[0].learning.LearnStream(iter([producer.opening()]), timeout=20))
                raise AssertionError(f"{producer.name} goes on")
            except grpc.RpcError as error:
                failure = failure_of(error, 0)
                return failure if failure.code not in ("UNAVAILABLE", "DEADLINE_EXCEEDED") else None

        lost = wait_for(f"{producer.name} is answered", claim)
        checker.require((lost.code, lost.reason) == ("DATA_LOSS", "UPDATES_LOST"), "the loss is not told", lost)
    print("an older log: producers hear what is lost", flush=True)


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("perceptrond")
    arguments.add_argument("--rounds", type=int, default=1)
    arguments.add_argument("--only", action="append", choices=list(FAULTS))
    options = arguments.parse_args()
    with tempfile.TemporaryDirectory(prefix="perceptrond-faults.") as directory, cluster.Fleet(options.perceptrond, directory, max_file="48M") as fleet:
        learned = {}
        for number in range(options.rounds):
            for fault in options.only or FAULTS:
                model = f"{fault.replace(' ', '-').lower()}-{number}"
                learned[model] = run(fleet, fault, model)
        with restarted(fleet, None, range(SIZE)):
            for model, what in learned.items():
                checker.check_servers(fleet, model, *what)
        print(f"{len(learned)} models are the same after all servers have restarted", flush=True)
        if not options.only:
            check_older_log(fleet)


if __name__ == "__main__":
    sys.exit(main())
