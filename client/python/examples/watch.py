#!/usr/bin/python3
"""Prints a line whenever the report of a model has changed, until interrupted or the model is deleted.

    watch.py spam --interval 0.5
"""

import argparse

from perceptrond import Client

import flags as flag
import program


def parse_flags() -> argparse.Namespace:
    flags = flag.parser(__doc__)
    flags.add_argument("model", type=flag.utf8, help="name of the model")
    flags.add_argument("--interval", type=flag.seconds(0.05), default=1, metavar="S", help="shortest time between two lines, at least 0.05 (default: 1)")
    flags.add_argument("--count", type=flag.whole(), metavar="N", help="end after this many lines")
    return flags.parse_args()


def main() -> int:
    flags = parse_flags()
    client = Client(**program.settings_of(flags))
    for number, now in enumerate(client.watch(flags.model, flags.interval), start=1):
        print(program.sentence(now), flush=True)
        if number == flags.count:
            break
    return 0


if __name__ == "__main__":
    program.run(main)
