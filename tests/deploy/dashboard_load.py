"""A load under which every figure of the dashboard moves: a stream; data that can be separated, and then more of it; rows that are
no rows; calls that fail; more models than fit into memory; drift; a disk that fails; a crash."""

import pathlib
import random
import resource
import subprocess

DIMENSION = 20
MODEL = "watched"
# Models of 4 * 2^17 bytes, of which two fit.
OTHERS = ["other0", "other1", "other2"]
# Its rows have labels at random: it never stops updating.
HOPELESS = "hopeless"
SERVER_FLAGS = ["--memory-budget", "16MiB", "--snapshot-bytes", "4KiB"]


class Load:
    """`seen` takes an expression and returns once Prometheus has an answer to it."""

    def __init__(self, ctl, server, directory, seen):
        self.ctl = ctl
        self.server = server
        self.directory = pathlib.Path(directory)
        self.seen = seen
        self.random = random.Random(1)
        self.separator = [self.random.gauss(0, 1) for _ in range(DIMENSION)]
        self.sent = 0

    def command(self, *arguments):
        return [self.ctl, "--server", self.server.address, *map(str, arguments)]

    def call(self, *arguments, expect=(0,)):
        done = subprocess.run(self.command(*arguments), capture_output=True, text=True)
        if done.returncode not in expect:
            raise AssertionError(f"perceptronctl {arguments}: {done.returncode}\n{done.stdout}{done.stderr}")
        return done

    def create(self):
        self.call("create", MODEL, "--dimension", DIMENSION, "--store-sample", 100000, "--margin-of-interest", 0.0001)
        self.call("create", HOPELESS, "--dimension", DIMENSION)
        for name in OTHERS:
            self.call("create", name, "--hash-bits", 20)

    def rows(self, count, margin=0.0, scale=1.0, flipped=False, chance=False):
        """Lines in svmlight form, separated with at least this margin, of this size; labels changed over, or by chance."""
        lines = []
        while len(lines) < count:
            x = [self.random.uniform(-1, 1) * scale for _ in range(DIMENSION)]
            score = sum(a * b for a, b in zip(self.separator, x))
            if abs(score) < margin * scale:
                continue
            positive = self.random.random() < 0.5 if chance else (score > 0) != flipped
            lines.append(("+1" if positive else "-1") + "".join(f" {i}:{value:.5f}" for i, value in enumerate(x)) + "\n")
        return "".join(lines)

    def learn(self, text, *flags, model=MODEL, expect=(0,), batch=20):
        path = self.directory / "rows.svm"
        path.write_text(text)
        return self.call("learn", model, path, "--index-base", 0, "--batch", batch, *flags, expect=expect)

    # ---- Once, before anything else: they need a model that knows nothing of passes, or of contradictions. ----

    def stream(self):
        """A producer that sends on and on: the dashboard shows its answers and its open stream."""
        command = self.command("learn", MODEL, "-", "--format", "svmlight", "--index-base", 0, "--batch", 20, "--unnumbered")
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as producer:
            for examples in (2000, 3000):
                producer.stdin.write(self.rows(examples - self.sent, 2))
                producer.stdin.flush()
                self.sent = examples
                self.seen(f'perceptrond_model_examples_total{{model_name="{MODEL}"}} == {examples} and perceptrond_model_error_ceiling_ratio')
        if producer.returncode != 0:
            raise AssertionError(f"the stream ended with {producer.returncode}")

    def separable(self, step):
        """More examples, larger ones that lie closer to the boundary: another floor, another bound, another best margin. Then the
        same again, which are known. The analysis is of everything there is, until more comes."""
        text = self.rows(150, 1.0 / (1 + step), 1 + 0.2 * step)
        self.learn(text, "--until-converged", "--analyze", "--producer", f"pass{step}", "--start-offset", 0)
        self.learn(text, "--producer", f"pass{step}", "--start-offset", 0)
        self.seen("perceptrond_model_updates_left and perceptrond_model_margin_floor"
                  + ("" if step == 0 else " and changes(perceptrond_model_updates_left[5m]) > 0"))

    # ---- Again and again. ----

    def malformed(self):
        """A feature beyond the dimension."""
        self.learn(self.rows(20, 1) + f"+1 {DIMENSION + 5}:1\n" * 20, expect=(3,))

    def unary(self):
        """Calls that are answered, and one that is not: there is no such model."""
        for _ in range(5):
            self.call("get", MODEL)
        self.call("list")
        self.call("get", "nobody", expect=(1,))

    def others(self):
        """Each in turn: they do not fit into memory together, and the watched one leaves it too."""
        for name in OTHERS + OTHERS:
            self.learn("+1 1:1 2:1\n-1 1:1 3:1\n", "--unnumbered", model=name)
        self.call("get", MODEL)

    def drift(self):
        """Much of one kind, then the opposite."""
        self.learn(self.rows(1500, 1), "--unnumbered", batch=50)
        self.learn(self.rows(600, 1, flipped=True), "--unnumbered", batch=50)

    def busy(self):
        """Many small messages, each with updates that somebody waits for."""
        self.learn(self.rows(3000, chance=True), "--unnumbered", model=HOPELESS, batch=2)

    def again(self):
        for step in (self.malformed, self.unary, self.others, self.busy, self.drift, self.unary):
            step()

    def failing_disk(self):
        """The journal's file may grow by a few records, not by a snapshot: that fails, then every update, until a restart."""
        journal = max(self.directory.glob("store/*.log"), key=lambda path: path.stat().st_mtime)
        limit = journal.stat().st_size + (16 << 10)
        resource.prlimit(self.server.process.pid, resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
        while self.learn(self.rows(20, chance=True), "--unnumbered", "--timeout", 2, model=HOPELESS, expect=(0, 1, 4)).returncode == 0:
            pass
