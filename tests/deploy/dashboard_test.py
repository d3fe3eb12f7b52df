"""Every query of every panel of the Grafana dashboard, asked of a real Prometheus that scrapes the real server under load:
each returns data, and none is a constant.

    python3 dashboard_test.py PERCEPTROND PERCEPTRONCTL        # needs prometheus (Debian) and python3-yaml
"""

import json
import pathlib
import re
import shutil
import sys
import tempfile
import time
import unittest
import urllib.parse

import yaml

from dashboard_load import MODEL, SERVER_FLAGS, Load, obeying_file_modes
from processes import Prometheus, Server, get, wait_for

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
DASHBOARD = ROOT / "deploy/grafana/dashboards/perceptrond.json"
SCRAPE_SECONDS = 0.25
DEADLINE_SECONDS = 180

dashboard = json.loads(DASHBOARD.read_text())
panels = [panel for panel in dashboard["panels"] if panel["type"] != "row"]


def filled_in(expression):
    """As Grafana sends it: its variables have values. The rates' interval is at least four scrapes, as Grafana has it."""
    for variable, value in {"$instance": ".+", "$model": MODEL, "$__rate_interval": "2s", "$__interval": "1s"}.items():
        expression = expression.replace(variable, value)
    assert "$" not in expression, expression
    return expression


def queries():
    """What each query of each panel asks."""
    return {f"{panel['id']} {panel['title']} {target['refId']}": filled_in(target["expr"]) for panel in panels for target in panel["targets"]}


class Asker:
    def __init__(self, prometheus):
        self.url = prometheus.url
        self.start = time.time()

    def api(self, path, **parameters):
        answer = get(f"{self.url}/api/v1/{path}?{urllib.parse.urlencode(parameters)}")
        assert answer is not None, f"Prometheus refuses {parameters}"
        answer = json.loads(answer)
        assert answer["status"] == "success", answer
        return answer["data"]

    def seen(self, expression):
        """Returns once Prometheus has an answer to this."""
        wait_for(expression, lambda: self.api("query", query=expression)["result"])

    def series(self, expression, step=SCRAPE_SECONDS):
        """Its values since the load began, a list for each series."""
        data = self.api("query_range", query=expression, start=self.start, end=time.time(), step=step)
        return [[value for _, value in one["values"] if value != "NaN"] for one in data["result"]]


def moves(series):
    return any(len(set(values)) > 1 for values in series)


def write_config(directory, server):
    """The project's own rules and job, at a pace for tests."""
    config = yaml.safe_load((ROOT / "deploy/prometheus/prometheus.yml").read_text())
    config["global"] = {"scrape_interval": f"{int(SCRAPE_SECONDS * 1000)}ms", "evaluation_interval": "500ms",
                        "scrape_timeout": f"{int(SCRAPE_SECONDS * 1000)}ms"}
    shutil.copytree(ROOT / "deploy/prometheus/rules", directory / "rules")
    (directory / "targets").mkdir()
    (directory / "targets/perceptrond.yml").write_text(yaml.safe_dump([{"targets": [server.metrics]}]))
    path = directory / "prometheus.yml"
    path.write_text(yaml.safe_dump(config))
    return path


class DashboardTest(unittest.TestCase):
    def setUp(self):
        self.directory = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.program = obeying_file_modes(sys.argv[1], self.directory)
        self.start_server()
        self.addCleanup(lambda: self.server.kill())
        self.prometheus = self.enterContext(
            Prometheus(write_config(self.directory, self.server), self.directory / "tsdb", self.directory / "prometheus.log"))
        self.asker = Asker(self.prometheus)
        self.load = Load(sys.argv[2], self.server, self.directory, self.asker.seen)

    def start_server(self, *flags, **ports):
        self.server = Server(self.program, self.directory / "store", self.directory / "server.log", [*SERVER_FLAGS, *flags], **ports)

    def crash(self):
        """A disk that fails, then SIGKILL, then a start on the same ports with a damaged journal. Each lasts until Prometheus has seen it."""
        journal, size = self.load.failing_disk()
        self.asker.seen("perceptrond_journal_commit_failures_total > 0")
        self.server.kill()
        self.asker.seen('up{job="perceptrond"} == 0')
        self.load.damage(journal, size)
        self.start_server("--accept-data-loss", "yes", address=self.server.address, metrics=self.server.metrics)
        self.load.server = self.server
        self.load.recover()

    def unmoved(self, asked):
        still = {which: query for which, query in asked.items() if not moves(self.asker.series(query))}
        # Where a scrape was late, a step may have skipped the one before. Short steps are too expensive for all.
        return {which: query for which, query in still.items() if not moves(self.asker.series(query, SCRAPE_SECONDS / 5))}

    def test_every_query_returns_data_and_none_is_a_constant(self):
        self.asker.seen('up{job="perceptrond"} == 1')
        self.load.create()
        self.load.stream()
        for step in range(2):
            self.load.separable(step)
        # The first row error begins a series; only those after it are a rate.
        self.load.malformed()
        still = queries()
        deadline = time.monotonic() + DEADLINE_SECONDS
        annotations = self.annotations_without_data()
        while (still or annotations) and time.monotonic() < deadline:
            self.load.again()
            self.crash()
            still = self.unmoved(still)
            annotations = self.annotations_without_data()
        said = [f"{which}: {query}\n    {'a constant' if self.asker.series(query) else 'no data'}" for which, query in still.items()]
        self.assertEqual(said, [], "\n".join(said))
        # What is looked for can be found.
        unmoved = self.unmoved({"constant": "vector(1)", "no data": "perceptrond_nothing", "moving": "vector(time())"})
        self.assertEqual(set(unmoved), {"constant", "no data"})
        self.assertEqual(annotations, [])
        self.alerts_fired()
        self.variables_find_server_and_model()

    def alerts_fired(self):
        """Those that need no time, for what the load did."""
        for alert in ("ModelDrifting", "JournalFailing", "SnapshotsFailing", "LostWrites", "SlowConsumers"):
            self.asker.seen(f'max_over_time(ALERTS{{alertname="Perceptrond{alert}", alertstate="firing"}}[10m])')

    def annotations_without_data(self):
        return [one["name"] for one in dashboard["annotations"]["list"] if not self.asker.series(filled_in(one["expr"]))]

    def variables_find_server_and_model(self):
        found = {}
        for variable in dashboard["templating"]["list"]:
            if variable["type"] != "query":
                continue
            selector, label = re.fullmatch(r"label_values\((.*), (\w+)\)", variable["query"]["query"]).groups()
            series = self.asker.api("series", **{"match[]": filled_in(selector)})
            found[variable["name"]] = {one[label] for one in series}
        self.assertEqual(found["instance"], {self.server.metrics})
        self.assertIn(MODEL, found["model"])


class ShapeTest(unittest.TestCase):
    def test_panels_are_distinct_and_do_not_overlap(self):
        identities = [panel["id"] for panel in dashboard["panels"]]
        self.assertEqual(len(set(identities)), len(identities))
        taken = set()
        for panel in dashboard["panels"]:
            area = panel["gridPos"]
            self.assertLessEqual(area["x"] + area["w"], 24, panel["title"])
            cells = {(x, y) for x in range(area["x"], area["x"] + area["w"]) for y in range(area["y"], area["y"] + area["h"])}
            self.assertFalse(cells & taken, panel["title"])
            taken |= cells

    def test_there_is_a_row_for_the_service_and_one_that_is_repeated_for_each_model(self):
        rows = [panel for panel in dashboard["panels"] if panel["type"] == "row"]
        self.assertEqual([row.get("repeat") for row in rows], [None, "model"])

    def test_each_panel_says_what_it_shows_and_asks_the_chosen_data_source(self):
        for panel in panels:
            self.assertTrue(panel["description"], panel["title"])
            self.assertEqual({target["datasource"]["uid"] for target in panel["targets"]}, {"${datasource}"}, panel["title"])
            self.assertTrue(all(target["legendFormat"] for target in panel["targets"]), panel["title"])

    def test_alerts_that_panels_name_exist(self):
        rules = (ROOT / "deploy/prometheus/rules/perceptrond.alerts.yml").read_text()
        for panel in panels:
            for alert in re.findall(r"\b(Perceptrond[A-Z]\w+)", panel["description"]):
                self.assertIn(f"alert: {alert}\n", rules, panel["title"])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
