"""The threads of a soak: producers that learn, readers that predict, and one that creates and deletes models. Each has a client, which goes on
through every end of the server; for what it cannot go on through, the thread ends."""

import collections
import itertools
import random
import threading

from perceptrond import Client, PerceptrondError
from perceptrond.channels import CHANNEL_OPTIONS
from workload import Examples, Sequence, settings

# Each client has a connection of its own.
CHANNEL_OPTIONS.append(("grpc.use_local_subchannel_pool", 1))


class Actor(threading.Thread):
    def __init__(self, name, server, promises, stop):
        """server: its stays_up is set once it is not ended any more."""
        super().__init__(name=name, daemon=True)
        self.client = Client(server.address, timeout=60, on_reconnect=self._lost)
        self.promises, self._server, self._stop_event = promises, server, stop
        self.counts, self.failure = collections.Counter(), None
        # A step has begun and ended while the server stayed up: so did the connection.
        self._settled = False

    def run(self):
        try:
            while not self._stop_event.is_set():
                stays_up = self._server.stays_up.is_set()
                self.step()
                self._settled = stays_up
        except Exception as error:
            self.failure = error

    def step(self):
        raise NotImplementedError

    def _lost(self, error):
        self.counts["connections lost"] += 1
        self.promises.check("a connection does not drop while the server stays up", not self._settled, actor=self.name, error=str(error))


def teach(client, promises, sequence, sizes, stays_up=False):
    """Sends messages of so many examples on a stream, and checks what the client says of them and the model of itself.

    A kill may take positions and counts of correct rows. A new stream sends them again; one that goes on does not, and they stay uncounted.
    stays_up: the server is not ended any more.
    """
    settled, sequence.settled = sequence.settled, stays_up
    facts, sent = {"model": sequence.model, "producer": sequence.producer}, 0
    with client.learn_stream(sequence.model, sequence.producer, name_table_size=sequence.name_table_size) as stream:
        promises.check("nothing acknowledged is lost, nor is anything counted that was not sent",
                       stream.next_offset == sequence.position or (not settled and stream.next_offset < sequence.position), **facts,
                       next_offset=stream.next_offset, acknowledged=sequence.position)
        sequence.position = stream.next_offset
        before = stream.revision
        for size in sizes:
            position, most = sequence.position + sent, sequence.pass_rows
            rows = sequence.examples.rows(position, min(size, most - position % most) if most else size)
            stream.send(rows)
            sent += len(rows)
            if most and (position + len(rows)) % most == 0:
                number = stream.end_pass().number
                promises.check("a completed pass has its summary", number == (position + len(rows)) // most, **facts, number=number)
        totals = stream.finish()
    lost = totals.lost_answers + totals.duplicates
    promises.check("every example is evaluated or an error, once", totals.examples + totals.row_errors + lost == sent, **facts, totals=totals, sent=sent)
    sequence.position += sent
    promises.reached(f"models/{sequence.model}", stream.revision)
    model = client.get(sequence.model)
    promises.reported(model)
    if sequence.sole:
        uncounted = sequence.position - model.report.examples
        promises.check("every acknowledged example counts once", uncounted == sequence.uncounted or (not settled and uncounted >= 0), **facts,
                       examples=model.report.examples, sent=sequence.position)
        sequence.uncounted = uncounted
        # A step of the batch perceptron is no row's update.
        promises.check("a sole producer's updates are all revisions", lost or model.learner.HasField("batch_perceptron") or
                       stream.revision == model.revision == before + totals.updates, **facts, before=before, updates=totals.updates, revision=model.revision)


class Producer(Actor):
    """Teaches some models, one after the other: each step is a stream that goes on where the last one ended."""

    def __init__(self, name, server, promises, stop, seed, sequences, rows):
        """rows: of a step, about."""
        super().__init__(name, server, promises, stop)
        self.sequences, self._next, self._rows = sequences, itertools.cycle(sequences), rows
        self._random = random.Random(f"{seed} {name}")

    def step(self):
        sequence = next(self._next)
        most, before = sequence.most_rows, sequence.position
        sizes = [self._random.randrange(1, most + 1) for _ in range(2 * self._rows // (most + 1))]
        teach(self.client, self.promises, sequence, sizes, self._server.stays_up.is_set())
        self.counts["examples learned"] += sequence.position - before


class Reader(Actor):
    """Predicts with any model, at any revision that it must have."""

    def __init__(self, name, server, promises, stop, seed, models):
        super().__init__(name, server, promises, stop)
        self._models, self._random = models, random.Random(f"{seed} {name}")
        self._probes = {space: [[row._replace(label=None) for row in Examples(7, "probe", space).rows(10 * i, i + 1)] for i in range(5)]
                        for space in ("dense", "hashed", "named")}

    def step(self):
        model, space = self._random.choice(self._models)
        probes, revision = [self._random.randrange(5) for _ in range(20)], self.promises.durable_revision(f"models/{model}")
        # With a table of names a sum would have an order that depends on the questions before.
        answers = list(self.client.predict_stream(model, [self._probes[space][probe] for probe in probes], name_table_size=0, min_revision=revision))
        self.promises.check("every question is answered, in its order", [len(answer.scores) for _, answer in answers] == [probe + 1 for probe in probes],
                            model=model, probes=probes)
        for probe, (_, answer) in zip(probes, answers):
            self.promises.predicted(model, probe, answer, revision)
            revision = answer.revision
            self.counts["rows predicted"] += probe + 1


class Churn(Actor):
    """One model after the other of three names: created, taught, deleted."""

    def __init__(self, name, server, promises, stop, seed):
        super().__init__(name, server, promises, stop)
        self._seed, self._round = seed, 0

    def step(self):
        self._round += 1
        name = f"churn-{self._round % 3}"
        created = self.client.create(name, settings())
        self.promises.check("a new model is at revision 0", created.revision == 0, model=name)
        teach(self.client, self.promises, Sequence(name, Examples(self._seed, f"churn {self._round}", "dense")), [30] * 3)
        self.client.delete(name, missing_ok=True)
        try:
            found = self.client.get(name).uid
        except PerceptrondError as error:
            found = error.reason
        self.promises.check("a deleted model is not found", found == "MODEL_NOT_FOUND", model=name, found=found)
        self.counts["models created and deleted"] += 1
