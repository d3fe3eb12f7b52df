"""docs/metrics.md explains every metric, and no other; the commands of docs/operate.md and docs/backup.md work; flags and alerts
that a document names exist.

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

import yaml

from processes import Server, get

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
METRICS = (ROOT / "docs/metrics.md").read_text()
OPERATE = (ROOT / "docs/operate.md").read_text()
BACKUP = (ROOT / "docs/backup.md").read_text()
PAGES = "".join(page.read_text() for page in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))])
# Families have their full name in the lists of the server's sources; those of figures are defined by the report's options.
SOURCES = sorted((ROOT / "server/metrics").glob("*.cc"))
FAMILY = r"(?:perceptrond|grpc_server|process)_\w+"
# Separable rows.
ROWS = "+1 0:1 1:2\n-1 0:1 1:-2\n+1 0:2 1:1\n-1 0:2 1:-3\n"


def documented():
    return re.findall(r"^`(\w+)` \|", METRICS, re.MULTILINE)


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
        self.ctl(self.server, "create", "m", "--dimension", 3, "--store-sample", 10, "--margin-of-interest", 0.001)
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

    def test_every_row_says_what_it_means(self):
        for row in re.findall(r"^`\w+` \|.*$", METRICS, re.MULTILINE):
            self.assertEqual(len([cell for cell in row.split(" | ") if cell.strip()]), 2, row)

    def test_every_alert_that_is_named_exists(self):
        groups = yaml.safe_load((ROOT / "deploy/prometheus/rules/perceptrond.alerts.yml").read_text())["groups"]
        alerts = {rule["alert"] for group in groups for rule in group["rules"]}
        self.assertLessEqual(set(re.findall(r"\bPerceptrond[A-Z]\w+", PAGES)), alerts)

    def test_every_metric_that_a_rule_asks_for_is_served(self):
        for path in sorted((ROOT / "deploy/prometheus/rules").glob("*.yml")):
            for group in yaml.safe_load(path.read_text())["groups"]:
                for rule in group["rules"]:
                    # What is recorded has colons in its name.
                    words = [word for word in re.findall(r"[\w:]+", rule["expr"]) if re.fullmatch(FAMILY, word)]
                    names = {word.removesuffix("_bucket") for word in words}
                    self.assertLessEqual(names, in_sources(), rule)

    def test_every_flag_that_is_named_exists(self):
        def help_of(*command):
            return subprocess.run([*command, "--help"], check=True, capture_output=True, text=True).stdout

        known = help_of(sys.argv[1]) + help_of(sys.argv[2])
        for command in re.findall(r"^  (\w+) {2,}", known.split("Subcommands:")[1], re.MULTILINE):
            known += help_of(sys.argv[2], command)
        # Of docker, cmake, npm, pkg-config, tests/run.sh, tests/bench/run.sh and cost_growth.
        others = {"--build", "--profile", "--wait", "--stop-timeout", "--preset", "--install", "--prefix", "--component", "--workflow", "--cflags", "--libs",
                  "--variable", "--label", "--matrix", "--svg", "--rm", "--filter", "--num"}
        # Nor of other programs.
        pages = re.sub(r"^```sh needs=.*?^```$", "", PAGES, flags=re.MULTILINE | re.DOTALL)
        for flag in set(re.findall(r"(?<![\w-])--[a-z][a-z0-9-]+", pages)) - others:
            self.assertTrue(re.search(rf"{flag}\b", known), flag)

    def stop(self, server):
        server.process.terminate()
        self.assertEqual(server.process.wait(), 0)

    def type(self, lines):
        """Runs commands of docs/backup.md in a tree of the test's own, with the server's tools on the path."""
        tools = self.directory / "bin"
        tools.mkdir(exist_ok=True)
        (tools / "systemctl").write_text(f'#!/bin/sh\necho "$1 $2" >> {self.directory}/systemctl.log\n')
        (tools / "systemctl").chmod(0o755)
        for name, program in (("perceptrond", sys.argv[1]), ("perceptronctl", sys.argv[2])):
            if not (tools / name).exists():
                (tools / name).symlink_to(pathlib.Path(program).resolve())
        text = "\n".join(lines).replace("/var/lib/", f"{self.directory}/var/lib/")
        return subprocess.run(["bash", "-c", text], capture_output=True, text=True,
                              env={**os.environ, "PATH": f"{tools}:{os.environ['PATH']}", "PERCEPTROND_SERVER": self.server.address})

    def test_the_backup_commands_restore_the_models(self):
        """Where systemd has the data: in private/, with a link to it."""
        for folder in ("perceptrond", "perceptrond-backups"):
            (self.directory / "var/lib/private" / folder).mkdir(parents=True)
            (self.directory / "var/lib" / folder).symlink_to(f"private/{folder}")
        os.environ["PERCEPTROND_BACKUP_DIR"] = str(self.directory / "var/lib/perceptrond-backups")
        self.addCleanup(os.environ.pop, "PERCEPTROND_BACKUP_DIR")
        self.server = self.start("var/lib/private/perceptrond")
        self.teach()
        before = self.state(self.server)
        backing_up, *restoring = [line[4:] for line in BACKUP.splitlines() if line.startswith("    ")]
        done = self.type([backing_up])
        self.assertEqual(done.returncode, 0, done.stderr)
        # What was learned since is not in the backup.
        self.ctl(self.server, "delete", "m")
        self.ctl(self.server, "create", "other", "--dimension", 3)
        self.stop(self.server)
        done = self.type(restoring)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual((self.directory / "systemctl.log").read_text(), "stop perceptrond\nstart perceptrond\n")
        self.assertTrue((self.directory / "var/lib/perceptrond").is_symlink())
        restored = self.start("var/lib/private/perceptrond")
        self.assertEqual(self.state(restored), before)
        self.assertNotIn("other", self.ctl(restored, "list"))

    def test_the_upgrade_command_names_settings_that_the_new_server_does_not_know(self):
        (tools := self.directory / "programs").mkdir()
        (tools / "perceptrond").symlink_to(pathlib.Path(sys.argv[1]).resolve())
        variables = self.directory / "variables"
        (line,) = re.findall(r"`(\(set -a;[^`]*\))`", OPERATE)

        def said(text):
            variables.write_text(text)
            return subprocess.run(["sh", "-c", line.replace("/etc/default/perceptrond", str(variables))], capture_output=True, text=True,
                                  env={"PATH": f"{tools}:{os.environ['PATH']}"})

        known = said('PERCEPTROND_MEMORY_BUDGET="2GiB"\n')
        self.assertEqual((known.returncode, known.stderr), (0, ""))
        self.assertIn('\nmemory-budget = "2GiB"\n', known.stdout)
        unknown = said('PERCEPTROND_MEMORY_BUDGE="2GiB"\nPERCEPTROND_SERVICE_HOST=10.0.0.1\n')
        self.assertEqual(unknown.returncode, 0)
        self.assertRegex(unknown.stderr, r"^.*\bPERCEPTROND_MEMORY_BUDGE\b.*\n$")
        out_of_range = said('PERCEPTROND_MEMORY_BUDGET="2B"\n')
        self.assertEqual(out_of_range.returncode, 2)

    def test_the_number_of_series_is_as_documented(self):
        """Of a server that was asked nothing, and of a model more."""
        server, fewest, most = map(int, re.search(r"about (\d+)\s+series.*?each\s+model\s+that\s+learns\s+(\d+)\s+to\s+(\d+)", OPERATE, re.DOTALL).groups())

        def series():
            get(f"http://{self.server.metrics}/metrics")
            page = get(f"http://{self.server.metrics}/metrics")
            return sum(not line.startswith("#") for line in page.splitlines())

        empty = series()
        self.assertAlmostEqual(empty, server, delta=server / 10)
        self.teach()
        taught = series() - empty
        self.assertGreaterEqual(taught, fewest)
        self.assertLessEqual(taught, most)

    def test_the_memory_of_a_name_is_as_documented(self):
        bytes_a_name = int(re.search(r"some (\d+)\s+bytes\s+a\s+name", OPERATE)[1])
        names = 30000
        (self.directory / "names.vw").write_text("".join(
            ("1 |" if row % 2 == 0 else "-1 |") + "".join(f" word{row * 100 + i:06}" for i in range(100)) + "\n" for row in range(names // 100)))
        self.ctl(self.server, "create", "words", "--named", "--store-updates", 0)
        self.ctl(self.server, "learn", "words", self.directory / "names.vw")
        page = get(f"http://{self.server.metrics}/metrics")
        taken = float(re.search(r'^perceptrond_model_memory_bytes\{[^}]*"words"[^}]*\} (\S+)', page, re.MULTILINE)[1])
        self.assertEqual(len(json.loads(self.ctl(self.server, "get", "words", "--weights", "-o", "json"))["weights"]["vectors"][0]["names"]), names)
        self.assertAlmostEqual(taken / names, bytes_a_name, delta=bytes_a_name / 5)

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
