"""Flags, error output and exit of the example programs. Needs no proto."""

import argparse
import os
import pathlib
import signal
import sys
from typing import Callable, NoReturn

from perceptrond.channels import Target, default_server, default_token_file

# Largest google.protobuf.Duration: 10,000 years.
MOST_SECONDS = 315_576_000_000


def whole(least: int = 1, most: int = 1_000_000_000) -> Callable[[str], int]:
    def parse(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            number = least - 1
        if not least <= number <= most:
            raise argparse.ArgumentTypeError(f"{text}: expected an integer from {least} to {most}")
        return number

    return parse


def seconds(least: float = 0) -> Callable[[str], float]:
    def parse(text: str) -> float:
        try:
            number = float(text)
        except ValueError:
            number = least - 1
        # This comparison is false for NaN too.
        if not least <= number <= MOST_SECONDS:
            raise argparse.ArgumentTypeError(f"{text}: expected seconds, from {least} to {MOST_SECONDS}")
        return number

    return parse


def utf8(text: str) -> str:
    """A text that is UTF-8. Other bytes of the command line become surrogates, which protos do not accept."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise argparse.ArgumentTypeError(f"{text!a}: not valid UTF-8") from None
    return text


def utf8_list(text: str) -> list[str]:
    return utf8(text).split(",")


def parser(description: str) -> argparse.ArgumentParser:
    flags = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    flags.add_argument("--server", type=utf8, default=default_server(), metavar="ADDRESS",
                       help="host:port, host:port,... of a fleet's servers, or unix:path (default: $PERCEPTROND_SERVER, else 127.0.0.1:7600)")
    flags.add_argument("--tls-ca", type=pathlib.Path, metavar="FILE", help="connect with TLS and trust these certificate authorities (PEM)")
    flags.add_argument("--token-file", type=pathlib.Path, metavar="FILE", help="send the token in this file with each call (default: $PERCEPTRONCTL_TOKEN_FILE)",
                       default=default_token_file())
    flags.add_argument("--give-up-after", type=seconds(), default=60, metavar="S", help="seconds without progress before giving up (default: 60)")
    return flags


def target_of(flags: argparse.Namespace) -> Target:
    return Target(flags.server, flags.tls_ca, flags.token_file)


def complain(text: str) -> None:
    print(f"{pathlib.Path(sys.argv[0]).name}: {text}", file=sys.stderr, flush=True)


def leave(code: int) -> NoReturn:
    """Ends the process at once. An orderly exit can deadlock: Python stops gRPC's threads wherever they are, and one
    may hold the lock of a channel that is freed afterwards."""
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:
        # The reader of the output has exited.
        code = code or 1
    os._exit(code)


def leave_on_interrupt(text: str = "") -> None:
    """Makes Ctrl-C print "interrupted" and the text, and exit with code 130. A program that was started with SIGINT
    ignored goes on ignoring it. Python would lose a KeyboardInterrupt that it raises in a finalizer."""
    def interrupted(*_) -> NoReturn:
        try:
            complain(f"interrupted{text}")
            leave(130)
        except RuntimeError:
            # The signal came in the middle of writing to the same file.
            os._exit(130)

    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, interrupted)
