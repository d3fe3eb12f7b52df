"""The commands in the documents work as pasted, and print what the documents show.

    python3 documents_test.py PERCEPTROND PERCEPTRONCTL [TEST...]       # a test: Documents.test_tutorial

A block marked ```sh is run; a block marked ```text right after it is its output, where "..." stands for any text and a line "..." for any
lines. Each page is one session of bash, in a directory that looks like the repository's root. Indented blocks are for the reader alone.
`env` stands for what client/python/README.md makes, which a nightly test does: Debian's Python, and the package as built. A block marked ```sh needs=NAME is of another program, a
command or a module of python3: OtherPrograms runs it where that is installed, and is skipped elsewhere.
"""

import contextlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

from deployed import ROOT
from processes import free_ports, logs_on_failure

BLOCKS = re.compile(r"^```sh(?: needs=(\w+))?\n(.*?)^```\n(?:```text\n(.*?)^```$)?", re.MULTILINE | re.DOTALL)
START = "perceptrond --data-dir ./store 2> perceptrond.log &\n"
END = "---- end of a block ----"
# Before each command: a server that was started in the background serves, or has ended. (Before it runs its program it is a bash.)
AWAIT = r"""
serving() {
  if [ "$!" = "$known" ]; then return; fi
  known=$!
  while [ /proc/$!/exe -ef /proc/$$/exe ]; do :; done
  case $(readlink /proc/$!/exe) in
    */perceptrond) if [ -f /proc/$!/fd/2 ]; then tail -f -n +1 --pid=$! "$(readlink /proc/$!/fd/2)" | grep -q 'info serving'; fi ;;
  esac
}
trap serving DEBUG
"""


def pattern(shown):
    """A pattern of the output that a document shows."""
    lines = (r"(?:.*\n)*?" if line == "..." else ".*".join(map(re.escape, line.split("..."))) + r"\n" for line in shown.splitlines())
    return re.compile("".join(lines))


class Session:
    """A reader's shell. Servers that it starts listen on a socket in its directory, with metrics at a port of their own; Triton, which has
    no sockets, at another."""

    def __init__(self, directory):
        self.directory = pathlib.Path(directory)
        built = pathlib.Path(sys.argv[1]).resolve().parent
        (self.directory / "build").mkdir()
        for name, target in (*((name, ROOT / name) for name in ("client", "deploy", "tests")), ("build/bin", built)):
            (self.directory / name).symlink_to(target)
        python = self.directory / "env/bin/python"
        python.parent.mkdir(parents=True)
        python.write_text(f'#!/bin/sh\nPYTHONPATH={built.parent}/client/python exec /usr/bin/python3 "$@"\n')
        python.chmod(0o755)
        metrics, triton = free_ports(2)
        self.metrics, self.triton = f"127.0.0.1:{metrics}", str(triton)
        address = f"unix:{directory}/socket"
        addresses = {"PERCEPTROND_ADDRESS": address, "PERCEPTROND_SERVER": address, "PERCEPTROND_METRICS_ADDRESS": self.metrics,
                  "XDG_STATE_HOME": directory, "PYTHONDONTWRITEBYTECODE": "1", "PATH": f"{self.directory}/build/bin:{os.environ['PATH']}"}
        self.bash = subprocess.Popen(["bash"], cwd=directory, env={**os.environ, **addresses}, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                     stderr=subprocess.STDOUT, text=True)
        self.run(AWAIT)

    def run(self, commands):
        """Exit code of the last command and what all of them printed."""
        commands = commands.replace("127.0.0.1:7601", self.metrics).replace("8001", self.triton)
        self.bash.stdin.write(f"{commands}printf '\\n%s %s\\n' '{END}' $?\n")
        self.bash.stdin.flush()
        printed = ""
        for line in self.bash.stdout:
            if line.startswith(END):
                return int(line.split()[-1]), printed.removesuffix("\n")
            printed += line
        raise AssertionError(f"the shell ended:\n{printed}")

    def close(self):
        self.run("kill $(jobs -p); wait\n")
        self.bash.stdin.close()
        self.bash.wait()
        self.bash.stdout.close()


def is_installed(program):
    return shutil.which(program) or subprocess.run(["python3", "-c", f"import {program}"], stderr=subprocess.DEVNULL).returncode == 0


class PagesTest(unittest.TestCase):
    def follow(self, page, programs=()):
        """Runs a page's blocks, those of other programs if they are in `programs`."""
        text = page.read_text()
        self.assertEqual(len(re.findall("^```sh", text, re.MULTILINE)), len(BLOCKS.findall(text)), "each block of commands is recognized")
        with tempfile.TemporaryDirectory() as directory, logs_on_failure(directory), contextlib.closing(Session(directory)) as session:
            if not re.search(r"^perceptrond --data-dir", text, re.MULTILINE):
                session.run(START)
            for program, commands, shown in BLOCKS.findall(text):
                if program and program not in programs:
                    continue
                code, printed = session.run(commands)
                self.assertEqual(code, 0, f"{commands}\n{printed}")
                if shown:
                    self.assertRegex(printed, re.compile(r"\A" + pattern(shown).pattern + r"\Z"), commands)


class Documents(PagesTest):
    """A test for each page."""


class OtherPrograms(PagesTest):
    """A test for each program that is not of ours."""

    def follow_with(self, program, page):
        if not is_installed(program):
            self.skipTest(f"{program} is neither a command on PATH nor a module of python3")
        self.follow(page, {program})


for document in [ROOT / "README.md", *ROOT.glob("docs/*.md")]:
    blocks = BLOCKS.findall(document.read_text())
    if blocks:
        setattr(Documents, f"test_{document.stem}", lambda self, page=document: self.follow(page))
    for program in {program for program, _, _ in blocks if program}:
        setattr(OtherPrograms, f"test_{program}", lambda self, program=program, page=document: self.follow_with(program, page))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
