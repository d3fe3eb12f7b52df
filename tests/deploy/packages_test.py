"""deploy/install_packages.sh asks for what is missing and no more, here of made-up packages, commands and an apt-get that tells.

    python3 packages_test.py
"""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

DEPLOY = pathlib.Path(__file__).resolve().parent.parent.parent / "deploy"
LIST = """\
# A comment.
[one]
there
missing

[two]
node-package node-command
npm-package npm-command
"""


class PackagesTest(unittest.TestCase):
    def setUp(self):
        self.directory = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        shutil.copy(DEPLOY / "install_packages.sh", self.directory)
        (self.directory / "packages.txt").write_text(LIST)
        self.commands = self.directory / "commands"
        self.commands.mkdir()
        self.command("dpkg-query", '[ "$4" = there ] && printf installed')
        self.command("apt-get", f'echo "$@" >>"{self.directory}/asked"')
        self.command("id", "echo 0")

    def command(self, name, script):
        path = self.commands / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

    def install(self, *sections):
        """What apt-get is asked to install."""
        environment = os.environ | {"PATH": f"{self.commands}:/usr/bin:/bin"}
        done = subprocess.run(["sh", self.directory / "install_packages.sh", *sections], env=environment, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return (self.directory / "asked").read_text().split("--no-install-recommends ")[-1].split()

    def test_what_is_missing_is_asked_for_and_no_more(self):
        self.assertEqual(self.install("one"), ["missing"])
        self.assertEqual(self.install("two"), ["node-package", "npm-package"])

    def test_a_package_is_not_asked_for_where_its_command_is_from_elsewhere(self):
        self.command("npm-command", "")
        self.assertEqual(self.install("two"), ["node-package"])


if __name__ == "__main__":
    unittest.main()
