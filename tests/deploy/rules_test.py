"""The alerts do what they say: promtool checks and runs them against the scenarios of rules/, and the runbook knows each.

    python3 rules_test.py        # needs promtool (Debian: prometheus) and python3-yaml
"""

import pathlib
import re
import subprocess
import unittest

import yaml

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
RULES = sorted((ROOT / "deploy/prometheus/rules").glob("*.yml"))
SCENARIOS = sorted((HERE / "rules").glob("*.yml"))
RUNBOOK = ROOT / "docs/runbook.md"


def promtool(*arguments):
    return subprocess.run(["promtool", *map(str, arguments)], capture_output=True, text=True)


def alerts():
    groups = [group for path in RULES for group in yaml.safe_load(path.read_text())["groups"]]
    return {rule["alert"]: rule for group in groups for rule in group["rules"] if "alert" in rule}


class RulesTest(unittest.TestCase):
    def passes(self, run):
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)

    def test_promtool_finds_nothing_wrong_with_rules_and_configuration(self):
        self.passes(promtool("check", "rules", "--lint-fatal", *RULES))
        self.passes(promtool("check", "config", "--lint-fatal", ROOT / "deploy/prometheus/prometheus.yml"))

    def test_each_alert_fires_when_it_should_and_is_silent_when_not(self):
        self.passes(promtool("test", "rules", *SCENARIOS))

    def test_each_alert_is_seen_firing(self):
        # Each scenario names all that fire at a moment, so an alert that never fires, or always does, fails one that
        # expects it, or expects it not.
        seen = re.findall(r'alertname="(\w+)"', "".join(path.read_text() for path in SCENARIOS))
        self.assertEqual(set(seen), set(alerts()))

    def test_each_alert_has_a_section_and_each_section_an_alert(self):
        sections = re.findall(r"^### (\w+)$", RUNBOOK.read_text(), re.MULTILINE)
        self.assertEqual(sections, list(alerts()), "in the order of the rules")

    def test_each_alert_links_to_its_section_and_says_how_urgent_it_is(self):
        for name, alert in alerts().items():
            self.assertEqual(alert["annotations"]["runbook_url"], f"docs/runbook.md#{name.lower()}")
            self.assertIn(alert["labels"]["severity"], {"critical", "warning", "info"}, name)
            self.assertLessEqual({"summary", "description"}, alert["annotations"].keys(), name)

    def test_links_within_the_runbook_lead_somewhere(self):
        text = RUNBOOK.read_text()
        anchors = {heading.lower().replace(" ", "-") for heading in re.findall(r"^#+ (.+)$", text, re.MULTILINE)}
        for link in re.findall(r"\]\(#([^)]+)\)", text):
            self.assertIn(link, anchors)

    def test_each_section_says_what_to_do(self):
        for section in re.split(r"^### ", RUNBOOK.read_text(), flags=re.MULTILINE)[1:]:
            self.assertRegex(section, r"\*\*[Dd]o\*\*", section)


if __name__ == "__main__":
    unittest.main()
