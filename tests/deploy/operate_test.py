"""docs/operate.md says of every metric what it means, and of none that there is not; what it says to run can be run.

    python3 operate_test.py PERCEPTROND PERCEPTRONCTL
"""

import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import yaml

from processes import Server, get

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
DOCUMENT = (ROOT / "docs/operate.md").read_text()
# A family is told by its full name, in the lists of the server's sources.
SOURCES = sorted((ROOT / "server/metrics").glob("*_families.cc"))
FAMILY = r"(?:perceptrond|grpc_server|process)_\w+"
# Rows whose examples are told apart by this line, and one that is not separated.
ROWS = "+1 0:1 1:2\n-1 0:1 1:-2\n+1 0:2 1:1\n-1 0:2 1:-3\n"


def documented():
    return re.findall(r"^\| `(\w+)` \|", DOCUMENT, re.MULTILINE)


def in_sources():
    return {name for path in SOURCES for name in re.findall(rf'"({FAMILY})"', path.read_text())}


class OperateTest(unittest.TestCase):
    def setUp(self):
        self.directory = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.server = self.start("store")

    def start(self, store):
        return self.enterContext(Server(sys.argv[1], self.directory / store, self.directory / f"{store}.log"))

    def ctl(self, server, *arguments):
        return subprocess.run([sys.argv[2], "--server", server.address, *map(str, arguments)], check=True, capture_output=True, text=True).stdout

    def state(self, server):
        """Weights to the last digit, and what does not begin anew with the process."""
        model = json.loads(self.ctl(server, "get", "m", "--weights", "-o", "json"))
        return [model["weights"], model["revision"], *(model["report"][count] for count in ("examples", "mistakes", "updates"))]

    def teach(self):
        (self.directory / "rows.svm").write_text(ROWS)
        self.ctl(self.server, "create", "m", "--dimension", 3, "--retain-sample", 10, "--margin-of-interest", 0.001)
        self.ctl(self.server, "learn", "m", self.directory / "rows.svm", "--index-base", 0, "--until-converged", "--analyze")

    def families(self):
        """Of what is served; the second scrape has what the endpoint says of the first."""
        get(f"http://{self.server.metrics}/metrics")
        return set(re.findall(r"^# TYPE (\w+) ", get(f"http://{self.server.metrics}/metrics"), re.MULTILINE))

    def test_every_metric_is_explained_once_and_none_that_is_not_served(self):
        self.teach()
        served = self.families()
        self.assertGreater(len(served), 55)
        names = documented()
        self.assertEqual(len(names), len(set(names)))
        self.assertEqual(set(names), served | in_sources())

    def test_every_row_says_what_it_means_and_what_to_do(self):
        for row in re.findall(r"^\| `(?:%s|exposer_\w+)` \|.*$" % FAMILY, DOCUMENT, re.MULTILINE):
            self.assertEqual(len([cell for cell in row.strip("|").split(" | ") if cell.strip()]), 3, row)

    def test_every_alert_that_is_named_exists(self):
        groups = yaml.safe_load((ROOT / "deploy/prometheus/rules/perceptrond.alerts.yml").read_text())["groups"]
        alerts = {rule["alert"] for group in groups for rule in group["rules"]}
        self.assertLessEqual(set(re.findall(r"\bPerceptrond[A-Z]\w+", DOCUMENT)), alerts)

    def test_every_metric_that_a_rule_asks_for_is_served(self):
        for path in sorted((ROOT / "deploy/prometheus/rules").glob("*.yml")):
            for group in yaml.safe_load(path.read_text())["groups"]:
                for rule in group["rules"]:
                    # What is recorded has colons in its name.
                    words = [word for word in re.findall(r"[\w:]+", rule["expr"]) if re.fullmatch(FAMILY, word)]
                    names = {word.removesuffix("_bucket") for word in words}
                    self.assertLessEqual(names, in_sources(), rule)

    def test_every_flag_that_is_named_exists(self):
        known = subprocess.run([sys.argv[1], "--help"], check=True, capture_output=True, text=True).stdout
        for command in ("create", "learn", "health", "get", "analyze", "bench"):
            known += subprocess.run([sys.argv[2], command, "--help-all"], capture_output=True, text=True).stdout
            known += subprocess.run([sys.argv[2], command, "--help"], capture_output=True, text=True).stdout
        known += subprocess.run([sys.argv[2], "--help"], capture_output=True, text=True).stdout
        others = {"--build", "--wait", "--stop-timeout"}
        for flag in set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", DOCUMENT)) - others:
            self.assertRegex(known, rf"{flag}\b")

    def test_a_copy_of_a_stopped_servers_directory_is_a_backup(self):
        self.teach()
        before = self.state(self.server)
        self.server.process.terminate()
        self.assertEqual(self.server.process.wait(), 0)
        subprocess.run(["cp", "-a", self.directory / "store", self.directory / "backup"], check=True)
        self.assertEqual(self.state(self.start("backup")), before)

    def test_one_model_goes_to_another_server_by_its_weights(self):
        self.teach()
        (self.directory / "m.json").write_text(self.ctl(self.server, "get", "m", "--weights", "-o", "json"))
        other = self.start("other")
        self.ctl(other, "create", "m", "--dimension", 3, "--start-weights", self.directory / "m.json")
        predict = ["predict", "m", self.directory / "rows.svm", "--index-base", 0]
        self.assertEqual(self.ctl(other, *predict), self.ctl(self.server, *predict))

    def test_a_second_server_on_one_directory_is_refused(self):
        second = subprocess.run([sys.argv[1], "--data-dir", self.directory / "store", "--address", "127.0.0.1:0", "--metrics-address", "off"],
                                capture_output=True, text=True)
        self.assertEqual(second.returncode, 1)
        self.assertIn("cannot start", second.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
