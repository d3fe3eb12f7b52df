"""The example programs of Python, asyncio and Node, the Python package as pip installs it, and the generic client, against a real server:
what they learn equals what perceptronctl learns, bit for bit.

    PYTHONPATH=tests/deploy:BUILT python3 examples_test.py PERCEPTROND PERCEPTRONCTL
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

from processes import Server, get

PERCEPTROND, PERCEPTRONCTL = sys.argv[1:3]
HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
PYTHON = ["/usr/bin/python3", "-B"]
EXAMPLES = ROOT / "client/python/examples"
# With asyncio, one program learns and predicts.
PROGRAMS = {"python": [*PYTHON, EXAMPLES / "learn.py"], "asyncio": [*PYTHON, EXAMPLES / "learn_async.py"], "node": ["node", ROOT / "client/node/examples/learn.mjs"]}
PREDICT = {"python": [*PYTHON, EXAMPLES / "predict.py"], "node": ["node", ROOT / "client/node/examples/predict.mjs"]}
# Real messages: the first 80 % to learn, the others to predict.
MESSAGES = (ROOT / "deploy/data/sms_spam.tsv").read_bytes().splitlines(keepends=True)[1:]
TRAIN, TEST = MESSAGES[:4459], MESSAGES[4459:]
CREATE = ["--text", "--labels", "ham,spam"]


class ExamplesTest(unittest.TestCase):
    def setUp(self):
        self.directory = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.server = self.enterContext(Server(PERCEPTROND, self.directory / "store", self.directory / "log", address=f"unix:{self.directory}/socket"))

    def run_program(self, program, *arguments, expect=0, **settings):
        done = subprocess.run([*map(str, program), "--server", self.server.address, *map(str, arguments)], capture_output=True, text=True, **settings)
        self.assertEqual(done.returncode, expect, done.stderr)
        return done.stderr if expect else done.stdout

    def ctl(self, *arguments):
        return self.run_program([PERCEPTRONCTL], *arguments)

    def file(self, name, lines):
        path = self.directory / name
        path.write_bytes(b"".join(lines))
        return path

    def model(self, name):
        """Its weights, revision and counters."""
        model = json.loads(self.ctl("get", name, "--weights", "-o", "json"))
        (vector,) = model["weights"]["vectors"]
        return vector.get("indices"), vector["values"], vector.get("bias"), model["revision"], [model["report"][count] for count in ("examples", "mistakes", "updates")]

    def reference(self, lines, *flags):
        self.ctl("create", "reference", *CREATE)
        self.ctl("learn", "reference", self.file("reference.tsv", lines), "--format", "text", *flags)
        return self.model("reference")

    def test_what_is_learned_and_predicted_equals_perceptronctls(self):
        reference, train, test = self.reference(TRAIN, "--passes", 2), self.file("train.tsv", TRAIN), self.file("test.tsv", TEST)
        summary = self.ctl("predict", "reference", test, "--format", "text", "--summary")
        rows = self.file("rows.svm", [b"+1 1:1 3:0.1 # a comment\n", b"-1 2:0.7\r\n", b"\n", b"-1 1:-1e-3 2:0.25 3:4\n", b"+1 3:0.3\n"])
        self.ctl("create", "vectors", "--dimension", 3)
        self.ctl("learn", "vectors", rows, "--format", "svmlight", "--index-base", 1, "--passes", 4)
        for language, learn in PROGRAMS.items():
            with self.subTest(language):
                more = [] if language in PREDICT else ["--predict", test]
                out = self.run_program(learn, language, train, *CREATE, "--producer", "train", "--passes", 2, *more)
                self.assertEqual(self.model(language), reference)
                if language in PREDICT:
                    out = self.run_program(PREDICT[language], language, test)
                self.assertIn(re.search(r"errors: \d+ of \d+", summary)[0], out)
                self.run_program(learn, f"{language}-vectors", rows, "--format", "svmlight", "--dimension", 3, "--producer", "rows", "--passes", 4)
                self.assertEqual(self.model(f"{language}-vectors"), self.model("vectors"))

    def test_the_generic_client_finds_describes_and_calls_every_kind_of_method(self):
        generic = [*PYTHON, EXAMPLES / "generic.py"]
        # The package as it is in the sources, without the modules of the protos.
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "client/python")}
        api = "perceptron.v1."

        def call(method, *requests):
            return [json.loads(line) for line in self.run_program(generic, "call", api + method, *map(json.dumps, requests), env=environment).splitlines()]

        self.assertIn(api + "LearningService", self.run_program(generic, "list", env=environment))
        self.assertIn("rpc LearnStream(stream", self.run_program(generic, "describe", api + "LearningService", env=environment))
        call("ModelService/CreateModel", {"modelId": "m", "model": {"featureSpace": {"dense": {"dimension": 2}}}})
        rows = [{"dense": {"values": [1, 2]}, "label": 1}, {"dense": {"values": [1, -2]}, "label": -1}]
        answers = call("LearningService/LearnStream", {"model": "models/m", "producer": {"id": "p"}}, {"examples": rows})
        self.assertEqual([result.get("examples") for answer in answers for result in answer.get("results", ())][-1], "2")
        self.assertEqual([answer["scores"] for answer in call("PredictionService/PredictStream", {"model": "models/m", "examples": rows})], [[6.0, -2.0]])
        self.assertIn("MODEL_NOT_FOUND", self.run_program(generic, "call", api + "ModelService/GetModel", '{"name": "models/none"}', expect=1, env=environment))

    def test_the_package_that_pip_installs_runs_the_quickstart_and_the_program_of_the_readme(self):
        environment = self.directory / "environment"
        subprocess.run(["sh", HERE / "install_package.sh", ROOT, environment], check=True)
        python = [environment / "bin/python", "-B"]
        settings = {**{name: value for name, value in os.environ.items() if name != "PYTHONPATH"}, "PERCEPTROND_SERVER": self.server.address}
        done = subprocess.run([*python, EXAMPLES / "quickstart.py"], capture_output=True, text=True, env=settings)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertGreater(float(re.search(r"accuracy on 1115 other messages: ([\d.]+)", done.stdout)[1]), 0.97)
        self.assertIn('perceptrond_model_examples_total{model_name="spam"}', get(f"http://{self.server.metrics}/metrics"))
        (program,) = re.findall(r"```python\n(.*?)```", (ROOT / "client/python/README.md").read_text(), re.DOTALL)
        done = subprocess.run([*python, "-c", program.replace("127.0.0.1:7600", self.server.address)], capture_output=True, text=True, env=settings)
        self.assertRegex(done.stdout, r"^\['spam'\]\n\['spam'\]\n\['spam'\]\n0\.[89]\d*\n$", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
