"""A table of faults of a fleet: while producers learn and readers predict at all servers, each fault begins, lasts until learning goes on
(or is refused, or waits), and ends. Then a checker finds that nothing that was acknowledged is lost, nothing is learned twice, and all
servers have the same bits; after the last one again from the log alone.

    python3 faults_test.py PERCEPTROND [--rounds N] [--namespaces] [--only FAULT]...   # needs PostgreSQL 15; as root also a full disk is tried
"""

import argparse
import contextlib
import signal
import sys
import tempfile
import threading

import grpc

import checker
import cluster
import namespaces
from clients import ROWS, Load, create, failure_of, learn, learn_once, rows_of
from postgres import COMMIT_ASKED, COMMIT_DONE, USER
from processes import logs_on_failure, wait_for

SIZE = cluster.SIZE
# What PostgreSQL says.
LIMIT_OF_ROLE, LIMIT_OF_ALL = "too many connections for role", "(too many clients already|remaining connection slots are reserved)"


def others(i):
    return [k for k in range(SIZE) if k != i]


@contextlib.contextmanager
def killed(fleet, load, server):
    fleet.signal(server, signal.SIGKILL)
    fleet.programs[server].process.wait(60)
    yield
    fleet.start(server)


@contextlib.contextmanager
def parted(fleet, load, way):
    way.cut()
    yield
    fleet.heal()


@contextlib.contextmanager
def parted_one_way(fleet, load, writer, **ways):
    """The writer's commits arrive late, or are answered to nobody, and others write in the meantime."""
    fleet.database_ways[writer].cut(**ways)
    fleet.writer(load.model, others(writer))
    yield
    fleet.heal(broken="back" in ways)


@contextlib.contextmanager
def paused(fleet, load, writer):
    process = fleet.programs[writer].process
    process.send_signal(signal.SIGSTOP)
    try:
        fleet.writer(load.model, others(writer))
        yield
    finally:
        process.send_signal(signal.SIGCONT)


@contextlib.contextmanager
def slow(fleet, load):
    for way in fleet.database_ways:
        way.delay(0.1)
    yield
    fleet.heal()


@contextlib.contextmanager
def restarted(fleet, load, servers):
    for i in servers:
        fleet.signal(i, signal.SIGTERM)
    for i in servers:
        fleet.programs[i].process.wait(60)
        fleet.start(i)
    yield


@contextlib.contextmanager
def restarted_in_turn(fleet, load):
    for i in range(SIZE):
        with restarted(fleet, load, [i]):
            load.await_progress()
    yield


@contextlib.contextmanager
def database_killed(fleet, load):
    fleet.database.primary.kill()
    yield
    fleet.database.primary.start()


@contextlib.contextmanager
def database_restarted(fleet, load):
    fleet.database.primary.kill()
    fleet.database.primary.start()
    yield


@contextlib.contextmanager
def database_paused(fleet, load):
    fleet.database.primary.pause()
    try:
        yield
    finally:
        fleet.database.primary.resume()


@contextlib.contextmanager
def database_full(fleet, load):
    filler = fleet.database.fill()
    yield
    filler.unlink()
    # It may have ended, since it could not write its log.
    fleet.database.primary.kill()
    fleet.database.primary.start()


@contextlib.contextmanager
def starts_without_connection(fleet, load, server, limit, why):
    """Servers that have connections go on; one that gets none when it starts says so, and serves once it gets some."""
    fleet.signal(server, signal.SIGKILL)
    fleet.programs[server].process.wait(60)
    # Its connections have ended then.
    load.await_progress()
    with limit():
        yield
        await_reason = fleet.next_line(server, f"the journal cannot be opened yet.*{why}")
        fleet.launch(server)
        await_reason()
    fleet.await_serving(server)


@contextlib.contextmanager
def connections_ended(fleet, load):
    """All servers lose their connections, and get no others: they say why."""
    primary = fleet.database.primary
    reasons = [fleet.next_line(i, f"the database cannot be reached.*{LIMIT_OF_ROLE}") for i in range(SIZE)]
    with primary.limited():
        ended = f"SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE usename = '{USER}'"
        wait_for("no server is connected", lambda: primary.ask(ended) == "0")
        yield
        for await_reason in reasons:
            await_reason()


@contextlib.contextmanager
def commits_broken(fleet, load, **end):
    """The connection of a COMMIT breaks, and then also those of the commits by which the writer finds out what became of it."""
    for count in (1, 1, 3):
        for _ in range(count):
            for way in fleet.database_ways:
                way.end_before(**end)
            wait_for("a connection breaks", lambda: any(way.has_ended for way in fleet.database_ways))
        fleet.heal()
        load.await_progress()
    yield


@contextlib.contextmanager
def waits_ended(fleet, load):
    """No standby has what is committed, and backends end, or give up, while they wait for one."""
    for standby in fleet.database.standbys:
        standby.pause()
    try:
        for end in 2 * ("pg_terminate_backend", "pg_cancel_backend"):
            waiting = f"SELECT bool_or({end}(pid)) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
            wait_for("a COMMIT waits for a standby", lambda: fleet.database.primary.ask(waiting) == "t")
        yield
    finally:
        for standby in fleet.database.standbys:
            standby.resume()


@contextlib.contextmanager
def disconnected(fleet, load, host):
    host.disconnect()
    yield
    host.connect()


@contextlib.contextmanager
def primary_killed(fleet, load):
    fleet.database.primary.kill()
    old = fleet.database.promote()
    yield
    fleet.database.join(old)


@contextlib.contextmanager
def primary_isolated(fleet, load):
    """The old primary comes back while a standby writes, and is ended only after that."""
    fleet.database.primary.pause()
    old = fleet.database.promote()
    old.resume()
    load.await_reads()
    old.kill()
    yield
    fleet.database.join(old)


@contextlib.contextmanager
def primary_disconnected(fleet, load):
    """Nothing tells the servers that their connections have no other end, until it is back."""
    fleet.database.primary.host.disconnect()
    old = fleet.database.promote()
    yield
    old.host.connect()
    load.await_reads()
    old.kill()
    fleet.database.join(old)


@contextlib.contextmanager
def standbys_killed(fleet, load, count):
    gone = fleet.database.standbys[:count]
    for standby in gone:
        standby.kill()
    yield
    for standby in gone:
        standby.start()
        fleet.database.await_standby(standby)


def goes_on(fleet, load):
    load.await_progress()


def is_refused(fleet, load):
    """All servers refuse to learn, say when to try again, and go on predicting."""
    for server in range(SIZE):
        failure = wait_for("learning is refused", lambda: learn_once(fleet, server, load.model))
        checker.require(failure.retry and failure.code in ("UNAVAILABLE", "RESOURCE_EXHAUSTED"), "learning fails otherwise", failure)
    load.await_reads()


def waits(fleet, load):
    """No server acknowledges an update, since commits wait; all go on predicting."""
    for server in range(SIZE):
        failure = learn_once(fleet, server, load.model, timeout=cluster.TIMEOUT_SECONDS)
        checker.require(failure is not None, "an update is acknowledged", server)
        checker.require(failure.code == "DEADLINE_EXCEEDED" or failure.retry, "learning fails otherwise", failure)
    load.await_reads()


# Each begins with the model's writer, and says what happens while it lasts.
FAULTS = {
    "the writer is killed": (goes_on, lambda fleet, load, writer: killed(fleet, load, writer)),
    "a follower is killed": (goes_on, lambda fleet, load, writer: killed(fleet, load, others(writer)[0])),
    "the writer is cut from PostgreSQL": (goes_on, lambda fleet, load, writer: parted(fleet, load, fleet.database_ways[writer])),
    "a follower is cut from PostgreSQL": (goes_on, lambda fleet, load, writer: parted(fleet, load, fleet.database_ways[others(writer)[0]])),
    "PostgreSQL does not hear the writer": (goes_on, lambda fleet, load, writer: parted_one_way(fleet, load, writer, back=False)),
    "the writer does not hear PostgreSQL": (goes_on, lambda fleet, load, writer: parted_one_way(fleet, load, writer, to=False)),
    "the writer is cut from the other servers": (goes_on, lambda fleet, load, writer: parted(fleet, load, fleet.fleet_ways[writer])),
    "the writer stands still until another one writes": (goes_on, paused),
    "servers restart one after the other": (goes_on, lambda fleet, load, writer: restarted_in_turn(fleet, load)),
    "all servers restart": (goes_on, lambda fleet, load, writer: restarted(fleet, load, range(SIZE))),
    "PostgreSQL is slow": (goes_on, lambda fleet, load, writer: slow(fleet, load)),
    "PostgreSQL is killed": (is_refused, lambda fleet, load, writer: database_killed(fleet, load)),
    "PostgreSQL is killed and starts again": (goes_on, lambda fleet, load, writer: database_restarted(fleet, load)),
    "PostgreSQL stands still": (waits, lambda fleet, load, writer: database_paused(fleet, load)),
    "PostgreSQL takes no more connections of the role": (
        goes_on, lambda fleet, load, writer: starts_without_connection(fleet, load, others(writer)[0], fleet.database.primary.limited, LIMIT_OF_ROLE)),
    "PostgreSQL takes no more connections": (
        goes_on, lambda fleet, load, writer: starts_without_connection(fleet, load, writer, fleet.database.primary.occupied, LIMIT_OF_ALL)),
    "PostgreSQL ends all connections and takes none": (is_refused, lambda fleet, load, writer: connections_ended(fleet, load)),
    "PostgreSQL has no space": (is_refused, lambda fleet, load, writer: database_full(fleet, load)),
}
# With two standbys, of which one must have each commit.
REPLICATED_FAULTS = {
    "a standby is killed": (goes_on, lambda fleet, load, writer: standbys_killed(fleet, load, 1)),
    "all standbys are killed": (waits, lambda fleet, load, writer: standbys_killed(fleet, load, 2)),
    "the primary is killed and a standby promoted": (goes_on, lambda fleet, load, writer: primary_killed(fleet, load)),
    "the primary is isolated and a standby promoted": (goes_on, lambda fleet, load, writer: primary_isolated(fleet, load)),
    "backends end while COMMIT waits for a standby": (waits, lambda fleet, load, writer: waits_ended(fleet, load)),
}
# Where ways are proxies, which know what they carry.
PROXY_FAULTS = {
    "the answers to COMMITs are lost": (goes_on, lambda fleet, load, writer: commits_broken(fleet, load, back=COMMIT_DONE)),
    "COMMITs are lost": (goes_on, lambda fleet, load, writer: commits_broken(fleet, load, to=COMMIT_ASKED)),
}
# Where hosts have networks of their own.
HOST_FAULTS = {
    "the writer has no network": (goes_on, lambda fleet, load, writer: disconnected(fleet, load, fleet.hosts[writer])),
    "a follower has no network": (goes_on, lambda fleet, load, writer: disconnected(fleet, load, fleet.hosts[others(writer)[0]])),
}
REPLICATED_HOST_FAULTS = {
    "a standby has no network": (goes_on, lambda fleet, load, writer: disconnected(fleet, load, fleet.database.standbys[0].host)),
    "the primary has no network and a standby is promoted": (goes_on, lambda fleet, load, writer: primary_disconnected(fleet, load)),
}


def run(fleet, fault, what_happens, begin, model):
    create(fleet, model)
    load = Load(fleet, model)
    try:
        load.await_progress()
        with begin(fleet, load, fleet.writer(model)):
            what_happens(fleet, load)
        load.await_progress()
        load.stop()
    finally:
        load.abandon()
    checker.check_history(load.producers)
    probes = 0 if what_happens is goes_on else 1
    if probes:
        # A row that was not acknowledged may have been learned.
        wait_for("the probe is learned", lambda: learn_once(fleet, 0, model) is None)
    learned = load.producers, probes
    missing, sent = checker.check_servers(fleet, model, *learned)
    print(f"{fault}: {missing} of {sent} correct rows were not counted; refused: {load.failures()}", flush=True)
    return learned


def run_all(fleet, faults, rounds):
    learned = {}
    for number in range(rounds):
        for fault, (what_happens, begin) in faults.items():
            if begin is FAULTS["PostgreSQL has no space"][1] and not fleet.database.is_limited:
                print(f"{fault}: skipped, since only root may give it a small disk", flush=True)
                continue
            model = f"{fault.replace(' ', '-').lower()}-{number}"
            learned[model] = run(fleet, fault, what_happens, begin, model)
    with restarted(fleet, None, range(SIZE)):
        for model, what in learned.items():
            checker.check_servers(fleet, model, *what)
    print(f"{len(learned)} models are the same after all servers have restarted", flush=True)


def check_older_log(fleet):
    """A copy of the log from before takes its place: servers that have read more load it, and producers that were acknowledged more hear it."""
    create(fleet, "older")
    load = Load(fleet, "older")
    copy = fleet.directory / "copy"
    try:
        load.await_progress()
        fleet.database.save(copy)
        load.await_progress(messages=100)
        load.stop()
    finally:
        load.abandon()
    fleet.database.restore(copy)
    for producer in load.producers:

        def claim():
            ended = threading.Event()

            def requests():
                yield producer.opening()
                ended.wait()

            try:
                # A server that has not read the log since goes by what it had. The stream ends once it has.
                for _ in fleet.stubs[0].learning.LearnStream(requests(), timeout=20):
                    pass
                raise AssertionError(f"{producer.name}'s stream ends well")
            except grpc.RpcError as error:
                failure = failure_of(error, 0)
                return failure if failure.code not in ("UNAVAILABLE", "ABORTED", "DEADLINE_EXCEEDED") else None
            finally:
                ended.set()

        lost = wait_for(f"{producer.name} is refused", claim)
        checker.require((lost.code, lost.reason) == ("DATA_LOSS", "UPDATES_LOST"), "the loss is not told", lost)
    print("an older log: producers hear what is lost", flush=True)


def check_counts(fleet):
    """Counts of correct rows that servers have read outlive PostgreSQL's end: an update cannot take their place."""
    create(fleet, "counts")
    load = Load(fleet, "counts")
    try:
        load.await_progress()
        load.stop()
    finally:
        load.abandon()
    database = fleet.database.primary
    heads = "SELECT string_agg(encode(value, 'hex'), ' ' ORDER BY key) FROM perceptrond.heads"

    def await_learned(learn_rows):
        def is_learned():
            fleet.check_running()
            return learn_rows() is None

        wait_for("rows are learned", is_learned)

    fleet.database.hold_unsynced()
    # All servers have read the first counts when the second are committed.
    for _ in range(2):
        last = database.ask(heads)
        await_learned(lambda: learn(fleet, 0, "counts", rows_of(0, 1)))
        wait_for("counts are committed", lambda: database.ask(heads) != last)
    database.kill()
    database.start()
    await_learned(lambda: learn_once(fleet, 0, "counts"))
    missing, _ = checker.check_servers(fleet, "counts", load.producers, 1, 2 * ROWS)
    checker.require(missing == 0, "counts were lost", missing)
    print("counts: all servers have them", flush=True)


# Of one PostgreSQL, after its faults.
CHECKS = {"an older log": check_older_log, "counts": check_counts}


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("perceptrond")
    arguments.add_argument("--rounds", type=int, default=1)
    arguments.add_argument("--namespaces", action="store_true", help="each host has a network of its own; as root")
    arguments.add_argument("--only", action="append", choices=[*FAULTS, *REPLICATED_FAULTS, *PROXY_FAULTS, *HOST_FAULTS, *REPLICATED_HOST_FAULTS, *CHECKS])
    options = arguments.parse_args()
    # What is begun is ended and removed then, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("it was ended"))
    if options.namespaces:
        namespaces.enter()
        network, single, replicated = namespaces.Network, FAULTS | HOST_FAULTS, REPLICATED_FAULTS | REPLICATED_HOST_FAULTS
    else:
        network, single, replicated = cluster.Loopback, FAULTS | PROXY_FAULTS, REPLICATED_FAULTS
    for faults, standbys in ((replicated, 2), (single, 0)):
        chosen = {fault: what for fault, what in faults.items() if not options.only or fault in options.only}
        checks = [check for name, check in CHECKS.items() if standbys == 0 and (not options.only or name in options.only)]
        if not chosen and not checks:
            continue
        with (tempfile.TemporaryDirectory(prefix="perceptrond-faults.") as directory,
              cluster.Fleet(options.perceptrond, directory, network(), standbys) as fleet, logs_on_failure(directory)):
            if chosen:
                run_all(fleet, chosen, options.rounds)
            for check in checks:
                check(fleet)


if __name__ == "__main__":
    sys.exit(main())
