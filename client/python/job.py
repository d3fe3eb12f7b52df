"""A learning job described by flags: which examples, how many passes, and what is left to send."""

import argparse
import itertools
from typing import Iterator

import connection
import flag_types
import model
import program
from formats import Row
from labels import Labels

MOST_UNTIL_CONVERGED = 1000


def learning_flags(description: str) -> argparse.ArgumentParser:
    flags = connection.parser(description)
    program.add_input(flags)
    model.add_settings(flags)
    flags.add_argument("--producer", type=flag_types.utf8, required=True, metavar="NAME", help="producer id: the name of this sequence of examples")
    flags.add_argument("--passes", type=flag_types.whole(), default=1, metavar="N", help="number of passes over the file (default: 1)")
    flags.add_argument("--until-converged", action="store_true", help=f"repeat passes until one has no update, at most {MOST_UNTIL_CONVERGED}")
    flags.add_argument("--window", type=flag_types.whole(), default=8192, metavar="N", help="most unanswered examples (default: 8192)")
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
