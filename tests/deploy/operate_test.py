"""docs/metrics.md explains every metric, and no other; rules and dashboard ask for metrics that there are; the commands of docs/operate.md
and docs/backup.md work; flags and alerts that a document names exist.

    python3 operate_test.py PERCEPTROND PERCEPTRONCTL
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

from deployed import ROOT, rule_groups
from processes import Server, get

METRICS = (ROOT / "docs/metrics.md").read_text()
OPERATE = (ROOT / "docs/operate.md").read_text()
BACKUP = (ROOT / "docs/backup.md").read_text()
PAGES = "".join(page.read_text() for page in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))])
# Families have their full name in the lists of the server's sources; those of figures are defined by the report's options.
RULES = [rule for group in rule_groups() for rule in group["rules"]]
SOURCES = sorted((ROOT / "server/metrics").glob("*.cc"))
FAMILY = r"(?:perceptrond|grpc_server|process)_\w+"
# Separable rows.
ROWS = "+1 0:1 1:2\n-1 0:1 1:-2\n+1 0:2 1:1\n-1 0:2 1:-3\n"


def of_figures():
    """The metrics that the options of the report's figures define."""
    with tempfile.TemporaryDirectory() as directory:
        protos = [str(path) for path in (ROOT / "proto/perceptron/v1").glob("*.proto") if path.stem in ("analysis", "figure", "report")]
        subprocess.run(["protoc", f"--proto_path={ROOT / 'proto'}", f"--python_out={directory}", *protos], check=True)
        sys.path.insert(0, directory)
        from perceptron.v1 import figure_pb2, report_pb2
        sys.path.pop(0)

    def below(message, prefix):
        for field in message.fields:
            figure = field.GetOptions().Extensions[figure_pb2.figure]
            timestamp = field.message_type is not None and field.message_type.full_name == "google.protobuf.Timestamp"
            if field.message_type is not None and field.label != field.LABEL_REPEATED and not timestamp:
                yield from below(field.message_type, prefix + figure.metric)
            elif figure.metric:
                yield prefix + figure.metric

    return set(below(report_pb2.ConvergenceReport.DESCRIPTOR, "perceptrond_model_"))


FIGURES = of_figures()


def in_sources():
    written = {name for path in SOURCES for name in re.findall(rf'"({FAMILY})"', path.read_text()) if not name.endswith("_")}
    return written | FIGURES


class NamesTest(unittest.TestCase):
    """Names in the documents, the rules and the dashboard exist."""

    def test_alerts(self):
        alerts = {rule["alert"] for rule in RULES if "alert" in rule}
        named = PAGES + (ROOT / "deploy/grafana/dashboards/perceptrond.json").read_text()
        self.assertLessEqual(set(re.findall(r"\bPerceptrond[A-Z]\w+", named)), alerts)

    def test_metrics(self):
        """Recorded metrics have colons in their names."""
        known = in_sources() | {rule["record"] for rule in RULES if "record" in rule}
        dashboard = json.loads((ROOT / "deploy/grafana/dashboards/perceptrond.json").read_text())
        targets = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", [])]
        for expression in [rule["expr"] for rule in RULES] + targets + [one["expr"] for one in dashboard["annotations"]["list"]]:
            words = re.findall(r"\b(?:(?:perceptrond|grpc_server|process)_\w+|\w+(?::\w+)+)", re.sub(r'"[^"]*"', "", expression))
            unknown = [word for word in words if word not in known and re.sub("_(bucket|sum|count)$", "", word) not in known]
            self.assertEqual(unknown, [], expression)

    def test_flags(self):
        def help_of(*command):
            return subprocess.run([*command, "--help"], check=True, capture_output=True, text=True).stdout

        known = help_of(sys.argv[1]) + help_of(sys.argv[2])
        for command in re.findall(r"^  (\w+) {2,}", known.split("Subcommands:")[1], re.MULTILINE):
            known += help_of(sys.argv[2], command)
        known += (ROOT / "client/python/perceptrond/plot.py").read_text()
        # Flags of docker, cmake, npm, pkg-config, PostgreSQL's tools and the programs in tests/.
        others = {"--build", "--profile", "--wait", "--stop-timeout", "--preset", "--install", "--prefix", "--component", "--workflow", "--cflags", "--libs",
                  "--variable", "--label", "--nightly", "--release", "--rm", "--filter", "--num", "--owner", "--schema", "--file", "--dbname", "--exit-on-error", "--namespaces"}
        # Nor of other programs.
        pages = re.sub(r"^```sh needs=.*?^```$", "", PAGES, flags=re.MULTILINE | re.DOTALL)
        named = set(re.findall(r"(?<![\w-])--[a-z][a-z0-9-]+", pages)) - others
        self.assertEqual([flag for flag in named if not re.search(rf"{flag}\b", known)], [])


class OperateTest(unittest.TestCase):
    def setUp(self):
        self.directory = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def start(self, store):
        return self.enterContext(Server(sys.argv[1], self.directory / store, self.directory / f"{pathlib.PurePath(store).name}.log"))

    def ctl(self, server, *arguments):
        return subprocess.run([sys.argv[2], "--server", server.address, *map(str, arguments)], check=True, capture_output=True, text=True).stdout

    def teach(self, server):
        (self.directory / "rows.svm").write_text(ROWS)
        self.ctl(server, "create", "m", "--dimension", 3, "--store-sample", 10, "--margin-of-interest", 0.001)
        self.ctl(server, "learn", "m", self.directory / "rows.svm", "--index-base", 0, "--until-converged", "--analyze")

    def state(self, server):
        """Weights to the last digit, and what does not begin anew with the process."""
        model = json.loads(self.ctl(server, "get", "m", "--weights", "-o", "json"))
        return [model["weights"], model["revision"], *(model["report"][count] for count in ("examples", "mistakes", "updates"))]

    def metrics(self, server):
        """The second scrape has what the endpoint says of the first."""
        get(f"http://{server.metrics}/metrics")
        return get(f"http://{server.metrics}/metrics")

    def test_the_documents_explain_each_metric_once_and_say_how_many_series_there_are(self):
        server = self.start("store")
        series = lambda: sum(not line.startswith("#") for line in self.metrics(server).splitlines())
        empty, fewest, most = map(int, re.search(r"about (\d+)\s+series.*?each\s+model\s+that\s+learns\s+(\d+)\s+to\s+(\d+)", OPERATE, re.DOTALL).groups())
        before = series()
        self.assertAlmostEqual(before, empty, delta=empty / 10)
        self.teach(server)
        self.assertTrue(fewest <= series() - before <= most, series() - before)
        served = set(re.findall(r"^# TYPE (\w+) ", self.metrics(server), re.MULTILINE))
        self.assertGreater(len(served), 55)
        self.assertEqual(sorted(re.findall(r"^`(\w+)` \|", METRICS, re.MULTILINE)), sorted(served | in_sources()))

    def type(self, server, lines):
        """Runs commands of docs/backup.md in a tree of the test's own, with the server's tools on the path."""
        text = "\n".join(lines).replace("/var/lib/", f"{self.directory}/var/lib/")
        return subprocess.run(["bash", "-c", text], capture_output=True, text=True,
                              env={**os.environ, "PATH": f"{self.directory / 'bin'}:{os.environ['PATH']}", "PERCEPTROND_SERVER": server.address})

    def test_the_backup_commands_restore_the_models(self):
        """systemd has the data in private/, with a link to it."""
        for folder in ("perceptrond", "perceptrond-backups"):
            (self.directory / "var/lib/private" / folder).mkdir(parents=True)
            (self.directory / "var/lib" / folder).symlink_to(f"private/{folder}")
        (self.directory / "bin").mkdir()
        (self.directory / "bin/systemctl").write_text(f'#!/bin/sh\necho "$1 $2" >> {self.directory}/systemctl.log\n')
        (self.directory / "bin/systemctl").chmod(0o755)
        for program in sys.argv[1:3]:
            (self.directory / "bin" / pathlib.Path(program).name).symlink_to(pathlib.Path(program).resolve())
        self.enterContext(unittest.mock.patch.dict(os.environ, PERCEPTROND_BACKUP_DIR=str(self.directory / "var/lib/perceptrond-backups")))
        server = self.start("var/lib/private/perceptrond")
        self.teach(server)
        before = self.state(server)
        backing_up, *restoring = [line[4:] for line in BACKUP.split("\n## A fleet\n")[0].splitlines() if line.startswith("    ")]
        done = self.type(server, [backing_up])
        self.assertEqual(done.returncode, 0, done.stderr)
        # Later changes are not in the backup.
        self.ctl(server, "delete", "m")
        self.ctl(server, "create", "other", "--dimension", 3)
        server.process.terminate()
        self.assertEqual(server.process.wait(), 0)
        done = self.type(server, restoring)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual((self.directory / "systemctl.log").read_text(), "stop perceptrond\nstart perceptrond\n")
        self.assertTrue((self.directory / "var/lib/perceptrond").is_symlink())
        restored = self.start("var/lib/private/perceptrond")
        self.assertEqual(self.state(restored), before)
        self.assertNotIn("other", self.ctl(restored, "list"))

    def test_the_upgrade_command_names_settings_that_the_new_server_does_not_know(self):
        (line,) = re.findall(r"`(\(set -a;[^`]*\))`", OPERATE)
        variables = self.directory / "variables"
        for settings, code, named in (('PERCEPTROND_MEMORY_BUDGET="2GiB"\n', 0, []), ('PERCEPTROND_MEMORY_BUDGET="2B"\n', 2, ["--memory-budget"]),
                                      ('PERCEPTROND_MEMORY_BUDGE="2GiB"\nPERCEPTROND_SERVICE_HOST=10.0.0.1\n', 0, ["PERCEPTROND_MEMORY_BUDGE"])):
            variables.write_text(settings)
            said = subprocess.run(["sh", "-c", line.replace("/etc/default/perceptrond", str(variables))], capture_output=True, text=True,
                                  env={"PATH": f"{pathlib.Path(sys.argv[1]).resolve().parent}:{os.environ['PATH']}"})
            self.assertEqual((said.returncode, re.findall(r"PERCEPTROND_\w+|--memory-budget", said.stderr)), (code, named), settings)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
