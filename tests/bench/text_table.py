#!/usr/bin/python3
"""Texts: our learners beside scikit-learn's vectorizers and classifiers, on paired random splits of sms_spam.

    apt-get install python3-sklearn
    python3 tests/bench/text_table.py build/bin
    python3 tests/bench/text_table.py build/bin --only 'arow, words 1 to 2' --goal 0.3    # as ctest does, with two others

Each split takes a fifth of the messages, at random, for the test; all learn the same others in the same order. Ours are
models with a text space on one server, taught and asked by perceptronctl. Of scikit-learn's each vectorizer, with its
default words and with words and pairs of words, is fitted to the training part and combined with each classifier; all
settings but those named are its defaults.

The table has the mean error of each; the mean over the splits of its difference to the best of scikit-learn's, the
combination with the least mean error; and the 95 % interval of that mean, by Student's t.
"""

import argparse
import math
import pathlib
import random
import re
import statistics
import subprocess
import sys
import tempfile
import warnings
from typing import Iterator

from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import PassiveAggressiveClassifier, Perceptron
from sklearn.svm import LinearSVC

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/deploy")]

from processes import Server

DATA = ROOT / "deploy/data/sms_spam.tsv"
RULES = ["perceptron", "averaged-perceptron", "passive-aggressive-i", "averaged-passive-aggressive-i", "arow"]
# The flags after `create NAME --text`.
SPACES = {"words 1 to 2": "", "words 1 to 2, characters 2 to 4": "--characters 2-4",
          "words 1 to 2, counts, norm kept": "--text-value count --keep-norm", "words 1 to 2, idf": "--idf",
          "words 1 to 2, characters 2 to 4, idf": "--characters 2-4 --idf"}
# Student's t for 95 %, by the number of splits.
QUANTILE = {3: 4.303, 5: 2.776, 10: 2.262, 20: 2.093}

Example = tuple[str, str]


def read() -> list[Example]:
    lines = DATA.read_text(encoding="utf-8").split("\n")
    return [tuple(line.split("\t", 1)) for line in lines[1:] if line]


def splits(examples: list[Example], count: int) -> Iterator[tuple[list[Example], list[Example]]]:
    for seed in range(count):
        order = examples[:]
        random.Random(seed).shuffle(order)
        held_out = len(order) // 5
        yield order[held_out:], order[:held_out]


class Ours:
    """A server, and perceptronctl."""

    def __init__(self, binaries: pathlib.Path, directory: str, passes: int) -> None:
        self.directory, self.passes, self.models = pathlib.Path(directory), passes, 0
        self.server = Server(binaries / "perceptrond", self.directory / "store", self.directory / "log", ["--journal", "memory"])
        self.ctl = [str(binaries / "perceptronctl"), "--server", self.server.address]

    def call(self, *arguments: str) -> str:
        return subprocess.run([*self.ctl, *arguments], check=True, capture_output=True, text=True).stdout

    def write(self, train: list[Example], test: list[Example]) -> None:
        for name, part in (("train.tsv", train), ("test.tsv", test)):
            (self.directory / name).write_text("".join(f"{label}\t{text}\n" for label, text in part), encoding="utf-8")

    def errors(self, rule: str, flags: str) -> float:
        self.models += 1
        name = f"m{self.models}"
        self.call("create", name, "--text", *flags.split(), "--labels", "ham,spam", "--learner", rule)
        self.call("learn", name, str(self.directory / "train.tsv"), "--passes", str(self.passes))
        summary = self.call("predict", name, str(self.directory / "test.tsv"), "--summary")
        self.call("delete", name)
        wrong, of = re.search(r"errors: ([\d,]+) of ([\d,]+)", summary).groups()
        return 100 * int(wrong.replace(",", "")) / int(of.replace(",", ""))


def theirs(train: list[Example], test: list[Example]) -> Iterator[tuple[str, float]]:
    for vectorizer in (CountVectorizer, TfidfVectorizer):
        for words in (1, 2):
            vectors = vectorizer(ngram_range=(1, words))
            rows = vectors.fit_transform([text for _, text in train])
            asked = vectors.transform([text for _, text in test])
            for classifier in (Perceptron(random_state=0), PassiveAggressiveClassifier(random_state=0), LinearSVC(random_state=0)):
                predicted = classifier.fit(rows, [label for label, _ in train]).predict(asked)
                wrong = sum(one != label for one, (label, _) in zip(predicted, test))
                yield f"{vectorizer.__name__}, words 1 to {words}, {type(classifier).__name__}", 100 * wrong / len(test)


def best_of(errors: dict[str, list[float]], among: set[str]) -> str:
    """The first by name of those with the least mean."""
    return min(sorted(among), key=lambda name: statistics.mean(errors[name]))


def misses(errors: dict[str, list[float]], of_ours: set[str], goal: float) -> list[str]:
    """Those of ours whose mean error is more than `goal` points above that of the best of scikit-learn's."""
    best = statistics.mean(errors[best_of(errors, set(errors) - of_ours)])
    return [name for name in sorted(of_ours) if statistics.mean(errors[name]) - best > goal]


def table(errors: dict[str, list[float]], of_ours: set[str]) -> str:
    best = best_of(errors, set(errors) - of_ours)
    lines = [f"Best of scikit-learn's: {best}.", "", "| learner | error % | difference | 95 % interval |", "|---|---|---|---|"]
    for name in sorted(errors, key=lambda name: (name not in of_ours, statistics.mean(errors[name]))):
        differences = [one - other for one, other in zip(errors[name], errors[best])]
        half = QUANTILE[len(differences)] * statistics.stdev(differences) / math.sqrt(len(differences))
        mean = statistics.mean(differences)
        interval = "–" if name == best else f"{mean - half:+.2f} to {mean + half:+.2f}"
        lines.append(f"| {name} | {statistics.mean(errors[name]):.2f} | {mean:+.2f} | {interval} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binaries", type=pathlib.Path, help="the directory of perceptrond and perceptronctl")
    parser.add_argument("--splits", type=int, default=10, choices=sorted(QUANTILE))
    parser.add_argument("--passes", type=int, default=10, help="of ours over the training part")
    parser.add_argument("--only", action="append", metavar="NAME", help="of ours only this one, 'RULE, FEATURES' as in the table; may be repeated")
    parser.add_argument("--goal", type=float, metavar="POINTS", help="fail if one of ours errs on more points than this above the best of scikit-learn's")
    options = parser.parse_args()
    chosen = [(rule, space) for rule in RULES for space in SPACES if not options.only or f"{rule}, {space}" in options.only]
    if len(chosen) < len(options.only or []):
        parser.error(f"--only: there are {[f'{rule}, {space}' for rule in RULES for space in SPACES]}")
    warnings.simplefilter("ignore", ConvergenceWarning)
    errors: dict[str, list[float]] = {}
    of_ours = {f"{rule}, {space}" for rule, space in chosen}
    with tempfile.TemporaryDirectory() as directory:
        ours = Ours(options.binaries, directory, options.passes)
        with ours.server:
            for train, test in splits(read(), options.splits):
                ours.write(train, test)
                for rule, space in chosen:
                    errors.setdefault(f"{rule}, {space}", []).append(ours.errors(rule, SPACES[space]))
                for name, error in theirs(train, test):
                    errors.setdefault(name, []).append(error)
                print(".", end="", flush=True, file=sys.stderr)
    print(file=sys.stderr)
    print(table(errors, of_ours))
    if options.goal is not None and (missed := misses(errors, of_ours, options.goal)):
        sys.exit(f"more than {options.goal} points above the best of scikit-learn's: {'; '.join(missed)}")


if __name__ == "__main__":
    main()
