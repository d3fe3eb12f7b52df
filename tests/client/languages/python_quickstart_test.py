"""The script that a data scientist follows, with the installed package: from the data to the model's dashboard.

    ENVIRONMENT/bin/python python_quickstart_test.py PERCEPTROND
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import unittest

from processes import get
from python_fixture import ServedTest

SCRIPT = pathlib.Path(__file__).resolve().parents[3] / "client/python/examples/quickstart.py"


class QuickstartTest(ServedTest):
    def test_it_ends_with_a_published_model_that_the_dashboard_shows_and_nothing_else(self):
        done = subprocess.run([sys.executable, "-B", SCRIPT], capture_output=True, text=True, timeout=300, env=dict(os.environ, PERCEPTROND_SERVER=self.server.address))
        self.assertEqual(done.returncode, 0, done.stderr)
        for said in ("accuracy in cross-validation", "accuracy on 1115 other messages"):
            self.assertGreater(float(re.search(rf"{said}: ([\d.]+)", done.stdout)[1]), 0.97)
        self.assertIn("spam has learned 1115 more messages", done.stdout)
        self.assertRegex(done.stderr, "pass 1: 4459 examples")
        self.await_models("spam")
        shown = json.loads(get(f"http://{self.server.metrics}/api/models?search=spam"))
        self.assertEqual([listed["model"]["name"] for listed in shown["models"]], ["models/spam"])
        self.assertIn('perceptrond_model_examples_total{model_name="spam"} 1115', get(f"http://{self.server.metrics}/metrics").splitlines())


if __name__ == "__main__":
    unittest.main()
