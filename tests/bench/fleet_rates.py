"""Learning through a server of a fleet that writes the model, through one that does not, and through both, beside one server on
RocksDB: examples a second, processor seconds a million examples by kind of process, and commits a second.

    /usr/bin/python3 tests/bench/fleet_rates.py PERCEPTROND PERCEPTRONCTL [--seconds 5] [--repetitions 3]
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/deploy"), str(ROOT / "tests/integration")]

from fleet_test import Nats, free_ports
from processes import Program, get, wait_for

MISTAKES = (0, 0.0001, 0.001, 0.01, 0.1)


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


def learn(servers, model, mistakes, seconds):
    """What benches at these servers reach together, after they have learned what can be learned."""
    benches = [subprocess.Popen(server.ctl("bench", model, "--mistakes", mistakes, "--seconds", seconds, "--warmup", 3, "--streams",
                                           2 // len(servers), "-o", "json"), stdout=subprocess.PIPE, text=True) for server in servers]
    return [json.loads(bench.communicate()[0]) for bench in benches]


def measure(servers, model, mistakes, seconds, groups, writer):
    before = {kind: processor_seconds(programs) for kind, programs in groups.items()}
    commits = metric(writer.metrics, "perceptrond_journal_commits_total")
    examples = metric(writer.metrics, f'perceptrond_model_examples_total{{model_name="{model}"}}')
    results = learn(servers, model, mistakes, seconds)
    learned = wait_for("the writer has counted", lambda: metric(
        writer.metrics, f'perceptrond_model_examples_total{{model_name="{model}"}}')) - examples
    row = {"rate": sum(result["examplesPerSecond"] for result in results)}
    row["commits"] = (metric(writer.metrics, "perceptrond_journal_commits_total") - commits) / (seconds + 3)
    for kind, programs in groups.items():
        row[kind] = (processor_seconds(programs) - before[kind]) / learned * 1e6
    return row


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("programs", nargs=2)
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--repetitions", type=int, default=3)
    options = parser.parse_args()
    global PERCEPTROND, PERCEPTRONCTL
    PERCEPTROND, PERCEPTRONCTL = options.programs
    with tempfile.TemporaryDirectory(prefix="perceptrond-rates.") as name:
        directory = pathlib.Path(name)
        nats = Nats(directory)
        alone = Server(directory, "alone")
        fleet = ["--journal", nats.url(), "--fleet-partitions", 1]
        # The first to start writes the only partition, and keeps it unless the second comes before it in the partition's order.
        servers = [Server(directory, f"fleet{i}", *fleet) for i in range(2)]
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
    # Until a second server may have been given the partition.
    time.sleep(5)
    writer = wait_for("a writer", lambda: next(filter(written, servers), None))
    follower = next(server for server in servers if server is not writer)
    print("mistakes  through        examples/s  commits/s   server  writer  follower    NATS   (processor s a million examples)")
    for mistakes in MISTAKES:
        rows = {}
        for repetition in range(options.repetitions):
            throughs = {"RocksDB": [alone], "the writer": [writer], "a follower": [follower], "both": [writer, follower]}
            for name, through in throughs.items():
                model = f"m{mistakes}-{repetition}-{name.replace(' ', '-')}"
                create(through[0], model)
                owner = alone if name == "RocksDB" else writer
                groups = {"server": [alone.program], "writer": [writer.program], "follower": [follower.program],
                          "nats": nats.programs}
                rows.setdefault(name, []).append(measure(through, model, mistakes, options.seconds, groups, owner))
        for name, found in rows.items():
            middle = {key: statistics.median(one[key] for one in found) for key in found[0]}
            print(f"{100 * mistakes:7.2f}%  {name:12} {middle['rate']:12,.0f} {middle['commits']:10,.0f}"
                  f" {middle['server']:8.2f} {middle['writer']:7.2f} {middle['follower']:9.2f} {middle['nats']:7.2f}", flush=True)


if __name__ == "__main__":
    main()
