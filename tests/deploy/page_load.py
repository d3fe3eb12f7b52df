"""Models and streams for the status page and the dashboard to show, by perceptronctl."""

import json
import pathlib
import random
import subprocess

DIMENSION = 8


class Load:
    """Calls perceptronctl with one server, and makes rows that a hyperplane separates."""

    def __init__(self, ctl, server, directory):
        self.ctl, self.server, self.directory = ctl, server, pathlib.Path(directory)
        self.random = random.Random(5)
        self.separator = [self.random.gauss(0, 1) for _ in range(DIMENSION)]

    def command(self, *arguments):
        return [self.ctl, "--server", self.server.address, *map(str, arguments)]

    def call(self, *arguments, text=None, expect=0):
        done = subprocess.run(self.command(*arguments), input=text, capture_output=True, text=True, check=False)
        if done.returncode != expect:
            raise AssertionError(f"perceptronctl {arguments}: {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout

    def json(self, *arguments):
        return json.loads(self.call(*arguments))

    def rows(self, count, flipped=False):
        lines = []
        while len(lines) < count:
            x = [self.random.uniform(-1, 1) for _ in range(DIMENSION)]
            score = sum(a * b for a, b in zip(self.separator, x))
            if abs(score) > 0.3:
                lines.append(("+1" if (score > 0) != flipped else "-1") + "".join(f" {i}:{v:.4f}" for i, v in enumerate(x)) + "\n")
        return "".join(lines)

    def learn(self, model, text, *flags, expect=0):
        return self.call("learn", model, "-", "--format", "svmlight", "--index-base", 0, *flags, text=text, expect=expect)

    def stream(self, model):
        """A producer that goes on for as long as its standard input does."""
        command = self.command("learn", model, "-", "--format", "svmlight", "--index-base", 0, "--batch", 5, "--unnumbered")
        return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
