"""The Grafana dashboard: its queries as Grafana sends them, and their answers from a Prometheus that scrapes quickly."""

import json
import pathlib
import re
import shutil
import time
import urllib.parse

import yaml

from processes import get, wait_for

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SCRAPE_SECONDS = 0.25

dashboard = json.loads((ROOT / "deploy/grafana/dashboards/perceptrond.json").read_text())


def panels_of(*rows):
    """The panels below these rows; without a name, all."""
    row, found = None, []
    for panel in dashboard["panels"]:
        if panel["type"] == "row":
            row = panel["title"]
        elif not rows or row in rows:
            found.append(panel)
    return found


def chosen(variable, values):
    """A variable's values as Grafana writes them into a query of Prometheus: the value for all of them, or each with a backslash for its
    special characters, which a quoted text doubles, and several in parentheses."""
    (definition,) = [one for one in dashboard["templating"]["list"] if one["name"] == variable]
    if not values:
        return definition["allValue"]
    escaped = [re.sub(r"[$^*{}\[\]'+?.()|]", r"\\\\\g<0>", value.replace("\\", "\\" * 4)) for value in values]
    return escaped[0] if len(escaped) == 1 else f"({'|'.join(escaped)})"


def filled_in(expression, *models):
    """As Grafana sends it: its variables have values; without models, that for all. The rates' interval is at least four scrapes, as Grafana
    has it."""
    values = {"$instance": chosen("instance", []), "$model": chosen("model", models), "$__rate_interval": "2s", "$__interval": "1s"}
    for variable, value in values.items():
        expression = expression.replace(variable, value)
    assert "$" not in re.sub(r"\\\\.", "", expression), expression
    return expression


def queries(panels, *models):
    """What each query of each panel asks."""
    return {f"{panel['id']} {panel['title']} {target['refId']}": filled_in(target["expr"], *models) for panel in panels for target in panel["targets"]}


class Asker:
    def __init__(self, url):
        self.url = url
        self.start = time.time()

    def api(self, path, **parameters):
        answer = get(f"{self.url}/api/v1/{path}?{urllib.parse.urlencode(parameters)}")
        assert answer is not None, f"Prometheus refuses {parameters}"
        answer = json.loads(answer)
        assert answer["status"] == "success", answer
        return answer["data"]

    def now(self, expression):
        return self.api("query", query=expression)["result"]

    def seen(self, expression):
        """Returns once Prometheus has an answer to this."""
        wait_for(expression, lambda: self.now(expression))

    def series(self, expression, step=SCRAPE_SECONDS):
        """Its values since the load began, a list for each series."""
        data = self.api("query_range", query=expression, start=self.start, end=time.time(), step=step)
        return [[value for _, value in one["values"] if value != "NaN"] for one in data["result"]]

    def unmoved(self, asked):
        """Those of these queries whose answers are all constants, or none."""
        still = {which: query for which, query in asked.items() if not moves(self.series(query))}
        # Where a scrape was late, a step may have skipped the one before. Short steps are too expensive for all.
        return {which: query for which, query in still.items() if not moves(self.series(query, SCRAPE_SECONDS / 5))}

    def describe(self, still):
        return [f"{which}: {query}\n    {'a constant' if self.series(query) else 'no data'}" for which, query in still.items()]


def moves(series):
    return any(len(set(values)) > 1 for values in series)


def write_config(directory, targets):
    """The project's own rules and job, at a pace for tests."""
    config = yaml.safe_load((ROOT / "deploy/prometheus/prometheus.yml").read_text())
    config["global"] = {"scrape_interval": f"{int(SCRAPE_SECONDS * 1000)}ms", "evaluation_interval": "500ms",
                        "scrape_timeout": f"{int(SCRAPE_SECONDS * 1000)}ms"}
    shutil.copytree(ROOT / "deploy/prometheus/rules", directory / "rules")
    (directory / "targets").mkdir()
    (directory / "targets/perceptrond.yml").write_text(yaml.safe_dump([{"targets": targets}]))
    path = directory / "prometheus.yml"
    path.write_text(yaml.safe_dump(config))
    return path
