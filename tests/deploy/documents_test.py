"""The commands in the documents work as pasted, and print what the documents show.

    python3 documents_test.py PERCEPTROND PERCEPTRONCTL

A block marked ```sh is run; a block marked ```text right after it is its output, where "..." stands for any text and a
line "..." for any lines. Each page is one session of bash, in a directory that looks like the repository's root.
Indented blocks are for the reader alone. `env` is what client/python/README.md makes: the test clients_environment did.
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

from processes import free_ports

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BLOCKS = re.compile(r"^```sh\n(.*?)^```\n(?:```text\n(.*?)^```$)?", re.MULTILINE | re.DOTALL)
START = "perceptrond --data-dir ./store 2> perceptrond.log &\n"
END = "---- end of a block ----"


def pages():
    return sorted(page for page in [ROOT / "README.md", *ROOT.glob("docs/*.md")] if BLOCKS.search(page.read_text()))


def pattern(shown):
    """What matches an output that a document shows."""
    lines = (r"(?:.*\n)*?" if line == "..." else ".*".join(map(re.escape, line.split("..."))) + r"\n" for line in shown.splitlines())
    return re.compile("".join(lines))


class Session:
    """A reader's shell. Servers that it starts listen on a socket in its directory, with metrics at a port of their own."""

    def __init__(self, directory):
        self.directory = pathlib.Path(directory)
        built = pathlib.Path(sys.argv[1]).resolve().parent
        (self.directory / "build").mkdir()
        for name, target in (("deploy", ROOT / "deploy"), ("client", ROOT / "client"), ("build/bin", built), ("env", built.parent / "client/environment")):
            (self.directory / name).symlink_to(target)
        self.metrics = f"127.0.0.1:{free_ports(1)[0]}"
        address = f"unix:{directory}/socket"
        addresses = {"PERCEPTROND_ADDRESS": address, "PERCEPTROND_SERVER": address, "PERCEPTROND_METRICS_ADDRESS": self.metrics,
                  "XDG_STATE_HOME": directory, "PYTHONDONTWRITEBYTECODE": "1", "PATH": f"{self.directory}/build/bin:{os.environ['PATH']}"}
        self.bash = subprocess.Popen(["bash"], cwd=directory, env={**os.environ, **addresses}, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                     stderr=subprocess.STDOUT, text=True)

    def run(self, commands):
        """Exit code of the last command and what all of them printed."""
        self.bash.stdin.write(f"{commands.replace('127.0.0.1:7601', self.metrics)}printf '\\n%s %s\\n' '{END}' $?\n")
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


class DocumentsTest(unittest.TestCase):
    def test_pages_with_commands_are_found(self):
        self.assertLessEqual({"README.md", "tutorial.md"}, {page.name for page in pages()})

    def test_each_page_s_commands_print_what_it_shows(self):
        for page in pages():
            with self.subTest(page.name), tempfile.TemporaryDirectory() as directory:
                session = Session(directory)
                try:
                    self.follow(session, page.read_text())
                finally:
                    session.close()

    def follow(self, session, text):
        if not re.search(r"^perceptrond --data-dir", text, re.MULTILINE):
            session.run(START)
        for commands, shown in BLOCKS.findall(text):
            code, printed = session.run(commands)
            self.assertEqual(code, 0, f"{commands}\n{printed}")
            if shown:
                self.assertRegex(printed, re.compile(r"\A" + pattern(shown).pattern + r"\Z"), commands)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
