"""The hardened proxy: its configuration by a real HAProxy, its manifests by their schemas, and floods against both programs, while
a well-behaved client is answered through the proxy.

    python3 proxy_test.py PERCEPTROND        # needs haproxy, openssl, python3-grpcio
"""

import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/support"))

import grpc
import http2_attacks as attacks
import yaml
from http2_attacks import Connection, frame
from processes import Program, Server, free_ports, wait_for
from published_schemas import Schemas

PROXY = ROOT / "deploy/proxy"
HAPROXY = shutil.which("haproxy") or "/usr/sbin/haproxy"
MIB = 1 << 20


def make_certificate(directory):
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=localhost", "-addext",
                    "subjectAltName=DNS:localhost", "-keyout", directory / "key", "-out", directory / "cert"], check=True, capture_output=True)
    (directory / "server.pem").write_text((directory / "cert").read_text() + (directory / "key").read_text())


def peak_bytes(pid):
    return int(re.search(r"VmHWM:\s+(\d+)", pathlib.Path(f"/proc/{pid}/status").read_text())[1]) << 10


class ManifestTest(unittest.TestCase):
    def test_the_image_has_the_base_and_the_user_of_the_servers(self):
        server = (ROOT / "Dockerfile").read_text()
        proxy = (PROXY / "Dockerfile").read_text()
        self.assertEqual(re.search(r"^FROM (\S+)$", proxy, re.MULTILINE)[1], re.search(r"^ARG BASE=(\S+)$", server, re.MULTILINE)[1])
        user = re.search(r"^USER (\d+):", server, re.MULTILINE)[1]
        self.assertIn(f"\nUSER {user}:{user}\n", proxy)
        pod = yaml.safe_load((PROXY / "deployment.yaml").read_text())["spec"]["template"]["spec"]
        self.assertEqual(pod["securityContext"]["runAsUser"], int(user))

    def test_the_published_schemas_have_nothing_to_say(self):
        schemas = Schemas()
        for name in yaml.safe_load((PROXY / "kustomization.yaml").read_text())["resources"]:
            self.assertEqual(schemas.of_manifest(yaml.safe_load((PROXY / name).read_text())), [], name)


class ProxyTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        directory = tempfile.TemporaryDirectory()
        cls.addClassCleanup(directory.cleanup)
        cls.directory = pathlib.Path(directory.name)
        make_certificate(cls.directory)
        cls.server = Server(sys.argv[1], cls.directory / "data", cls.directory / "log")
        cls.addClassCleanup(cls.server.kill)
        (cls.port,) = free_ports(1)
        os.environ |= {"PROXY_ADDRESS": f"127.0.0.1:{cls.port}", "PROXY_CERTIFICATE": str(cls.directory / "server.pem"),
                       "PROXY_CLIENTS": str(cls.directory / "cert"), "PROXY_SERVER": cls.server.address}
        cls.proxy = Program([HAPROXY, "-f", PROXY / "haproxy.cfg"], cls.directory / "proxy.log")
        cls.addClassCleanup(cls.proxy.kill)
        wait_for("the proxy listens", cls.answers)

    @classmethod
    def answers(cls):
        try:
            socket.create_connection(("127.0.0.1", cls.port), timeout=1).close()
            return True
        except OSError:
            return False

    def channel(self, known=True):
        certificate, key = ((self.directory / name).read_bytes() for name in ("cert", "key"))
        credentials = grpc.ssl_channel_credentials(certificate, *((key, certificate) if known else ()))
        return grpc.secure_channel(f"127.0.0.1:{self.port}", credentials,
                                   options=[("grpc.ssl_target_name_override", "localhost"), ("grpc.use_local_subchannel_pool", 1)])

    def attacker(self, **options):
        """One of the known clients: no other gets so far."""
        return Connection(("127.0.0.1", self.port), tls=(self.directory / "cert", self.directory / "key"), source="127.0.0.2", **options)

    def test_haproxy_takes_the_configuration(self):
        done = subprocess.run([HAPROXY, "-c", "-f", PROXY / "haproxy.cfg"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("WARNING", done.stderr)

    def test_strangers_are_refused(self):
        with self.channel(known=False) as channel, self.assertRaises(grpc.RpcError) as caught:
            channel.unary_unary(attacks.HEALTH)(b"", timeout=10)
        self.assertEqual(caught.exception.code(), grpc.StatusCode.UNAVAILABLE)

    def test_calls_and_streams_pass_and_others_do_not(self):
        with self.channel() as channel:
            list_models = channel.unary_unary("/perceptron.v1.ModelService/ListModels")
            self.assertEqual(list_models(b"", timeout=10), b"")
            watch = channel.unary_stream("/grpc.health.v1.Health/Watch")(b"", timeout=10)
            self.assertEqual(next(watch), b"\x08\x01")
            watch.cancel()
            with self.assertRaises(grpc.RpcError) as caught:
                channel.unary_unary("/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo")(b"\x3a\x00", timeout=10)
            self.assertEqual(caught.exception.code(), grpc.StatusCode.UNIMPLEMENTED)

    def test_floods_cost_bounded_memory_and_a_good_client_is_answered(self):
        errors, times, ended = [], [], threading.Event()

        def ask():
            with self.channel() as channel:
                check = channel.unary_unary(attacks.HEALTH)
                while not ended.wait(0.02):
                    start = time.monotonic()
                    try:
                        check(b"", timeout=20)
                    except grpc.RpcError as error:
                        errors.append(error)
                    times.append(time.monotonic() - start)

        before = [peak_bytes(one.process.pid) for one in (self.server, self.proxy)]
        good = threading.Thread(target=ask)
        good.start()
        try:
            for attack in (attacks.continuation_flood, attacks.small_continuation_flood, attacks.ping_flood, attacks.settings_flood,
                           attacks.rapid_reset):
                try:
                    with self.attacker() as connection:
                        attack(connection, seconds=3)
                except attacks.Closed:
                    pass
            with self.attacker(ignore_answers=False) as connection:
                attacks.unfinished_messages(connection, 20, 8 * MIB, seconds=10)
        finally:
            ended.set()
            good.join()
        after = [peak_bytes(one.process.pid) for one in (self.server, self.proxy)]
        print(f"{len(times)} calls, the longest {max(times):.2f} s; peak memory of server and proxy: {[one // MIB for one in after]} MiB")
        self.assertEqual(errors, [])
        self.assertLess(max(times), 10)
        for was, now in zip(before, after):
            self.assertLess(now - was, 400 * MIB)

    def test_a_header_block_that_never_ends_loses_its_connection(self):
        with self.attacker() as connection:
            connection.send(frame(attacks.HEADERS, 0, 1, attacks.call_headers(attacks.HEALTH)))
            self.assertTrue(connection.wait_closed(30))

    def test_a_source_has_a_limit_of_connections(self):
        held, refused = [], 0
        for _ in range(60):
            try:
                held.append(socket.create_connection(("127.0.0.1", self.port), timeout=10, source_address=("127.0.0.3", 0)))
            except ConnectionResetError:
                refused += 1
        wait_for("ten connections are refused", lambda: refused + sum(self.ended(one) for one in held) == 10)
        for one in held:
            one.close()

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
