"""The types of the Python package: a type checker accepts it, and finds the mistakes of its users.

    PYTHONPATH=BUILT MYPYPATH=BUILT python3 python_types_test.py PYPROJECT
"""

import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

PYPROJECT = sys.argv.pop(1)
USER = """
import io

from perceptrond import AsyncClient, Client, PerceptrondError, Progress, Row, Transfer
from perceptrond.v1 import model_pb2

def right(client: Client) -> float:
    model: model_pb2.Model = client.create("spam", features="named", labels=["ham", "spam"])
    learned = client.learn("spam", [Row({"free": 1.0}, "spam")], passes=2, progress=lambda now: print(now.sent))
    predictions = client.predict(model.name, [{"free": 1}])
    size: int = client.history.export_model("spam", "spam.model", progress=True)
    model = client.history.import_model("spam-2", io.BytesIO(bytes(size)), progress=seen)
    return predictions.scores[0] + learned.totals.examples

def seen(now: Transfer) -> None:
    print(now.bytes / now.total if now.total else now.complete)

async def also_right(client: AsyncClient) -> int:
    async for model in client.watch("spam", interval=0.5):
        return model.revision
    return 0

def wrong(client: Client, error: PerceptrondError) -> None:
    client.learn("spam", [], passes="2")  # wrong 1
    client.predict("spam", []).score  # wrong 2
    error.reason.code  # wrong 3
    client.history.import_model("spam", 5)  # wrong 4
"""


class TypesTest(unittest.TestCase):
    def mypy(self, *arguments):
        with tempfile.TemporaryDirectory() as cache:
            return subprocess.run(["/usr/bin/mypy", "--config-file", PYPROJECT, "--cache-dir", cache, "--python-executable", sys.executable, *arguments],
                                  capture_output=True, text=True)

    def test_the_package_is_accepted(self):
        done = self.mypy("-p", "perceptrond")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_the_mistakes_of_a_user_are_found_and_nothing_else(self):
        with tempfile.TemporaryDirectory() as directory:
            program = pathlib.Path(directory, "user.py")
            program.write_text(USER)
            done = self.mypy(str(program))
        wrong = [number for number, line in enumerate(USER.splitlines(), start=1) if "# wrong" in line]
        self.assertEqual([int(line) for line in re.findall(r"user\.py:(\d+): error", done.stdout)], wrong, done.stdout)


if __name__ == "__main__":
    unittest.main()
