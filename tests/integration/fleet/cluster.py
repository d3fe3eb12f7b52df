"""Three nats-servers and three servers of a fleet, and the ways between them, which can be cut."""

import json
import os
import pathlib
import shutil

import grpc

from networks import Loopback
from perceptrond.v1 import learning_service_pb2_grpc, model_service_pb2, model_service_pb2_grpc, prediction_service_pb2_grpc
from processes import Program, await_jetstream, await_settled, free_ports, get, logs_on_failure, wait_for

# Connections that no call waits for are otherwise looked at every five seconds only.
os.environ["GRPC_CLIENT_CHANNEL_BACKUP_POLL_INTERVAL_MS"] = "50"
SIZE = 3
PARTITIONS = 4
# A server that is silent for this time is taken for dead.
TIMEOUT_SECONDS = 1


class Nats:
    """Three nats-servers, each with a directory of its own. routes[i][j] is i's way to j."""

    def __init__(self, directory, network, max_file="1G"):
        self.directory, self.network, self.max_file = directory, network, max_file
        ports = free_ports(3 * SIZE)
        self.ports, self._route_ports, self._monitors = ports[:SIZE], ports[SIZE : 2 * SIZE], ports[2 * SIZE :]
        self.routes = [{j: network.way([self.node(i)], self.node(j), self._route_ports[j]) for j in range(SIZE) if j != i} for i in range(SIZE)]
        self.programs = [None] * SIZE
        for i in range(SIZE):
            self.start(i)

    @staticmethod
    def node(i):
        return f"nats{i}"

    def address(self, i):
        return f"{self.network.host(self.node(i))}:{self.ports[i]}"

    def configure(self, i):
        host = self.network.host(self.node(i))
        routes = ", ".join(f"nats-route://{way.address}" for way in self.routes[i].values())
        # What it advertises is wrong: the others must use the ways there are.
        (self.directory / f"nats{i}.conf").write_text(
            f"server_name: n{i}\nlisten: {host}:{self.ports[i]}\nhttp: {host}:{self._monitors[i]}\n"
            f'jetstream {{ store_dir: "{self.store(i)}", max_mem: 64M, max_file: {self.max_file} }}\n'
            f"cluster {{ name: c, listen: {host}:{self._route_ports[i]}, advertise: \"127.0.0.1:1\", no_advertise: true, routes: [{routes}] }}\n")

    def store(self, i):
        return self.directory / f"nats{i}"

    def start(self, i):
        self.configure(i)
        command = self.network.command(self.node(i), ["nats-server", "-c", self.directory / f"nats{i}.conf"])
        self.programs[i] = Program(command, self.directory / f"nats{i}.log")

    def start_if_ended(self, i):
        if self.programs[i].process.poll() is not None:
            self.start(i)

    def kill(self, i):
        self.programs[i].kill()

    def empty(self, i):
        """As after the loss of its disk."""
        self.kill(i)
        shutil.rmtree(self.store(i))
        self.start(i)

    def kill_all(self):
        for program in self.programs:
            program.kill()

    def restart_with(self, stores):
        """All stop, and start with copies of these directories."""
        self.kill_all()
        for i in range(SIZE):
            shutil.rmtree(self.store(i))
            shutil.copytree(stores[i], self.store(i))
        for i in range(SIZE):
            self.start(i)

    def cut_off(self, k, fault):
        """Parts a nats-server from the others."""
        for way in self._ways_of(k):
            way.fail(fault)

    def join(self, k):
        for way in self._ways_of(k):
            way.heal()

    def _ways_of(self, k):
        return [way for i in range(SIZE) for j, way in self.routes[i].items() if k in (i, j)]

    def streams(self, i):
        """What a nats-server knows of each stream: stream_detail of its monitoring. None if it does not answer."""
        page = get(f"http://{self.network.host(self.node(i))}:{self._monitors[i]}/jsz?accounts=1&streams=1&config=1")
        if page is None:
            return None
        accounts = json.loads(page).get("account_details", [])
        return {stream["name"]: stream for account in accounts for stream in account.get("stream_detail", [])}

    def await_ready(self):
        await_jetstream([f"{self.network.host(self.node(i))}:{self._monitors[i]}" for i in range(SIZE)])

    def leader(self, stream):
        """The number of the stream's leader."""

        def find():
            for i in range(SIZE):
                known = (self.streams(i) or {}).get(stream)
                if known and known.get("cluster", {}).get("leader", "") == f"n{i}":
                    return (i,)
            return None

        return wait_for(f"{stream} has a leader", find)[0]


class Stubs:
    """One server's services."""

    def __init__(self, address):
        # gRPC 1.51 may hang a call that it sends again because its server ended, even once it is cancelled.
        options = [("grpc.enable_retries", 0), ("grpc.initial_reconnect_backoff_ms", 50), ("grpc.max_reconnect_backoff_ms", 200), ("grpc.use_local_subchannel_pool", 1)]
        self.channel = grpc.insecure_channel(address, options)
        self.models = model_service_pb2_grpc.ModelServiceStub(self.channel)
        self.learning = learning_service_pb2_grpc.LearningServiceStub(self.channel)
        self.predictions = prediction_service_pb2_grpc.PredictionServiceStub(self.channel)


def eventually(what, call):
    """The answer of a call that may be UNAVAILABLE for some time."""

    def attempt():
        try:
            return call()
        except grpc.RpcError as error:
            if error.code() != grpc.StatusCode.UNAVAILABLE:
                raise
            last.append(error.details())
            return None

    last = []
    try:
        return wait_for(what, attempt)
    except AssertionError as late:
        raise AssertionError(f"{late}: {last[-1:]}") from late


class Fleet:
    """Servers: i reaches nats-server j through nats_ways[i][j], and the others reach i through fleet_ways[i]."""

    def __init__(self, perceptrond, directory, flags=(), max_file="1G", environment=None, network=None, partitions=PARTITIONS):
        self.perceptrond, self.directory, self.flags, self.partitions = perceptrond, pathlib.Path(directory), flags, partitions
        # Of one server: variables of its environment.
        self.environment = environment or {}
        self.network = network or Loopback()
        self.nats = Nats(self.directory, self.network, max_file)
        ports = free_ports(3 * SIZE)
        self._ports = [ports[3 * i : 3 * i + 3] for i in range(SIZE)]
        self.nats_ways = [[self.network.way([self.node(i)], self.nats.node(j), self.nats.ports[j]) for j in range(SIZE)] for i in range(SIZE)]
        others = lambda i: [self.node(j) for j in range(SIZE) if j != i]
        self.fleet_ways = [self.network.way(others(i), self.node(i), fleet) for i, (_, fleet, _) in enumerate(self._ports)]
        self.programs = [None] * SIZE
        self.stubs = [Stubs(self.address(i)) for i in range(SIZE)]

    def __enter__(self):
        try:
            with logs_on_failure(self.directory):
                self.nats.await_ready()
                for i in range(SIZE):
                    self.start(i)
                for i in range(SIZE):
                    self.await_serving(i)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for program in self.programs:
            if program is not None:
                program.kill()
        self.nats.kill_all()
        self.network.close()

    @staticmethod
    def node(i):
        return f"server{i}"

    def host(self, i):
        return self.network.host(self.node(i))

    def address(self, i):
        return f"{self.host(i)}:{self._ports[i][0]}"

    def start(self, i):
        serve, fleet, metrics = (f"{self.host(i)}:{port}" for port in self._ports[i])
        urls = ",".join(f"nats://{way.address}" for way in self.nats_ways[i])
        command = [self.perceptrond, "--journal", urls, "--fleet-partitions", self.partitions, "--fleet-timeout", f"{TIMEOUT_SECONDS}s",
                   "--address", serve, "--fleet-address", fleet, "--fleet-advertise", self.fleet_ways[i].address, "--metrics-address", metrics,
                   *self.network.flags, *self.flags]
        variables = [f"{name}={value}" for name, value in self.environment.get(i, {}).items()]
        command = ["env", *variables, *command] if variables else command
        self.programs[i] = Program(self.network.command(self.node(i), command), self.directory / f"server{i}.log")

    def end(self, i, by):
        self.programs[i].process.send_signal(by)
        self.programs[i].process.wait(60)

    def signal(self, i, by):
        self.programs[i].process.send_signal(by)

    def await_serving(self, i):
        """Until it answers calls."""

        def serves():
            if self.programs[i].process.poll() is not None:
                raise AssertionError(f"server {i} ended:\n" + self.programs[i].log.read_text()[-4000:])
            try:
                self.stubs[i].models.ListModels(model_service_pb2.ListModelsRequest(), timeout=5)
                return True
            except grpc.RpcError:
                return False

        wait_for(f"server {i} serves", serves)

    def cut_from_nats(self, i, fault):
        for way in self.nats_ways[i]:
            way.fail(fault)

    def heal(self):
        """Ends every fault of a way."""
        for ways in (*self.nats_ways, self.fleet_ways):
            for way in ways:
                way.heal()
        for k in range(SIZE):
            self.nats.join(k)

    def page(self, i):
        return get(f"http://{self.host(i)}:{self._ports[i][2]}/metrics") or ""

    def metric(self, i, name):
        """A figure without labels; None if the server does not answer."""
        for line in self.page(i).splitlines():
            if line.startswith(name + " "):
                return float(line.rpartition(" ")[2])
        return None

    def writers(self, model, among=range(SIZE)):
        """The servers that say they write the model."""
        return [i for i in among if f'perceptrond_model_written{{model_name="{model}"}} 1\n' in self.page(i)]

    def writer(self, model, among=range(SIZE)):
        return wait_for(f"{model} has a writer among {list(among)}", lambda: [(i,) for i in self.writers(model, among)])[0][0]

    def settle(self):
        """Waits until the servers have shared the partitions out among all of them."""
        counts = lambda: [self.metric(i, "perceptrond_fleet_partitions_written") for i in range(SIZE)]
        settled = lambda: None not in counts() and sum(counts()) == self.partitions and \
            [self.metric(i, "perceptrond_fleet_servers") for i in range(SIZE)] == [SIZE] * SIZE
        wait_for("each partition has one writer", settled)

    def await_shares(self):
        """Waits until servers that came lately have been given their share of the partitions."""
        await_settled([f"{self.host(i)}:{ports[2]}" for i, ports in enumerate(self._ports)], 3 * TIMEOUT_SECONDS)
