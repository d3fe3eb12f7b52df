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
        asked = self.directory / "asked"
        return asked.read_text().split("--no-install-recommends ")[1].split() if asked.exists() else []

    def test_packages_that_are_missing_are_installed_and_no_others(self):
        self.assertEqual(self.install("one"), ["missing"])

    def test_a_package_whose_command_is_missing_is_installed(self):
        self.assertEqual(self.install("two"), ["node-package", "npm-package"])

    def test_a_package_is_not_asked_for_where_its_command_is_from_elsewhere(self):
        self.command("npm-command", "")
        self.assertEqual(self.install("two"), ["node-package"])
        self.command("node-command", "")
        (self.directory / "asked").unlink()
        self.assertEqual(self.install("two"), [])

    def test_the_list_of_the_project_names_each_package_and_at_most_one_command(self):
        lines = [line.split() for line in (DEPLOY / "packages.txt").read_text().splitlines() if line and line[0] not in "#["]
        self.assertGreater(len(lines), 40)
        self.assertEqual([words for words in lines if len(words) > 2], [])


if __name__ == "__main__":
    unittest.main()
