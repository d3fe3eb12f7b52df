"""The status page's list and its comparison of models in a real Chromium: order, filters, keyboard, address, and what axe-core finds;
with no model, a few and 5,000.

    python3 tests/deploy/page_list_test.py PERCEPTROND PERCEPTRONCTL AXE [DIRECTORY FOR SCREENSHOTS]

AXE is axe-core's axe.min.js. PYTHONPATH has the Python package as it is built, build/client/python.
"""

import pathlib
import re
import sys
import tempfile
import urllib.parse

import grpc
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from browser import DESKTOP, PHONE, Browser
from page_load import Load
from perceptrond import Row
from perceptrond.columns import pack
from perceptrond.v1 import learning_service_pb2, learning_service_pb2_grpc, model_service_pb2, model_service_pb2_grpc
from processes import Server

NARROW, WIDE = 320, 1600
MANY = 5000
PAGE = 25
# What a reader waits for at most, with 5,000 models: much more than it takes, so that only another order of magnitude fails.
MOST_MILLISECONDS = 3000


class ListTest:
    def __init__(self, browser, load, axe, shots):
        self.browser, self.load, self.shots = browser, load, shots
        self.origin = f"http://{load.server.metrics}"
        self.axe = axe.read_text()

    # ---- What is on the page ----

    def names(self):
        return self.browser.texts("#models .name")

    def expect_names(self, what, names):
        self.browser.until(f"{what}: {names}", lambda: self.names() == names)

    def query(self):
        return urllib.parse.parse_qs(urllib.parse.urlsplit(self.browser.driver.current_url).query)

    def sorted_by(self):
        """The columns that say that the rows are sorted by them, and how."""
        return self.browser.script("""return [...document.querySelectorAll('#models th[aria-sort]')]
            .map((th) => [th.querySelector('button').dataset.order, th.ariaSort])""")

    def column(self, label):
        return self.browser.script("return [...document.querySelectorAll(`#models td[data-label='${arguments[0]}']`)].map((td) => td.textContent)", label)

    def find(self, selector):
        return self.browser.driver.find_element(By.CSS_SELECTOR, selector)

    def box(self, model):
        return self.find(f"input[aria-label='Compare {model}']")

    def type(self, field, text):
        self.find(field).clear()
        self.find(field).send_keys(text)

    def choose(self, select, value):
        self.find(f"{select} option[value='{value}']" if value == "" else f"{select} option:nth-child({value})").click()

    # ---- What is checked everywhere ----

    def check_look(self, name):
        """In each width and scheme nothing sticks out, and axe-core finds nothing; with a picture, if pictures are wanted."""
        self.browser.look(NARROW, False)
        self.browser.until(f"{name} has each figure in its cell", lambda: self.browser.script("""return innerWidth === arguments[0] &&
            [...document.querySelectorAll('.models td')].every((cell) => cell.scrollWidth <= cell.clientWidth)""", NARROW))
        for width in (PHONE, DESKTOP, WIDE):
            for dark in (False, True):
                self.browser.look(width, dark)
                self.browser.until(f"{name} fits into {width}", lambda: self.browser.script(
                    "return document.documentElement.scrollWidth <= arguments[0] && innerWidth <= arguments[0]", width))
                if self.shots:
                    (self.shots / f"{name}-{width}-{'dark' if dark else 'light'}.png").write_bytes(self.browser.picture())
                self.check_axe(f"{name}, {width} pixels, {'dark' if dark else 'light'}")
        self.browser.look(DESKTOP, False)

    def check_axe(self, where):
        self.browser.script(self.axe + ";window.axe = axe;")
        found = self.browser.driver.execute_async_script("""const done = arguments[0];
            axe.run(document, {resultTypes: ['violations']}).then(({violations, passes}) => done({passes: passes.length, violations: violations.map(
                ({id, help, nodes}) => `${id}: ${help}: ${nodes.map(({html, failureSummary}) => html + ' ' + failureSummary).slice(0, 3).join('; ')}`)}))""")
        assert found["passes"] > 10, f"axe-core checked nothing: {found}"
        assert not found["violations"], f"{where}: {found['violations']}"

    def check_focus(self, steps):
        """Through the page by the tabulator: each stop is seen, and shows that it has the focus. Returns the stops."""
        self.browser.script("document.activeElement.blur(); scrollTo(0, 0)")
        stops = []
        for _ in range(steps):
            self.browser.driver.switch_to.active_element.send_keys(Keys.TAB)
            stop = self.browser.script("""const e = document.activeElement, s = getComputedStyle(e), box = e.getBoundingClientRect();
                return {what: e.id || e.dataset.order || e.ariaLabel || e.textContent.trim(), name: e.tagName, outline: parseFloat(s.outlineWidth) * (s.outlineStyle !== 'none'),
                        seen: box.width > 0 && box.height > 0 && box.bottom > 0 && box.top < innerHeight && box.right > 0}""")
            if stop["name"] == "BODY":
                break
            assert stop["outline"] >= 2 and stop["seen"], f"the focus is not seen: {stop}"
            stops.append(stop["what"])
        return stops

    def check_quiet(self):
        complaints = self.browser.complaints()
        assert not complaints, f"the browser complains: {complaints}"
        assert self.browser.origins() <= {self.origin}, f"it asked {self.browser.asked}, and should ask {self.origin} alone"

    # ---- The tests, in the order of a server's life ----

    def without_models_the_list_says_what_makes_one(self):
        self.browser.open(self.origin + "/")
        self.browser.until("it says so", lambda: "There are no models yet" in self.browser.text("#summary"))
        assert not self.find("#models").is_displayed() and not self.find("#pages").is_displayed()
        self.check_look("none")
        self.browser.open(self.origin + "/compare")
        assert "No model is chosen" in self.browser.text("#trouble")
        self.check_look("compare-none")
        self.check_quiet()

    def rows_are_sorted_by_any_column(self):
        self.load.call("create", "drifter", "--dimension", 8)
        self.load.learn("drifter", self.load.rows(3000) + self.load.rows(200, flipped=True))
        self.browser.open(self.origin + "/")
        self.expect_names("one", ["drifter"])
        self.check_look("one")
        for model in ("learner", "new", "right.1"):
            self.load.call("create", model, "--dimension", 8)
        self.load.learn("learner", self.load.rows(500))
        self.load.learn("right.1", self.load.rows(200), "--until-converged")
        self.browser.open(self.origin + "/")
        self.expect_names("by name", ["drifter", "learner", "new", "right.1"])
        assert self.sorted_by() == [["name", "ascending"]]
        button = self.find("#models [data-order=state]")
        button.click()
        self.expect_names("what calls for attention first", ["drifter", "learner", "right.1", "new"])
        assert self.sorted_by() == [["state", "ascending"]] and self.query() == {"order_by": ["state"]}
        button.send_keys(Keys.ENTER)
        self.expect_names("the other way around", ["new", "right.1", "learner", "drifter"])
        assert self.sorted_by() == [["state", "descending"]]
        # Along the columns by the arrow keys; numbers begin with the largest.
        button.send_keys(Keys.ARROW_RIGHT)
        self.browser.driver.switch_to.active_element.send_keys(Keys.SPACE)
        self.browser.until("the most examples first", lambda: self.names()[0] == "drifter" and self.names()[-1] == "new")
        assert self.query() == {"order_by": ["examples desc"]}
        self.find("#models [data-order=window_error]").click()
        self.expect_names("the largest error first, and none last", sorted(
            self.names(), key=lambda name: -self.error(name)))
        self.browser.driver.back()
        self.browser.until("back goes to the order before", lambda: self.query() == {"order_by": ["examples desc"]} and self.sorted_by() == [["examples", "descending"]])
        assert self.browser.still_open()
        self.check_quiet()

    def error(self, model):
        text = self.browser.script("""return [...document.querySelectorAll('#models tr')].find((tr) => tr.querySelector('.name')?.textContent === arguments[0])
            .querySelector("td[data-label='Error, last 1,000']").textContent""", model)
        return -1 if text == "–" else float(text.removesuffix(" %"))

    def rows_are_filtered_by_state_error_and_activity(self):
        self.browser.open(self.origin + "/")
        self.find("#state").send_keys("drifting")
        self.expect_names("of a state", ["drifter"])
        assert self.browser.text("#summary") == "1 model matches." and self.query() == {"state": ["drifting"]}
        self.find("#clear").click()
        self.expect_names("all again", ["drifter", "learner", "new", "right.1"])
        assert not self.query() and not self.find("#clear").is_displayed() and self.browser.text("#summary") == ""
        least, most = sorted(self.names(), key=self.error)[-2:]
        percent = round((self.error(least) + self.error(most)) / 2, 2)
        self.type("#min-error", str(percent))
        self.expect_names("of an error", [most])
        assert float(self.query()["min_error"][0]) == percent / 100, self.query()
        self.type("#search", "RIGHT.")
        self.browser.until("of both, none", lambda: self.browser.text("#summary") == "No model matches.")
        self.find("#min-error").clear()
        self.expect_names("of a name", ["right.1"])
        self.find("#clear").click()
        self.find("#active").click()
        with self.load.stream("learner") as producer:
            # It learns for as long as nothing else does.
            def seen():
                producer.stdin.write(self.load.rows(5))
                producer.stdin.flush()
                return self.names() == ["learner"] and int(self.column("Examples / s")[0]) > 0
            self.browser.until("what learns now", seen)
            producer.stdin.close()
        self.browser.until("and no longer", lambda: self.browser.text("#summary") == "No model matches.")
        # An address that somebody wrote is the page's state, and one that is wrong is refused with words.
        self.browser.open(self.origin + "/?state=no+examples&order_by=name+desc&page=7")
        self.expect_names("by address", ["new"])
        assert self.find("#state").get_attribute("value") == "no examples" and self.sorted_by() == [["name", "descending"]]
        for wrong in ("order_by=size", "min_error=abc"):
            self.browser.driver.get(f"{self.origin}/?{wrong}")
            self.browser.until("what is wrong", lambda: wrong.split("=", 1)[0] in self.browser.text("#live"))
        assert all("400" in message for message in self.browser.complaints())

    def everything_is_reached_by_keys(self):
        self.browser.open(self.origin + "/")
        self.expect_names("all", ["drifter", "learner", "new", "right.1"])
        stops = self.check_focus(40)
        wanted = ["search", "state", "min-error", "active", "name", "state", "window_error", "Compare drifter", "drifter", "Compare right.1", "right.1", "JSON"]
        assert [stop for stop in stops if stop in wanted] == wanted, stops
        # The rows are made anew each second: the focus stays.
        self.find("#models [data-order=rate]").click()
        self.box("learner").send_keys(Keys.SPACE)
        before = self.browser.text("#live")
        self.browser.until("the list is read again", lambda: self.browser.text("#live") != before)
        assert self.browser.driver.switch_to.active_element == self.box("learner")
        self.find("#deselect").click()

    def chosen_models_are_compared_in_one_plot(self):
        self.browser.open(self.origin + "/?search=r")
        self.browser.until("models are there", lambda: len(self.names()) == 3)
        for model in ("drifter", "right.1"):
            self.box(model).click()
        assert self.query()["compare"] == ["drifter", "right.1"] and self.query()["search"] == ["r"]
        # The choice outlives filters, a reload and the way to a model and back.
        self.find("#clear").click()
        self.browser.open(self.browser.driver.current_url)
        self.browser.until("the choice is kept", lambda: self.box("right.1").is_selected() and not self.box("learner").is_selected())
        self.box("learner").send_keys(Keys.SPACE)
        self.check_look("chosen")
        self.find("#chips button[aria-label='Do not compare drifter']").click()
        assert self.query()["compare"] == ["right.1", "learner"]
        self.box("drifter").click()
        self.find("#compare").send_keys(Keys.ENTER)
        compared = ["right.1", "learner", "drifter"]
        self.browser.until("all are drawn", lambda: self.drawn() == compared)
        assert self.browser.texts("#compared .name") == compared and self.query() == {"model": compared}
        styles = self.browser.script("""return Chart.getChart('plot').data.datasets.map(({borderDash, pointStyle}) => borderDash.join() + ' ' + pointStyle)""")
        assert len(set(styles)) == 3, f"lines differ by more than their colour: {styles}"
        dashes = self.browser.script("return [...document.querySelectorAll('#compared .swatch path:first-child')].map((p) => p.getAttribute('stroke-dasharray'))")
        assert [re.sub(r"[ ,]+", ",", dash) for dash in dashes] == [style.split(" ")[0] for style in styles], "the legend has the lines' dashes"
        self.check_look("compare")
        self.find("#figure option[value=updates]").click()
        self.find("#axis [value=time]").click()
        assert self.query() == {"model": compared, "figure": ["updates"], "x": ["time"]}
        self.browser.open(self.browser.driver.current_url)
        self.browser.until("the address has the plot's figure", lambda: self.drawn() == compared)
        updates = self.browser.script("return Chart.getChart('plot').data.datasets.map(({data}) => data.at(-1).y)")
        assert updates == [int(self.load.json("get", model, "-o", "json")["report"]["updates"]) for model in compared], updates
        self.check_focus(30)
        self.find("[aria-label='Remove learner']").send_keys(Keys.ENTER)
        self.browser.until("one is removed", lambda: self.drawn() == ["right.1", "drifter"])
        assert self.query()["model"] == ["right.1", "drifter"] and self.find("#back").get_attribute("href").endswith("?compare=right.1&compare=drifter")
        self.browser.open(self.origin + "/compare?model=right.1&model=none&model=%3Cb%3Ex")
        self.browser.until("unknown ones are named as such", lambda: self.browser.texts("#compared td.state")[1:] == ["There is no such model."] * 2)
        self.browser.until("the other is drawn", lambda: self.drawn() == ["right.1"])
        assert self.browser.script("return document.querySelectorAll('main b').length") == 0
        self.browser.open(self.origin + "/compare?model=none")
        self.browser.until("nothing is drawn", lambda: self.browser.texts("#compared td.state") == ["There is no such model."])
        self.check_axe("compare, without a model that exists")
        assert all("404" in message or "400" in message for message in self.browser.complaints())

    def names_have_the_room_that_figures_leave(self):
        self.browser.open(self.origin + "/compare?model=drifter")
        self.browser.until("it is drawn", lambda: self.drawn() == ["drifter"])
        cells = self.browser.script("return [...document.querySelectorAll('#compared tbody td')].map((cell) => cell.clientWidth)")
        assert cells[1] > sum(cells) / 2, f"the name's is the second of {cells}"

    def drawn(self):
        return self.browser.script("""return Chart.getChart('plot')?.data.datasets.filter(({data}) => data.some(({y}) => Number.isFinite(y)))
            .map(({label}) => label) ?? []""")

    def no_figure_is_on_a_page_twice(self):
        self.browser.open(self.origin + "/models/drifter")
        self.browser.until("figures are there", lambda: len(self.browser.texts("#figures dt")) > 5)
        answer = self.browser.driver.execute_async_script("fetch('../api/models/drifter').then((r) => r.json()).then(arguments[0])")
        values = [figure["value"] for figure in answer["figures"]]
        # Those long enough not to be met by chance, and of one figure alone. The window's length is part of other figures' names.
        own = {figure["name"]: figure["value"] for figure in answer["figures"]
               if re.fullmatch(r"[\d.,e+-]{3,}( %)?", figure["value"]) and values.count(figure["value"]) == 1 and figure["name"] != "window_examples"}
        assert len(own) > 6, own
        words = re.findall(r"[\d.,eE+−-]*\d", self.browser.script("return document.querySelector('main').innerText"))
        for name, value in own.items():
            number = re.search(r"[\d.,e+-]*\d", value)[0]
            assert words.count(number) == 1, f"{name}, {value}, is on the page {words.count(number)} times"
        self.check_look("model")
        self.check_focus(60)
        self.check_quiet()

    def five_thousand_models_are_listed_sorted_and_filtered_at_once(self):
        channel = grpc.insecure_channel(self.load.server.address)
        models, learning = model_service_pb2_grpc.ModelServiceStub(channel), learning_service_pb2_grpc.LearningServiceStub(channel)
        for name, count in (("fifty", 46), ("many", MANY - 50)):
            self.create(models, learning, name, count)
            if name == "fifty":
                self.browser.open(self.origin + "/")
                self.browser.until("a page is full", lambda: len(self.names()) == PAGE)
                self.check_look("50")
        self.browser.driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": """new MutationObserver(() => {
            if (document.querySelector('#models .name')) window.rowsAt ??= performance.now();
        }).observe(document, {childList: true, subtree: true})"""})
        self.browser.open(self.origin + "/")
        self.browser.until("there are as many pages as that takes", lambda: self.browser.text("#page") == f"Page 1 of {MANY // PAGE}")
        painted = self.browser.script("return performance.getEntriesByType('paint').find(({name}) => name === 'first-contentful-paint').startTime")
        times = {"first paint": painted, "the rows": self.first_rows()}
        times["another order"] = self.time("document.querySelector('#models [data-order=name]').click()", "document.querySelector('.name').textContent !== before")
        times["a state"] = self.time("const s = document.getElementById('state'); s.value = 'drifting'; s.dispatchEvent(new Event('change', {bubbles: true}))",
                                     "document.querySelectorAll('.name').length === 1")
        times["all again"] = self.time("document.getElementById('clear').click()", f"document.querySelectorAll('.name').length === {PAGE}")
        times["a name"] = self.time("const s = document.getElementById('search'); s.value = 'y-0777'; s.dispatchEvent(new Event('input', {bubbles: true}))",
                                    "document.querySelectorAll('.name').length === 1")
        print("with 5,000 models: " + ", ".join(f"{what} {milliseconds:.0f} ms" for what, milliseconds in times.items()), flush=True)
        assert max(times.values()) < MOST_MILLISECONDS, times
        self.find("#clear").click()
        self.browser.until("all again", lambda: len(self.names()) == PAGE)
        self.check_look("5000")
        self.find("#last").click()
        self.browser.until("the last page", lambda: self.browser.text("#page") == f"Page {MANY // PAGE} of {MANY // PAGE}")
        assert self.query()["page"] == [str(MANY // PAGE)] and self.find("#next").get_attribute("href") is None
        self.find("#previous").click()
        self.browser.until("the one before", lambda: self.query()["page"] == [str(MANY // PAGE - 1)] and len(self.names()) == PAGE)
        assert self.browser.still_open()
        self.check_quiet()

    def create(self, models, learning, name, count):
        """Models of one feature, each with a few mistakes."""
        ids = [f"{name}-{i:04}" for i in range(count)]
        requests = [model_service_pb2.CreateModelRequest(model_id=one, model={"feature_space": {"dense": {"dimension": 1}}}) for one in ids]
        self.call_all(models.CreateModel, requests)
        rows = [pack([Row({0: 1.0}, 1 if row % 2 == 0 else -1) for row in range(i % 40 + 1)]) for i in range(count)]
        self.call_all(learning.Learn, [learning_service_pb2.LearnRequest(model=f"models/{one}", columns=columns) for one, columns in zip(ids, rows)])

    def call_all(self, method, requests):
        """As many at once as the server accepts on a connection."""
        for begin in range(0, len(requests), 500):
            for call in [method.future(request) for request in requests[begin:begin + 500]]:
                call.result()

    def first_rows(self):
        """When the first row was there, since the page was asked for, by the browser's own clock."""
        return self.browser.script("return rowsAt")

    def time(self, action, is_done):
        return self.browser.driver.execute_async_script(f"""const done = arguments[0], before = document.querySelector('.name')?.textContent;
            const start = performance.now();
            {{ {action} }}
            const look = () => {{ if ({is_done}) done(performance.now() - start); else requestAnimationFrame(look); }};
            look();""")


def main():
    perceptrond, ctl, axe = sys.argv[1:4]
    shots = pathlib.Path(sys.argv[4]) if len(sys.argv) > 4 else None
    if shots:
        shots.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        directory = pathlib.Path(scratch)
        with Server(perceptrond, directory / "data", directory / "log") as server, Browser(directory / "profile") as browser:
            test = ListTest(browser, Load(ctl, server, scratch), pathlib.Path(axe), shots)
            browser.look(DESKTOP, False)
            test.without_models_the_list_says_what_makes_one()
            test.rows_are_sorted_by_any_column()
            test.rows_are_filtered_by_state_error_and_activity()
            test.everything_is_reached_by_keys()
            test.chosen_models_are_compared_in_one_plot()
            test.names_have_the_room_that_figures_leave()
            test.no_figure_is_on_a_page_twice()
            test.five_thousand_models_are_listed_sorted_and_filtered_at_once()
    print("the list is sorted, filtered and compared as asked, and axe-core finds nothing")


if __name__ == "__main__":
    main()
