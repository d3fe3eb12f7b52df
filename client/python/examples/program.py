"""Input, output, errors and exit codes of the example programs.

0 success; 1 failure; 2 invalid usage; 3 some examples had validation errors; 130 interrupted.
"""

import argparse
from typing import Any, BinaryIO, Callable, Iterator, Optional

from perceptrond import PerceptrondError, Row
from perceptrond.labels import Labels
from perceptrond.v1 import model_pb2, report_pb2
from perceptrond.window import Totals

import flags as flag
import formats
from flags import complain, leave, leave_on_interrupt

ROW_ERRORS = 3
# Added to the message when learning is interrupted.
GOES_ON = "; what was answered is learned, and the same command goes on from there"


def add_input(flags: argparse.ArgumentParser) -> None:
    flags.add_argument("model", type=flag.utf8, help="name of the model")
    flags.add_argument("file", type=formats.open_input, help="examples; - is standard input")
    flags.add_argument("--format", choices=["text", "svmlight"], default="text", help="of the file (default: text)")
    flags.add_argument("--index-base", type=flag.whole(0, 1), default=1, metavar="N", help="svmlight: index of the first feature, 0 or 1 (default: 1)")
    flags.add_argument("--batch", type=flag.whole(1, 65536), default=256, metavar="N", help="examples per message (default: 256)")


def rows_of(flags: argparse.Namespace, labels: Labels, *, labels_required: bool, file: Optional[BinaryIO] = None) -> Iterator[Row]:
    text = flags.format == "text"
    parse = formats.text_parser(labels, labels_required) if text else formats.svmlight_parser(flags.index_base, labels, labels_required)
    return formats.read_rows(file or flags.file, parse)


def sentence(model: model_pb2.Model) -> str:
    """Returns the state of the model as a line."""
    report = model.report
    state = report_pb2.ConvergenceState.Name(report.state).removeprefix("CONVERGENCE_STATE_").lower()
    return f"revision {model.revision}: {report.examples} examples, {report.mistakes} mistakes, {report.updates} updates, {state}"


def pass_sentence(summary: report_pb2.PassSummary) -> str:
    return (f"pass {summary.number}: {summary.examples} examples, {summary.mistakes} mistakes, {summary.updates} updates"
            + (", converged" if summary.converged else ""))


def settings_of(flags: argparse.Namespace) -> dict[str, Any]:
    """The arguments of Client() and AsyncClient()."""
    return {"server": flags.server, "tls_ca": flags.tls_ca, "token_file": flags.token_file, "give_up_after": flags.give_up_after,
            "on_reconnect": reconnecting}


def reconnecting(error: PerceptrondError) -> None:
    complain(f"the connection was lost; reconnecting: {error}")


def code_of(totals: Totals) -> int:
    if totals.row_errors:
        complain(f"{totals.row_errors} examples had validation errors; the first: {totals.first_row_error_position}: {totals.first_row_error}")
        return ROW_ERRORS
    return 0


def run(main: Callable[[], int], when_interrupted: str = "") -> None:
    """Runs main() and exits with its code, or prints the error."""
    leave_on_interrupt(when_interrupted)
    try:
        code = main()
    except (PerceptrondError, formats.BadLine, OSError) as error:
        complain(str(error))
        code = 1
    leave(code)
