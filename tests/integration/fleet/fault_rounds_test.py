"""Faults of a fleet under load: processes are killed, stopped and restarted, and parted from one another, while producers learn and
readers predict at all servers. After each fault a checker finds that nothing acknowledged is lost, nothing is learned twice, and all
servers and all replicas of the log are equal; after the last one again from the log alone.

    python3 fault_rounds_test.py PERCEPTROND [--long] [--rounds N] [--of nats|servers] [--only FAULT]...

Prints a table: for how long, at most, a client that knows all servers could not learn or predict, and how many correct rows were not
counted. Fails above a minute without learning, and half a minute without predictions.
"""

import argparse
import collections
import signal
import tempfile
import time

import grpc

import checker
import cluster
from clients import Load, settings
from networks import Loopback, Namespaces
from perceptrond.v1 import model_service_pb2
from proxy import Faults
from replicas import Replicas

SIZE = cluster.SIZE


class Rounds:
    """Each method is a fault: it begins it, waits until the fleet learns again where that is possible meanwhile, and ends it."""

    def __init__(self, fleet):
        self.fleet = fleet

    def others(self, i):
        return [k for k in range(SIZE) if k != i]

    def restart(self, i, by):
        self.fleet.end(i, by)
        self.fleet.start(i)
        self.fleet.await_serving(i)

    def stream_of(self, model):
        replicas = Replicas(self.fleet.nats)
        # The catalogue does not change meanwhile.
        return replicas.stream_of(replicas.model_id(model), cluster.PARTITIONS)

    def the_writer_is_killed(self, load):
        writer = self.fleet.writer(load.model)
        self.fleet.end(writer, signal.SIGKILL)
        load.await_progress()
        self.fleet.start(writer)
        self.fleet.await_serving(writer)

    def a_follower_is_killed(self, load):
        follower = self.others(self.fleet.writer(load.model))[0]
        self.fleet.end(follower, signal.SIGKILL)
        load.await_progress()
        self.fleet.start(follower)
        self.fleet.await_serving(follower)

    def the_leader_of_the_stream_is_killed(self, load):
        leader = self.fleet.nats.leader(self.stream_of(load.model))
        self.fleet.nats.kill(leader)
        load.await_progress()
        self.fleet.nats.start(leader)

    def the_writer_is_cut_from_nats(self, load):
        self.part_from_nats(load, self.fleet.writer(load.model))

    def a_follower_is_cut_from_nats(self, load):
        self.part_from_nats(load, self.others(self.fleet.writer(load.model))[0])

    def part_from_nats(self, load, server):
        self.fleet.cut_from_nats(server, Faults.BLACK_HOLE)
        load.await_progress()
        self.fleet.heal()

    def the_writer_is_cut_from_the_other_servers(self, load):
        self.fleet.fleet_ways[self.fleet.writer(load.model)].fail(Faults.BLACK_HOLE)
        load.await_progress()
        self.fleet.heal()

    def the_leader_of_the_stream_is_cut_from_the_other_nats_servers(self, load):
        self.fleet.nats.cut_off(self.fleet.nats.leader(self.stream_of(load.model)), Faults.BLACK_HOLE)
        load.await_progress()
        self.fleet.heal()

    def a_machine_of_nats_is_lost(self, load):
        lost = self.fleet.nats.leader(self.stream_of(load.model))
        self.fleet.nats.cut_off(lost, Faults.BLACK_HOLE)
        for ways in self.fleet.nats_ways:
            ways[lost].fail(Faults.BLACK_HOLE)
        load.await_progress()
        self.fleet.heal()

    def the_writer_stands_still_and_goes_on(self, load):
        writer = self.fleet.writer(load.model)
        self.fleet.signal(writer, signal.SIGSTOP)
        try:
            self.fleet.writer(load.model, self.others(writer))
            load.await_progress()
        finally:
            self.fleet.signal(writer, signal.SIGCONT)

    def servers_restart_one_after_the_other(self, load):
        for i in range(SIZE):
            self.restart(i, signal.SIGTERM)
            # So that the next one has a share to hand over, too.
            self.fleet.await_shares()

    def all_servers_restart(self, load):
        for i in range(SIZE):
            self.fleet.signal(i, signal.SIGTERM)
        for i in range(SIZE):
            self.fleet.end(i, signal.SIGTERM)
            self.fleet.start(i)
        for i in range(SIZE):
            self.fleet.await_serving(i)


FAULTS = [name for name in vars(Rounds) if name.startswith(("the_", "a_", "servers_", "all_"))]


# Seconds on a busy machine, of which a client that knows all servers waits at most this long. Learning waits for elections of NATS.
MOST_WITHOUT_LEARNING, MOST_WITHOUT_PREDICTIONS = 60, 30
LONG = ["a_follower_is_cut_from_nats", "a_machine_of_nats_is_lost"]
# Those that disturb nats-servers.
OF_NATS = [name for name in FAULTS if "nats_servers" in name or "leader" in name or "machine" in name]


class Figures:
    """The worst of all rounds of a fault."""

    def __init__(self):
        self.rounds, self.learning, self.predictions, self.elsewhere, self.missing, self.sent = 0, [], [], [], 0, 0

    def row(self, fault):
        if not self.rounds:
            return f"{fault.replace('_', ' ')} | 0 | – | – | – | –"
        return (f"{fault.replace('_', ' ')} | {self.rounds} | {max(self.learning):.1f} s | {max(self.predictions):.1f} s | {max(self.elsewhere):.1f} s | "
                f"{100 * self.missing / self.sent:.1f} %")


def run(fleet, fault, number, figures):
    model = f"{fault.replace('_', '-')}-{number}"
    settle(fleet, may_diverge=any(earlier in OF_NATS for earlier in fleet.faults))
    fleet.faults.append(fault)
    create(fleet, model)
    load = Load(fleet, model)
    try:
        load.await_progress()
        begin = time.monotonic()
        getattr(Rounds(fleet), fault)(load)
        load.await_progress()
        end = time.monotonic()
        load.stop()
    finally:
        load.abandon()
    by_revision = checker.check_history(load.producers)
    may_diverge = fault in OF_NATS
    checker.restart_ended(fleet, may_diverge)
    try:
        outcome, missing, sent = checker.check_servers(fleet, model, load.producers)
    except AssertionError:
        # One may end meanwhile.
        if not checker.restart_ended(fleet, may_diverge):
            raise
        outcome, missing, sent = checker.check_servers(fleet, model, load.producers)
    records, superseded = checker.check_log(fleet, model, load.producers, by_revision, may_diverge)
    roaming, at = load.without_predictions(begin, end)
    figures.rounds += 1
    figures.learning.append(load.without_learning(begin, end))
    figures.predictions.append(roaming)
    # Of the servers that the fault left alone at least two of three: the middle one is not the one that was hit.
    figures.elsewhere.append(sorted(at)[1])
    checker.require(figures.learning[-1] <= MOST_WITHOUT_LEARNING, f"{model}: too long without learning", figures.learning[-1])
    checker.require(roaming <= MOST_WITHOUT_PREDICTIONS, f"{model}: too long without predictions", roaming)
    figures.missing += missing
    figures.sent += sent
    failures = collections.Counter((failure.code, failure.reason) for producer in load.producers for failure in producer.failures)
    print(f"{model}: {end - begin:.1f} s; {records} updates, {superseded} entries of superseded writers; {missing} of {sent} rows not counted; without learning "
          f"{figures.learning[-1]:.2f} s, predictions {roaming:.2f} s, at each server {[round(gap, 2) for gap in at]}; {dict(failures)}", flush=True)
    return model, outcome


def run_all(fleet, figures, rounds):
    """What each model became; None if a fault left NATS's replicas different for good, by an issue of its own, which is printed."""
    outcomes = {}
    for number in range(rounds):
        for fault in figures:
            try:
                model, outcome = run(fleet, fault, number, figures[fault])
            except (AssertionError, grpc.RpcError) as failure:
                if fault not in OF_NATS or not checker.beyond_repair(fleet, failure):
                    raise
                return None
            outcomes[model] = outcome
    return outcomes


def settle(fleet, may_diverge):
    try:
        checker.restart_ended(fleet, may_diverge)
        fleet.settle()
    except AssertionError:
        # One may have ended meanwhile.
        if not checker.restart_ended(fleet, may_diverge):
            raise
        fleet.settle()


def create(fleet, model):
    request = model_service_pb2.CreateModelRequest(model_id=model, model=settings())

    def created():
        try:
            return fleet.stubs[0].models.CreateModel(request, timeout=10)
        except grpc.RpcError as error:
            # An attempt before has had an effect.
            if error.code() == grpc.StatusCode.ALREADY_EXISTS:
                return True
            if error.code() == grpc.StatusCode.DEADLINE_EXCEEDED:
                return None
            raise

    # NATS may still be without a leader.
    cluster.eventually(f"{model} is created", created)


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("perceptrond")
    arguments.add_argument("--long", action="store_true", help="also the faults that are much like others")
    arguments.add_argument("--rounds", type=int, default=1)
    arguments.add_argument("--namespaces", action="store_true", help="each program in a network namespace; else with proxies between them")
    arguments.add_argument("--only", action="append", choices=FAULTS)
    arguments.add_argument("--of", choices=["nats", "servers"], help="the faults of nats-servers, or all others")
    arguments.add_argument("--directory", help="where logs and stores are kept")
    options = arguments.parse_args()
    chosen = options.only or [fault for fault in FAULTS if options.long or fault not in LONG]
    chosen = [fault for fault in chosen if options.of is None or (fault in OF_NATS) == (options.of == "nats")]
    figures = {fault: Figures() for fault in chosen}
    with tempfile.TemporaryDirectory(prefix="perceptrond-faults.") as directory, cluster.Fleet(
            options.perceptrond, options.directory or directory, network=Namespaces() if options.namespaces else Loopback()) as fleet:
        fleet.faults = []
        outcomes = run_all(fleet, figures, options.rounds)
        if outcomes is not None:
            Rounds(fleet).all_servers_restart(None)
            for model, outcome in outcomes.items():
                check_again(fleet, model, outcome)
            print(f"{len(outcomes)} models are the same after all servers have restarted")
    print("\nfault | rounds | without learning | without predictions | at another server | rows not counted\n---|---|---|---|---|---")
    for fault, one in figures.items():
        print(one.row(fault))


def check_again(fleet, model, outcome):
    for stubs in fleet.stubs:
        found = checker.get_model(stubs, model)
        scores = checker.score_all(stubs, model, outcome.revision)[2]
        again = checker.Outcome(found.revision, found.weights.SerializeToString(deterministic=True), scores)
        checker.require(again == outcome, f"{model} is another one after the restart", found.revision, outcome.revision)


if __name__ == "__main__":
    main()
