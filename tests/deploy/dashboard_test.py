"""Every query of the Grafana dashboard, but for a fleet's, asked of a real Prometheus that scrapes the real server under load:
each returns data, and none is a constant.

    python3 dashboard_test.py PERCEPTROND PERCEPTRONCTL        # needs prometheus (Debian) and python3-yaml
"""

import pathlib
import re
import sys
import tempfile
import time
import unittest

from dashboard_load import AUTO, HOPELESS, MODEL, SERVER_FLAGS, TWIN, Load, obeying_file_modes
from dashboards import ROOT, Asker, dashboard, filled_in, panels_of, queries, write_config
from processes import Prometheus, Server

DEADLINE_SECONDS = 180

COMPARED = "Chosen models, compared"
# Only models with the learner auto have them.
OF_MEMBERS = {"Votes of members", "Mistakes of members"}

panels = panels_of("Service", COMPARED, "Model $model")
MEMBER_PANELS = [panel for panel in panels if panel["title"] in OF_MEMBERS]


class DashboardTest(unittest.TestCase):
    def setUp(self):
        self.directory = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.program = obeying_file_modes(sys.argv[1], self.directory)
        self.start_server()
        self.addCleanup(lambda: self.server.kill())
        self.prometheus = self.enterContext(
            Prometheus(write_config(self.directory, [self.server.metrics]), self.directory / "tsdb", self.directory / "prometheus.log"))
        self.asker = Asker(self.prometheus.url)
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

    def test_every_query_returns_data_and_none_is_a_constant(self):
        self.asker.seen('up{job="perceptrond"} == 1')
        self.load.create()
        self.load.stream()
        for step in range(2):
            self.load.separable(step)
        # The first row error begins a series; only those after it are a rate.
        self.load.malformed()
        still = queries([panel for panel in panels if panel["title"] not in OF_MEMBERS], MODEL)
        still |= queries(MEMBER_PANELS, AUTO)
        deadline = time.monotonic() + DEADLINE_SECONDS
        annotations = self.annotations_without_data()
        while (still or annotations) and time.monotonic() < deadline:
            self.load.again()
            self.crash()
            still = self.asker.unmoved(still)
            annotations = self.annotations_without_data()
        said = self.asker.describe(still)
        self.assertEqual(said, [], "\n".join(said))
        # What is looked for can be found.
        unmoved = self.asker.unmoved({"constant": "vector(1)", "no data": "perceptrond_nothing", "moving": "vector(time())"})
        self.assertEqual(set(unmoved), {"constant", "no data"})
        self.assertEqual(annotations, [])
        self.alerts_fired()
        self.variables_find_server_and_model()
        self.chosen_models_are_compared_and_no_others()
        self.members_are_those_of_chosen_models()

    def alerts_fired(self):
        """Those that need no time, for what the load did."""
        for alert in ("ModelDrifting", "JournalFailing", "SnapshotsFailing", "LostWrites", "SlowConsumers"):
            self.asker.seen(f'max_over_time(ALERTS{{alertname="Perceptrond{alert}", alertstate="firing"}}[10m])')

    def annotations_without_data(self):
        return [one["name"] for one in dashboard["annotations"]["list"] if not self.asker.series(filled_in(one["expr"], MODEL))]

    def chosen_models_are_compared_and_no_others(self):
        (error,) = [target["expr"] for panel in panels_of(COMPARED) if panel["id"] == 52 for target in panel["targets"]]
        for models in ([MODEL], [MODEL, HOPELESS], [HOPELESS, TWIN, MODEL]):
            # Those that have evaluated no example since they were loaded have no error.
            found = {one["metric"]["model_name"] for one in self.asker.now(filled_in(error.replace("window_error_ratio", "revision"), *models))}
            self.assertEqual(found, set(models))
        everything = {one["metric"]["model_name"] for one in self.asker.now(filled_in(error.replace("window_error_ratio", "revision")))}
        self.assertLess({MODEL, HOPELESS, TWIN}, everything)

    def members_are_those_of_chosen_models(self):
        # Only a model in memory has them.
        self.load.call("get", AUTO)
        for query in queries(MEMBER_PANELS, MODEL, AUTO, HOPELESS).values():
            self.asker.seen(query)
            found = {(one["metric"]["model_name"], one["metric"]["member"]) for one in self.asker.now(query)}
            self.assertEqual((len(found), {model for model, _ in found}), (8, {AUTO}))
        for query in queries(MEMBER_PANELS, MODEL, HOPELESS).values():
            self.assertEqual(self.asker.now(query), [])

    def variables_find_server_and_model(self):
        found = {}
        for variable in dashboard["templating"]["list"]:
            if variable["type"] != "query":
                continue
            selector, label = re.fullmatch(r"label_values\((.*), (\w+)\)", variable["query"]["query"]).groups()
            series = self.asker.api("series", **{"match[]": filled_in(selector, MODEL)})
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

    def test_there_are_rows_for_the_service_a_fleet_and_chosen_models_and_one_that_is_repeated_for_each_model(self):
        rows = [panel for panel in dashboard["panels"] if panel["type"] == "row"]
        self.assertEqual([(row["title"], row.get("repeat")) for row in rows], [("Service", None), ("Fleet", None), (COMPARED, None), ("Model $model", "model")])

    def test_several_models_can_be_chosen_and_each_query_takes_them(self):
        (model,) = [one for one in dashboard["templating"]["list"] if one["name"] == "model"]
        self.assertTrue(model["multi"] and model["includeAll"] and model["allValue"])
        expressions = [target["expr"] for panel in panels_of() for target in panel["targets"]] + [one["expr"] for one in dashboard["annotations"]["list"]]
        for expression in expressions:
            # Grafana escapes names for a regular expression, which "=" would take literally.
            self.assertEqual(expression.count("$model"), expression.count('model_name=~"$model"'), expression)

    def test_each_panel_says_what_it_shows_and_asks_the_chosen_data_source(self):
        for panel in panels_of():
            self.assertTrue(panel["description"], panel["title"])
            self.assertEqual({target["datasource"]["uid"] for target in panel["targets"]}, {"${datasource}"}, panel["title"])
            self.assertTrue(all(target["legendFormat"] for target in panel["targets"]), panel["title"])

    def test_alerts_that_panels_name_exist(self):
        rules = (ROOT / "deploy/prometheus/rules/perceptrond.alerts.yml").read_text()
        for panel in panels_of():
            for alert in re.findall(r"\b(Perceptrond[A-Z]\w+)", panel["description"]):
                self.assertIn(f"alert: {alert}\n", rules, panel["title"])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
