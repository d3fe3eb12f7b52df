"""perceptrond over nats-servers that ask who it is, and allow it no more than deploy/nats/nats.conf says.

    python3 nats_access_test.py PERCEPTROND PERCEPTRONCTL        # needs nats-server and openssl
"""

import contextlib
import json
import os
import pathlib
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import unittest
import warnings

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/deploy")]

from certificates import Authority
from nats_jwt import Operator
from processes import Program, free_ports, wait_for

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    import crypt

CONFIG = (ROOT / "deploy/nats/nats.conf").read_text()
PASSWORD = "correct-horse"
REFUSED = "NATS refuses this server"


def digest(password):
    return crypt.crypt(password, "$2a$05$abcdefghijklmnopqrstuu")


class Nats:
    """The servers of a configuration file, in their own directory, which has the PEM files."""

    def __init__(self, directory, config, count):
        self.directory = directory
        ports = free_ports(2 * count)
        self.ports, routes = ports[:count], ports[count:]
        self.routes = json.dumps([f"nats-route://localhost:{port}" for port in routes])
        for i in range(count):
            text = config.replace("0.0.0.0:4222", f"127.0.0.1:{self.ports[i]}").replace("0.0.0.0:6222", f"127.0.0.1:{routes[i]}")
            (directory / f"nats{i}.conf").write_text(text)
        self.programs = [self.start(i) for i in range(count)]

    def start(self, i):
        return Program(["env", "-C", self.directory, f"NATS_NAME=n{i}", f"NATS_STORE={self.directory}/store{i}", f"NATS_ROUTES={self.routes}",
                        "nats-server", "--config", f"nats{i}.conf"], self.directory / f"nats{i}.log")

    def url(self, scheme="nats"):
        return ",".join(f"{scheme}://localhost:{port}" for port in self.ports)

    def restart(self):
        for i, program in enumerate(self.programs):
            program.kill()
            self.programs[i] = self.start(i)

    def kill(self):
        for program in self.programs:
            program.kill()


def one_server(users, tls="verify: true"):
    """The configuration without a cluster, with these accounts."""
    # A variable that is not used is a field that is not known.
    config = re.sub(r"^(cluster|servers) \{.*?^\}\n", "", CONFIG, flags=re.MULTILINE | re.DOTALL)
    config = re.sub(r"^accounts \{.*?^\}\n", "accounts {\n" + users + "\n  SYS { users: [ { user: sys, password: sys } ] }\n}\n", config,
                    flags=re.MULTILINE | re.DOTALL)
    return config.replace("verify_and_map: true", tls)


class NatsAccessTest(unittest.TestCase):
    def setUp(self):
        self.directory = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="perceptrond-nats.")))
        self.authority = Authority(self.directory)
        for name in ("server", "perceptrond"):
            self.authority.certify(name, name)
        random.seed(7)
        rows = [f"{random.choice((-1, 1))} " + " ".join(f"{i}:{random.random():.3f}" for i in range(1, 31)) for _ in range(3000)]
        (self.directory / "rows.svm").write_text("\n".join(rows) + "\n")

    def nats(self, config, count=1):
        nats = Nats(self.directory, config, count)
        self.addCleanup(nats.kill)
        return nats

    def flags(self, *more, certificate="perceptrond"):
        files = ("--nats-ca", self.directory / "ca.pem")
        if certificate:
            files += ("--nats-cert", self.directory / f"{certificate}.pem", "--nats-key", self.directory / f"{certificate}.key")
        return (*files, *more)

    def credentials(self, text, name="credentials"):
        path = self.directory / name
        path.with_suffix(".new").write_text(text)
        os.rename(path.with_suffix(".new"), path)
        return path

    @staticmethod
    def sizes(nats):
        return ("--fleet-partitions", 2, "--fleet-replicas", len(nats.programs))

    def program(self, name, *flags):
        address = f"127.0.0.1:{free_ports(1)[0]}"
        program = Program([PERCEPTROND, "--address", address, "--metrics-address", "off", *flags], self.directory / f"{name}.log")
        program.address = address
        self.addCleanup(program.kill)
        return program

    def server(self, nats, name, *flags):
        return self.program(name, "--journal", nats.url(), *self.sizes(nats), "--fleet-timeout", "1s", "--snapshot-bytes", "64KiB",
                            "--fleet-address", f"127.0.0.1:{free_ports(1)[0]}", *flags)

    def migrate(self, model, nats):
        """Makes the fleet of a data directory with one model."""
        store = self.program("alone", "--data-dir", self.directory / "alone")
        self.serving(store)
        self.create(store, model)
        store.process.send_signal(signal.SIGTERM)
        self.assertEqual(store.process.wait(), 0)
        command = [PERCEPTROND, "migrate", self.directory / "alone", nats.url(), *self.sizes(nats), *self.flags()]
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)

    def ctl(self, server, *arguments, input=None):
        command = [PERCEPTRONCTL, "--server", server.address, "--timeout", "8", *map(str, arguments)]
        return subprocess.run(command, input=input, capture_output=True, text=True)

    def serving(self, *servers):
        for server in servers:
            wait_for("it serves", lambda: server.process.poll() is not None or self.ctl(server, "health").returncode == 0)
            self.assertIsNone(server.process.poll(), server.log.read_text())

    def said(self, program):
        return program.log.read_text(errors="replace")

    def must(self, server, *arguments):
        result = self.ctl(server, *arguments)
        self.assertEqual(result.returncode, 0, result.stderr + self.said(server))
        return result.stdout

    def create(self, server, model):
        wait_for("it is created", lambda: self.ctl(server, "create", model, "--dimension", 30, "--learner", "logistic-regression")
                 .returncode == 0)

    def learn(self, server, model):
        return self.ctl(server, "learn", model, self.directory / "rows.svm", "--format", "svmlight", "--index-base", 1, "--unnumbered")

    def ended(self, *flags, nats=None):
        """The log of a server that cannot start."""
        program = self.server(nats, "refused", *flags)
        self.assertEqual(program.process.wait(), 1, self.said(program))
        said = self.said(program)
        self.assertNotIn("hunter2", said)
        program.log.unlink()
        return said

    def test_the_shipped_permissions_suffice_for_everything_a_fleet_does(self):
        nats = self.nats(CONFIG, 3)
        self.migrate("moved", nats)
        servers = [self.server(nats, f"server{i}", *self.flags()) for i in range(2)]
        self.serving(*servers)
        wait_for("it has the model", lambda: self.ctl(servers[0], "get", "moved").returncode == 0)
        self.create(servers[0], "kept")
        self.create(servers[0], "dropped")
        for server in servers:
            # Until partitions have stopped to change hands.
            wait_for("it learns", lambda server=server: self.learn(server, "kept").returncode == 0)
        # One of them wrote it.
        servers[0].process.send_signal(signal.SIGKILL)
        wait_for("the other one learns", lambda: self.learn(servers[1], "kept").returncode == 0)
        revision = re.search(r'"revision": *"(\d+)"', self.must(servers[1], "get", "kept", "-o", "json"))[1]
        self.assertGreater(int(revision), 6000)
        # The catalogue may have been the dead one's to write.
        wait_for("it deletes", lambda: self.ctl(servers[1], "delete", "dropped").returncode == 0)
        # Everything again from what NATS has.
        servers[1].process.send_signal(signal.SIGTERM)
        self.assertEqual(servers[1].process.wait(), 0)
        again = self.server(nats, "again", *self.flags())
        self.serving(again)
        wait_for("it has every update", lambda: f'"{revision}"' in self.ctl(again, "get", "kept", "-o", "json").stdout)
        for program in (*servers, again):
            self.assertNotIn(REFUSED, self.said(program))
        # A certificate of the authority for another name is no user of NATS's.
        self.authority.certify("other", "other")
        self.assertIn("Authorization Violation", self.ended(*self.flags(certificate="other"), nats=nats))

    def test_what_cannot_be_used_ends_the_start_without_its_secrets(self):
        nats = self.nats(one_server(f'  a {{ jetstream: enabled, users: [ {{ user: u, password: "{digest(PASSWORD)}" }} ] }}'))
        nats.programs[0].said("Server is ready")
        right = ("--nats-credentials", self.credentials(f"u:{PASSWORD}"))
        self.assertIn("Authorization Violation", self.ended(*self.flags("--nats-credentials", self.credentials("u:hunter2", "wrong")), nats=nats))
        self.ended(*self.flags("--nats-credentials", self.credentials("hunter2", "form")), nats=nats)
        self.ended(*self.flags("--nats-credentials", self.credentials(f"u:{PASSWORD}" + 70_000 * "\n", "long")), nats=nats)
        self.ended(*self.flags(*right, certificate=None), nats=nats)
        Authority(self.directory, "stranger")
        self.ended("--nats-ca", self.directory / "stranger.pem", *right, nats=nats)
        self.authority.certify("server", "server", days=-1)
        nats.restart()
        wait_for("it listens", lambda: self.said(nats.programs[0]).count("Server is ready") == 2)
        self.assertIn("certificate has expired", self.ended(*self.flags(*right), nats=nats))

    def test_a_creds_file_with_the_shipped_permissions_suffices(self):
        operator = Operator(self.directory)
        config = re.sub(r"^system_account:.*\n", "", one_server(""), flags=re.MULTILINE)
        nats = self.nats(re.sub(r"^accounts \{.*?^\}\n", operator.config(), config, flags=re.MULTILINE | re.DOTALL))
        publish, subscribe = (re.findall(r'"([^"]+)"', CONFIG.split("servers {")[1].split(f"{part} {{")[1].split("]")[0])
                              for part in ("publish", "subscribe"))
        creds, user = operator.creds("server", publish, subscribe)
        server = self.server(nats, "server", *self.flags("--nats-credentials", creds))
        self.serving(server)
        self.create(server, "m")
        wait_for("it learns", lambda: self.learn(server, "m").returncode == 0)
        self.assertNotIn(REFUSED, self.said(server))
        self.assertNotIn(user.seed, self.said(server))
        # A JWT with another user's key.
        wrong, _ = operator.creds("wrong", publish, subscribe, key_of=user)
        said = self.ended(*self.flags("--nats-credentials", wrong), nats=nats)
        self.assertIn("Authorization Violation", said)
        self.assertNotIn(user.seed, said)

    def test_changed_credentials_and_certificates_are_used_without_a_restart(self):
        def account(password):
            return one_server(f'  a {{ jetstream: enabled, users: [ {{ user: u, password: "{digest(password)}" }} ] }}')

        nats = self.nats(account(PASSWORD))
        credentials = self.credentials(f"u:{PASSWORD}")
        server = self.server(nats, "server", *self.flags("--nats-credentials", credentials))
        self.serving(server)
        self.create(server, "m")
        wait_for("it learns", lambda: self.learn(server, "m").returncode == 0)
        # NATS ends the connection of who no longer exists; the file comes later.
        config = self.directory / "nats0.conf"
        config.write_text(config.read_text().replace(digest(PASSWORD), digest("battery")))
        nats.programs[0].process.send_signal(signal.SIGHUP)
        server.said(f"{REFUSED}.*Authorization Violation")
        self.credentials("u:battery")
        server.said("connected to NATS anew")
        wait_for("it learns again", lambda: self.learn(server, "m").returncode == 0)
        # The certificate of before is no longer taken once NATS has another authority.
        before = self.said(server).count("connected to NATS anew")
        Authority(self.directory)
        for name in ("server", "perceptrond"):
            Authority.certify(self.authority, name, name)
        nats.restart()
        wait_for("it connects anew", lambda: self.said(server).count("connected to NATS anew") > before)
        wait_for("it learns again", lambda: self.learn(server, "m").returncode == 0)
        for secret in (PASSWORD, "battery"):
            self.assertNotIn(secret, self.said(server))
        self.assertNotIn("battery", pathlib.Path(f"/proc/{server.process.pid}/cmdline").read_text())


if __name__ == "__main__":
    PERCEPTROND, PERCEPTRONCTL = sys.argv[1:3]
    unittest.main(argv=[sys.argv[0], "-v", *sys.argv[3:]])
