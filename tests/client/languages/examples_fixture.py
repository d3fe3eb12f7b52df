"""The fixture of the example clients' tests: the programs of a language, a server, and perceptronctl for comparison.

The command line is examples_test.py's: LANGUAGE PERCEPTROND PERCEPTRONCTL.
"""

import json
import pathlib
import signal
import struct
import subprocess
import sys
import tempfile
import unittest

from processes import Server

LANGUAGE, PERCEPTROND, PERCEPTRONCTL = sys.argv[1:4]
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent.parent
PYTHON = ["/usr/bin/python3", "-B"]
# The programs of each language. With asyncio, one program learns, watches the model and predicts.
PROGRAMS = {
    "python": {verb: [*PYTHON, ROOT / f"client/python/examples/{verb}.py"] for verb in ("learn", "predict", "watch")},
    "asyncio": {"learn": [*PYTHON, ROOT / "client/python/examples/learn_async.py"]},
    "node": {verb: ["node", ROOT / f"client/node/examples/{verb}.mjs"] for verb in ("learn", "predict", "watch")},
}[LANGUAGE]
PROGRAMS["perceptronctl"] = [PERCEPTRONCTL]
# Real messages: the first 80 % to learn, the others to predict.
MESSAGES = (ROOT / "deploy/data/sms_spam.tsv").read_bytes().splitlines(keepends=True)[1:]
TRAIN, TEST = MESSAGES[:4459], MESSAGES[4459:]
CREATE = ["--named", "--labels", "ham,spam"]


def only_if(condition):
    """Drops a test for languages whose programs do not have the tested feature."""
    return lambda test: test if condition else None


def float32(number):
    return struct.unpack("f", struct.pack("f", float(number)))[0]


class Client:
    """One run of an example program, whose input the test writes. A context manager."""

    def __init__(self, server, *arguments):
        command = [str(word) for word in (*PROGRAMS[arguments[0]], "--server", server.address, *arguments[1:])]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def feed(self, lines):
        self.process.stdin.writelines(lines)
        self.process.stdin.flush()

    def finish(self, seconds=60):
        """(exit code, standard output, standard error), after the end of its input."""
        out, error = self.process.communicate(timeout=seconds)
        return self.process.returncode, out.decode(), error.decode()

    def kill(self):
        self.process.kill()
        self.process.communicate()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.kill()


class ExamplesFixture(unittest.TestCase):
    """A test with a server of its own."""

    def setUp(self):
        self.directory = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.server = self.enterContext(Server(PERCEPTROND, self.directory / "store", self.directory / "log"))

    def ctl(self, *arguments, expect=0):
        done = subprocess.run([PERCEPTRONCTL, "--server", self.server.address, *map(str, arguments)], capture_output=True, text=True)
        self.assertEqual(done.returncode, expect, done.stderr)
        return done.stdout

    def file(self, name, lines):
        path = self.directory / name
        path.write_bytes(b"".join(lines))
        return path

    def run_client(self, *arguments, expect=0):
        with Client(self.server, *arguments) as client:
            code, out, error = client.finish()
        self.assertEqual(code, expect, error)
        return out, error

    def restart_server(self, how=signal.SIGKILL):
        self.server.process.send_signal(how)
        self.server.process.wait()
        self.server = self.enterContext(Server(PERCEPTROND, self.directory / "store", self.directory / "log", address=self.server.address))

    def model(self, name):
        """The model, with the names of its weights sorted: names that one update adds are in any order."""
        model = json.loads(self.ctl("get", name, "--weights", "-o", "json"))
        for vector in model.get("weights", {}).get("vectors", []):
            if vector.get("names"):
                vector["names"], vector["values"] = zip(*sorted(zip(vector["names"], vector["values"])))
        return model

    def examples(self, name):
        return int(self.model(name)["report"].get("examples", 0))

    def reference(self, lines, *flags):
        """Returns the model that perceptronctl learns from the same lines without interruption."""
        self.ctl("create", "reference", *CREATE)
        self.ctl("learn", "reference", self.file("reference.tsv", lines), "--format", "text", *flags)
        return self.model("reference")

    def assert_same_model(self, model, reference):
        """Compares the weights bit for bit, the revision and the counters."""
        self.assertEqual(model["weights"], reference["weights"])
        self.assertEqual(model["revision"], reference["revision"])
        for count in ("examples", "mistakes", "updates"):
            self.assertEqual(model["report"][count], reference["report"][count], count)
