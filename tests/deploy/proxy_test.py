"""The hardened proxy of deploy/proxy by a real HAProxy: who is let in, to what, and floods against both programs while a well-behaved
client is answered through the proxy.

    python3 proxy_test.py PERCEPTROND        # needs haproxy, openssl, python3-grpcio
"""

import contextlib
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import unittest

import grpc

from certificates import Authority
from deployed import DEPLOY, ROOT
from processes import Program, Server, free_ports, wait_for

sys.path.insert(0, str(ROOT / "tests/support"))

import http2_attacks as attacks
from http2_attacks import Connection, frame

CONFIGURATION = DEPLOY / "proxy/haproxy.cfg"
HAPROXY = shutil.which("haproxy") or "/usr/sbin/haproxy"
MIB = 1 << 20


def peak_bytes(pid):
    return int(re.search(r"VmHWM:\s+(\d+)", pathlib.Path(f"/proc/{pid}/status").read_text())[1]) << 10


class ProxyTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        directory = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        authority = Authority(directory)
        cls.certificate, cls.key = authority.certify("server", "localhost")
        (directory / "chain.pem").write_text(cls.certificate.read_text() + cls.key.read_text())
        cls.authority = authority.path
        cls.server = cls.enterClassContext(Server(sys.argv[1], directory / "data", directory / "log"))
        (cls.port,) = free_ports(1)
        os.environ |= {"PROXY_ADDRESS": f"127.0.0.1:{cls.port}", "PROXY_CERTIFICATE": str(directory / "chain.pem"),
                       "PROXY_CLIENTS": str(cls.authority), "PROXY_SERVER": cls.server.address}
        checked = subprocess.run([HAPROXY, "-c", "-f", CONFIGURATION], capture_output=True, text=True)
        assert checked.returncode == 0 and "WARNING" not in checked.stderr, checked.stderr
        cls.proxy = cls.enterClassContext(Program([HAPROXY, "-f", CONFIGURATION], directory / "proxy.log"))

        def answers():
            with contextlib.suppress(OSError):
                socket.create_connection(("127.0.0.1", cls.port), timeout=1).close()
                return True

        wait_for("the proxy listens", answers)

    def channel(self, known=True):
        certificate, key = (path.read_bytes() for path in (self.certificate, self.key))
        credentials = grpc.ssl_channel_credentials(self.authority.read_bytes(), *((key, certificate) if known else ()))
        return grpc.secure_channel(f"localhost:{self.port}", credentials, options=[("grpc.use_local_subchannel_pool", 1)])

    def attacker(self, **options):
        """One of the known clients: no other gets so far."""
        return Connection(("127.0.0.1", self.port), tls=(self.certificate, self.key), source="127.0.0.2", **options)

    def refused(self, channel, method, request):
        with self.assertRaises(grpc.RpcError) as caught:
            channel.unary_unary(method)(request, timeout=10)
        return caught.exception.code()

    def test_known_clients_reach_the_services_and_nothing_else_and_strangers_nothing(self):
        with self.channel(known=False) as channel:
            self.assertEqual(self.refused(channel, attacks.HEALTH, b""), grpc.StatusCode.UNAVAILABLE)
        with self.channel() as channel:
            self.assertEqual(channel.unary_unary("/perceptron.v1.ModelService/ListModels")(b"", timeout=10), b"")
            watch = channel.unary_stream("/grpc.health.v1.Health/Watch")(b"", timeout=10)
            self.assertEqual(next(watch), b"\x08\x01")
            watch.cancel()
            reflection = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"
            self.assertEqual(self.refused(channel, reflection, b"\x3a\x00"), grpc.StatusCode.UNIMPLEMENTED)

    def test_floods_cost_bounded_memory_and_a_good_client_is_answered(self):
        errors, calls, ended = [], 0, threading.Event()

        def ask():
            nonlocal calls
            with self.channel() as channel:
                check = channel.unary_unary(attacks.HEALTH)
                while not ended.wait(0.02):
                    try:
                        check(b"", timeout=20)
                        calls += 1
                    except grpc.RpcError as error:
                        errors.append(error)

        before = [peak_bytes(one.process.pid) for one in (self.server, self.proxy)]
        good = threading.Thread(target=ask)
        good.start()
        try:
            for attack in (attacks.continuation_flood, attacks.small_continuation_flood, attacks.ping_flood, attacks.settings_flood, attacks.rapid_reset):
                with contextlib.suppress(attacks.Closed), self.attacker() as connection:
                    attack(connection, seconds=3)
            with self.attacker(ignore_answers=False) as connection:
                attacks.unfinished_messages(connection, 20, 8 * MIB, seconds=10)
        finally:
            ended.set()
            good.join()
        self.assertEqual(errors, [])
        self.assertGreater(calls, 0)
        for was, one in zip(before, (self.server, self.proxy)):
            self.assertLess(peak_bytes(one.process.pid) - was, 400 * MIB)

    def test_a_header_block_that_never_ends_loses_its_connection(self):
        with self.attacker() as connection:
            connection.send(frame(attacks.HEADERS, 0, 1, attacks.call_headers(attacks.HEALTH)))
            self.assertTrue(connection.wait_closed(30))

    def test_a_source_has_a_limit_of_connections(self):
        held, refused = [], 0
        with contextlib.ExitStack() as stack:
            for _ in range(60):
                try:
                    held.append(stack.enter_context(socket.create_connection(("127.0.0.1", self.port), timeout=10, source_address=("127.0.0.3", 0))))
                except ConnectionResetError:
                    refused += 1
            wait_for("ten connections are refused", lambda: refused + sum(self.ended(one) for one in held) == 10)

    @staticmethod
    def ended(connection):
        connection.settimeout(0.01)
        try:
            return connection.recv(1) == b""
        except TimeoutError:
            return False
        except OSError:
            return True


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[2:])
