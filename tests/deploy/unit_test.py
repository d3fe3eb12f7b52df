"""The systemd unit: systemd finds nothing wrong with it and little exposed by it, and the server does nothing that it forbids.

    python3 unit_test.py PERCEPTROND PERCEPTRONCTL        # needs systemd and strace
"""

import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

from deployed import ROOT, UNIT, unit
from processes import Program, descendant, get

# systemd-analyze security, in tenths: 12 is what a server must have, by its sockets above all.
MOST_EXPOSED = 15


class SystemdTest(unittest.TestCase):
    def test_systemd_has_nothing_to_say(self):
        """In a tree that has the program where it will be."""
        with tempfile.TemporaryDirectory() as directory:
            root = pathlib.Path(directory)
            (root / "usr/bin").mkdir(parents=True)
            shutil.copy(sys.argv[1], root / "usr/bin/perceptrond")
            system = root / "usr/lib/systemd/system"
            system.mkdir(parents=True)
            for file in (UNIT, *pathlib.Path("/lib/systemd/system").glob("*.target")):
                shutil.copy(file, system, follow_symlinks=True)
            done = subprocess.run(["systemd-analyze", "verify", "--man=no", f"--root={root}", "perceptrond.service"],
                                  capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stdout + done.stderr), (0, ""))

    def test_the_unit_is_as_little_exposed_as_it_may_be(self):
        said = subprocess.run(["systemd-analyze", "security", "--offline=true", "--no-pager", f"--threshold={MOST_EXPOSED}", UNIT],
                              capture_output=True, text=True)
        self.assertEqual(said.returncode, 0, said.stdout[-200:] + said.stderr)

    def test_the_directories_are_the_units_own(self):
        environment = dict(one.split("=", 1) for one in unit()["Environment"])
        own = ["/var/lib/" + name for name in unit()["StateDirectory"]]
        self.assertEqual([environment["PERCEPTROND_DATA_DIR"], environment["PERCEPTROND_BACKUP_DIR"]], own)


def filtered(name):
    """The system calls of one of systemd's sets, those of the sets in it too."""
    said = subprocess.run(["systemd-analyze", "--no-pager", "syscall-filter", name], check=True, capture_output=True, text=True).stdout
    words = [line.strip() for line in said.splitlines()[1:] if line.strip() and not line.strip().startswith("#")]
    return {call for word in words for call in (filtered(word) if word.startswith("@") else {word})}


def allowed():
    """By the lines SystemCallFilter=, in their order."""
    calls = set()
    for line in unit()["SystemCallFilter"]:
        named = {call for name in line.removeprefix("~").split() for call in filtered(name)}
        calls = calls - named if line.startswith("~") else calls | named
    return calls


class SandboxTest(unittest.TestCase):
    """The system calls of a server at all its work: learning with snapshots, models that leave memory,
    an analysis, predictions, metrics, the end."""

    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as directory:
            directory = pathlib.Path(directory)
            cls.work(directory)
            cls.trace = (directory / "trace").read_text(errors="replace").splitlines()

    @staticmethod
    def work(directory):
        rows = directory / "rows.tsv"
        rows.write_text("".join((ROOT / "deploy/data/sms_spam.tsv").read_text().splitlines(keepends=True)[1:300]))
        command = ["strace", "-f", "-qq", "-o", directory / "trace", sys.argv[1], "--address", "127.0.0.1:0", "--metrics-address",
                   "127.0.0.1:0", "--data-dir", directory / "store", "--snapshot-bytes", "4KiB", "--memory-budget", "1MiB"]
        with Program(command, directory / "log") as program:
            serving = program.said(r"info serving .*address=(\S+).*metrics_port=(\d+)")

            def ctl(*arguments):
                subprocess.run([sys.argv[2], "--server", serving[1], *arguments], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

            ctl("create", "spam", "--text", "--hash-bits", "10", "--labels", "ham,spam")
            ctl("learn", "spam", str(rows), "--format", "text", "--passes", "2", "--analyze")
            for name in ("a", "b", "c"):
                ctl("create", name, "--hash-bits", "17")
            ctl("predict", "spam", str(rows), "--format", "text")
            assert get(f"http://127.0.0.1:{serving[2]}/metrics")
            os.kill(descendant(program.process.pid, "perceptrond"), signal.SIGTERM)
            assert program.process.wait() == 0

    def test_it_makes_no_system_call_that_the_unit_forbids(self):
        made = {found[1] for line in self.trace if (found := re.match(r"\d+ +(\w+)\(", line))}
        self.assertGreater(len(made), 40)
        self.assertLessEqual({"fdatasync", "accept4", "rename"}, made)
        self.assertEqual(made - allowed(), set())
        self.assertNotIn("sched_setaffinity", allowed())

    def test_it_makes_no_memory_executable(self):
        self.assertEqual([line for line in self.trace if "PROT_EXEC" in line and ("PROT_WRITE" in line or "mprotect(" in line)], [])

    def test_it_opens_sockets_of_the_allowed_families_only(self):
        (families,) = unit()["RestrictAddressFamilies"]
        opened = {found[1] for line in self.trace if (found := re.search(r"socket\((AF_\w+)", line))}
        self.assertTrue(opened)
        self.assertLessEqual(opened, set(families.split()))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
