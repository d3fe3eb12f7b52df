"""The alerts do what they say: promtool checks and runs them against the scenarios of scenarios.txt, and the runbook knows each.

    python3 rules_test.py        # needs promtool (Debian: prometheus) and python3-yaml
"""

import json
import pathlib
import re
import subprocess
import tempfile
import unittest

import yaml

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
RULES = sorted((ROOT / "deploy/prometheus/rules").glob("*.yml"), reverse=True)
GROUPS = [group for path in RULES for group in yaml.safe_load(path.read_text())["groups"]]
ALERTS = {rule["alert"]: rule for group in GROUPS for rule in group["rules"] if "alert" in rule}
SCENARIOS = (HERE / "scenarios.txt").read_text().strip().split("\n\n")[1:]
FIRING = 'count by (alertname, instance, model_name, grpc_method) (ALERTS{alertstate="firing"})'
LABEL = re.compile(r'(\w+)="([^"]*)"')


def selector(name, labels):
    return name + "{" + ", ".join(f'{key}="{value}"' for key, value in labels.items()) + "}"


def series(line):
    """Name, labels and values."""
    given, values = re.match(r"(\w+(?:{.*?})?) (.*)", line).groups()
    name = given.partition("{")[0]
    labels = {"job": "perceptrond", "instance": "a"}
    if name.startswith("grpc_"):
        labels |= {"grpc_type": "unary", "grpc_service": "perceptron.v1.LearningService", "grpc_method": "Learn"}
    return name, labels | dict(LABEL.findall(given)), values


def moments(line):
    """promtool's tests of one line of moments."""
    times, what = line.split(": ")
    if " = " in what:
        expression, value = what.split(" = ")
        return [{"eval_time": times, "expr": f"round({expression} * 100000) / 100000", "exp_samples": [{"labels": "{}", "value": float(value)}]}]
    alerts = [] if what == "silence" else what.split(" ")
    labels = [{"alertname": alert.partition("{")[0], **dict(LABEL.findall(alert))} for alert in alerts]
    return [{"eval_time": time, "expr": FIRING, "exp_samples": [{"labels": selector("", one), "value": 1} for one in labels]} for time in times.split()]


def scenario(text):
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    looked_at = [line for line in lines if re.match(r"\d+m", line)]
    given = [series(line) for line in lines if line not in looked_at]
    values = {selector(name, labels): values for name, labels, values in given}
    for name, label in (("up", "instance"), ("perceptrond_model_written", "model_name")):
        if all(one != name for one, _, _ in given):
            named = [{key: labels[key] for key in {"job": 0, "instance": 0, label: 0}} for _, labels, _ in given if label in labels]
            values |= {selector(name, labels): "1x400" for labels in named}
    return {"interval": "1m", "input_series": [{"series": one, "values": values[one]} for one in values], "promql_expr_test": [test for line in looked_at for test in moments(line)]}


class RulesTest(unittest.TestCase):
    def passes(self, *arguments):
        run = subprocess.run(["promtool", *map(str, arguments)], capture_output=True, text=True)
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)

    def test_promtool_finds_nothing_wrong_with_rules_and_configuration(self):
        self.passes("check", "rules", "--lint-fatal", *RULES)
        self.passes("check", "config", "--lint-fatal", ROOT / "deploy/prometheus/prometheus.yml")

    def test_each_alert_fires_when_it_should_and_is_silent_when_not(self):
        tests = {"rule_files": list(map(str, RULES)), "evaluation_interval": "1m", "group_eval_order": [group["name"] for group in GROUPS],
                 "tests": list(map(scenario, SCENARIOS))}
        with tempfile.NamedTemporaryFile("w", suffix=".yml") as file:
            file.write(json.dumps(tests))
            file.flush()
            self.passes("test", "rules", file.name)
        # A moment names all alerts that fire, so that one that always fires, or never does, fails one of them.
        self.assertEqual({name for text in SCENARIOS for name in re.findall(r"\bPerceptrond\w+", text)}, set(ALERTS))

    def test_each_alert_has_a_section_of_the_runbook_and_says_how_urgent_it_is(self):
        sections = re.findall(r"^### (\w+)$", (ROOT / "docs/runbook.md").read_text(), re.MULTILINE)
        self.assertEqual(sections, list(ALERTS), "in the order of the rules")
        for name, alert in ALERTS.items():
            self.assertEqual(alert["annotations"]["runbook_url"], f"docs/runbook.md#{name.lower()}")
            self.assertIn(alert["labels"]["severity"], {"critical", "warning", "info"}, name)
            self.assertLessEqual({"summary", "description"}, alert["annotations"].keys(), name)


if __name__ == "__main__":
    unittest.main()
