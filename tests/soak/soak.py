"""A real server on RocksDB under everything at once: the Python client's producers and readers, new models, evictions, and ends of the process
by SIGKILL and SIGTERM in the first half of the time; what the client says is checked against its promises (actors.py), and the server's
memory and descriptors must not grow. At the end the models that had one producer are learned again by a server that was never killed:
the same weights and answers, bit for bit.

Writes to --directory: summary.json and the server's logs. Exits with 1 if a promise was broken or something has grown."""

import argparse
import collections
import dataclasses
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

from actors import Churn, Producer, Reader, teach
from perceptrond import Client, model_settings
from perceptrond.v1 import learner_pb2
from processes import Server, get
from promises import Promises
from workload import SEPARABLE_DIMENSION, SEPARABLE_MARGIN, Examples, SeparableExamples, Sequence, learner_names, settings

# Fewer than the models take, so that they are loaded again and again.
FLAGS = ["--memory-budget", "48MiB", "--snapshot-bytes", "64KiB"]
LARGE_MODELS, LARGE_BITS = 20, 20
# This part of the last life of the server, which is half of the run, is not compared: caches fill. With fewer samples of the rest
# nothing is compared but descriptors: whatever else the machine does shows.
WARM_UP_PART, LEAST_SAMPLES = 0.25, 300
MOST_GROWTH_BYTES, MOST_MORE_DESCRIPTORS = 16 << 20, 8


class RunningServer:
    """The server through its ends and starts, always on the same data and ports."""

    def __init__(self, binary, directory):
        self._binary, self._directory = binary, directory
        self._address, self._metrics = "127.0.0.1:0", "127.0.0.1:0"
        self.life, self.pid = 0, None
        # No end comes any more.
        self.stays_up = threading.Event()
        self.ends = collections.Counter()
        self.start()

    def start(self):
        self._server = Server(self._binary, self._directory / "data", self._directory / f"server-{self.life + 1}.log", FLAGS,
                              self._address, self._metrics)
        self._address, self._metrics = self._server.address, self._server.metrics
        self.life, self.pid = self.life + 1, self._server.process.pid

    def end(self, how):
        """Returns the exit code."""
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


def make_actors(seed, server, promises, stop):
    """Creates the models and the threads that use them. Returns the threads, and the settings of the models that have one producer and no passes."""
    solo, sequences, readable = {}, [], []
    for i, (rule, wrapper) in enumerate(learner_names()):
        name, space = f"solo-{wrapper or 'plain'}-{rule}".replace("_", "-"), ("dense", "hashed", "named")[i % 3]
        solo[name] = settings(rule, wrapper, space)
        sequences.append(Sequence(name, Examples(seed, name, space), name_table_size=0 if space == "named" else 256))
        readable.append((name, space))
    for name in (f"large-{i}" for i in range(LARGE_MODELS)):
        solo[name] = settings(space="hashed", bits=LARGE_BITS)
        sequences.append(Sequence(name, Examples(seed, name, "hashed")))
        readable.append((name, "hashed"))
    classes = settings("passive_aggressive_i", space="named", classes=6)
    classes.learner.classes.new_classes = learner_pb2.Classes.NEW_CLASSES_NAMED
    others = {"shared": settings(space="named"), "classes": classes, "passes": settings(wrapper="averaged"),
              "separable": model_settings(SEPARABLE_DIMENSION, bias_input=0)}
    readable += [("shared", "named"), ("classes", "named"), ("passes", "dense")]
    with Client(server.address) as client:
        for name, model in {**solo, **others}.items():
            client.create(name, model)
    streams = [Sequence("shared", Examples(seed, f"shared {i}", "named"), f"p{i}", sole=False) for i in range(2)]
    streams.append(Sequence("classes", Examples(seed, "classes", "named", 6)))
    streams.append(Sequence("passes", Examples(seed, "passes", "dense"), pass_rows=1000))
    streams += [Sequence("separable", SeparableExamples(seed, i), f"p{i}", sole=False, pass_rows=200) for i in range(2)]
    actors = [Producer(f"solo-{i}", server, promises, stop, seed, sequences[i::3], rows=30) for i in range(3)]
    actors += [Producer(f"{one.model}-{one.producer}", server, promises, stop, seed, [one], rows=2000) for one in streams]
    actors += [Reader(f"reader-{i}", server, promises, stop, seed, readable) for i in range(2)]
    actors.append(Churn("churn", server, promises, stop, seed))
    return solo, actors


def check_end(client, promises, sequences):
    """Once nothing is sent any more: positions, counters and the theorem's bounds."""
    sent, uncounted = collections.Counter(), {one.model: one.uncounted if one.sole else None for one in sequences}
    for one in sequences:
        sent[one.model] += one.position
    for name, position in sent.items():
        model = client.get(name)
        promises.reported(model)
        missing = position - model.report.examples
        promises.check("every acknowledged example counts once", missing == uncounted[name] if uncounted[name] is not None else missing >= 0, model=name,
                       examples=model.report.examples, sent=position)
        promises.check("no update is lost", model.revision >= promises.durable_revision(model.name), model=name, revision=model.revision)
    report = client.report("separable")
    radius = max(one.examples.squared_radius for one in sequences if one.model == "separable")
    promises.check("a separable stream has at most (R / margin)^2 updates", report.updates <= radius / SEPARABLE_MARGIN ** 2, updates=report.updates)
    promises.check("the margin's ceiling is no lower than a margin there is", report.margin_ceiling >= SEPARABLE_MARGIN * (1 - 1e-9),
                   ceiling=report.margin_ceiling)
    promises.check("nothing separable is called otherwise", not report.not_separable and not report.margin_refuted)


def state_of(client, sequence):
    """Weights, counters, and the answers to some rows."""
    model = client.get(sequence.model)
    linear = not any(model.learner.HasField(field) for field in ("voted", "kernel_perceptron", "auto"))
    report, probe = model.report, [row._replace(label=None) for row in sequence.examples.rows(10 ** 9, 50)]
    return {"weights": linear and client.weights(sequence.model).SerializeToString(), "revision": model.revision,
            "mistakes": [report.mistakes, report.updates],
            "counters": [report.examples, report.streak, report.mean_loss, report.radius],
            "answers": client.predict(sequence.model, probe)}


def check_against_undisturbed(binary, directory, client, promises, solo, sequences):
    """Sends the same examples of each sole producer to a server that is never killed."""
    with Server(binary, directory / "undisturbed", directory / "undisturbed.log", ["--journal", "memory", "--memory-budget", "4GiB"]) as undisturbed, \
            Client(undisturbed.address) as other:
        for sequence in sequences:
            if sequence.model not in solo:
                continue
            other.create(sequence.model, solo[sequence.model])
            whole, rest = divmod(sequence.position, sequence.most_rows)
            again = dataclasses.replace(sequence, position=0, uncounted=0, settled=True)
            teach(other, promises, again, [sequence.most_rows] * whole + [rest] * (rest > 0), stays_up=True)
            one, two = state_of(client, sequence), state_of(other, sequence)
            # Averages and votes count correct rows, too.
            lacking = () if not sequence.uncounted else ("counters", "weights", "answers") if "averaged" in sequence.model or "voted" in sequence.model \
                else ("counters",)
            for what in one.keys() - lacking:
                promises.check(f"{what} as in an undisturbed run", one[what] == two[what], model=sequence.model)


def run(flags):
    directory = pathlib.Path(flags.directory or tempfile.mkdtemp(prefix="perceptrond-soak-"))
    directory.mkdir(parents=True, exist_ok=True)
    print(f"seed {flags.seed}, {flags.seconds} s, in {directory}", flush=True)
    server = RunningServer(flags.binary, directory)
    promises = Promises()
    stop, stop_killing = threading.Event(), threading.Event()
    recorder = Recorder(server, stop)
    solo, actors = make_actors(flags.seed, server, promises, stop)
    killer = Killer(server, promises, flags.seed, max(6.0, flags.seconds / 16), stop_killing)
    for thread in (*actors, killer, recorder):
        thread.start()
    run_for = promises.violated.wait if flags.stop_early else time.sleep
    run_for(flags.seconds / 2)
    stop_killing.set()
    killer.join()
    server.stays_up.set()
    run_for(flags.seconds / 2)
    stop.set()
    for actor in actors:
        actor.join(timeout=120)
        promises.check("every actor comes to its end", not actor.is_alive() and actor.failure is None, actor=actor.name, failure=repr(actor.failure))
    recorder.join()
    found = dict(re.findall(r"^perceptrond_(loads|evictions)_total (\S+)$", server.metrics(), re.M))
    sequences = [one for actor in actors if isinstance(actor, Producer) for one in actor.sequences]
    with Client(server.address) as client:
        check_end(client, promises, sequences)
        check_against_undisturbed(flags.binary, directory, client, promises, solo, sequences)
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
