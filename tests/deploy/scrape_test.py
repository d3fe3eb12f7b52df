"""Metrics over TLS with a token: the real Prometheus scrapes them with the configuration of docs/secure.md, new certificates are
used for new connections, and who has no token gets nothing.

    python3 tests/deploy/scrape_test.py PERCEPTROND
"""

import json
import os
import pathlib
import re
import ssl
import subprocess
import sys
import tempfile
import unittest
import urllib.error
import urllib.parse
import urllib.request

from processes import Prometheus, Server, get, wait_for

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BINARY = sys.argv.pop(1)


def make_certificate(directory, name):
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost", "-addext",
                    "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", directory / f"{name}.key", "-out", directory / f"{name}.pem"],
                   check=True, capture_output=True)


class ScrapeTest(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.directory = pathlib.Path(temporary.name)
        for name in ("old", "new"):
            make_certificate(self.directory, name)
        self.install("old")
        lines = {}
        for name in ("scraper", "reader"):
            made = subprocess.run([BINARY, "--new-token", self.directory / name], check=True, capture_output=True, text=True)
            lines[name] = made.stdout.strip()
        self.access = self.directory / "access"
        self.access.write_text(f"principal {{ name: 'prometheus' {lines['scraper']} right: METRICS }}\n"
                               f"principal {{ name: 'reader' {lines['reader']} right: PAGE }}\n")
        self.access.chmod(0o600)
        self.server = Server(BINARY, self.directory / "data", self.directory / "log", [
            "--journal", "memory", "--tls-cert", self.directory / "cert.pem", "--tls-key", self.directory / "cert.key", "--metrics-tls",
            "--access-file", self.access])
        self.addCleanup(self.server.kill)
        self.url = f"https://{self.server.metrics}"

    def install(self, name):
        for kind in ("key", "pem"):
            new = self.directory / f"next.{kind}"
            new.write_bytes((self.directory / f"{name}.{kind}").read_bytes())
            new.rename(self.directory / f"cert.{kind}")

    def token(self, name):
        return (self.directory / name).read_text().strip()

    def ask(self, path, authorization=None, authority="old"):
        """Status and body."""
        request = urllib.request.Request(self.url + path, headers={"Authorization": authorization} if authorization else {})
        context = ssl.create_default_context(cafile=self.directory / f"{authority}.pem")
        try:
            with urllib.request.urlopen(request, context=context, timeout=30) as response:
                return response.status, response.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode() + str(error.headers)

    def test_prometheus_scrapes_with_its_token(self):
        (text,) = re.findall(r"```yaml\n(scrape_configs:\n.*?)```", (ROOT / "docs/secure.md").read_text(), re.S)
        for there, here in {"scraper.token": self.directory / "scraper", "ca.pem": self.directory / "old.pem",
                            "perceptrond.example:7601": self.server.metrics}.items():
            self.assertIn(there, text)
            text = text.replace(there, str(here))
        config = self.directory / "prometheus.yml"
        config.write_text("global: {scrape_interval: 1s}\n" + text)
        with Prometheus(config, self.directory / "tsdb", self.directory / "prometheus.log") as prometheus:
            query = prometheus.url + "/api/v1/query?" + urllib.parse.urlencode({"query": 'up{job="perceptrond"} == 1'})
            wait_for("a scrape that worked", lambda: json.loads(get(query))["data"]["result"])

    def test_metrics_and_page_are_rights_of_their_own(self):
        self.assertIn("perceptrond_build_info", self.ask("/metrics", f"Bearer {self.token('scraper')}")[1])
        self.assertEqual(self.ask("/", f"Bearer {self.token('scraper')}")[0], 403)
        self.assertEqual(self.ask("/metrics", f"Bearer {self.token('reader')}")[0], 403)
        self.assertIn("<html", self.ask("/", f"Bearer {self.token('reader')}")[1])

    def test_without_a_token_and_with_an_unknown_one_the_answer_is_the_same(self):
        for path in ("/metrics", "/", "/api/models", "/assets/page.css"):
            status, body = self.ask(path)
            self.assertEqual(status, 401, path)
            self.assertIn("WWW-Authenticate", body)
            without_date = re.compile("Date: .*")
            self.assertEqual(without_date.sub("", self.ask(path, "Bearer wrong")[1]), without_date.sub("", body))

    def test_renewed_certificates_are_used_for_new_connections(self):
        self.assertEqual(self.ask("/metrics")[0], 401)
        self.install("new")

        def is_new():
            try:
                return self.ask("/metrics", authority="new")[0] == 401
            except urllib.error.URLError:
                return False

        wait_for("the new certificate", is_new)
        with self.assertRaises(urllib.error.URLError):
            self.ask("/metrics", authority="old")

    def test_no_secret_is_in_the_log_the_configuration_or_the_process_list(self):
        self.ask("/metrics", f"Bearer {self.token('scraper')}")
        self.ask("/metrics", "Bearer ptd_wrong")
        log = (self.directory / "log").read_text()
        process = pathlib.Path(f"/proc/{self.server.process.pid}/cmdline").read_bytes().decode()
        printed = subprocess.run([BINARY, "--access-file", self.access, "--print-config"], check=True, capture_output=True, text=True,
                                 env={**os.environ, "PERCEPTROND_LOG_LEVEL": "debug"})
        metrics = self.ask("/metrics", f"Bearer {self.token('scraper')}")[1]
        for text in (log, process, printed.stdout, metrics):
            self.assertNotIn("ptd_", text)


if __name__ == "__main__":
    unittest.main()
