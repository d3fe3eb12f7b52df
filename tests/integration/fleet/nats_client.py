"""A connection to one nats-server: requests, one at a time. As much of the protocol as tests need."""

import json
import socket


class NatsClient:
    """A context manager."""

    def __init__(self, port):
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=10)
        self._file = self._socket.makefile("rb")
        assert self._file.readline().startswith(b"INFO "), "no nats-server"
        self._socket.sendall(b'CONNECT {"verbose":false,"pedantic":false,"headers":true,"no_responders":true}\r\nSUB answers.* 1\r\n')
        self._requests = 0

    def request(self, subject, data=b""):
        """The answer, as JSON."""
        self._requests += 1
        inbox = f"answers.{self._requests}"
        self._socket.sendall(f"PUB {subject} {inbox} {len(data)}\r\n".encode() + data + b"\r\n")
        while True:
            words = self._file.readline().split()
            if not words:
                raise ConnectionError("nats-server closed the connection")
            if words[0] == b"PING":
                self._socket.sendall(b"PONG\r\n")
            elif words[0] in (b"MSG", b"HMSG"):
                payload = self._file.read(int(words[-1]) + 2)[:-2]
                if words[1].decode() == inbox:
                    return json.loads(payload[int(words[-2]) if words[0] == b"HMSG" else 0 :] or b"{}")
            elif words[0] == b"-ERR":
                raise ConnectionError(b" ".join(words).decode())

    def api(self, what, **request):
        """A request to JetStream's own subjects."""
        return self.request(f"$JS.API.{what}", json.dumps(request).encode() if request else b"")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._file.close()
        self._socket.close()
