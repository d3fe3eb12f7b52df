"""Three servers of a fleet over PostgreSQL, and the ways between them, which can be cut."""

import os
import pathlib
import re

import grpc

from perceptrond.v1 import learning_service_pb2_grpc, model_service_pb2, model_service_pb2_grpc, prediction_service_pb2_grpc
from postgres import USER, Database
from processes import Program, free_ports, get, logs_on_failure, wait_for
from proxy import Proxies

# Connections that no call waits for are otherwise looked at every five seconds only.
os.environ["GRPC_CLIENT_CHANNEL_BACKUP_POLL_INTERVAL_MS"] = "50"
SIZE = 3
PARTITIONS = 4
# A server that is silent for this time is taken for dead.
TIMEOUT_SECONDS = 1


class Stubs:
    """One server's services."""

    def __init__(self, address):
        # gRPC 1.51 may hang a call that it sends again because its server ended, even once it is cancelled.
        options = [("grpc.enable_retries", 0), ("grpc.enable_http_proxy", 0), ("grpc.use_local_subchannel_pool", 1),
                   ("grpc.initial_reconnect_backoff_ms", 50), ("grpc.max_reconnect_backoff_ms", 200)]
        self.channel = grpc.insecure_channel(address, options)
        self.models = model_service_pb2_grpc.ModelServiceStub(self.channel)
        self.learning = learning_service_pb2_grpc.LearningServiceStub(self.channel)
        self.predictions = prediction_service_pb2_grpc.PredictionServiceStub(self.channel)


def eventually(what, call, check=lambda: None):
    """The answer of a call that may be UNAVAILABLE for some time, or ABORTED by a writer that has just found out that another one has taken
    over, while check() raises nothing."""

    def attempt():
        check()
        try:
            return call()
        except grpc.RpcError as error:
            if error.code() not in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.ABORTED):
                raise
            last.append(error.details())
            return None

    last = []
    try:
        return wait_for(what, attempt)
    except AssertionError as late:
        raise AssertionError(f"{late}: {last[-1:]}") from late


class Host:
    """The loopback address. `enter` begins commands there; `ports` are for clients, the fleet, and metrics."""

    def __init__(self):
        self.address, self.enter, self.ports = "127.0.0.1", [], free_ports(3)


class Loopback:
    """A network of this machine alone, whose ways are proxies. PostgreSQLs with standbys are reached without."""

    def __init__(self):
        self._proxies = Proxies()

    def hosts(self):
        return [Host() for _ in range(SIZE)]

    def database_hosts(self, count):
        return [None] * count

    def fleet_ways(self, hosts):
        return [self._proxies.add(host.ports[1]) for host in hosts]

    def database_ways(self, hosts, database):
        return [] if database.standbys else [self._proxies.add(database.primary.socket) for _ in hosts]

    def close(self):
        self._proxies.close()


class Fleet:
    """Servers, of which the others reach i through fleet_ways[i]. It reaches PostgreSQL through database_ways[i], if there are any, at
    whichever writes. A context manager."""

    def __init__(self, perceptrond, directory, network, standbys=0):
        self.perceptrond, self.directory, self.standbys = perceptrond, pathlib.Path(directory), standbys
        # PostgreSQL has a user of its own.
        self.directory.chmod(0o711)
        self._network, self.hosts = network, network.hosts()
        self.database = Database(self.directory, network.database_hosts(1 + standbys))
        self.database_ways, self.fleet_ways = network.database_ways(self.hosts, self.database), network.fleet_ways(self.hosts)
        self.programs = [None] * SIZE
        # Servers that are not started yet, or that the test has ended.
        self.ended = set(range(SIZE))
        self.stubs = [Stubs(self._address(i, 0)) for i in range(SIZE)]

    def __enter__(self):
        try:
            with logs_on_failure(self.directory):
                self.database.start()
                for i in range(SIZE):
                    self.start(i)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for program in self.programs:
            if program is not None:
                program.kill()
        self.database.close()
        self._network.close()

    def _address(self, i, port):
        return f"{self.hosts[i].address}:{self.hosts[i].ports[port]}"

    def launch(self, i):
        serve, fleet, metrics = (self._address(i, port) for port in range(3))
        journal = f"postgres://{USER}@{self.database_ways[i].address}/postgres" if self.database_ways else self.database.uri()
        self.programs[i] = Program(
            [*self.hosts[i].enter, self.perceptrond, "--journal", journal, "--durability", "replicated" if self.standbys else "sync",
             "--fleet-partitions", PARTITIONS, "--fleet-timeout", f"{TIMEOUT_SECONDS}s", "--address", serve, "--fleet-address", fleet, "--fleet-advertise", self.fleet_ways[i].address,
             "--metrics-address", metrics, "--insecure"], self.directory / f"server{i}.log")
        self.ended.discard(i)

    def start(self, i):
        self.launch(i)
        self.await_serving(i)

    def check_running(self):
        for i in set(range(SIZE)) - self.ended:
            if self.programs[i].process.poll() is not None:
                raise AssertionError(f"server {i} ended:\n" + self.programs[i].log.read_text()[-4000:])

    def signal(self, i, by):
        """Sends a signal that ends it."""
        self.ended.add(i)
        self.programs[i].process.send_signal(by)

    def await_serving(self, i):
        def serves():
            self.check_running()
            try:
                self.stubs[i].models.ListModels(model_service_pb2.ListModelsRequest(), timeout=5)
                return True
            except grpc.RpcError:
                return False

        wait_for(f"server {i} serves", serves)

    def next_line(self, i, pattern):
        """Returns a function that waits until a server's log has one more line like this than it has now."""
        lines = lambda: len(re.findall(pattern, self.programs[i].log.read_text(errors="replace")))
        before = lines()

        def more():
            self.check_running()
            return lines() > before

        return lambda: wait_for(f"server {i} says '{pattern}'", more)

    def heal(self, broken=False):
        for way in (*self.database_ways, *self.fleet_ways):
            way.heal(broken)

    def metric(self, i, name):
        """The value of one of a server's metrics; None if it does not answer or has none."""
        lines = (get(f"http://{self._address(i, 2)}/metrics") or "").splitlines()
        return next((float(line.removeprefix(name + " ")) for line in lines if line.startswith(name + " ")), None)

    def writer(self, model, among=range(SIZE)):
        """A server that says it writes the model."""
        writes = lambda i: self.metric(i, f'perceptrond_model_written{{model_name="{model}"}}') == 1
        return wait_for(f"{model} has a writer among {list(among)}", lambda: [(i,) for i in among if writes(i)])[0][0]
