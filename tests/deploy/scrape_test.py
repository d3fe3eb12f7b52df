"""Metrics over TLS with a token: the real Prometheus scrapes them with the configuration of docs/secure.md, new certificates are
used for new connections, and who has no token gets nothing.

    python3 scrape_test.py PERCEPTROND        # needs prometheus, openssl
"""

import json
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

from certificates import Authority
from deployed import ROOT
from processes import Prometheus, Server, get, wait_for


class ScrapeTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        cls.old, cls.new = (Authority(cls.directory, name) for name in ("old", "new"))
        cls.certificate, cls.key = cls.old.certify("server", "localhost")
        cls.trusted = cls.directory / "trusted.pem"
        cls.trusted.write_text(cls.old.path.read_text() + cls.new.path.read_text())
        lines = {name: subprocess.run([sys.argv[1], "--new-token", cls.directory / name], check=True, capture_output=True, text=True).stdout.strip()
                 for name in ("scraper", "reader")}
        cls.access = cls.directory / "access"
        cls.access.write_text(f"principal {{ name: 'prometheus' {lines['scraper']} right: METRICS }}\n"
                              f"principal {{ name: 'reader' {lines['reader']} right: PAGE }}\n")
        cls.access.chmod(0o600)
        cls.server = cls.enterClassContext(Server(sys.argv[1], cls.directory / "data", cls.directory / "log", [
            "--journal", "memory", "--tls-cert", cls.certificate, "--tls-key", cls.key, "--metrics-tls", "--access-file", cls.access]))

    def ask(self, path, token=None, trusted=None):
        """Status and body; without a token or with that of a name, or one that nobody has."""
        known = self.directory / (token or "")
        headers = {"Authorization": f"Bearer {known.read_text().strip() if known.is_file() else token}"} if token else {}
        context = ssl.create_default_context(cafile=trusted or self.trusted)
        try:
            request = urllib.request.Request(f"https://{self.server.metrics}{path}", headers=headers)
            with urllib.request.urlopen(request, context=context, timeout=3600) as response:
                return response.status, response.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode() + re.sub("Date: .*", "", str(error.headers))

    def test_prometheus_scrapes_with_its_token(self):
        (text,) = re.findall(r"```yaml\n(scrape_configs:\n.*?)```", (ROOT / "docs/secure.md").read_text(), re.S)
        for there, here in {"scraper.token": self.directory / "scraper", "ca.pem": self.trusted, "perceptrond.example:7601": self.server.metrics}.items():
            self.assertIn(there, text)
            text = text.replace(there, str(here))
        config = self.directory / "prometheus.yml"
        config.write_text("global: {scrape_interval: 1s}\n" + text)
        with Prometheus(config, self.directory / "tsdb", self.directory / "prometheus.log") as prometheus:
            query = prometheus.url + "/api/v1/query?" + urllib.parse.urlencode({"query": 'up{job="perceptrond"} == 1'})
            wait_for("a scrape that worked", lambda: json.loads(get(query))["data"]["result"])

    def test_metrics_and_page_are_rights_of_their_own(self):
        self.assertEqual([[self.ask(path, token)[0] for path in ("/metrics", "/")] for token in ("scraper", "reader")], [[200, 403], [403, 200]])

    def test_without_a_token_and_with_an_unknown_one_the_answer_is_the_same(self):
        for path in ("/metrics", "/", "/api/models", "/assets/page.css"):
            status, body = self.ask(path)
            self.assertEqual(status, 401, path)
            self.assertIn("WWW-Authenticate", body)
            self.assertEqual(self.ask(path, "wrong"), (status, body))

    def test_a_renewed_certificate_is_used_for_new_connections(self):
        def accepts(authority):
            try:
                return self.ask("/metrics", trusted=authority.path)[0] == 401
            except urllib.error.URLError:
                return False

        self.new.certify("server", "localhost")
        wait_for("the new certificate", lambda: accepts(self.new))
        self.assertFalse(accepts(self.old))

    def test_no_secret_is_in_the_log_the_configuration_the_process_list_or_the_metrics(self):
        metrics = self.ask("/metrics", "scraper")[1]
        self.ask("/metrics", "ptd_wrong")
        process = pathlib.Path(f"/proc/{self.server.process.pid}/cmdline").read_bytes().decode()
        printed = subprocess.run([sys.argv[1], "--access-file", self.access, "--print-config"], check=True, capture_output=True, text=True).stdout
        for text in ((self.directory / "log").read_text(), process, printed, metrics):
            self.assertNotIn("ptd_", text)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[2:])
