"""A real server on RocksDB under everything at once: producers, readers, new models, evictions, and ends of the process by
SIGKILL and SIGTERM in the first half of the time; every answer is checked against the protos' promises (promises.py), and the server's
memory and descriptors must not grow. At the end the models that had one producer are learned again by a server that was never killed:
the same weights and answers, bit for bit.

Writes to --directory: summary.json and the server's logs. Exits with 1 if a promise was broken or something has grown."""

import argparse
import collections
import json
import os
import pathlib
import random
import re
import shutil
import signal
import statistics
import sys
import tempfile
import threading
import time

import grpc

from actors import Churn, Reader, StreamProducer, UnaryProducers
from perceptrond.v1 import learning_service_pb2_grpc, model_service_pb2, model_service_pb2_grpc, prediction_service_pb2_grpc
from processes import Server, get
from promises import Promises
from workload import SEPARABLE_DIMENSION, SEPARABLE_MARGIN, Examples, SeparableExamples, learner_names, settings

# Fewer than the models take, so that they are loaded again and again.
FLAGS = ["--memory-budget", "48MiB", "--snapshot-bytes", "64KiB"]
LARGE_MODELS, LARGE_BITS = 20, 20
# This part of the last life of the server, which is half of the run, is not compared: caches fill. With fewer samples of the rest
# nothing is compared but descriptors: whatever else the machine does shows.
WARM_UP_PART, LEAST_SAMPLES = 0.25, 300
MOST_GROWTH_BYTES, MOST_MORE_DESCRIPTORS = 16 << 20, 8


class Services:
    """The stubs of one channel."""

    def __init__(self, address):
        options = [("grpc.initial_reconnect_backoff_ms", 50), ("grpc.max_reconnect_backoff_ms", 500), ("grpc.use_local_subchannel_pool", 1)]
        self.channel = grpc.insecure_channel(address, options)
        self.models = model_service_pb2_grpc.ModelServiceStub(self.channel)
        self.learning = learning_service_pb2_grpc.LearningServiceStub(self.channel)
        self.predictions = prediction_service_pb2_grpc.PredictionServiceStub(self.channel)


class RunningServer:
    """The server through its ends and starts, always on the same data and ports."""

    def __init__(self, binary, directory):
        self._binary, self._directory = binary, directory
        self._address, self._metrics = "127.0.0.1:0", "127.0.0.1:0"
        self.life, self.pid = 0, None
        # Grows before an end and after a start.
        self.epoch, self.changed = 0, 0.0
        self.serving = threading.Event()
        self.ends = collections.Counter()
        self.start()

    def start(self):
        self._server = Server(self._binary, self._directory / "data", self._directory / f"server-{self.life + 1}.log", FLAGS,
                              self._address, self._metrics)
        self._address, self._metrics = self._server.address, self._server.metrics
        self.life, self.pid = self.life + 1, self._server.process.pid
        self._change()
        self.serving.set()

    def _change(self):
        self.epoch, self.changed = self.epoch + 1, time.monotonic()

    def end(self, how):
        """Returns the exit code."""
        self.serving.clear()
        self._change()
        self.pid = None
        self._server.process.send_signal(how)
        self.ends[how.name] += 1
        return self._server.process.wait(timeout=120)

    @property
    def address(self):
        return self._address

    def metrics(self):
        return get(f"http://{self._metrics}/metrics") or ""


class Killer(threading.Thread):
    """Ends the server again and again, in one of four cases cleanly, until it is stopped."""

    def __init__(self, server, promises, seed, mean_seconds, stop):
        super().__init__(name="killer", daemon=True)
        self._server, self._promises, self._stop_event = server, promises, stop
        self._random, self._mean = random.Random(f"{seed} killer"), mean_seconds

    def run(self):
        while not self._stop_event.wait(self._mean * self._random.uniform(0.5, 1.5)):
            how = signal.SIGTERM if self._random.randrange(4) == 0 else signal.SIGKILL
            code = self._server.end(how)
            expected = 0 if how == signal.SIGTERM else -signal.SIGKILL
            self._promises.check("the server ends cleanly when asked to", code == expected, code=code, signal=how.name)
            self._server.start()


class Recorder(threading.Thread):
    """The server's memory and descriptors, once a second."""

    def __init__(self, server, stop):
        super().__init__(name="recorder", daemon=True)
        self._server, self._stop_event, self.samples = server, stop, []

    def run(self):
        while not self._stop_event.wait(1):
            pid, life = self._server.pid, self._server.life
            try:
                resident = int(pathlib.Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
                self.samples.append({"seconds": round(time.monotonic(), 1), "life": life, "resident_bytes": resident,
                                     "descriptors": len(os.listdir(f"/proc/{pid}/fd"))})
            except OSError:
                pass  # It ends just now.

    def evaluate(self):
        """Figures of the run, and what has grown in the last life of the server: medians of the last third beside those of the first."""
        last = [one for one in self.samples if one["life"] == self.samples[-1]["life"]]
        warm = last[int(WARM_UP_PART * len(last)):]
        third, grown, figures = max(1, len(warm) // 3), [], {"samples": len(self.samples)}
        for field, least, allowed in (("resident_bytes", LEAST_SAMPLES, MOST_GROWTH_BYTES), ("descriptors", 3, MOST_MORE_DESCRIPTORS)):
            before, after = (statistics.median(one[field] for one in part) for part in (warm[:third], warm[-third:]))
            figures[field] = {"before": before, "after": after, "peak": max(one[field] for one in self.samples)}
            if len(warm) >= least and after > before + allowed:
                grown.append(field)
        return figures, grown


def create(services, name, model):
    return services.models.CreateModel(model_service_pb2.CreateModelRequest(model_id=name, model=model, request_id=name), wait_for_ready=True, timeout=60)


def model_of(services, name, view=model_service_pb2.MODEL_VIEW_BASIC):
    return services.models.GetModel(model_service_pb2.GetModelRequest(name=f"models/{name}", view=view), wait_for_ready=True, timeout=60)


def make_actors(seed, make, promises, stop):
    """Creates the models and the threads that use them."""
    services = make()
    solo, actors, readable = [], [], []
    spaces = ("dense", "hashed", "named")
    for i, (rule, wrapper) in enumerate(learner_names()):
        name, space = f"solo-{wrapper}-{rule}".replace("--", "-").replace("_", "-"), spaces[i % 3]
        create(services, name, settings(rule, wrapper, space))
        solo.append((name, Examples(seed, name, space), settings(rule, wrapper, space)))
        readable.append((name, space))
    for i in range(LARGE_MODELS):
        create(services, f"large-{i}", settings(space="hashed", bits=LARGE_BITS))
        solo.append((f"large-{i}", Examples(seed, f"large-{i}", "hashed"), settings(space="hashed", bits=LARGE_BITS)))
        readable.append((f"large-{i}", "hashed"))
    share = (len(solo) + 2) // 3
    actors += [UnaryProducers(f"unary-{i}", make(), promises, solo[i * share:(i + 1) * share], stop, seed) for i in range(3)]
    create(services, "shared", settings(space="named"))
    create(services, "classes", settings("passive_aggressive_i", "", "named", classes=6))
    create(services, "passes", settings("perceptron", "averaged"))
    separable = settings("perceptron")
    separable.feature_space.dense.dimension = SEPARABLE_DIMENSION
    separable.learner.bias_input = 0
    create(services, "separable", separable)
    readable += [("shared", "named"), ("classes", "named"), ("passes", "dense")]
    streams = [StreamProducer("shared", f"p{i}", make(), promises, Examples(seed, f"shared {i}", "named"), stop, names=True) for i in range(2)]
    streams.append(StreamProducer("classes", "p", make(), promises, Examples(seed, "classes", "named", 6), stop, names=True, sole=True))
    streams.append(StreamProducer("passes", "p", make(), promises, Examples(seed, "passes", "dense"), stop, sole=True, pass_rows=1000))
    streams += [StreamProducer("separable", f"p{i}", make(), promises, SeparableExamples(seed, i), stop, pass_rows=200) for i in range(2)]
    actors += streams
    actors += [Reader(f"reader-{i}", make(), promises, readable, stop, seed, on_stream=i == 1) for i in range(2)]
    actors.append(Churn("churn", make(), promises, stop, seed))
    return services, solo, streams, actors


def check_end(services, promises, streams, actors):
    """Once nothing is sent any more: positions, counters and the theorem's bounds."""
    sent = {name: position for actor in actors if isinstance(actor, UnaryProducers) for name, position in actor.positions().items()}
    for stream in streams:
        sent[stream.model] = sent.get(stream.model, 0) + stream.position
    for name, position in sent.items():
        model = model_of(services, name)
        report = model.report
        promises.check("every acknowledged example counts once", report.examples == position, model=name, examples=report.examples, sent=position)
        promises.check("updates are the revision", report.updates == model.revision >= promises.durable_revision(f"models/{name}"), model=name,
                       updates=report.updates, revision=model.revision)
    report = model_of(services, "separable").report
    radius = max(stream.examples.squared_radius for stream in streams if stream.model == "separable")
    promises.check("a separable stream has at most (R / margin)^2 updates", report.updates <= radius / SEPARABLE_MARGIN ** 2, updates=report.updates)
    promises.check("the norm is within its bound", not report.HasField("bound_in_use") or report.bound_in_use <= 1, bound_in_use=report.bound_in_use)
    promises.check("the margin's ceiling is no lower than a margin there is", report.margin_ceiling >= SEPARABLE_MARGIN * (1 - 1e-9),
                   ceiling=report.margin_ceiling)
    promises.check("nothing separable is called otherwise", not report.not_separable and not report.margin_refuted)


def check_against_undisturbed(binary, directory, services, promises, solo, actors):
    """Sends the same examples of each sole producer to a server that is never killed."""
    positions = {name: position for actor in actors if isinstance(actor, UnaryProducers) for name, position in actor.positions().items()}
    with Server(binary, directory / "undisturbed", directory / "undisturbed.log", ["--journal", "memory", "--memory-budget", "4GiB"]) as undisturbed:
        other = Services(undisturbed.address)
        for name, examples, model in solo:
            create(other, name, model)
            replay = UnaryProducers("replay", other, promises, [(name, examples, model)], None, 0)
            replay.send_up_to(positions[name], 500)
            linear = not any(model.learner.HasField(field) for field in ("voted", "kernel_perceptron", "auto"))
            view = model_service_pb2.MODEL_VIEW_WEIGHTS if linear else model_service_pb2.MODEL_VIEW_BASIC
            one, two = model_of(services, name, view), model_of(other, name, view)
            promises.check("the weights are those of an undisturbed run", one.weights == two.weights and one.revision == two.revision, model=name,
                           revisions=[one.revision, two.revision])
            counters = lambda report: [report.examples, report.mistakes, report.updates, report.streak, report.mean_loss, report.radius]
            promises.check("the counters are those of an undisturbed run", counters(one.report) == counters(two.report), model=name,
                           one=counters(one.report), two=counters(two.report))
            probe = replay.probe(name)
            promises.check("the answers are those of an undisturbed run", probe == UnaryProducers("probe", services, promises, [(name, examples, model)],
                                                                                               None, 0).probe(name), model=name)


def run(flags):
    directory = pathlib.Path(flags.directory or tempfile.mkdtemp(prefix="perceptrond-soak-"))
    directory.mkdir(parents=True, exist_ok=True)
    print(f"seed {flags.seed}, {flags.seconds} s, in {directory}", flush=True)
    server = RunningServer(flags.binary, directory)
    promises = Promises(server)
    stop, stop_killing = threading.Event(), threading.Event()
    recorder = Recorder(server, stop)
    make = lambda: Services(server.address)
    services, solo, streams, actors = make_actors(flags.seed, make, promises, stop)
    killer = Killer(server, promises, flags.seed, max(6.0, flags.seconds / 16), stop_killing)
    for thread in (*actors, killer, recorder):
        thread.start()
    run_for = promises.violated.wait if flags.stop_early else time.sleep
    run_for(flags.seconds / 2)
    stop_killing.set()
    killer.join()
    run_for(flags.seconds / 2)
    stop.set()
    for actor in actors:
        actor.join(timeout=120)
        promises.check("every actor comes to its end", not actor.is_alive() and actor.failure is None, actor=actor.name, failure=repr(actor.failure))
    recorder.join()
    found = dict(re.findall(r"^perceptrond_(loads|evictions)_total (\S+)$", server.metrics(), re.M))
    check_end(services, promises, streams, actors)
    check_against_undisturbed(flags.binary, directory, services, promises, solo, actors)
    promises.check("the server ends cleanly when asked to", server.end(signal.SIGTERM) == 0)
    figures, grown = recorder.evaluate()
    counted = collections.Counter()
    for actor in actors:
        counted.update(actor.counts)
    summary = {"seed": flags.seed, "seconds": flags.seconds, "passed": not promises.violations and not grown, "ends": dict(server.ends),
               "of_the_last_life": {name: int(float(value)) for name, value in found.items()},
               "counts": dict(counted), "checks": dict(promises.checks), "server": figures, "grown": grown,
               "violations": promises.violations[:100]}
    (directory / "summary.json").write_text(json.dumps(summary, indent=2) + "\n")
    print(json.dumps({key: value for key, value in summary.items() if key != "violations"}, indent=2), flush=True)
    if not summary["passed"]:
        print(f"FAILED: {len(promises.violations)} violations, grown: {grown}; see {directory}", flush=True)
        return 1
    if not flags.directory:
        shutil.rmtree(directory)
    return 0


def main():
    flags = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    flags.add_argument("binary", help="the server's program")
    flags.add_argument("--seconds", type=float, default=120)
    flags.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32), help="of what is sent and when the server ends (default: at random)")
    flags.add_argument("--directory", help="where all is written, and kept (default: a temporary one, kept if the soak fails)")
    flags.add_argument("--stop-early", action="store_true", help="end at the first violation")
    sys.exit(run(flags.parse_args()))


if __name__ == "__main__":
    main()
