"""The status page in a real Chromium, of a real server: it shows what its JSON says, follows without being loaded again, obeys no text,
asks no other server, and is reached by keys, on a phone and in the dark; axe-core finds nothing.

    python3 page_test.py PERCEPTROND PERCEPTRONCTL [TEST...]        # a test: SmokeTest. AXE names axe-core's axe.min.js.
"""

import json
import os
import pathlib
import sys
import tempfile
import unittest
import urllib.parse

from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from browser import DESKTOP, PHONE, Browser
from page_load import DIMENSION, Load
from processes import Server, get

SCRIPT, IMAGE = "<script>document.title='owned'</script>", "<img src=x onerror=document.title='owned'>"


def count(number):
    return f"{int(number):,}"


def percent(ratio):
    return "–" if ratio is None else f"{100 * ratio:.2f} %"


def at(line, x):
    """The height of a drawn line at x."""
    known = [(point["x"], point["y"]) for point in line if point["y"] is not None]
    for (left, low), (right, high) in zip(known, known[1:]):
        if left <= x <= right:
            return low if left == right else low + (high - low) * (x - left) / (right - left)
    raise AssertionError(f"nothing is drawn at {x}: from {known[:1]} to {known[-1:]}")


class PageCase(unittest.TestCase):
    """A server for each test, and one browser for all."""

    @classmethod
    def setUpClass(cls):
        cls.browser = cls.enterClassContext(Browser(cls.enterClassContext(tempfile.TemporaryDirectory())))

    def setUp(self):
        self.directory = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.server = self.start()
        self.load = Load(sys.argv[2], self.server, self.directory)
        self.browser.start_over()
        self.browser.look(DESKTOP, False)
        self.origin = f"http://{self.server.metrics}"

    def start(self, metrics="127.0.0.1:0"):
        return self.enterContext(Server(sys.argv[1], self.directory / "data", self.directory / "log", metrics=metrics))

    def open(self, path="/"):
        self.browser.open(self.origin + path)

    def api(self, path):
        return json.loads(get(f"{self.origin}/api/{path}"))

    def find(self, selector):
        return self.browser.driver.find_element(By.CSS_SELECTOR, selector)

    def names(self):
        return self.browser.texts("#models .name")

    def expect(self, *names):
        self.browser.until(f"{names} are listed", lambda: self.names() == list(names))

    def row(self, model):
        """The list's cells by their labels."""
        return self.browser.script("""
            const link = [...document.querySelectorAll('#models .name')].find((a) => a.textContent === arguments[0]);
            return link && Object.fromEntries([...link.closest('tr').cells].map((td) => [td.dataset.label ?? '', td.textContent]))""", model) or {}

    def expect_state(self, model, state):
        self.browser.until(f"{model} is shown {state}", lambda: state in self.row(model).get("State", ""))

    def pairs(self, selector):
        return dict(self.browser.script("""return [...document.querySelectorAll(arguments[0])]
            .map((div) => [div.children[0].textContent, div.children[1].textContent])""", selector))

    def lines(self):
        """The drawn points by the lines' names."""
        return self.browser.script("""return Object.fromEntries([...document.querySelectorAll('canvas')].filter((c) => c.offsetWidth > 0)
            .flatMap((c) => Chart.getChart(c)?.data.datasets ?? []).map((line) => [line.label, line.data.map(({x, y}) => ({x, y}))]))""")

    def query(self):
        return urllib.parse.parse_qs(urllib.parse.urlsplit(self.browser.driver.current_url).query)

    def check_quiet(self):
        self.assertEqual(self.browser.complaints(), [])
        self.assertLessEqual(self.browser.origins(), {self.origin}, "it asks its own server alone")
        self.assertNotIn("owned", self.browser.driver.title, "a text of a model's was run")


class SmokeTest(PageCase):
    def test_list_and_model_show_what_their_json_says_and_text_as_it_was_written(self):
        self.load.call("create", "m", "--named", "--labels", f"<i>no</i>,{IMAGE}", "--description", f"{SCRIPT}<b>bold</b>")
        self.load.call("learn", "m", "-", "--format", "vw", "--until-converged", text=f"1 | {SCRIPT} a\u202eb common\n-1 | free <b>x</b> common\n" * 20)
        self.open()
        (entry,) = self.api("models")["models"]
        report = entry["model"]["report"]
        shown = {"State": "✓ converged", "Examples": count(report["examples"]), "Updates": count(report["updates"]),
                 "Error": percent(report["progressiveError"]), "Error, last 1,000": percent(report["windowError"])}
        self.browser.until(f"the row has {shown}", lambda: shown.items() <= self.row("m").items())
        self.assertEqual(self.browser.texts("#models .description"), [f"{SCRIPT}<b>bold</b>"])
        self.find("#models .name").send_keys(Keys.ENTER)
        self.browser.until("the model's page is there", lambda: self.browser.texts("#figures dt") and self.browser.texts("#features tbody tr"))
        detail = self.api("models/m?features=25&after_revision=0")
        figures = {figure["title"]: figure["value"] for figure in detail["figures"] if figure["name"] not in ("state", "update_bound")}
        tiles, others = self.pairs("#tiles > div"), self.pairs("#figures > div")
        tiles.pop("Examples / s")
        self.assertFalse(tiles.keys() & others.keys(), "each figure is shown once")
        self.assertEqual(tiles | others, figures)
        self.assertTrue(self.browser.text("#bound").startswith(f"At most {count(detail['model']['report']['updateBound'])} updates"), self.browser.text("#bound"))
        (weights,) = [one["weights"] for one in detail["topFeatures"]["lists"]]
        names = self.browser.texts("#features tbody td:first-child")
        self.assertEqual(names, [name.replace("\u202e", "\\u202e") for name in weights["names"]])
        self.assertIn("<b>x</b>", names)
        self.assertEqual(set(self.browser.texts("#features tbody td:nth-child(3)")), {"<i>no</i>", IMAGE})
        self.assertEqual(self.browser.script("return document.querySelectorAll('main img, main script, main b, main i').length"), 0)
        self.assertLessEqual({"updates", "mistakes", "error", "norm"}, {name for name, points in self.lines().items() if points})
        self.check_quiet()


class PageTest(PageCase):
    def test_list_and_model_follow_without_being_loaded_again(self):
        self.open()
        self.assertIn("There are no models yet", self.browser.text("#summary"))
        for model in ("curve", "drifter"):
            self.load.call("create", model, "--dimension", DIMENSION)
        self.expect_state("curve", "no examples yet")
        rows = self.load.rows(300)
        self.load.learn("curve", rows, "--passes", 1)
        self.expect_state("curve", "learning")
        self.load.learn("curve", rows, "--until-converged")
        self.load.learn("drifter", self.load.rows(3000) + self.load.rows(200, flipped=True))
        self.expect_state("curve", "converged")
        self.expect_state("drifter", "drifting")
        self.load.call("freeze", "drifter")
        self.expect_state("drifter", "frozen")
        self.load.call("delete", "drifter")
        self.expect("curve")
        self.assertTrue(self.browser.still_open())
        self.open("/models/curve")
        examples = lambda: int(self.pairs("#tiles > div").get("Examples", "-1").replace(",", ""))
        self.browser.until("curves are drawn", self.lines)
        before, drawn = examples(), len(self.lines()["updates"])
        with self.load.stream("curve") as producer:
            producer.stdin.write(self.load.rows(600, flipped=True))
            producer.stdin.close()
        self.browser.until("the curves have grown", lambda: examples() == before + 600 and len(self.lines()["updates"]) > drawn)
        self.assertTrue(self.browser.still_open())
        self.check_quiet()
        # The server ends and comes again.
        updates = self.pairs("#tiles > div")["Updates"]
        self.server.kill()
        self.browser.until("it says that nobody answers", lambda: "no answer" in self.browser.text("#live"))
        self.load.server = self.start(self.server.metrics)
        self.browser.until("it is live again", lambda: "live" in self.browser.text("#live") and self.pairs("#tiles > div")["Updates"] == updates)
        self.assertTrue(self.browser.still_open())
        self.assertEqual([message for message in self.browser.complaints() if "net::ERR" not in message], [])

    def test_curves_stand_still_while_the_model_is_right(self):
        self.load.call("create", "m", "--dimension", 1)
        self.load.learn("m", "+1 0:1\n-1 0:1\n" * 750 + "+1 0:1\n" * 6000)
        report = self.load.json("get", "m", "-o", "json")["report"]
        updated = int(report["examples"]) - int(report["streak"])
        self.open("/models/m")
        self.browser.until("curves are drawn", lambda: "norm" in self.lines())
        lines = self.lines()
        for name, value in (("norm", report["weightNorm"]), ("mistakes", int(report["mistakes"])), ("updates", int(report["updates"]))):
            for x in (updated, updated + 1, (updated + int(report["examples"])) // 2):
                self.assertEqual(at(lines[name], x), value, f"{name} at {x}")
        self.assertEqual(at(lines["error"], updated + 1000), 0)
        self.assertGreater(at(lines["error"], updated - 10), 50)
        for axis in ("revision", "time"):
            self.find(f"[value={axis}]").click()
            self.assertTrue(self.lines()["norm"], axis)

    def test_rows_are_sorted_filtered_and_paged(self):
        for model in ("drifter", "learner", "new", "right.1"):
            self.load.call("create", model, "--dimension", DIMENSION)
        self.load.learn("drifter", self.load.rows(3000) + self.load.rows(200, flipped=True))
        self.load.learn("learner", self.load.rows(500))
        self.load.learn("right.1", self.load.rows(200), "--until-converged")
        self.open()
        self.expect("drifter", "learner", "new", "right.1")
        button = self.find("#models [data-order=state]")
        button.click()
        self.expect("drifter", "learner", "right.1", "new")
        button.send_keys(Keys.ENTER)
        self.expect("new", "right.1", "learner", "drifter")
        self.assertEqual(self.query(), {"order_by": ["state desc"]})
        self.browser.driver.back()
        self.expect("drifter", "learner", "right.1", "new")
        self.find("#state").send_keys("drifting")
        self.expect("drifter")
        self.find("#clear").click()
        self.find("#search").send_keys("RIGHT.")
        self.expect("right.1")
        # An address that somebody wrote is the page's state, and one that is wrong is refused.
        self.open("/?state=no+examples&order_by=name+desc&page=7")
        self.expect("new")
        self.assertEqual(self.find("#state").get_attribute("value"), "no examples")
        self.check_quiet()
        self.browser.driver.get(f"{self.origin}/?order_by=size")
        self.browser.until("what is wrong", lambda: "order_by" in self.browser.text("#live"))
        for i in range(26):
            self.load.call("create", f"many{i:02}", "--hash-bits", 10)
        self.open()
        self.browser.until("a page is full", lambda: len(self.names()) == 25)
        self.find("#next").click()
        self.browser.until("the next page has the rest", lambda: len(self.names()) == 5 and self.query()["page"] == ["2"])

    def test_chosen_models_are_compared(self):
        models = ["alpha", "beta", "gamma"]
        for model in models:
            self.load.call("create", model, "--dimension", DIMENSION)
            self.load.learn(model, self.load.rows(300))
        self.open()
        self.expect(*models)
        for model in ("gamma", "alpha"):
            self.find(f"input[aria-label='Compare {model}']").send_keys(Keys.SPACE)
        self.assertEqual(self.query(), {"compare": ["gamma", "alpha"]})
        # The rows are made anew each second: the focus stays.
        before = self.browser.text("#live")
        self.browser.until("the list is read again", lambda: self.browser.text("#live") != before)
        self.assertEqual(self.browser.driver.switch_to.active_element, self.find("input[aria-label='Compare alpha']"))
        self.find("#compare").send_keys(Keys.ENTER)
        drawn = lambda: self.browser.script("return Chart.getChart('plot')?.data.datasets.filter(({data}) => data.length > 0).map(({label}) => label)")
        self.browser.until("both are drawn", lambda: drawn() == ["gamma", "alpha"])
        self.assertEqual(self.query(), {"model": ["gamma", "alpha"]})
        styles = self.browser.script("return Chart.getChart('plot').data.datasets.map(({borderDash, pointStyle}) => borderDash.join() + pointStyle)")
        self.assertEqual(len(set(styles)), 2, "lines differ by more than their colour")
        self.find("#figure option[value=updates]").click()
        updates = {model: int(self.load.json("get", model, "-o", "json")["report"]["updates"]) for model in ("gamma", "alpha")}
        self.browser.until("the updates are drawn", lambda: {model: line[-1]["y"] for model, line in self.lines().items()} == updates)
        self.find("[aria-label='Remove gamma']").send_keys(Keys.ENTER)
        self.browser.until("one is removed", lambda: drawn() == ["alpha"])
        self.check_quiet()
        self.open("/compare?model=alpha&model=%3Cb%3Ex")
        self.browser.until("an unknown one is named as such", lambda: "There is no such model." in self.browser.texts("#compared td.state"))
        self.assertEqual(self.browser.script("return document.querySelectorAll('main b').length"), 0)

    def test_names_that_differ_look_different(self):
        unseen = ["zero\u200bwidth", "so\u00adft", "jo\u2060in", "line\u2028end", " lead", "two  blanks", "thin\u2009blank", "fill\u3164er", "tag\U000e0041",
                  "a\u202eb", "no\u00a0break"]
        plain = ["zerowidth", "soft", "join", "lineend", "lead", "two blanks", "thin blank", "filler", "tag", "ab", "no break", "zero\\u200bwidth"]
        shown = []
        for model, names in (("unseen", unseen), ("plain", plain)):
            self.load.call("create", model, "--named")
            self.load.call("learn", model, "-", "--format", "jsonl", text=json.dumps({"named": {"names": names}, "label": 1}) + "\n")
            self.open(f"/models/{model}")
            self.browser.until("features are there", lambda names=names: len(self.browser.texts("#features tbody tr")) == len(names))
            shown += self.browser.script("return [...document.querySelectorAll('#features tbody td:first-child')].map((e) => e.innerText)")
        self.assertEqual(len(set(shown)), len(unseen + plain), shown)

    def test_what_some_models_alone_have_is_shown(self):
        self.load.call("create", "auto", "--dimension", DIMENSION, "--learner", "auto")
        self.load.learn("auto", self.load.rows(400) + "+1 0:1\n-1 0:1\n" * 400)
        self.open("/models/auto")
        model = self.load.json("get", "auto", "-o", "json")
        rows = [[member["learner"], "retired" if member.get("retired") else f"{100 * member['vote']:.2f} %", count(member["mistakes"])] for member in model["members"]]
        self.browser.until("its members are listed", lambda: self.browser.script(
            "return [...document.querySelectorAll('#members tbody tr')].map((tr) => [...tr.cells].map((td) => td.textContent))") == rows)
        self.assertTrue(self.browser.text("#bound").startswith("No bound is known."))
        self.load.call("create", "trial", "--dimension", 2, "--expire-after", "36h", "--keep-predictions", "90m")
        self.load.learn("trial", "+1 0:1\n-1 0:1\n")
        self.open("/models/trial")
        self.browser.until("it has no bound", lambda: "nothing separates the data" in self.browser.text("#bound"))
        self.assertRegex(self.browser.text("#settings"), r"(?s)Kept predictions\s+for 1 h 30 min.*Expires\s+\d+ \w+ \d{4}, [\d:]{8}, 1 d 12 h after")
        self.load.call("create", "classes", "--named", "--classes", 300, "--new-classes", "named")
        self.load.call("learn", "classes", "-", "--format", "csv", "--label-column", "y", text="y,word\n" + "".join(f"{i:03}th,{i + 1}\n" for i in range(300)))
        self.open("/models/classes")
        self.browser.until("the first classes are there", lambda: len(self.browser.texts("#features table")) == 12)
        self.find("#class-search").send_keys("123TH")
        self.browser.until("the class is found", lambda: [text.split(":")[0] for text in self.browser.texts("#features caption")] == ["123th"])


class LooksTest(PageCase):
    def test_each_page_fits_is_reached_by_keys_and_has_no_fault_that_axe_finds(self):
        for model in ("long-name" * 9, "other"):
            self.load.call("create", model, "--named", "--description", "hay " * 60)
            self.load.call("learn", model, "-", "--format", "vw", text="1 | a b " + "n" * 600 + "\n-1 | c d\n" * 30)
        for path, ready in (("/?search=nothing", "#summary"), ("/", "#models .name"), ("/models/other", "#figures dt"), ("/compare", "#trouble"),
                            ("/compare?model=other&model=" + "long-name" * 9, "#compared .name")):
            self.open(path)
            self.browser.until(f"{path} is there", lambda ready=ready: self.browser.texts(ready))
            for width in (PHONE, DESKTOP):
                for dark in (False, True):
                    self.browser.look(width, dark)
                    self.browser.until(f"{path} fits into {width}", lambda width=width: self.browser.script(
                        "return document.documentElement.scrollWidth <= arguments[0] && innerWidth <= arguments[0]", width))
                    self.check_axe(f"{path}, {width} pixels, {'dark' if dark else 'light'}")
            self.browser.look(DESKTOP, False)
            self.check_focus()
        self.check_quiet()

    def check_axe(self, where):
        self.browser.script(pathlib.Path(os.environ["AXE"]).read_text() + ";window.axe = axe;")
        found = self.browser.driver.execute_async_script("""const done = arguments[0];
            axe.run(document, {resultTypes: ['violations']}).then(({violations, passes}) => done({passes: passes.length, violations: violations.map(
                ({id, help, nodes}) => `${id}: ${help}: ${nodes.map(({html, failureSummary}) => html + ' ' + failureSummary).slice(0, 3).join('; ')}`)}))""")
        self.assertGreater(found["passes"], 10, "axe-core checked nothing")
        self.assertEqual(found["violations"], [], where)

    def check_focus(self):
        """Through the page by the tabulator: each stop is seen, and shows that it has the focus."""
        self.browser.script("document.activeElement.blur(); scrollTo(0, 0)")
        for _ in range(60):
            self.browser.driver.switch_to.active_element.send_keys(Keys.TAB)
            stop = self.browser.script("""const e = document.activeElement, s = getComputedStyle(e), box = e.getBoundingClientRect();
                return {name: e.tagName, html: e.outerHTML.slice(0, 200), outline: s.outlineStyle === 'none' ? 0 : parseFloat(s.outlineWidth),
                        seen: box.width > 0 && box.height > 0 && box.bottom > 0 && box.top < innerHeight && box.right > 0}""")
            if stop["name"] == "BODY":
                return
            self.assertTrue(stop["outline"] >= 2 and stop["seen"], f"the focus is not seen: {stop}")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
