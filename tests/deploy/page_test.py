"""The status page in a real Chromium, of a real server under load: what it shows, that it follows without being loaded again, that
it obeys no text, asks no other server, and can be read on a phone, in the dark and by its words alone.

    python3 tests/deploy/page_test.py build/bin/perceptrond build/bin/perceptronctl [DIRECTORY FOR SCREENSHOTS]
"""

import json
import pathlib
import re
import sys
import tempfile

from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from browser import DESKTOP, PHONE, Browser
from page_load import DIMENSION, Load
from processes import Server

SCRIPT = "<script>document.title='owned'</script>"
IMAGE = "<img src=x onerror=document.title='owned'>"


def at(line, x):
    """The height of a drawn line at x."""
    known = [(point["x"], point["y"]) for point in line if point["y"] is not None]
    for (left, low), (right, high) in zip(known, known[1:]):
        if left <= x <= right:
            return low if left == right else low + (high - low) * (x - left) / (right - left)
    raise AssertionError(f"nothing is drawn at {x}: from {known[:1]} to {known[-1:]}")


class PageTest:
    def __init__(self, browser, load, shots):
        self.browser, self.load, self.shots = browser, load, shots
        self.origin = f"http://{load.server.metrics}"
        self.seen = 0

    # ---- What is on the page ----

    def row(self, model):
        """The list's cells by their labels, and the state."""
        cells = self.browser.script("""
            const link = [...document.querySelectorAll('#models .name')].find((a) => a.textContent === arguments[0]);
            return link && Object.fromEntries([...link.closest('tr').cells].map((td) => [td.dataset.label ?? '', td.textContent]))""",
                                    model)
        return cells or {}

    def state(self, model):
        return self.row(model).get("State", "")

    def expect_state(self, model, state):
        self.browser.until(f"{model} is shown {state}", lambda: state in self.state(model))

    def tile(self, name):
        values = self.browser.script("""return Object.fromEntries([...document.querySelectorAll('#tiles > div')]
            .map((div) => [div.children[0].textContent, div.children[1].textContent]))""")
        return values.get(name, "")

    def number(self, name):
        digits = self.tile(name).replace(",", "")
        return int(digits) if digits.isdigit() else -1

    def points(self):
        """How many points each curve says that it has, and whether something is drawn."""
        said = self.browser.script("""return [...document.querySelectorAll('#curves canvas')].filter((c) => c.offsetWidth > 0).map((c) => {
            const copy = new OffscreenCanvas(c.width, c.height).getContext('2d', {willReadFrequently: true});
            copy.drawImage(c, 0, 0);
            const ink = copy.getImageData(0, 0, c.width, c.height).data.some((value) => value !== 0);
            return [c.getAttribute('aria-label') ?? '', ink]})""")
        return [int(match[1]) if ink and (match := re.search(r"(\d+) points", label)) else 0 for label, ink in said]

    def lines(self):
        """What is drawn, by the lines' names."""
        return self.browser.script("""return Object.fromEntries([...document.querySelectorAll('#curves canvas')].filter((c) => c.offsetWidth > 0)
            .flatMap((c) => Chart.getChart(c).data.datasets.map((line) => [line.label, line.data])))""")

    def list_curve(self, model):
        """What is drawn of it in the list."""
        return self.browser.script("""
            const link = [...document.querySelectorAll('#models .name')].find((a) => a.textContent === arguments[0]);
            return Chart.getChart(link.closest('tr').querySelector('canvas'))?.data.datasets[0].data ?? []""", model)

    # ---- What is checked everywhere ----

    def show(self, name):
        """In each scheme and width: nothing sticks out, text is readable; and a picture of it, if pictures are wanted."""
        for width in (PHONE, DESKTOP):
            for dark in (False, True):
                self.browser.look(width, dark)
                self.browser.until(f"{name} fits into {width}", lambda: self.browser.script(
                    "return document.documentElement.scrollWidth <= arguments[0] && innerWidth <= arguments[0]", width))
                paper, text = self.browser.script("const s = getComputedStyle(document.body); return [s.backgroundColor, s.color]")
                brightness = [sum(map(int, re.findall(r"\d+", colour)[:3])) for colour in (paper, text)]
                assert (brightness[0] < brightness[1]) == dark, f"{name}: {text} on {paper} in the {'dark' if dark else 'light'}"
                if self.shots:
                    scheme = "dark" if dark else "light"
                    (self.shots / f"{name}-{width}-{scheme}.png").write_bytes(self.browser.picture())
        self.browser.look(DESKTOP, False)

    def check_quiet(self):
        complaints = self.browser.complaints()
        assert not complaints, f"the browser complains: {complaints}"
        assert self.browser.origins() <= {self.origin}, f"it asked {self.browser.asked}, and should ask {self.origin} alone"
        assert self.browser.driver.title.find("owned") < 0, "a text of a model's was run"

    # ---- The tests, in the order of a server's life ----

    def the_list_follows_without_being_loaded_again(self):
        self.browser.open(self.origin + "/")
        assert "There are no models yet" in self.browser.text("#summary")
        self.load.call("create", "curve", "--dimension", DIMENSION, "--description", f"{SCRIPT}<b>bold</b>")
        self.load.call("create", "drifter", "--dimension", DIMENSION)
        self.expect_state("curve", "no examples yet")
        rows = self.load.rows(300)
        self.load.learn("curve", rows, "--passes", 1)
        self.expect_state("curve", "learning")
        self.browser.until("300 examples are shown", lambda: self.row("curve")["Examples"] == "300")
        self.load.learn("curve", rows, "--until-converged")
        self.load.learn("drifter", self.load.rows(3000) + self.load.rows(200, flipped=True))
        self.expect_state("curve", "converged")
        self.expect_state("drifter", "drifting")
        self.load.call("freeze", "drifter")
        self.expect_state("drifter", "frozen")
        assert self.browser.texts("#models .description")[0] == f"{SCRIPT}<b>bold</b>", "markup is shown as it was written"
        self.load.call("delete", "drifter")
        self.browser.until("the deleted model is gone", lambda: not self.row("drifter"))
        assert self.browser.still_open()
        self.check_quiet()

    def the_models_page_says_what_the_command_line_says(self):
        self.browser.driver.find_element(By.LINK_TEXT, "curve").send_keys(Keys.ENTER)
        self.browser.until("the model's page is there", lambda: self.browser.text("h1") == "curve" and self.browser.texts("#figures dt"))
        answer = self.load.call("get", "curve").split("convergence:\n")[1]
        meaning = re.search(r"state: CONVERGED \((.*)\)", answer)[1]
        assert self.browser.text("#meaning").lower() == meaning + ".", self.browser.text("#meaning")
        assert self.browser.text("#badges").endswith("converged")
        bound = re.search(r"updates: at most ([\d,]+) on this data", answer)[1]
        assert self.browser.text("#bound").startswith(f"At most {bound} updates"), self.browser.text("#bound")
        figures = dict(self.browser.script("""return [...document.querySelectorAll('#figures > div')]
            .map((div) => [div.children[0].textContent, div.children[1].textContent])"""))
        assert f"margin: at least {figures['Margin floor']} (attained)" in answer, figures
        assert f"{self.tile('Examples')} seen, {self.tile('Mistakes')} mistakes" in answer, answer
        assert figures["Last pass: mistakes"] == "0" and "Examples" not in figures, figures
        (weights,) = json.loads(self.load.call("get", "curve", "--weights", "-o", "json"))["weights"]["vectors"]
        top = sorted(zip(weights["indices"], weights["values"]), key=lambda pair: -abs(pair[1]))
        assert self.browser.texts("#features tbody td:first-child") == [f"feature {index}" for index, _ in top]
        assert min(self.points()) > 5, f"curves are there when the page is opened: {self.points()}"
        self.check_quiet()

    def curves_grow_while_a_stream_learns(self):
        self.browser.open(self.origin + "/models/curve")
        before, points = self.number("Examples"), self.points()
        with self.load.stream("curve") as producer:
            for flipped in (True, False):
                producer.stdin.write(self.load.rows(300, flipped))
                producer.stdin.flush()
                reached = self.number("Examples")
                self.browser.until("examples come in", lambda: self.number("Examples") > reached)
            self.browser.until("all are shown", lambda: self.number("Examples") == before + 600)
            self.browser.until("curves have grown", lambda: all(new > old for new, old in zip(self.points(), points)))
            producer.stdin.close()
        for axis in ("revision", "time"):
            self.browser.driver.find_element(By.CSS_SELECTOR, f"[value={axis}]").click()
            assert min(self.points()) > 0, f"nothing is drawn over {axis}"
        self.browser.driver.find_element(By.CSS_SELECTOR, "#numbers summary").click()
        self.browser.until("the numbers are there", lambda: len(self.browser.texts("#numbers tbody tr")) >= max(points))
        assert self.browser.still_open()
        self.show("model")
        self.check_quiet()

    def curves_stand_still_while_the_model_is_right(self):
        """Of a few updates each has its point; of many the last is none of those held."""
        for model, contradictions in (("few", 150), ("more", 1501)):
            self.load.call("create", model, "--dimension", 1)
            self.load.learn(model, "+1 0:1\n-1 0:1\n" * (contradictions // 2) + "+1 0:1\n" * 6000)
            answer = json.loads(self.load.call("get", model, "--learning-curve", "-o", "json"))
            report, (before, present) = answer["report"], answer["learningCurve"][-2:]
            assert int(report["streak"]) > 5900, report
            assert (before["revision"] == present["revision"]) == (model == "few"), (before, present)
            updated = int(report["examples"]) - int(report["streak"])
            middle = (updated + int(report["examples"])) // 2
            self.browser.open(self.origin + "/")
            self.browser.until("its recent error rate is drawn", lambda: self.list_curve(model))
            assert at(self.list_curve(model), updated + 1000) == at(self.list_curve(model), middle) == 0
            self.browser.open(f"{self.origin}/models/{model}")
            self.browser.until("curves are drawn", lambda: "norm" in self.lines())
            lines = self.lines()
            for name, value in (("norm", report["weightNorm"]), ("mistakes", int(report["mistakes"])), ("updates", int(report["updates"]))):
                for x in (updated, updated + 1, middle):
                    assert at(lines[name], x) == value, f"{model}: {name} is {at(lines[name], x)} at {x}, not {value}"
            assert at(lines["error"], updated + 1000) == at(lines["error"], middle) == 0
            assert at(lines["error"], updated - 10) > 50
            if model == "more":
                self.show("streak")
            for axis in ("revision", "time"):
                self.browser.driver.find_element(By.CSS_SELECTOR, f"[value={axis}]").click()
                assert min(self.points()) > 0, f"nothing is drawn over {axis}"
        # A mistake ends the run: what lay before it stays as it was.
        self.load.learn("few", "-1 0:1\n")
        self.browser.open(f"{self.origin}/models/few")
        self.browser.until("the mistake is drawn", lambda: "norm" in self.lines() and self.number("Streak") == 0)
        answer = json.loads(self.load.call("get", "few", "--learning-curve", "-o", "json"))
        last, before = int(answer["report"]["examples"]), answer["learningCurve"][-2]
        lines = self.lines()
        for x in (int(before["examples"]) + 1000, last // 2, last - 1):
            assert at(lines["error"], x) == 0, x
            assert at(lines["norm"], x) == before["weightNorm"], x
        assert at(lines["error"], last) > 0
        self.browser.open(self.origin + "/")
        for model in ("few", "more"):
            self.load.call("delete", model)
        self.check_quiet()

    def names_that_differ_look_different(self):
        long = "n" * 600
        unseen = ["zero\u200bwidth", "so\u00adft", "jo\u2060in", "line\u2028end", " lead", "trail ", "two  blanks", "thin\u2009blank", "fill\u3164er",
                  "tag\U000e0041", "a\u202eb", "no\u00a0break"]
        plain = ["zerowidth", "soft", "join", "lineend", "lead", "trail", "two blanks", "thin blank", "filler", "tag", "ab", "no break",
                 "zero\\u200bwidth", "\\ zero", "two\\u0020 blanks", long]
        for model, names in (("unseen", unseen), ("plain", plain)):
            self.load.call("create", model, "--named")
            self.load.call("learn", model, "-", "--format", "jsonl", text=json.dumps({"named": {"names": names}, "label": 1}) + "\n")
        shown = {}
        for model, names in (("unseen", unseen), ("plain", plain)):
            known = json.loads(self.load.call("get", model, "--weights", "-o", "json"))["weights"]["vectors"][0]["names"]
            assert sorted(known) == sorted(names), known
            self.browser.open(f"{self.origin}/models/{model}")
            self.browser.until("features are there", lambda: len(self.browser.texts("#features tbody tr")) == len(names))
            shown[model] = self.browser.texts("#features tbody td:first-child")
            seen = self.browser.script("return [...document.querySelectorAll('#features tbody td:first-child')].map((e) => e.innerText)")
            assert seen == shown[model], "what is there is what is seen"
        assert len(set(shown["unseen"] + shown["plain"])) == len(unseen) + len(plain), shown
        assert all(name.isascii() and re.search(r"\\u", name) for name in shown["unseen"]), shown["unseen"]
        assert {"zerowidth", "two blanks", "\\ zero", "zero\\\\u200bwidth", long} <= set(shown["plain"]), shown["plain"]
        self.long_names_are_folded(long)
        self.show("names")
        self.browser.open(self.origin + "/")
        for model in ("unseen", "plain"):
            self.load.call("delete", model)
        self.check_quiet()

    def long_names_are_folded(self, name):
        for width in (PHONE, DESKTOP):
            self.browser.look(width, False)
            button = next(one for one in self.browser.driver.find_elements(By.CSS_SELECTOR, "#features button") if one.text.startswith(name[:20]))
            folded = button.size["height"]
            assert folded < 100, f"{folded} pixels of one name"
            button.send_keys(Keys.ENTER)
            assert button.get_attribute("aria-expanded") == "true" and button.size["height"] > folded
            button.click()
            assert button.size["height"] == folded
        self.browser.look(DESKTOP, False)

    def members_of_the_learner_without_settings_are_listed(self):
        self.load.call("create", "easy", "--dimension", DIMENSION, "--learner", "auto")
        # Labels against their features: some member is retired.
        self.load.learn("easy", self.load.rows(400) + "+1 0:1\n-1 0:1\n" * 400)
        model = self.load.json("get", "easy", "-o", "json")
        members = model["members"]
        assert any(member.get("retired") for member in members), members
        self.browser.open(f"{self.origin}/models/easy")
        self.browser.until("all members are listed", lambda: len(self.browser.texts("#members tbody tr")) == len(members))
        rows = self.browser.script("return [...document.querySelectorAll('#members tbody tr')].map((tr) => [...tr.cells].map((td) => td.textContent))")
        for (learner, votes, mistakes), member in zip(rows, members):
            share = "retired" if member.get("retired") else f"{100 * member['vote']:.2f} %"
            assert (learner, votes, mistakes) == (member["learner"], share, f"{int(member['mistakes']):,}"), (learner, votes, mistakes, member)
        self.show("members")
        bound = model["report"]["majorityBound"]
        assert f"majority: at most {int(bound):,} mistakes" in self.load.call("get", "easy")
        assert self.browser.text("#bound").startswith(f"At most {int(bound):,} mistakes"), self.browser.text("#bound")
        made = self.browser.script("const meter = document.getElementById('bound-meter'); return meter.hidden ? -1 : meter.value")
        assert abs(made - int(model["report"]["mistakes"]) / bound) < 1e-6, made
        assert "Majority bound" not in self.browser.texts("#figures dt"), "it is said once"
        self.browser.open(f"{self.origin}/models/curve")
        self.browser.until("the model's page is there", lambda: self.browser.texts("#figures dt"))
        assert self.browser.script("return document.getElementById('members').hidden")
        self.load.call("delete", "easy")
        self.check_quiet()

    def what_expires_and_what_nothing_separates_is_said(self):
        self.load.call("create", "trial", "--dimension", 2, "--expire-after", "36h", "--keep-predictions", "90m")
        self.load.learn("trial", "+1 0:1\n-1 0:1\n")
        self.browser.open(self.origin + "/models/trial")
        self.browser.until("it has no bound", lambda: self.browser.text("#bound") == "There is no bound: nothing separates the data.")
        said = self.browser.text("#settings")
        assert re.search(r"Kept predictions\s+for 1 h 30 min, at most 64 MiB", said), said
        assert re.search(r"Expires\s+\d+ \w+ \d{4}, [\d:]{8}, 1 d 12 h after its last use, if it is not used before", said), said
        self.load.call("delete", "trial")

    def of_many_classes_those_are_shown_that_are_sought(self):
        self.load.call("create", "classes", "--named", "--classes", 300, "--new-classes", "named")
        self.load.call("learn", "classes", "-", "--format", "csv", "--label-column", "y", text="y,word,other\n" + "".join(
            f"{i:03}th,{i + 1},{300 - i}\n" for i in range(300)))
        self.browser.open(self.origin + "/models/classes")
        self.browser.until("classes are there", lambda: len(self.browser.texts("#features table")) == 12)
        assert re.match(r"The first 12 of \d{2,3} classes$", self.browser.text("#classes-note")), self.browser.text("#classes-note")
        assert self.browser.script("return document.documentElement.scrollHeight") < 6000
        field = self.browser.driver.find_element(By.ID, "class-search")
        field.send_keys("123TH")
        self.browser.until("the class is found", lambda: len(self.browser.texts("#features table")) == 1)
        assert self.browser.text("#features caption").startswith("123th: ")
        assert self.browser.text("#classes-note") == "1 class with “123th”"
        self.show("classes")
        self.browser.open(self.origin + "/")
        self.load.call("delete", "classes")
        self.check_quiet()

    def names_are_text(self):
        self.load.call("create", "markup", "--named", "--labels", f"<i>no</i>,{IMAGE}")
        self.load.call("learn", "markup", "-", "--format", "vw", text=f"1 | {SCRIPT} a\u202eb\n-1 | free <b>x</b>\n")
        self.browser.open(self.origin + "/models/markup")
        names = self.browser.texts("#features tbody td:first-child")
        assert SCRIPT in names and "<b>x</b>" in names and "a\\u202eb" in names, names
        labels = self.browser.texts("#features tbody td:nth-child(3)")
        assert set(labels) == {"<i>no</i>", IMAGE}, labels
        assert self.browser.script("return document.querySelectorAll('main img, main script, main b, main i').length") == 0
        self.check_quiet()

    def many_models_are_paged_and_searched(self):
        for i in range(26):
            self.load.call("create", f"many{i:02}" + ("-long-name" * 9 if i == 3 else ""), "--hash-bits", 10, "--description",
                           "the needle" if i == 25 else "hay " * 60 if i == 4 else "")
        self.browser.open(self.origin + "/")
        self.browser.until("a page is full", lambda: len(self.browser.texts("#models .name")) == 25)
        self.show("list")
        self.browser.driver.find_element(By.ID, "next").click()
        assert self.browser.still_open()
        self.browser.until("the next page has the rest", lambda: self.browser.texts("#models .name")[-2:] == ["many25", "markup"])
        assert len(self.browser.texts("#models .name")) == 3
        field = self.browser.driver.find_element(By.ID, "search")
        field.send_keys("NEEDLE", Keys.ENTER)
        self.browser.until("the search finds it", lambda: self.browser.texts("#models .name") == ["many25"])
        self.browser.open(self.origin + "/?search=%3Cb%3Enothing")
        assert self.browser.text("#summary") == "No model matches."
        assert self.browser.driver.find_element(By.ID, "search").get_attribute("value") == "<b>nothing"
        self.check_quiet()

    def curves_outlive_the_server(self, restart):
        self.browser.open(self.origin + "/models/curve")
        points, updates = self.points(), self.number("Updates")
        self.load.server.kill()
        self.browser.until("it says that nobody answers", lambda: "no answer" in self.browser.text("#live"))
        self.load.server = restart()
        self.browser.until("it is live again", lambda: "live" in self.browser.text("#live"))
        assert self.browser.still_open()
        self.browser.until("the model is loaded again", lambda: "not in memory" not in (self.browser.text("#badges") or "not in memory"))
        # That nobody answered is what it complains of.
        assert all("ERR_CONNECTION" in message for message in self.browser.complaints())
        self.browser.open(self.origin + "/models/curve")
        assert self.number("Updates") == updates
        drawn = self.points()
        assert min(drawn) > 5 and max(drawn) >= updates and points, f"{drawn} after {updates} updates"
        self.check_quiet()

    def no_text_can_become_a_script(self):
        """Were a text ever put in as markup, the policy would not run it."""
        self.browser.script("document.body.insertAdjacentHTML('beforeend', arguments[0])", IMAGE + '<p style="color: red" id="inline"></p>')
        self.browser.script("document.body.append(Object.assign(document.createElement('script'), {textContent: \"document.title = 'owned'\"}))")
        self.browser.until("the violation of the policy is reported", lambda: any("Content Security Policy" in text for text in self.browser.complaints()))
        assert "owned" not in self.browser.driver.title
        assert self.browser.script("return document.getElementById('inline').style.color") == ""


def main():
    perceptrond, ctl = sys.argv[1:3]
    shots = pathlib.Path(sys.argv[3]) if len(sys.argv) > 3 else None
    if shots:
        shots.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        directory = pathlib.Path(scratch)

        def start(metrics="127.0.0.1:0"):
            return Server(perceptrond, directory / "data", directory / "log", metrics=metrics)

        with start() as first, Browser(directory / "profile") as browser:
            test = PageTest(browser, Load(ctl, first, scratch), shots)
            browser.look(DESKTOP, False)
            try:
                test.the_list_follows_without_being_loaded_again()
                test.the_models_page_says_what_the_command_line_says()
                test.curves_grow_while_a_stream_learns()
                test.curves_stand_still_while_the_model_is_right()
                test.members_of_the_learner_without_settings_are_listed()
                test.what_expires_and_what_nothing_separates_is_said()
                test.of_many_classes_those_are_shown_that_are_sought()
                test.names_are_text()
                test.names_that_differ_look_different()
                test.many_models_are_paged_and_searched()
                test.curves_outlive_the_server(lambda: start(first.metrics))
                test.no_text_can_become_a_script()
            finally:
                test.load.server.kill()
    print("the page shows what it should, and nothing else")


if __name__ == "__main__":
    main()
