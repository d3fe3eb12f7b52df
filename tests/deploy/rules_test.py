"""The alerts do what they say: promtool checks and runs them against the scenarios of scenarios.txt, and the runbook knows each.

    python3 rules_test.py        # needs promtool (Debian: prometheus) and python3-yaml
"""

import json
import re
import subprocess
import tempfile
import unittest

from deployed import ROOT, RULES, rule_groups

GROUPS = rule_groups()
ALERTS = {rule["alert"]: rule for group in GROUPS for rule in group["rules"] if "alert" in rule}
SCENARIOS = (ROOT / "tests/deploy/scenarios.txt").read_text().strip().split("\n\n")[1:]
LABEL = re.compile(r'(\w+)="([^"]*)"')
# These ask for figures of all servers, or fire for no server alone: each runs alone, the others together.
ALONE = re.compile(r" = |\bperceptrond_fleet|\bPerceptrond\w+\b(?!{)")


def selector(name, labels):
    return name + "{" + ", ".join(f'{key}="{value}"' for key, value in labels.items()) + "}"


def labels_of(text, **default):
    return default | dict(LABEL.findall(text))


class Scenario:
    """The promtool test of a text; `mark` ends the names of its servers."""

    def __init__(self, text, mark=""):
        self._mark, self._values, self.tests = mark, {}, []
        lines = [line for line in text.splitlines() if not line.startswith("#")]
        for line in lines:
            if re.match(r"\d+m", line):
                self._look(*line.split(": "))
            else:
                self._add(*re.match(r"(\w+(?:{.*?})?) (.*)", line).groups())
        self.series = [{"series": one, "values": values} for one, values in self._values.items()]

    def _add(self, given, values):
        name = given.partition("{")[0]
        labels = labels_of(given, job="perceptrond", instance="a")
        labels["instance"] += self._mark
        if name.startswith("grpc_"):
            labels = {"grpc_type": "unary", "grpc_service": "perceptron.v1.LearningService", "grpc_method": "Learn"} | labels
        self._values[selector(name, labels)] = values
        for of_all, label in (("up", "instance"), ("perceptrond_model_written", "model_name")):
            if label in labels:
                self._values.setdefault(selector(of_all, {key: labels[key] for key in ("job", "instance", label)}), "1x400")

    def _look(self, moments, what):
        if " = " in what:
            expression, value = what.split(" = ")
            self.tests.append({"eval_time": moments, "expr": f"round({expression} * 100000) / 100000", "exp_samples": [{"labels": "{}", "value": float(value)}]})
            return
        alerts = [labels_of(alert, alertname=alert.partition("{")[0]) for alert in what.split(" ") if alert != "silence"]
        for alert in alerts:
            if "instance" in alert:
                alert["instance"] += self._mark
        firing = f'count by (alertname, instance, model_name, grpc_method) (ALERTS{{alertstate="firing", instance=~".*{self._mark}"}})'
        samples = [{"labels": selector("", alert), "value": 1} for alert in alerts]
        self.tests += [{"eval_time": moment, "expr": firing, "exp_samples": samples} for moment in moments.split()]


def promtool_tests():
    alone = [Scenario(text) for text in SCENARIOS if ALONE.search(text)]
    together = [Scenario(text, f"-{number}") for number, text in enumerate(SCENARIOS) if not ALONE.search(text)]
    groups = [[one] for one in alone] + [together]
    return [{"interval": "1m", "input_series": [series for one in group for series in one.series], "promql_expr_test": [test for one in group for test in one.tests]}
            for group in groups]


class RulesTest(unittest.TestCase):
    def passes(self, *arguments):
        run = subprocess.run(["promtool", *map(str, arguments)], capture_output=True, text=True)
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)

    def test_promtool_finds_nothing_wrong_with_rules_and_configuration(self):
        self.passes("check", "rules", "--lint-fatal", *RULES)
        self.passes("check", "config", "--lint-fatal", ROOT / "deploy/prometheus/prometheus.yml")

    def test_each_alert_fires_when_it_should_and_is_silent_when_not(self):
        tests = {"rule_files": list(map(str, RULES)), "evaluation_interval": "1m", "group_eval_order": [group["name"] for group in GROUPS],
                 "tests": promtool_tests()}
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
