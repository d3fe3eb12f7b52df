"""A learning job as its flags describe it: which examples, pass after pass, and what is left of them."""

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
    flags.add_argument("--producer", type=flag_types.utf8, required=True, metavar="NAME", help="what this sequence of examples is called")
    flags.add_argument("--passes", type=flag_types.whole(), default=1, metavar="N", help="times the file is learned (default: 1)")
    flags.add_argument("--until-converged", action="store_true", help=f"passes until one changes nothing, at most {MOST_UNTIL_CONVERGED}")
    flags.add_argument("--window", type=flag_types.whole(), default=8192, metavar="N", help="examples that may be unanswered (default: 8192)")
    return flags


def passes_left(flags: argparse.Namespace, labels: Labels, next_offset: int, passes: int) -> Iterator[Iterator[Row]]:
    """The rows of each pass that a producer has not sent yet which stands at this offset and has ended so many passes."""
    read = lambda: program.rows_of(flags, labels, labels_required=True)
    most = MOST_UNTIL_CONVERGED if flags.until_converged else flags.passes
    if most == 1:
        # Sent as it is read: it may come from a pipe, and never end.
        if passes == 0:
            yield itertools.islice(read(), next_offset, None)
        return
    rows = list(read())
    for number in range(passes, most):
        yield itertools.islice(rows, max(next_offset - number * len(rows), 0), None)
