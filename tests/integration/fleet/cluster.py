"""Three servers of a fleet over one nats-server, and the ways between them, which can be cut. How NATS replicates is not tested here."""

import os
import pathlib
import shutil

import grpc

from perceptrond.v1 import learning_service_pb2_grpc, model_service_pb2, model_service_pb2_grpc, prediction_service_pb2_grpc
from processes import Program, free_ports, get, logs_on_failure, wait_for
from proxy import Proxies

# Connections that no call waits for are otherwise looked at every five seconds only.
os.environ["GRPC_CLIENT_CHANNEL_BACKUP_POLL_INTERVAL_MS"] = "50"
SIZE = 3
PARTITIONS = 4
# A server that is silent for this time is taken for dead.
TIMEOUT_SECONDS = 1


class Nats:
    """A nats-server with JetStream."""

    def __init__(self, directory, max_file):
        self.directory, self.max_file, (self.port,) = directory, max_file, free_ports(1)
        self.store = directory / "nats"
        self.start()

    def start(self):
        (self.directory / "nats.conf").write_text(
            f'listen: 127.0.0.1:{self.port}\njetstream {{ store_dir: "{self.store}", max_mem: 64M, max_file: {self.max_file} }}\n')
        self.program = Program(["nats-server", "-c", self.directory / "nats.conf"], self.directory / "nats.log")

    def restart(self):
        self.program.kill()
        self.start()

    def copy_store(self, name):
        self.program.kill()
        shutil.copytree(self.store, self.directory / name)
        self.start()

    def restart_with(self, name):
        self.program.kill()
        shutil.rmtree(self.store)
        shutil.copytree(self.directory / name, self.store)
        self.start()


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
    """Servers: i reaches NATS through nats_ways[i], and the others reach i through fleet_ways[i]. A context manager."""

    def __init__(self, perceptrond, directory, max_file="1G"):
        self.perceptrond, self.directory = perceptrond, pathlib.Path(directory)
        self.proxies, self.nats = Proxies(), Nats(self.directory, max_file)
        ports = free_ports(3 * SIZE)
        self._ports = [ports[3 * i : 3 * i + 3] for i in range(SIZE)]
        self.nats_ways = [self.proxies.add(self.nats.port) for _ in range(SIZE)]
        self.fleet_ways = [self.proxies.add(fleet) for _, fleet, _ in self._ports]
        self.programs = [None] * SIZE
        self.stubs = [Stubs(f"127.0.0.1:{serve}") for serve, _, _ in self._ports]

    def __enter__(self):
        try:
            with logs_on_failure(self.directory):
                for i in range(SIZE):
                    self.start(i)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for program in [*self.programs, self.nats.program]:
            if program is not None:
                program.kill()
        self.proxies.close()

    def start(self, i):
        serve, fleet, metrics = (f"127.0.0.1:{port}" for port in self._ports[i])
        self.programs[i] = Program(
            [self.perceptrond, "--journal", f"nats://{self.nats_ways[i].address}", "--fleet-partitions", PARTITIONS, "--fleet-replicas", 1,
             "--fleet-timeout", f"{TIMEOUT_SECONDS}s", "--address", serve, "--fleet-address", fleet, "--fleet-advertise", self.fleet_ways[i].address,
             "--metrics-address", metrics], self.directory / f"server{i}.log")
        self.await_serving(i)

    def end(self, i, by):
        self.programs[i].process.send_signal(by)
        self.programs[i].process.wait(60)

    def await_serving(self, i):
        def serves():
            if self.programs[i].process.poll() is not None:
                raise AssertionError(f"server {i} ended:\n" + self.programs[i].log.read_text()[-4000:])
            try:
                self.stubs[i].models.ListModels(model_service_pb2.ListModelsRequest(), timeout=5)
                return True
            except grpc.RpcError:
                return False

        wait_for(f"server {i} serves", serves)

    def heal(self):
        for way in (*self.nats_ways, *self.fleet_ways):
            way.heal()

    def writer(self, model, among=range(SIZE)):
        """A server that says it writes the model."""
        writes = lambda i: f'perceptrond_model_written{{model_name="{model}"}} 1\n' in (get(f"http://127.0.0.1:{self._ports[i][2]}/metrics") or "")
        return wait_for(f"{model} has a writer among {list(among)}", lambda: [(i,) for i in among if writes(i)])[0][0]
