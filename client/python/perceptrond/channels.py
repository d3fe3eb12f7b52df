"""Channels to a server, or to the servers of a fleet. Needs no proto."""

import atexit
import errno
import ipaddress
import os
import re
import socket
import weakref
from dataclasses import dataclass
from typing import Any, Optional, Union

import grpc

Path = Union[str, "os.PathLike[str]"]

# Servers take no longer headers; and room for all authorities that systems trust, many times.
MOST_TOKEN_BYTES, MOST_PEM_BYTES = 8 << 10, 4 << 20

# While no call waits, gRPC looks at a connection that is being made every five seconds only.
os.environ.setdefault("GRPC_CLIENT_CHANNEL_BACKUP_POLL_INTERVAL_MS", "100")
# Reconnect quickly; the default backoff of gRPC grows to two minutes. gRPC 1.51 may hang a call that it sends again because its server
# ended, even once it is cancelled. Answers may be long: the server limits requests. A call that waits notices within 15 s that its
# server's machine is lost, or that the server has stopped; a new connection is tried for 5 s before the next server's.
CHANNEL_OPTIONS: list[tuple[str, object]] = [("grpc.enable_retries", 0), ("grpc.initial_reconnect_backoff_ms", 100),
                                             ("grpc.min_reconnect_backoff_ms", 5000), ("grpc.max_reconnect_backoff_ms", 1000),
                                             ("grpc.keepalive_time_ms", 10000), ("grpc.keepalive_timeout_ms", 5000),
                                             ("grpc.http2.max_pings_without_data", 0), ("grpc.max_receive_message_length", -1)]


@dataclass(frozen=True)
class Target:
    """Where calls go, and what they show."""

    # host:port; host:port,host:port,... of a fleet's servers; or unix:path. The default port is 7600.
    server: str
    # A file of certificate authorities (PEM): connect with TLS and trust these.
    tls_ca: Optional[Path] = None
    # A file with a token, which is read for each call.
    token_file: Optional[Path] = None

    def __post_init__(self) -> None:
        """Raises ValueError for what is no address."""
        object.__setattr__(self, "server", read_addresses(self.server))


_ACCEPTED = "give HOST, HOST:PORT, unix:PATH, dns:///HOST:PORT or ipv4:ADDRESS:PORT,..."


def read_addresses(server: str) -> str:
    """As gRPC takes them: "::1" is "[::1]:7600". Raises ValueError for what is no address, or one that gRPC would read as another."""
    if server.strip().startswith("unix:"):
        # Behind "//" gRPC expects an empty authority.
        if not re.fullmatch(r"unix:(///|(?!//)).+", server.strip()) or "," in server:
            raise ValueError(f"server {server!r}: give one path of a socket, without a comma: unix:PATH")
        return server.strip()
    scheme, listed = re.fullmatch(r"\s*(dns:///|ipv4:)?(.*)", server, re.DOTALL).groups("")  # type: ignore[union-attr]  # anything matches
    addresses = [read_address(address.strip()) for address in listed.split(",") if address.strip()]
    if not addresses or scheme == "dns:///" and len(addresses) > 1:
        raise ValueError(f"server {server!r} is no address; {_ACCEPTED}")
    if scheme == "ipv4:" and not all(re.match(r"\d+\.\d+\.\d+\.\d+:", address) for address in addresses):
        raise ValueError(f"server {server!r}: ipv4: is for numeric addresses, as ipv4:127.0.0.1:7600")
    return scheme + ",".join(addresses)


def read_address(address: str) -> str:
    if address.startswith(("http://", "https://", "grpc://", "grpcs://", "tcp://")):
        raise ValueError(f"server {address!r} is a URL; give host:port of gRPC (perceptrond serves gRPC on port 7600, its web page on 7601)")
    if _is_ipv6(address):
        return f"[{address}]:7600"
    found = re.fullmatch(r"(\[.*\]|[^:]*)(?::(.*))?", address)
    # gRPC's own default is 443, and it takes a scheme for a host's name and the other way round.
    host, port = found.groups("7600") if found else ("", "")
    if not (_is_ipv6(host[1:-1]) if host.startswith("[") else host and host not in _SCHEMES and not host.isdecimal() and not re.search(r"[\x00-\x20\x7f*/\]]", host)):
        raise ValueError(f"server {address!r} has no host; {_ACCEPTED}")
    if not re.fullmatch(r"[0-9]+", port) or not 1 <= int(port) <= 65535:
        raise ValueError(f"server {address!r}: {port or 'an empty text'} is no port; ports are 1 to 65535, 7600 by default")
    return f"{host}:{port}"


_SCHEMES = ("dns", "ipv4", "ipv6", "unix", "unix-abstract", "vsock", "xds")


def _is_ipv6(host: str) -> bool:
    try:
        ipaddress.IPv6Address(host)
    except ValueError:
        return False
    return True


def default_server() -> str:
    """$PERCEPTROND_SERVER, else 127.0.0.1:7600."""
    return os.environ.get("PERCEPTROND_SERVER", "127.0.0.1:7600")


def default_token_file() -> Optional[str]:
    """$PERCEPTRONCTL_TOKEN_FILE, if it is set."""
    return os.environ.get("PERCEPTRONCTL_TOKEN_FILE")


def content_of(file: Path, most: int) -> bytes:
    """The whole file. Raises OSError, also if it has more than this many bytes: a device has no end."""
    with open(file, "rb") as opened:
        content = opened.read(most + 1)
    if len(content) > most:
        raise OSError(errno.EFBIG, f"has more than {most} bytes", os.fspath(file))
    return content


def token_plugin(token_file: Path) -> grpc.CallCredentials:
    """Reads the token for each call, so that a new one is used at once."""
    return grpc.metadata_call_credentials(
        lambda context, done: done((("authorization", f"Bearer {content_of(token_file, MOST_TOKEN_BYTES).decode().strip()}"),), None))


def credentials(target: Target) -> Optional[grpc.ChannelCredentials]:
    """None: neither TLS nor a token. gRPC itself refuses to send a token to another machine without TLS. Raises OSError if a file cannot be
    read."""
    if target.token_file is not None:
        # gRPC calls a failure to read it later UNAVAILABLE, and repeats the call.
        content_of(target.token_file, MOST_TOKEN_BYTES)
    if target.tls_ca is not None:
        made = grpc.ssl_channel_credentials(content_of(target.tls_ca, MOST_PEM_BYTES))
    elif target.token_file is not None:
        kind = grpc.LocalConnectionType.UDS if target.server.startswith("unix:") else grpc.LocalConnectionType.LOCAL_TCP
        made = grpc.local_channel_credentials(kind)
    else:
        return None
    return made if target.token_file is None else grpc.composite_channel_credentials(made, token_plugin(target.token_file))


class _Trace(grpc.UnaryUnaryClientInterceptor, grpc.UnaryStreamClientInterceptor, grpc.StreamUnaryClientInterceptor, grpc.StreamStreamClientInterceptor):
    """Sends a W3C trace context with each call, for the server's log."""

    def __init__(self, traceparent: str) -> None:
        self._metadata = ("traceparent", traceparent)

    def _start(self, call: Any, details: Any, request: Any) -> Any:
        metadata = [*(details.metadata or ()), self._metadata]
        return call(details._replace(metadata=metadata), request)

    intercept_unary_unary = intercept_unary_stream = intercept_stream_unary = intercept_stream_stream = _start


class _AioTrace:
    def __init__(self, traceparent: str) -> None:
        self._metadata = ("traceparent", traceparent)

    async def _start(self, call: Any, details: Any, request: Any) -> Any:
        metadata = grpc.aio.Metadata(*(details.metadata or ()), self._metadata)
        return await call(details._replace(metadata=metadata), request)


class _AioUnaryTrace(_AioTrace, grpc.aio.UnaryUnaryClientInterceptor):
    intercept_unary_unary = _AioTrace._start


class _AioWatchTrace(_AioTrace, grpc.aio.UnaryStreamClientInterceptor):
    intercept_unary_stream = _AioTrace._start


class _AioImportTrace(_AioTrace, grpc.aio.StreamUnaryClientInterceptor):
    intercept_stream_unary = _AioTrace._start


class _AioStreamTrace(_AioTrace, grpc.aio.StreamStreamClientInterceptor):
    intercept_stream_stream = _AioTrace._start


def _traceparent() -> str:
    """The trace that the program is a part of, as OpenTelemetry hands it to programs; empty for none."""
    value = os.environ.get("TRACEPARENT", "")
    return value if value.isascii() and value.isprintable() else ""


def numeric(servers: str) -> list[str]:
    """The addresses of host:port,host:port,..., of one family; names that are not found are left out."""
    found: dict[int, list[str]] = {socket.AF_INET: [], socket.AF_INET6: []}
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


def _address(servers: str) -> str:
    """One address as it is; of several, gRPC uses the first that it can connect to, and another when that connection ends."""
    found = numeric(servers) if _is_list(servers) else []
    return f"ipv{6 if found[0].startswith('[') else 4}:{','.join(found)}" if found else servers


def goes_direct(target: Target) -> bool:
    """Servers of this machine, and the servers of a fleet, are called without a proxy."""
    return "," in target.server or target.server.startswith("unix:") or _is_loopback(
        target.server.removeprefix("dns:///").removeprefix("ipv4:").rpartition(":")[0].strip("[]").lower().removesuffix("."))


def _is_loopback(host: str) -> bool:
    # Debian's /etc/hosts has the last two.
    if host in ("localhost", "ip6-localhost", "ip6-loopback"):
        return True
    if _is_ipv6(host):
        address = ipaddress.IPv6Address(host)
        return (address.ipv4_mapped or address).is_loopback
    try:
        # As resolvers read it: 127.1 is 127.0.0.1.
        return socket.inet_aton(host)[0] == 127
    except OSError:
        return False


def proxy_hint(target: Target) -> str:
    """What to say of a server that was not reached through the proxy that the environment names; empty: there is none."""
    # gRPC's order.
    variable = next((name for name in ("grpc_proxy", "https_proxy", "http_proxy") if os.environ.get(name)), None)
    if variable is None or goes_direct(target):
        return ""
    return f"{variable} is set, so the server is called through a proxy, unless no_proxy has its host"


def _options(target: Target) -> list[tuple[str, object]]:
    """With several servers their certificates are for the first one's name."""
    options = [*CHANNEL_OPTIONS, ("grpc.enable_http_proxy", 0 if goes_direct(target) else 1)]
    if not _is_list(target.server) or target.tls_ca is None:
        return options
    return [*options, ("grpc.ssl_target_name_override", target.server.split(",")[0].strip().rpartition(":")[0].strip("[]"))]


def channel(target: Target, server: Optional[str] = None) -> grpc.Channel:
    """Returns a channel, which is closed at the end of the process if not before. Raises OSError if a file of the target cannot be
    read.

    server: one of the target's; default: all of them."""
    trust = credentials(target)
    address = _address(server or target.server)
    made = grpc.insecure_channel(address, _options(target)) if trust is None else grpc.secure_channel(address, trust, _options(target))
    _open.add(made)
    return grpc.intercept_channel(made, _Trace(_traceparent())) if _traceparent() else made


_open: "weakref.WeakSet[grpc.Channel]" = weakref.WeakSet()


def _close_all() -> None:
    # Python stops gRPC's threads wherever they are, and one may hold the lock of a channel that is freed afterwards.
    for made in list(_open):
        made.close()


atexit.register(_close_all)


def aio_channel(target: Target, server: Optional[str] = None) -> grpc.aio.Channel:
    """The same for asyncio; to be closed by its user."""
    kinds = (_AioUnaryTrace, _AioWatchTrace, _AioImportTrace, _AioStreamTrace) if _traceparent() else ()
    interceptors = [kind(_traceparent()) for kind in kinds]
    trust = credentials(target)
    address = _address(server or target.server)
    if trust is None:
        return grpc.aio.insecure_channel(address, _options(target), interceptors=interceptors)
    return grpc.aio.secure_channel(address, trust, _options(target), interceptors=interceptors)


def known_server(target: Target, address: str) -> Optional[str]:
    """The one of the target's several servers that has this address; None if none has."""
    if not _is_list(target.server):
        return None
    known = numeric(target.server)
    return next((one for one in numeric(address) if one in known), None)
