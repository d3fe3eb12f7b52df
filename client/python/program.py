"""Input, output, errors and exit codes of the example programs.

0 success; 1 failure; 2 invalid usage; 3 some examples had validation errors; 130 interrupted.
"""

import argparse
from typing import BinaryIO, Callable, Iterator, Optional

import grpc

import connection
import errors
import examples
import window
from connection import complain, leave, leave_on_interrupt
from examples import Labels
from perceptron.v1 import model_pb2, report_pb2

ROW_ERRORS = 3
# Added to the message when learning is interrupted.
GOES_ON = "; what was answered is learned, and the same command goes on from there"


def add_input(flags: argparse.ArgumentParser) -> None:
    flags.add_argument("model", type=connection.utf8, help="name of the model")
    flags.add_argument("file", type=examples.open_input, help="examples; - is standard input")
    flags.add_argument("--format", choices=["text", "svmlight"], default="text", help="of the file (default: text)")
    flags.add_argument("--index-base", type=connection.whole(0, 1), default=1, metavar="N", help="svmlight: index of the first feature, 0 or 1 (default: 1)")
    flags.add_argument("--batch", type=connection.whole(1, 65536), default=256, metavar="N", help="examples per message (default: 256)")
    flags.add_argument("--name-table-size", type=connection.whole(0, connection.MOST_UINT32), default=window.NAME_TABLE_SIZE, metavar="N",
                       help=f"most names that a stream sends by number once they were sent; 0: none (default: {window.NAME_TABLE_SIZE})")


def rows_of(flags: argparse.Namespace, labels: Labels, *, labels_required: bool, file: Optional[BinaryIO] = None) -> Iterator[examples.Row]:
    text = flags.format == "text"
    parse = examples.text_parser(labels, labels_required) if text else examples.svmlight_parser(flags.index_base, labels, labels_required)
    return examples.read_rows(file or flags.file, parse)


def sentence(model: model_pb2.Model) -> str:
    """Returns the state of the model as a line."""
    report = model.report
    state = report_pb2.ConvergenceState.Name(report.state).removeprefix("CONVERGENCE_STATE_").lower()
    return f"revision {model.revision}: {report.examples} examples, {report.mistakes} mistakes, {report.updates} updates, {state}"


def pass_sentence(summary: report_pb2.PassSummary) -> str:
    return (f"pass {summary.number}: {summary.examples} examples, {summary.mistakes} mistakes, {summary.updates} updates"
            + (", converged" if summary.converged else ""))


def reconnecting(error: grpc.RpcError) -> None:
    complain(f"the connection was lost; reconnecting: {errors.describe(error)}")


def code_of(totals: window.Totals) -> int:
    if totals.row_errors:
        complain(f"{totals.row_errors} examples had validation errors; the first: {totals.first_row_error}")
        return ROW_ERRORS
    return 0


def run(main: Callable[[], int], when_interrupted: str = "") -> None:
    """Runs main() and exits with its code, or prints the error."""
    leave_on_interrupt(when_interrupted)
    try:
        code = main()
    except grpc.RpcError as error:
        complain(errors.describe(error))
        code = 1
    except (errors.StatusError, examples.BadLine, window.ProtocolError, OSError) as error:
        complain(str(error))
        code = 1
    leave(code)
