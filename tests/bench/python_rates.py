#!/usr/bin/python3
"""Rates of the Python client against a running server, beside those of the C++ client.

    sh client/python/build.sh /tmp/perceptrond-python
    export PYTHONPATH=/tmp/perceptrond-python:client/python/examples
    build/bin/perceptrond --data-dir /tmp/rates --address 127.0.0.1:7600 &
    python3 tests/bench/python_rates.py --address 127.0.0.1:7600 --perceptronctl build/bin/perceptronctl

Rows of 75 names out of 100,000, drawn by Zipf's law; every row has the label +1, so that after a first pass, which is not
measured, none is a mistake. Rows of a scipy matrix have the same features by index, with values, in a dense space; the
others are of a named space. Rows, names and values exist before the measured time; text is split into words in it.
The estimator's rate is that of partial_fit().

perceptronctl bench sends rows of 75 features in messages as large, by index beside the matrix and by name beside the
others. It runs before each repetition; the ratio is the median of the repetitions' ratios.
"""

import argparse
import io
import itertools
import json
import random
import statistics
import subprocess
import sys
import time
import uuid
from typing import Callable, Iterable, Iterator, Optional

import grpc
import numpy
import scipy.sparse

from formats import read_rows, text_parser
from perceptrond import PerceptrondError, columns, matrices
from perceptrond.labels import Labels
from perceptrond.learn_stream import LearnStream
from perceptrond.predict_stream import PredictStream
from perceptrond.rows import Row, batches
from perceptrond.sklearn import PerceptrondClassifier
from perceptrond.v1 import (learning_service_pb2_grpc, model_pb2, model_service_pb2, model_service_pb2_grpc, prediction_service_pb2,
                            prediction_service_pb2_grpc)
from perceptrond.window import Examples

FEATURES, NAMES = 75, 100_000
MATRIX, TEXT, UNARY, STREAM = "scipy rows", "text, split into words", "predict, one a call", "predict, one at a time on a stream"


def drawn_rows(count: int) -> list[list[int]]:
    """Returns the features of rows, distinct within each, by Zipf's law."""
    rng = random.Random(17)
    cumulated = list(itertools.accumulate(1 / rank for rank in range(1, NAMES + 1)))
    drawn = iter(())
    rows = []
    for _ in range(count):
        row: dict[int, None] = {}
        while len(row) < FEATURES:
            index = next(drawn, None)
            if index is None:
                drawn = iter(rng.choices(range(NAMES), cum_weights=cumulated, k=100_000))
            else:
                row[index] = None
        rows.append(list(row))
    return rows


class Cpp:
    """The C++ client's rate, by perceptronctl bench."""

    def __init__(self, flags: argparse.Namespace):
        self._command = flags.perceptronctl and [flags.perceptronctl, "--server", flags.address, "bench", "--seconds", "2", "-o", "json"]

    def rate(self, batch: int, named: bool) -> Optional[float]:
        kind = ["--named"] if named else []
        return self._run("--batch", str(batch), "--size", str(NAMES), *kind)["examplesPerSecond"] if self._command else None

    def microseconds(self, work: str) -> Optional[float]:
        """Returns the median latency of one prediction at a time."""
        return self._run("--work", work, "--batch", "1", "--window", "1")["latencyMicroseconds"]["p50"] if self._command else None

    def _run(self, *flags: str) -> dict:
        return json.loads(subprocess.run([*self._command, *flags], check=True, capture_output=True, text=True).stdout)


class Rates:
    """Measures, and keeps a line of the table for each measurement."""

    def __init__(self, flags: argparse.Namespace):
        self._flags, self._cpp = flags, Cpp(flags)
        self._channel = grpc.insecure_channel(flags.address)
        self._models = model_service_pb2_grpc.ModelServiceStub(self._channel)
        self._predictions = prediction_service_pb2_grpc.PredictionServiceStub(self._channel)
        self.lines: list[dict] = []

    def learn(self, what: str, batch: int, rows: int, messages: Callable[[], Iterable[Examples]], dimension: int = 0) -> None:
        with self._model(dimension) as name:
            stub = learning_service_pb2_grpc.LearningServiceStub(self._channel)
            with LearnStream(stub, name, "rates", name_table_size=self._flags.name_table_size) as stream:
                def one_pass() -> float:
                    start = time.perf_counter()
                    for message in messages():
                        stream.send(message)
                    stream.end_pass()
                    return rows / (time.perf_counter() - start)

                one_pass()
                pairs = [(self._cpp.rate(batch, dimension == 0), one_pass()) for _ in range(self._flags.reps)]
                self._add(what, batch, "rows/s", pairs)

    def estimate(self, what: str, batch: int, rows: int, X: object, named: bool) -> None:
        """Measures partial_fit() of the estimator."""
        classifier = PerceptrondClassifier(self._flags.address, batch_size=batch)
        ones = numpy.ones(rows)

        def one_pass() -> float:
            start = time.perf_counter()
            classifier.partial_fit(X, ones)
            return rows / (time.perf_counter() - start)

        try:
            classifier.partial_fit(X, ones, classes=[0, 1])
        except PerceptrondError as error:
            # A server that has no text spaces.
            print(f"{sys.argv[0]}: {what}: {error.reason}; left out", file=sys.stderr)
            return
        self._add(what, batch, "rows/s", [(self._cpp.rate(batch, named), one_pass()) for _ in range(self._flags.reps)])

    def predict(self, row: Row) -> None:
        """Measures one prediction at a time."""
        with self._model() as name:
            def call() -> None:
                self._predictions.Predict(prediction_service_pb2.PredictRequest(model=name, columns=columns.pack([row])))

            self._add(UNARY, 1, "p50, us", [(self._cpp.microseconds("call"), self._median(call)) for _ in range(self._flags.reps)])
            answers = PredictStream(self._predictions, name, window=1).predict(itertools.repeat([row]))
            self._add(STREAM, 1, "p50, us", [(self._cpp.microseconds("predict"), self._median(lambda: next(answers))) for _ in range(self._flags.reps)])
            answers.close()

    def _median(self, act: Callable[[], object]) -> float:
        """Returns the median time of an action in microseconds."""
        taken = []
        for _ in range(2000):
            start = time.perf_counter()
            act()
            taken.append(time.perf_counter() - start)
        return 1e6 * statistics.median(taken)

    def _model(self, dimension: int = 0) -> "TemporaryModel":
        return TemporaryModel(self._models, dimension)

    def _add(self, what: str, batch: int, unit: str, pairs: list[tuple[Optional[float], float]]) -> None:
        ours = [value for _, value in pairs]
        line = {"what": what, "batch": batch, "unit": unit, "median": statistics.median(ours), "least": min(ours), "most": max(ours)}
        if pairs[0][0] is not None:
            line["cpp"] = statistics.median(reference for reference, _ in pairs)
            line["ratio"] = statistics.median(value / reference for reference, value in pairs)
        self.lines.append(line)
        if self._flags.output == "table":
            print(f"{what:40}{batch:6} {unit:8}{line['median']:10,.0f}{line['least']:10,.0f}{line['most']:10,.0f}"
                  + (f"{line['cpp']:12,.0f}{line['ratio']:9.3f}" if "cpp" in line else ""), flush=True)


class TemporaryModel:
    """A model of a named space, or of a dense one. A context manager that gives its name."""

    def __init__(self, stub: model_service_pb2_grpc.ModelServiceStub, dimension: int):
        self._stub, self._id = stub, f"rates-{uuid.uuid4().hex[:12]}"
        self._model = model_pb2.Model()
        if dimension:
            self._model.feature_space.dense.dimension = dimension
        else:
            self._model.feature_space.named.SetInParent()

    def __enter__(self) -> str:
        self._stub.CreateModel(model_service_pb2.CreateModelRequest(model_id=self._id, model=self._model))
        return f"models/{self._id}"

    def __exit__(self, *_: object) -> None:
        self._stub.DeleteModel(model_service_pb2.DeleteModelRequest(name=f"models/{self._id}"))


def matrix_of(drawn: list[list[int]]) -> scipy.sparse.csr_matrix:
    indices = numpy.sort(numpy.array(drawn, dtype=numpy.int32), axis=1)
    values = numpy.random.default_rng(17).random(indices.size, dtype=numpy.float32)
    return scipy.sparse.csr_matrix((values, indices.ravel(), numpy.arange(0, indices.size + 1, FEATURES)), shape=(len(drawn), NAMES))


def measure(flags: argparse.Namespace) -> Iterator[dict]:
    rates = Rates(flags)
    drawn = drawn_rows(flags.rows)
    names = [f"app:name{index}" for index in range(NAMES)]
    if flags.output == "table":
        print(f"{'':40}{'batch':>6} {'unit':8}{'median':>10}{'least':>10}{'most':>10}" + (f"{'C++':>12}{'ratio':>9}" if flags.perceptronctl else ""))
    matrix, labels = matrix_of(drawn), [1] * flags.rows
    for batch in flags.batches:
        rates.learn(MATRIX, batch, flags.rows, lambda: matrices.pack_matrix(matrix, labels, batch), NAMES)
        rates.estimate("estimator, scipy rows", batch, flags.rows, matrix, named=False)
    values = random.Random(17)
    for what, value in (("dicts of names", lambda: 1.0), ("dicts of names, with values", values.random)):
        rows = [Row({names[index]: value() for index in row}, 1) for row in drawn]
        for batch in flags.batches:
            rates.learn(what, batch, flags.rows, lambda: batches(rows, batch))
            rates.estimate(f"estimator, {what}", batch, flags.rows, [row.features for row in rows], named=True)
    rates.predict(rows[0])
    rows.clear()
    text = b"".join(b"+1\t" + " ".join(f"name{index}" for index in row).encode() + b"\n" for row in drawn[:flags.rows // 5])

    def parsed() -> Iterator[Row]:
        file = io.BytesIO(text)
        file.name = "text"
        return read_rows(file, text_parser(Labels(model_pb2.Model()), required=True))

    for batch in flags.batches:
        rates.learn(TEXT, batch, flags.rows // 5, lambda: batches(parsed(), batch))
        rates.estimate("estimator, texts", batch, flags.rows // 5, [line.split("\t")[1] for line in text.decode().splitlines()], named=True)
    yield from rates.lines


def main() -> None:
    flags = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    flags.add_argument("--address", required=True, metavar="HOST:PORT", help="of the server")
    flags.add_argument("--perceptronctl", metavar="PATH", help="measure the C++ client too, with this program")
    flags.add_argument("--rows", type=int, default=100_000, metavar="N", help="default: 100000; of text a fifth")
    flags.add_argument("--batches", type=int, nargs="+", default=[100, 1000], metavar="N", help="rows a message (default: 100 1000)")
    flags.add_argument("--reps", type=int, default=5, metavar="N", help="repetitions (default: 5)")
    flags.add_argument("--name-table-size", type=int, default=65536, metavar="N", help="0: each message has its names (default: 65536)")
    flags.add_argument("-o", "--output", choices=["table", "json"], default="table", help="json: one object a line")
    chosen = flags.parse_args()
    for line in measure(chosen):
        if chosen.output == "json":
            print(json.dumps(line))


if __name__ == "__main__":
    main()
