"""Learning through a server of a fleet that writes the model, through one that does not, and through all, beside one server on
RocksDB: examples a second, processor seconds a million examples by kind of process, commits and messages over NATS a second, and the
part of the rows that servers forwarded to the writer, beside what the law of fleet_simulation says for this part of updates. With --law
it fails where one of the two is more than twice the other.

    /usr/bin/python3 tests/bench/fleet_rates.py PERCEPTROND PERCEPTRONCTL [--seconds 5] [--repetitions 3] [--servers 2] [--batch 100]
        [--law FLEET_SIMULATION]
"""

import argparse
import json
import os
import pathlib
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/deploy"), str(ROOT / "tests/integration")]

from fleet_test import Nats, free_ports
from processes import Program, get, wait_for

MISTAKES = (0, 0.001, 0.01, 0.1)
# Unanswered messages of a stream.
WINDOW = 64
# Seconds before those that are measured.
WARMUP = 1
# The law is off by no more than this factor; parts of rows below the least, in %, count as that.
LAW_FACTOR, LAW_LEAST = 2, 1
# What the model has not learned after as many runs, it does not learn.
MOST_WARM_UPS = 5


def processor_seconds(programs):
    ticks = 0
    for program in programs:
        fields = pathlib.Path(f"/proc/{program.process.pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def metric(port, name):
    for line in (get(f"http://127.0.0.1:{port}/metrics") or "").splitlines():
        if line.startswith(name + " "):
            return float(line.rpartition(" ")[2])
    return 0.0


class NatsMessages:
    """Counts what is sent over NATS: appends to the log and their acknowledgements, and heartbeats."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.count = 0
        self.socket.sendall(b'CONNECT {"verbose":false}\r\nSUB > 1\r\n')
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        with self.socket.makefile("rb") as lines:
            for line in lines:
                words = line.split()
                if words[:1] == [b"PING"]:
                    self.socket.sendall(b"PONG\r\n")
                elif words[:1] in ([b"MSG"], [b"HMSG"]):
                    lines.read(int(words[-1]) + 2)
                    self.count += 1


class Server:
    def __init__(self, directory, name, *flags):
        self.serve, self.fleet, self.metrics = free_ports(3)
        self.program = Program([PERCEPTROND, "--address", f"127.0.0.1:{self.serve}", "--metrics-address", f"127.0.0.1:{self.metrics}",
                                "--fleet-address", f"127.0.0.1:{self.fleet}", "--data-dir", directory / name, *flags],
                               directory / f"{name}.log")
        wait_for(f"{name} serves", lambda: get(f"http://127.0.0.1:{self.metrics}/metrics"))

    def ctl(self, *arguments):
        return [PERCEPTRONCTL, "--server", f"127.0.0.1:{self.serve}", *map(str, arguments)]


def create(server, model):
    subprocess.run(server.ctl("create", model, "--dimension", 1 << 20), check=True, capture_output=True)


def learn(servers, model, mistakes, options):
    """What benches at these servers report."""
    benches = [subprocess.Popen(server.ctl("bench", model, "--mistakes", mistakes, "--seconds", options.seconds, "--warmup", WARMUP,
                                           "--streams", max(1, 2 // len(servers)), "--batch", options.batch, "--window", WINDOW,
                                           "-o", "json"), stdout=subprocess.PIPE, text=True) for server in servers]
    return [json.loads(bench.communicate()[0]) for bench in benches]


def law(options, error_rate, rate):
    """What part of their rows followers forward, in %, if this part of all rows updates."""
    if options.law is None:
        return float("nan")
    said = subprocess.run([options.law, "--run", "--replicas", str(options.servers), "--message-rows", str(options.batch), "--window",
                           str(WINDOW), "--rate", f"{rate:.0f}", "--error-rate", f"{error_rate:.9f}"],
                          check=True, capture_output=True, text=True).stdout
    return float(re.search(r"forwarded by followers, %\s+(\S+)", said)[1])


def deviates(row):
    """Whether the law does not hold for what was forwarded; not where there is no law, which is NaN."""
    forwarded, said = (max(row[name], LAW_LEAST) for name in ("forwarded", "law"))
    return max(forwarded, said) > LAW_FACTOR * min(forwarded, said)


def measure(through, model, mistakes, options, groups, owner, messages):
    def counts():
        followers = [server for server in through if server is not owner]
        rows = {f"rows_{where}": sum(metric(server.metrics, f'perceptrond_fleet_rows_total{{evaluated="{where}"}}')
                                     for server in followers) for where in ("here", "writer")}
        of_model = {name: metric(owner.metrics, f'perceptrond_model_{name}_total{{model_name="{model}"}}')
                    for name in ("examples", "updates")}
        return {**rows, **of_model, "commits": metric(owner.metrics, "perceptrond_journal_commits_total"), "messages": messages.count,
                **{kind: processor_seconds(programs) for kind, programs in groups.items()}}

    for _ in range(MOST_WARM_UPS):
        shares = [result["mistakeShare"] for result in learn(through, model, mistakes, options)]
        if statistics.mean(shares) <= 1.1 * mistakes + 1e-5:
            break
    before, begun = counts(), time.monotonic()
    results = learn(through, model, mistakes, options)
    seconds = time.monotonic() - begun
    wait_for("the writer has counted",
             lambda: metric(owner.metrics, f'perceptrond_model_examples_total{{model_name="{model}"}}') > before["examples"])
    after = counts()
    more = {name: after[name] - before[name] for name in after}
    row = {"rate": sum(result["examplesPerSecond"] for result in results)}
    row["commits"] = more["commits"] / seconds
    row["messages"] = more["messages"] / seconds
    for kind in groups:
        row[kind] = more[kind] / more["examples"] * 1e6
    followed = more["rows_here"] + more["rows_writer"]
    row["forwarded"] = 100 * more["rows_writer"] / followed if followed else float("nan")
    row["law"] = law(options, more["updates"] / more["examples"], row["rate"]) if followed else float("nan")
    return row


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("programs", nargs=2)
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--mistakes", type=float, nargs="+", default=MISTAKES, help="parts of the examples that are never learned")
    parser.add_argument("--servers", type=int, default=2, help="of the fleet")
    parser.add_argument("--batch", type=int, default=100, help="examples a message")
    parser.add_argument("--law", help="the program fleet_simulation")
    options = parser.parse_args()
    global PERCEPTROND, PERCEPTRONCTL
    PERCEPTROND, PERCEPTRONCTL = options.programs
    with tempfile.TemporaryDirectory(prefix="perceptrond-rates.") as name:
        directory = pathlib.Path(name)
        nats = Nats(directory)
        nats.await_ready()
        alone = Server(directory, "alone")
        # A server that waits for a processor is not dead.
        fleet = ["--journal", nats.url(), "--fleet-partitions", 1, "--fleet-timeout", "20s"]
        # The first to start writes the only partition, and keeps it unless another comes before it in the partition's order.
        servers = [Server(directory, f"fleet{i}", *fleet) for i in range(options.servers)]
        try:
            run(options, nats, alone, servers)
        finally:
            for server in [alone, *servers]:
                server.program.kill()
            nats.kill()


def run(options, nats, alone, servers):
    written = lambda server: metric(server.metrics, "perceptrond_fleet_partitions_written") == 1
    quiet = lambda: subprocess.run(servers[0].ctl("create", "first", "--dimension", 2), capture_output=True).returncode == 0
    wait_for("the fleet writes", quiet)
    writer, since = None, 0.0

    # Another server may be given the partition some seconds after it came.
    def settled():
        nonlocal writer, since
        now = next(filter(written, servers), None)
        if now is None or now is not writer:
            writer, since = now, time.monotonic()
        return time.monotonic() - since > 20

    wait_for("a writer", settled)
    followers = [server for server in servers if server is not writer]
    messages = NatsMessages(nats.ports[0])
    deviating = []
    print("mistakes  through        examples/s  commits/s  messages/s   server  writer  followers    NATS   forwarded     law"
          "   (processor s a million examples; %)")
    for mistakes in options.mistakes:
        rows = {}
        for repetition in range(options.repetitions):
            throughs = {"RocksDB": [alone], "the writer": [writer], "a follower": followers[:1], "all": servers}
            for name, through in throughs.items():
                model = f"m{mistakes}-{repetition}-{name.replace(' ', '-')}"
                create(through[0], model)
                owner = alone if name == "RocksDB" else writer
                groups = {"server": [alone.program], "writer": [writer.program], "followers": [server.program for server in followers],
                          "nats": nats.programs}
                rows.setdefault(name, []).append(measure(through, model, mistakes, options, groups, owner, messages))
                if not written(writer):
                    raise RuntimeError("another server writes now: run again on a machine that is less busy")
        for name, found in rows.items():
            middle = {key: statistics.median(one[key] for one in found) for key in found[0]}
            print(f"{100 * mistakes:7.2f}%  {name:12} {middle['rate']:12,.0f} {middle['commits']:10,.0f} {middle['messages']:11,.0f}"
                  f" {middle['server']:8.2f} {middle['writer']:7.2f} {middle['followers']:10.2f} {middle['nats']:7.2f}"
                  f" {middle['forwarded']:11.2f} {middle['law']:7.2f}", flush=True)
            if deviates(middle):
                deviating.append(f"{100 * mistakes:g} % mistakes through {name}: forwarded {middle['forwarded']:.2f} %, law {middle['law']:.2f} %")
    if deviating:
        sys.exit(f"the law is off by more than {LAW_FACTOR}: " + "; ".join(deviating))


if __name__ == "__main__":
    main()
