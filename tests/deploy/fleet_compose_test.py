"""The fleet's compose file: by its schema, and running. Each service is a process with the command, settings, files and user that the
file gives it: three nats-servers, three perceptronds, HAProxy and Prometheus.

    python3 fleet_compose_test.py PERCEPTROND PERCEPTRONCTL        # as root; needs haproxy, nats-server, prometheus, openssl
"""

import contextlib
import json
import os
import pathlib
import re
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import tomllib
import unittest
import urllib.parse

import yaml

from containers import Compose, enter_network, serving
from deployed import DEPLOY, ROOT, seconds, settings
from processes import get, wait_for
from published_schemas import Schemas

FILE = DEPLOY / "fleet/compose.yaml"
SERVERS = ["perceptrond1", "perceptrond2", "perceptrond3"]
NATS = ["nats1", "nats2", "nats3"]
SPAM = DEPLOY / "data/sms_spam.tsv"

composed = yaml.safe_load(FILE.read_text())
services = composed["services"]


class FileTest(unittest.TestCase):
    def test_the_published_schema_has_nothing_to_say(self):
        self.assertEqual(Schemas().of_compose(composed), [])

    def test_images_of_others_and_the_base_of_ours_are_those_of_the_other_compose_file(self):
        one_server = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]
        self.assertEqual(services["prometheus"]["image"], one_server["prometheus"]["image"])
        self.assertIn("grafana", one_server)
        base = re.search(r"^FROM (\S+)$", (DEPLOY / "proxy/Dockerfile").read_text(), re.MULTILINE)[1]
        self.assertIn(f"\nFROM {base}\n", (DEPLOY / "fleet/nats/Dockerfile").read_text())

    def test_what_is_mounted_is_there_and_volumes_and_secrets_are_declared_and_made(self):
        for name, service in services.items():
            for volume in service.get("volumes", []):
                source = volume.split(":")[0]
                if source.startswith("."):
                    self.assertTrue((FILE.parent / source).exists(), f"{name}: {source}")
                else:
                    self.assertIn(source, composed["volumes"], name)
            for secret in service.get("secrets", []):
                self.assertIn(secret, composed["secrets"], name)
        self.assertIn("\n/deploy/fleet/certificates/\n", (ROOT / ".gitignore").read_text())

    def test_nothing_is_served_to_other_machines_and_the_containers_are_as_narrow_as_those_of_one_server(self):
        narrow = {key: yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]["perceptrond"][key]
                  for key in ("read_only", "cap_drop", "security_opt")}
        for name, service in services.items():
            for port in service.get("ports", []):
                self.assertTrue(port.startswith("127.0.0.1:"), f"{name}: {port}")
            if "build" in service:
                self.assertEqual({key: service.get(key) for key in narrow}, narrow, name)

    def test_each_server_waits_for_nats_and_has_longer_to_stop_than_it_drains(self):
        drain = seconds(settings(PERCEPTROND, {})["drain-timeout"])
        for name in SERVERS:
            self.assertGreater(seconds(services[name]["stop_grace_period"]), drain)
            self.assertEqual(services[name]["depends_on"], {nats: {"condition": "service_healthy"} for nats in NATS})

    def test_prometheus_and_the_balancer_know_every_server(self):
        (targets,) = yaml.safe_load((DEPLOY / "fleet/targets/perceptrond.yml").read_text())
        self.assertEqual(targets["targets"], [services[name]["environment"]["PERCEPTROND_METRICS_ADDRESS"] for name in SERVERS])
        balanced = re.findall(r"^  server (\S+) (\S+)$", (DEPLOY / "fleet/haproxy.cfg").read_text(), re.MULTILINE)
        self.assertEqual(balanced, [(name, services[name]["environment"]["PERCEPTROND_ADDRESS"]) for name in SERVERS])


class RunningTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.stack = contextlib.ExitStack()
        cls.addClassCleanup(cls.stack.close)
        cls.directory = pathlib.Path(cls.stack.enter_context(tempfile.TemporaryDirectory(prefix="perceptrond-compose.")))
        cls.certificates = cls.directory / "certificates"
        subprocess.run(["sh", DEPLOY / "fleet/certificates.sh", cls.certificates], check=True)
        cls.compose = Compose(FILE, PERCEPTROND, cls.directory, cls.certificates)
        cls.programs = {}
        cls.stack.callback(lambda: [program.kill() for program in cls.programs.values()])
        for name in NATS:
            cls.start(name)
        for name in NATS:
            wait_for(f"{name} is healthy", lambda name=name: subprocess.run(cls.compose.health(name), capture_output=True).returncode == 0)
        for name in [*SERVERS, "balancer"]:
            cls.start(name)
        for name in SERVERS:
            cls.serving(name)
        (cls.directory / "rows.tsv").write_text("".join(SPAM.read_text().splitlines(keepends=True)[1:]))

    @classmethod
    def start(cls, name):
        cls.programs[name] = cls.compose.container(name).start(cls.directory / f"{name}.log")

    @classmethod
    def serving(cls, name):
        serving(cls.programs[name], lambda: cls.ctl(f"{name}:7600", "health").returncode == 0)

    @staticmethod
    def ctl(server, *arguments):
        command = [PERCEPTRONCTL, "--server", server, *map(str, arguments)]
        return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)

    def answer(self, server, *arguments):
        said = self.ctl(server, *arguments)
        self.assertEqual(said.returncode, 0, said.stderr)
        return said.stdout

    def learn(self, model):
        """One pass through the balancer; the model's revision."""
        self.answer("balancer:7600", "learn", model, self.directory / "rows.tsv", "--format", "text", "--producer", "p")
        return json.loads(self.answer("balancer:7600", "get", model, "-o", "json"))["revision"]

    def equal(self, model, revision):
        """Every server predicts with that revision, and the same."""
        rows = ("predict", model, self.directory / "rows.tsv", "--format", "text", "-o", "json", "--min-revision", revision)
        self.assertEqual(len({self.answer(f"{name}:7600", *rows) for name in SERVERS}), 1)

    def create(self, model):
        wait_for("it is created", lambda: self.ctl("balancer:7600", "create", model, "--named", "--labels", "ham,spam").returncode == 0)

    def test_the_servers_have_the_settings_that_the_file_gives_them_and_know_each(self):
        for name in SERVERS:
            container = self.compose.container(name)
            container.command.append("--print-config")
            printed = subprocess.run(container.words(), capture_output=True, text=True)
            self.assertEqual((printed.returncode, printed.stderr), (0, ""))
            known = tomllib.loads(printed.stdout)
            for variable, value in services[name]["environment"].items():
                said = known[variable.removeprefix("PERCEPTROND_").lower().replace("_", "-")]
                said = ",".join(said) if isinstance(said, list) else str(said).lower() if isinstance(said, bool) else said
                self.assertEqual(said, value, variable)

    def test_what_is_learned_through_the_balancer_every_server_predicts_with(self):
        self.create("all")
        self.equal("all", self.learn("all"))

    def test_each_container_ends_by_sigterm_while_the_others_serve_and_starts_again_with_everything(self):
        self.create("rolling")
        revision = self.learn("rolling")
        for name in SERVERS:
            self.programs[name].process.send_signal(signal.SIGTERM)
            self.assertEqual(self.programs[name].process.wait(60), 0, self.programs[name].log.read_text()[-2000:])
            wait_for("another server learns", lambda: self.ctl("balancer:7600", "learn", "rolling", self.directory / "rows.tsv", "--format", "text",
                                                               "--unnumbered").returncode == 0)
            self.start(name)
            self.serving(name)
        after = json.loads(self.answer("balancer:7600", "get", "rolling", "-o", "json"))["revision"]
        self.assertGreaterEqual(int(after), int(revision))
        self.equal("rolling", after)

    def test_a_nats_server_may_be_killed(self):
        self.create("killed")
        self.programs["nats1"].kill()
        wait_for("it is learned", lambda: self.ctl("balancer:7600", "learn", "killed", self.directory / "rows.tsv", "--format", "text",
                                                   "--producer", "p", "--start-offset", 0).returncode == 0)
        self.start("nats1")
        wait_for("nats1 is back", lambda: subprocess.run(self.compose.health("nats1"), capture_output=True).returncode == 0)
        self.equal("killed", json.loads(self.answer("balancer:7600", "get", "killed", "-o", "json"))["revision"])

    def test_prometheus_scrapes_every_server(self):
        container = self.compose.container("prometheus")
        # The image's own command, but for the volume's path, which this machine does not have.
        container.mounts["/srv/prometheus"] = container.mounts.pop("/prometheus")
        container.command = ["prometheus", "--config.file=/etc/prometheus/prometheus.yml", "--storage.tsdb.path=/srv/prometheus"]
        with container.start(self.directory / "prometheus.log") as prometheus:
            prometheus.said("Server is ready")
            query = "http://127.0.0.1:9090/api/v1/query?" + urllib.parse.urlencode({"query": "sum(perceptrond_fleet_partitions_written)"})

            def written():
                answer = get(query)
                return answer and [one["value"][1] for one in json.loads(answer)["data"]["result"]] == ["16"]

            wait_for("all partitions have a writer that is scraped", written)

    def test_the_servers_own_port_is_for_holders_of_the_fleet_s_certificates(self):
        # A frame with its settings is the first that a server of HTTP/2 sends.
        self.assertEqual(self.fleet_port_says("fleet")[3:4], b"\x04")
        self.assertEqual(self.fleet_port_says(None), b"")
        self.assertEqual(self.fleet_port_says("client"), b"")

    def fleet_port_says(self, certificate):
        context = self.context("fleet-ca", certificate)
        context.set_alpn_protocols(["h2"])
        with socket.create_connection(("perceptrond1", 7602), timeout=30) as plain:
            try:
                with context.wrap_socket(plain, server_hostname="perceptrond") as one:
                    one.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0]))
                    return one.recv(1 << 16)
            except (ssl.SSLError, ConnectionResetError):
                return b""

    def context(self, authority, certificate):
        context = ssl.create_default_context(cafile=self.certificates / f"{authority}.pem")
        if certificate is not None:
            context.load_cert_chain(self.certificates / f"{certificate}.pem", self.certificates / f"{certificate}.key")
        return context

    def test_nats_knows_the_servers_by_their_certificate_and_lets_them_reach_the_fleet_s_subjects_alone(self):
        self.assertIn("PONG", self.nats_says("client", "PING"))
        self.assertIn("Permissions Violation", self.nats_says("client", "SUB other.> 1"))
        # Of the same authority, but nobody's.
        self.assertIn("Authorization Violation", self.nats_says("nats", "PING"))
        self.assertIn("closed", self.nats_says(None, "PING"))

    def nats_says(self, certificate, command):
        """What NATS answers who has this certificate; NATS's protocol is lines of text."""
        context = self.context("nats-ca", certificate)
        with socket.create_connection(("nats2", 4222), timeout=30) as plain:
            plain.recv(1 << 16)
            try:
                with context.wrap_socket(plain, server_hostname="nats2") as one:
                    one.send(f'CONNECT {{"verbose":false}}\r\n{command}\r\n'.encode())
                    return one.recv(1 << 16).decode() or "closed"
            except (ssl.SSLError, ConnectionResetError):
                return "closed"


if __name__ == "__main__":
    PERCEPTROND, PERCEPTRONCTL = (str(pathlib.Path(path).resolve()) for path in sys.argv[1:3])
    if os.geteuid() != 0:
        sys.exit("fleet_compose_test.py needs root: it mounts, and makes another user's files")
    enter_network([*NATS, *SERVERS, "balancer"])
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
