"""Flags, connection and error output of the example programs. Needs no proto."""

import argparse
import os
import pathlib
import signal
import socket
import sys
from typing import Callable, NoReturn

import grpc

MOST_UINT32 = 2**32 - 1
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


# While no call waits, gRPC looks at a connection that is being made every five seconds only.
os.environ.setdefault("GRPC_CLIENT_CHANNEL_BACKUP_POLL_INTERVAL_MS", "100")
# Reconnect quickly; the default backoff of gRPC grows to two minutes. gRPC 1.51 may hang a call that it sends again because its server
# ended, even once it is cancelled.
CHANNEL_OPTIONS = [("grpc.enable_retries", 0), ("grpc.initial_reconnect_backoff_ms", 100), ("grpc.max_reconnect_backoff_ms", 1000)]


def parser(description: str) -> argparse.ArgumentParser:
    flags = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    flags.add_argument("--server", type=utf8, default=os.environ.get("PERCEPTROND_SERVER", "127.0.0.1:7600"), metavar="ADDRESS",
                       help="host:port, host:port,... of a fleet's servers, or unix:path (default: $PERCEPTROND_SERVER, else 127.0.0.1:7600)")
    flags.add_argument("--tls-ca", type=pathlib.Path, metavar="FILE", help="connect with TLS and trust these certificate authorities (PEM)")
    flags.add_argument("--token-file", type=pathlib.Path, metavar="FILE", help="send the token in this file with each call (default: $PERCEPTRONCTL_TOKEN_FILE)",
                       default=os.environ.get("PERCEPTRONCTL_TOKEN_FILE"))
    flags.add_argument("--give-up-after", type=seconds(), default=60, metavar="S", help="seconds without progress before giving up (default: 60)")
    return flags


def token_plugin(token_file: pathlib.Path) -> grpc.CallCredentials:
    """Reads the token for each call, so that a new one is used at once."""
    return grpc.metadata_call_credentials(
        lambda context, done: done((("authorization", f"Bearer {token_file.read_text().strip()}"),), None))


def credentials(flags: argparse.Namespace) -> grpc.ChannelCredentials | None:
    """None: neither TLS nor a token. gRPC itself refuses to send a token to another machine without TLS."""
    if flags.tls_ca is not None:
        made = grpc.ssl_channel_credentials(flags.tls_ca.read_bytes())
    elif flags.token_file is not None:
        kind = grpc.LocalConnectionType.UDS if flags.server.startswith("unix:") else grpc.LocalConnectionType.LOCAL_TCP
        made = grpc.local_channel_credentials(kind)
    else:
        return None
    return made if flags.token_file is None else grpc.composite_channel_credentials(made, token_plugin(flags.token_file))


class _Trace(grpc.UnaryUnaryClientInterceptor, grpc.UnaryStreamClientInterceptor, grpc.StreamStreamClientInterceptor):
    """Sends a W3C trace context with each call, for the server's log."""

    def __init__(self, traceparent: str) -> None:
        self._metadata = ("traceparent", traceparent)

    def _start(self, call, details, request):
        metadata = [*(details.metadata or ()), self._metadata]
        return call(details._replace(metadata=metadata), request)

    intercept_unary_unary = intercept_unary_stream = intercept_stream_stream = _start


class _AioTrace:
    def __init__(self, traceparent: str) -> None:
        self._metadata = ("traceparent", traceparent)

    async def _start(self, call, details, request):
        metadata = grpc.aio.Metadata(*(details.metadata or ()), self._metadata)
        return await call(details._replace(metadata=metadata), request)


class _AioUnaryTrace(_AioTrace, grpc.aio.UnaryUnaryClientInterceptor):
    intercept_unary_unary = _AioTrace._start


class _AioWatchTrace(_AioTrace, grpc.aio.UnaryStreamClientInterceptor):
    intercept_unary_stream = _AioTrace._start


class _AioStreamTrace(_AioTrace, grpc.aio.StreamStreamClientInterceptor):
    intercept_stream_stream = _AioTrace._start


def _traceparent() -> str:
    """The trace that the program is a part of, as OpenTelemetry hands it to programs; empty for none."""
    value = os.environ.get("TRACEPARENT", "")
    return value if value.isascii() and value.isprintable() else ""


def numeric(servers: str) -> list[str]:
    """The addresses of host:port,host:port,..., of one family; names that are not found are left out."""
    found = {socket.AF_INET: [], socket.AF_INET6: []}
    for address in servers.split(","):
        host, _, port = address.strip().rpartition(":")
        try:
            for family, *_, (number, *_) in socket.getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM):
                found[family].append(f"[{number}]:{port}" if family == socket.AF_INET6 else f"{number}:{port}")
        except (socket.gaierror, UnicodeError):
            continue
    return found[socket.AF_INET] or found[socket.AF_INET6]


def _is_list(servers: str) -> bool:
    """Not gRPC's own lists."""
    return "," in servers and not servers.startswith(("ipv4:", "ipv6:"))


def _target(servers: str) -> str:
    """One address as it is; of several, gRPC uses the first that it can connect to, and another when that connection ends."""
    found = numeric(servers) if _is_list(servers) else []
    return f"ipv{6 if found[0].startswith('[') else 4}:{','.join(found)}" if found else servers


def _options(flags: argparse.Namespace) -> list[tuple[str, object]]:
    """With several servers their certificates are for the first one's name."""
    if not _is_list(flags.server) or flags.tls_ca is None:
        return CHANNEL_OPTIONS
    return [*CHANNEL_OPTIONS, ("grpc.ssl_target_name_override", flags.server.split(",")[0].strip().rpartition(":")[0].strip("[]"))]


def channel(flags: argparse.Namespace, server: str | None = None) -> grpc.Channel:
    """Returns a channel that stays open until leave(): closing it makes the subscriber's thread print a traceback.

    server: one of those of the flags; default: all of them."""
    trust = credentials(flags)
    target = _target(server or flags.server)
    made = grpc.insecure_channel(target, CHANNEL_OPTIONS) if trust is None else grpc.secure_channel(target, trust, _options(flags))
    # gRPC advances a connection attempt only during calls, or while a subscriber exists.
    made.subscribe(lambda connectivity: None, try_to_connect=True)
    return grpc.intercept_channel(made, _Trace(_traceparent())) if _traceparent() else made


def aio_channel(flags: argparse.Namespace, server: str | None = None) -> grpc.aio.Channel:
    kinds = (_AioUnaryTrace, _AioWatchTrace, _AioStreamTrace) if _traceparent() else ()
    interceptors = [kind(_traceparent()) for kind in kinds]
    trust = credentials(flags)
    target = _target(server or flags.server)
    if trust is None:
        return grpc.aio.insecure_channel(target, CHANNEL_OPTIONS, interceptors=interceptors)
    return grpc.aio.secure_channel(target, trust, _options(flags), interceptors=interceptors)


def known_server(flags: argparse.Namespace, address: str) -> str | None:
    """The one of several servers of the flags that has this address; None if none has."""
    if not _is_list(flags.server):
        return None
    known = numeric(flags.server)
    return next((one for one in numeric(address) if one in known), None)


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
