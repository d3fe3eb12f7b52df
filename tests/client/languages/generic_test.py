"""The generic client, which knows the API only by the server's reflection, finds, describes and calls every kind of method.

    python3 generic_test.py PERCEPTROND
"""

import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest

from processes import Server

PYTHON = ["/usr/bin/python3", "-B"]
CLIENT = pathlib.Path(__file__).resolve().parent.parent.parent.parent / "client/python"
GENERIC = CLIENT / "examples/generic.py"
# The package as it is in the sources, without the modules of the protos.
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(CLIENT)}
LEARNING = "perceptron.v1.LearningService"
PREDICTIONS = "perceptron.v1.PredictionService"
MODELS = "perceptron.v1.ModelService"
HEALTH = "grpc.health.v1.Health"


class GenericTest(unittest.TestCase):
    def setUp(self):
        directory = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.server = self.enterContext(Server(sys.argv[1], directory / "store", directory / "log"))

    def run_generic(self, *arguments, expect=0):
        done = subprocess.run([*PYTHON, GENERIC, "--server", self.server.address, *arguments], env=ENVIRONMENT, capture_output=True, text=True)
        self.assertEqual(done.returncode, expect, done.stderr)
        return done.stderr if expect else done.stdout

    def call(self, method, *requests):
        return [json.loads(line) for line in self.run_generic("call", method, *map(json.dumps, requests)).splitlines()]

    def test_no_generated_module_can_be_imported(self):
        for name in ("perceptrond.v1.model_pb2", "google.rpc.status_pb2"):
            self.assertNotEqual(subprocess.run([*PYTHON, "-c", f"import {name}"], env=ENVIRONMENT, capture_output=True).returncode, 0)

    def test_services_methods_and_fields_are_found(self):
        services = self.run_generic("list").splitlines()
        self.assertLessEqual({MODELS, LEARNING, PREDICTIONS, "perceptron.v1.AnalysisService", HEALTH}, set(services))
        self.assertIn("rpc LearnStream(stream perceptron.v1.LearnStreamRequest) returns (stream perceptron.v1.LearnStreamResponse)\n",
                      self.run_generic("describe", LEARNING))
        self.assertEqual(self.run_generic("describe", "perceptron.v1.SparseFeatures"), "repeated fixed32 indices = 1\nrepeated float values = 2\n")

    def test_every_kind_of_method_can_be_called(self):
        (model,) = self.call(f"{MODELS}/CreateModel", {"modelId": "m", "model": {"featureSpace": {"dense": {"dimension": 2}}}})
        self.assertEqual(model["name"], "models/m")
        rows = [{"dense": {"values": [1, 2]}, "label": 1}, {"dense": {"values": [1, -2]}, "label": -1}]
        answers = self.call(f"{LEARNING}/LearnStream", {"model": "models/m", "producer": {"id": "p"}}, {"examples": rows})
        self.assertEqual(answers[0]["opened"]["modelUid"], model["uid"])
        # Both messages' results may share an answer.
        learned = [result for answer in answers for result in answer["results"]][1]
        self.assertEqual((learned["examples"], learned["updates"]), ("2", "1"))
        # After one update by +(1, 2), with the bias input 1: s = 1 + x1 + 2 x2.
        scores = [answer["scores"] for answer in self.call(f"{PREDICTIONS}/PredictStream", {"model": "models/m", "examples": rows[:1]}, {"examples": rows[1:]})]
        self.assertEqual(scores, [[6.0], [-2.0]])
        (listed,) = self.call(f"{MODELS}/ListModels")
        self.assertEqual(listed["models"][0]["revision"], "1")
        self.assertEqual(self.call(f"{MODELS}/DeleteModel", {"name": "models/m"}), [{}])

    def test_details_of_row_errors_are_printed_whatever_their_type(self):
        self.call(f"{MODELS}/CreateModel", {"modelId": "m", "model": {"featureSpace": {"dense": {"dimension": 2}}}})
        (answer,) = self.call(f"{LEARNING}/LearnStream", {"model": "models/m", "examples": [{"dense": {"values": [1]}, "label": 1}]})
        details = {detail["@type"].rpartition(".")[2]: detail for detail in answer["results"][0]["rowErrors"][0]["status"]["details"]}
        self.assertEqual(details["ErrorInfo"]["reason"], "WRONG_DIMENSION")
        self.assertEqual(details["BadRequest"]["fieldViolations"][0]["field"], "examples[0].dense.values")

    def test_it_ends_if_no_server_can_be_reached(self):
        for _ in range(3):
            runs = [subprocess.Popen([*PYTHON, GENERIC, "--server", "127.0.0.1:1", "list"], env=ENVIRONMENT, stderr=subprocess.PIPE, text=True) for _ in range(4)]
            for run in runs:
                try:
                    _, error = run.communicate(timeout=60)
                finally:
                    run.kill()
                self.assertEqual(run.returncode, 1, error)
                self.assertRegex(error, "^generic.py: UNAVAILABLE: .*\n$")

    def test_an_interrupted_call_prints_that(self):
        self.call(f"{MODELS}/CreateModel", {"modelId": "m", "model": {"featureSpace": {"dense": {"dimension": 2}}}})
        command = [*PYTHON, GENERIC, "--server", self.server.address, "call", f"{MODELS}/WatchModel", '{"name": "models/m"}']
        with subprocess.Popen(command, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as watching:
            try:
                self.assertEqual(json.loads(watching.stdout.readline())["model"]["name"], "models/m")
                watching.send_signal(signal.SIGINT)
                _, error = watching.communicate(timeout=60)
            finally:
                watching.kill()
        self.assertEqual((watching.returncode, error), (130, "generic.py: interrupted\n"))

    def test_errors_are_printed_with_their_cause(self):
        error = self.run_generic("call", f"{MODELS}/GetModel", '{"name": "models/none"}', expect=1)
        self.assertIn("generic.py: NOT_FOUND: there is no model", error)
        self.assertIn('"reason": "MODEL_NOT_FOUND"', error)
        self.assertIn("has no method Get; it has:", self.run_generic("call", f"{MODELS}/Get", expect=1))
        self.assertIn("nam", self.run_generic("call", f"{MODELS}/GetModel", '{"nam": ""}', expect=1))
        self.assertIn("No.Such", self.run_generic("describe", "No.Such", expect=1))

    def test_every_listed_service_can_be_described_and_called(self):
        for name in self.run_generic("list").splitlines():
            self.assertIn("rpc ", self.run_generic("describe", name), name)
        self.assertEqual(json.loads(self.run_generic("call", f"{HEALTH}/Check", "{}")), {"status": "SERVING"})


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[2:])
