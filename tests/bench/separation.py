"""Analyses of a separable set of texts, beside LIBLINEAR that separates it.

    python3 tests/bench/separation.py BUILD [--texts 10000] [--gap 1e-6]      # BUILD/bin has perceptrond and perceptronctl

The words of the texts follow Zipf's law, each is in a text or not, and a hidden linear separator with a small margin gives the labels. LIBLINEAR is
given the C of 1, 10, ... at which its separator first makes no mistake on the set; the time is that of this C alone, the file's reading included, as
in ours is the network. Needs liblinear-tools.
"""

import argparse
import itertools
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[1] / "deploy")]

from processes import Server

SOLVERS = {1: "L2-loss SVM, dual", 2: "L2-loss SVM, primal", 3: "L1-loss SVM, dual"}
WORDS = 40_000
MARGIN = 0.001


def texts(count, seed):
    """svmlight lines. Texts of 5 to 60 words whose distance to the separator's plane is below MARGIN are drawn again."""
    numbers = random.Random(seed)
    chances = list(itertools.accumulate(1 / rank for rank in range(1, WORDS + 1)))
    separator = [numbers.gauss(0, 1) for _ in range(WORDS)]
    norm = sum(weight**2 for weight in separator) ** 0.5
    lines = []
    while len(lines) < count:
        words = sorted(set(numbers.choices(range(WORDS), cum_weights=chances, k=numbers.randint(5, 60))))
        score = sum(separator[word] for word in words)
        if abs(score) >= MARGIN * norm:
            lines.append(f"{'+1' if score > 0 else '-1'} " + " ".join(f"{word + 1}:1" for word in words) + "\n")
    return lines


def run(command):
    start = time.perf_counter()
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{command}: {done.stdout}{done.stderr}")
    return time.perf_counter() - start, done.stdout


def separated(solver, data, directory):
    """The options with which LIBLINEAR separates the set, and the seconds that it takes; None: with none of them."""
    for cost in (10**k for k in range(7)):
        options = ["-s", solver, "-c", cost, "-B", 1]
        seconds, _ = run(["liblinear-train", "-q", *options, data, directory / "model"])
        if "= 100%" not in run(["liblinear-predict", data, directory / "model", "/dev/null"])[1]:
            continue
        return " ".join(map(str, options)), seconds
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--texts", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--gap", default="1e-6")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        directory = pathlib.Path(name)
        data = directory / "texts.svm"
        data.write_text("".join(texts(given.texts, given.seed)))
        print(f"load {os.getloadavg()[0]:.2f}; {given.texts} texts")
        for solver, what in SOLVERS.items():
            found = separated(solver, data, directory)
            print(f"liblinear-train {found[0]}: {found[1]:.2f} s ({what})" if found else f"liblinear-train -s {solver} separates it with no -c", flush=True)
        with Server(given.build / "bin/perceptrond", directory / "data", directory / "log", ["--journal", "memory"]) as server:
            ctl = [given.build / "bin/perceptronctl", "--server", server.address]
            run([*ctl, "create", "m", "--dimension", WORDS, "--store-sample", given.texts])
            run([*ctl, "learn", "m", data, "--index-base", 1])
            for gap in ("0.99", given.gap):
                seconds, text = run([*ctl, "analyze", "m", "--gap", gap, "--max-support-vectors", 20_000, "-o", "json"])
                result = json.loads(text)
                print(f"analyze --gap {gap}: {seconds:.2f} s, {len(result.get('supportVectors', []))} support vectors, "
                      f"{result['analysis']['separability']}, margin {result['analysis'].get('marginLower')} to {result['analysis'].get('marginUpper')}: "
                      f"{result['endReason']}", flush=True)


main()
