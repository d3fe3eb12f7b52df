#!/usr/bin/python3
"""Learns a file of labelled examples exactly once, even if the server or this program is restarted.

    learn.py spam train.tsv --text --labels ham,spam --producer train.tsv --until-converged

A producer is the name of one sequence of examples: this file, pass after pass. The server stores the producer's
position, so the same command, run again after an interruption, continues there. Use another name for another job.
"""

import argparse
import itertools
from typing import Any, Iterator

from perceptrond import Client, Row
from perceptrond.columns import MOST_UINT32
from perceptrond.labels import Labels
from perceptrond.rows import batches
from perceptrond.window import Totals

import flags as flag
import program

MOST_UNTIL_CONVERGED = 1000


def add_settings(flags: argparse.ArgumentParser) -> None:
    space = flags.add_mutually_exclusive_group()
    space.add_argument("--text", action="store_true", help="create the model if it does not exist, for texts")
    space.add_argument("--dimension", type=flag.whole(1, MOST_UINT32), metavar="D", help="create the model if it does not exist, for vectors of this dimension")
    flags.add_argument("--labels", type=flag.utf8_list, default=[], metavar="NEGATIVE,POSITIVE", help="names of the labels")


def is_wanted(flags: argparse.Namespace) -> bool:
    return flags.text or flags.dimension is not None


def settings_of(flags: argparse.Namespace) -> dict[str, Any]:
    """The arguments of create()."""
    return {"features": "text" if flags.text else flags.dimension, "labels": flags.labels, "exist_ok": True}


def learning_flags(description: str) -> argparse.ArgumentParser:
    flags = flag.parser(description)
    program.add_input(flags)
    add_settings(flags)
    flags.add_argument("--producer", type=flag.utf8, required=True, metavar="NAME", help="producer id: the name of this sequence of examples")
    flags.add_argument("--passes", type=flag.whole(), default=1, metavar="N", help="number of passes over the file (default: 1)")
    flags.add_argument("--until-converged", action="store_true", help=f"repeat passes until one has no update, at most {MOST_UNTIL_CONVERGED}")
    flags.add_argument("--window", type=flag.whole(), default=8192, metavar="N", help="most unanswered examples (default: 8192)")
    return flags


def passes_left(flags: argparse.Namespace, labels: Labels, next_offset: int, passes: int) -> Iterator[Iterator[Row]]:
    """Yields the rows of each pass that a producer at this offset, with this many finished passes, has not sent yet."""
    read = lambda: program.rows_of(flags, labels, labels_required=True)
    most = MOST_UNTIL_CONVERGED if flags.until_converged else flags.passes
    if most == 1:
        # Sent while it is read: the input may be a pipe without end.
        if passes == 0:
            yield itertools.islice(read(), next_offset, None)
        return
    rows = list(read())
    for number in range(passes, most):
        yield itertools.islice(rows, max(next_offset - number * len(rows), 0), None)


def learn(client: Client, flags: argparse.Namespace) -> Totals:
    with client.learn_stream(flags.model, flags.producer, window=flags.window) as stream:
        # Read after the stream is open, when the server is reachable.
        labels = Labels(client.get(flags.model))
        for rows in passes_left(flags, labels, stream.next_offset, stream.passes):
            for part in batches(rows, flags.batch):
                stream.send(part)
            summary = stream.end_pass()
            print(program.pass_sentence(summary), flush=True)
            if flags.until_converged and summary.converged:
                break
        return stream.finish()


def main() -> int:
    flags = learning_flags(__doc__).parse_args()
    client = Client(**program.settings_of(flags))
    if is_wanted(flags):
        client.create(flags.model, **settings_of(flags))
    totals = learn(client, flags)
    print(f"{flags.model} is at {program.sentence(client.get(flags.model))}")
    return program.code_of(totals)


if __name__ == "__main__":
    program.run(main, program.GOES_ON)
