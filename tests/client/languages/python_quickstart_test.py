"""The script that a data scientist follows, with the installed package: from the data to the model's dashboard.

    ENVIRONMENT/bin/python python_quickstart_test.py PERCEPTROND
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time
import unittest

from processes import get
from python_fixture import ServedTest

ROOT = pathlib.Path(__file__).resolve().parents[3]
SCRIPT = ROOT / "client/python/examples/quickstart.py"
FIVE_MINUTES = 300


class QuickstartTest(ServedTest):
    def follow(self, command, **settings):
        done = subprocess.run(command, capture_output=True, text=True, timeout=FIVE_MINUTES, env=dict(os.environ, PERCEPTROND_SERVER=self.server.address), **settings)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def test_it_ends_with_a_published_model_that_the_dashboard_shows_and_nothing_else(self):
        done = self.follow([sys.executable, "-B", SCRIPT])
        for said in ("accuracy in cross-validation", "accuracy on 1115 other messages"):
            self.assertGreater(float(re.search(rf"{said}: ([\d.]+)", done.stdout)[1]), 0.97)
        self.assertIn("spam has learned 1115 more messages", done.stdout)
        self.assertRegex(done.stderr, "pass 1: 4459 examples")
        self.await_models("spam")
        shown = json.loads(get(f"http://{self.server.metrics}/api/models?search=spam"))
        self.assertEqual([listed["model"]["name"] for listed in shown["models"]], ["models/spam"])
        examples = self.client.report("spam").examples
        self.assertEqual(examples % 4459, 1115)
        self.assertIn(f'perceptrond_model_examples_total{{model_name="spam"}} {examples}', get(f"http://{self.server.metrics}/metrics").splitlines())
        # A second run says what to do before it learns.
        again = subprocess.run([sys.executable, "-B", SCRIPT], capture_output=True, text=True, timeout=FIVE_MINUTES)
        self.assertEqual((again.returncode, again.stdout), (1, ""))
        self.assertEqual(again.stderr, "there is a model spam already: delete it (perceptronctl delete spam), or name another one (--model spam-2)\n")
        self.client.delete("spam")

    def test_the_program_of_the_readme_runs(self):
        (program,) = re.findall(r"```python\n(.*?)```", (ROOT / "client/python/README.md").read_text(), re.DOTALL)
        done = self.follow([sys.executable, "-B", "-c", program.replace("127.0.0.1:7600", self.server.address)])
        self.assertRegex(done.stdout, r"^\['spam'\]\n\['spam'\]\n\['spam'\]\n0\.[89]\d*\n$")
        self.await_models("iris", "mail")
        self.client.aliases.delete("prod")
        self.client.delete("mail")
        self.client.delete("iris")

    def test_the_readme_leads_from_pip_install_to_the_dashboard_within_five_minutes(self):
        """The commands as they are, but for the installation of Debian's packages, in a copy: pip writes beside the sources."""
        copy = self.directory / "repository"
        (copy / "client").mkdir(parents=True)
        shutil.copytree(ROOT / "client/python", copy / "client/python")
        shutil.copytree(ROOT / "proto", copy / "proto")
        (copy / "deploy").symlink_to(ROOT / "deploy")
        block = re.search(r"(?m)^((?:    .*\n)+)", (ROOT / "client/python/README.md").read_text())[1].replace("\\\n", " ")
        commands = [line.strip() for line in block.splitlines() if not line.strip().startswith("sudo apt-get install")]
        self.assertEqual([re.sub(r" .*", "", command) for command in commands], ["/usr/bin/python3", "env/bin/pip", "env/bin/python"])
        start = time.monotonic()
        for command in commands:
            printed = self.follow(["bash", "-c", command], cwd=copy).stdout
        self.assertEqual(get(f"http://{self.server.metrics}/").count("<title>"), 1)
        seconds = time.monotonic() - start
        print(f"from pip install to the dashboard: {seconds:.0f} s", file=sys.stderr)
        self.assertIn("spam has learned 1115 more messages", printed)
        self.assertLess(seconds, FIVE_MINUTES)
        self.client.delete("spam")


if __name__ == "__main__":
    unittest.main()
