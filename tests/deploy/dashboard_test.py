"""The Grafana dashboard: its shape, and its queries, as Grafana sends them, asked of a real Prometheus that scrapes the real server.

    python3 dashboard_test.py PERCEPTROND PERCEPTRONCTL [TEST...]       # needs prometheus (Debian) and python3-yaml
"""

import itertools
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

from deployed import ROOT
from page_load import DIMENSION, Load
from processes import Prometheus, Server, get, wait_for

PROMETHEUS = ROOT / "deploy/prometheus"
DASHBOARD = json.loads((ROOT / "deploy/grafana/dashboards/perceptrond.json").read_text())
ROWS = {}
for panel in DASHBOARD["panels"]:
    if panel["type"] == "row":
        ROWS[panel["title"]] = below = []
    else:
        below.append(panel)
PANELS = [panel for panels in ROWS.values() for panel in panels]
# A regular expression of the first's name has the second, too, unless its dot is escaped.
MODEL, TWIN, AUTO, ENDLESS = "watched.1", "watched-1", "auto", "endless"


def filled_in(expression, *models):
    """The query that Grafana sends: a backslash before special characters, which a quoted text doubles, and several values in parentheses; without
    models the value for all of them. The rates' interval is at least four scrapes."""
    every = {variable["name"]: variable.get("allValue") for variable in DASHBOARD["templating"]["list"]}
    escaped = [re.sub(r"[$^*{}\[\]'+?.()|]", r"\\\\\g<0>", model) for model in models] or [every["model"]]
    values = {"$instance": every["instance"], "$model": escaped[0] if len(escaped) == 1 else f"({'|'.join(escaped)})",
              "$__rate_interval": "2s", "$__interval": "1s"}
    for variable, value in values.items():
        expression = expression.replace(variable, value)
    return expression


class ShapeTest(unittest.TestCase):
    def test_several_models_can_be_chosen_and_each_query_takes_them(self):
        (model,) = [one for one in DASHBOARD["templating"]["list"] if one["name"] == "model"]
        self.assertTrue(model["multi"] and model["includeAll"] and model["allValue"])
        for expression in [target["expr"] for panel in PANELS for target in panel["targets"]] + [one["expr"] for one in DASHBOARD["annotations"]["list"]]:
            # Grafana escapes names for a regular expression, which "=" would take literally.
            self.assertEqual(expression.count("$model"), expression.count('model_name=~"$model"'), expression)

    def test_each_panel_says_what_it_shows_and_asks_the_chosen_data_source(self):
        for panel in PANELS:
            self.assertTrue(panel["description"] and all(target["legendFormat"] for target in panel["targets"]), panel["title"])
            self.assertEqual({target["datasource"]["uid"] for target in panel["targets"]}, {"${datasource}"}, panel["title"])


class QueriesTest(unittest.TestCase):
    def setUp(self):
        self.directory = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.server = self.enterContext(Server(sys.argv[1], self.directory / "data", self.directory / "log", ["--snapshot-bytes", "4KiB"]))
        self.load = Load(sys.argv[2], self.server, self.directory)
        # The project's own rules and job, at a pace for tests.
        config = yaml.safe_load((PROMETHEUS / "prometheus.yml").read_text())
        config["global"] = {"scrape_interval": "250ms", "evaluation_interval": "500ms", "scrape_timeout": "250ms"}
        shutil.copytree(PROMETHEUS / "rules", self.directory / "rules")
        (self.directory / "targets").mkdir()
        (self.directory / "targets/perceptrond.yml").write_text(yaml.safe_dump([{"targets": [self.server.metrics]}]))
        (self.directory / "prometheus.yml").write_text(yaml.safe_dump(config))
        self.start = time.time()
        self.url = self.enterContext(Prometheus(self.directory / "prometheus.yml", self.directory / "tsdb", self.directory / "prometheus.log")).url

    def api(self, path, **parameters):
        answer = get(f"{self.url}/api/v1/{path}?{urllib.parse.urlencode(parameters)}")
        self.assertIsNotNone(answer, f"Prometheus refuses {parameters}")
        return json.loads(answer)["data"]

    def await_scrapes(self):
        """Prometheus knows all figures as they are now, or were since."""
        count = lambda: sum(int(one["value"][1]) for one in self.api("query", query='count_over_time(up{job="perceptrond"}[1h])')["result"])
        enough = count() + 2
        wait_for("the server is scraped twice", lambda: count() >= enough)

    def answered(self, expression):
        """Tells whether it had any series so far."""
        return bool(self.api("query_range", query=expression, start=self.start, end=time.time(), step=0.25)["result"])

    def create(self):
        for name, more in ((MODEL, ["--store-sample", 1000]), (TWIN, ["--keep-predictions", "60s"]), (AUTO, ["--learner", "auto"]), (ENDLESS, [])):
            self.load.call("create", name, "--dimension", DIMENSION, *more)

    def teach(self, count):
        """The first model can be separated; the second drifts."""
        rows = self.load.rows(300)
        self.load.learn(MODEL, rows, "--analyze", "--until-converged", "--producer", f"p{count}", "--start-offset", 0)
        self.load.learn(MODEL, rows, "--producer", f"p{count}", "--start-offset", 0)
        self.load.learn(AUTO, rows + "+1 0:1\n-1 0:1\n" * 200)
        self.load.learn(TWIN, self.load.rows(1000) + self.load.rows(400, flipped=True) + f"+1 {DIMENSION + 5}:1\n" * 20, "--unseen-indices", "refuse", expect=3)
        self.load.call("get", "nobody", expect=1)
        predicted = self.load.call("predict", TWIN, "-", "--format", "svmlight", "--index-base", 0, "--ids", "--quiet", text=self.load.rows(20))
        labels = self.directory / "labels.csv"
        labels.write_text("".join(line.split("\t")[-1] + ",1\n" for line in predicted.splitlines()))
        self.load.call("learn", TWIN, labels, "--format", "ids", "--quiet")

    def test_every_query_but_a_fleet_s_returns_data(self):
        self.create()
        self.await_scrapes()
        panels = [panel for row, panels in ROWS.items() if row != "Fleet" for panel in panels]
        waiting = {f"{panel['title']}: {target['expr']}": filled_in(target["expr"]) for panel in panels for target in panel["targets"]}
        waiting |= {one["name"]: filled_in(one["expr"], TWIN) for one in DASHBOARD["annotations"]["list"]}
        # Only a stream that is open has some figures.
        with self.load.stream(ENDLESS) as producer:
            producer.stdin.write(self.load.rows(3000))
            producer.stdin.flush()
            counts = itertools.count()

            def all_answered():
                self.teach(next(counts))
                self.await_scrapes()
                for name in [name for name, query in waiting.items() if self.answered(query)]:
                    del waiting[name]
                return not waiting

            # It says which ones it waits for.
            wait_for(waiting, all_answered)
            producer.stdin.close()
        (error,) = [target["expr"] for panel in ROWS["Chosen models, compared"] if panel["id"] == 52 for target in panel["targets"]]
        for models in ([MODEL], [MODEL, TWIN], []):
            found = {one["metric"]["model_name"] for one in self.api("query", query=filled_in(error, *models))["result"]}
            self.assertEqual(found, set(models or (MODEL, TWIN, AUTO, ENDLESS)))
        for variable in (one for one in DASHBOARD["templating"]["list"] if one["type"] == "query"):
            selector, label = re.fullmatch(r"label_values\((.*), (\w+)\)", variable["query"]["query"]).groups()
            values = {one[label] for one in self.api("series", **{"match[]": filled_in(selector)})}
            self.assertEqual(values, {"instance": {self.server.metrics}, "model": {MODEL, TWIN, AUTO, ENDLESS}}[variable["name"]])
        wait_for("the alert of the drift fires", lambda: self.answered('ALERTS{alertname="PerceptrondModelDrifting", alertstate="firing"}'))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
