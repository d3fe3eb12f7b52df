"""The example clients with a token, against the real server with an access file.

    python3 tokens_test.py PERCEPTROND
"""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

from processes import Server

CLIENTS = pathlib.Path(__file__).resolve().parent.parent.parent.parent / "client"
BINARY = sys.argv.pop(1)
PROGRAMS = {"python": ["/usr/bin/python3", "-B", CLIENTS / "python/examples/learn.py"],
            "asyncio": ["/usr/bin/python3", "-B", CLIENTS / "python/examples/learn_async.py"],
            "node": ["node", CLIENTS / "node/examples/learn.mjs"]}


class TokensTest(unittest.TestCase):
    def setUp(self):
        self.directory = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        made = subprocess.run([BINARY, "--new-token", self.directory / "token"], check=True, capture_output=True, text=True)
        access = self.directory / "access"
        access.write_text(f"principal {{ name: 'owner' {made.stdout} allow {{ role: ADMIN models: '' }} }}")
        access.chmod(0o600)
        self.server = self.enterContext(Server(BINARY, self.directory / "store", self.directory / "log", ["--access-file", access]))
        (self.directory / "rows.svm").write_text("+1 1:1\n-1 2:1\n")

    def learn(self, client, server, *flags):
        return subprocess.run([*PROGRAMS[client], "m", self.directory / "rows.svm", "--dimension", "2", "--producer", client, "--format",
                               "svmlight", "--server", server, "--give-up-after", "2", *flags], env=os.environ, capture_output=True, text=True)

    def test_a_call_is_made_with_the_token_and_refused_without(self):
        for client in PROGRAMS:
            with self.subTest(client):
                refused = self.learn(client, self.server.address)
                self.assertNotEqual(refused.returncode, 0)
                self.assertIn("UNAUTHENTICATED", refused.stderr)
                done = self.learn(client, self.server.address, "--token-file", self.directory / "token")
                self.assertEqual(done.returncode, 0, done.stderr)

    def test_no_token_is_sent_to_another_machine_without_tls(self):
        for client in PROGRAMS:
            with self.subTest(client):
                self.assertNotEqual(self.learn(client, "192.0.2.1:7600", "--token-file", self.directory / "token").returncode, 0)
        self.assertNotIn("ptd_", (self.directory / "log").read_text())


if __name__ == "__main__":
    unittest.main()
