"""Chromium for the tests of the status page, and for its pictures in docs/."""

import json
import urllib.parse

from selenium import webdriver
from selenium.common.exceptions import JavascriptException, NoSuchElementException, StaleElementReferenceException
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By

from processes import wait_for

PHONE, DESKTOP = 390, 1280


class Browser:
    """Chromium without a window. Keeps its console messages and its requests."""

    def __init__(self, profile):
        options = Options()
        options.binary_location = "/usr/bin/chromium"
        for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
                     "--disable-background-networking", "--disable-component-update", "--disable-sync", f"--user-data-dir={profile}"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        self.driver = webdriver.Chrome(options=options, service=Service("/usr/bin/chromedriver"))
        self.asked = set()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.driver.quit()

    def open(self, url):
        self.driver.get(url)
        # Gone if the page is loaded again.
        self.driver.execute_script("window.opened = true")
        self.until("it is live", lambda: "live" in self.text("#live"))

    def start_over(self):
        """Leaves the page, and drops what it complained of and whom it asked."""
        self.driver.get("about:blank")
        self.complaints()
        self.origins()
        self.asked = set()

    def still_open(self):
        return self.driver.execute_script("return window.opened === true")

    def script(self, code, *arguments):
        return self.driver.execute_script(code, *arguments)

    def text(self, selector):
        return self.driver.find_element(By.CSS_SELECTOR, selector).text

    def texts(self, selector):
        return self.script("return [...document.querySelectorAll(arguments[0])].map((e) => e.textContent)", selector)

    def until(self, what, condition):
        """Looked at once a frame, which leaves the processor to the page. It is drawn anew while it is read: an element that is gone
        is looked for again."""

        def look():
            try:
                value = condition()
                if not value:
                    self.driver.execute_async_script("requestAnimationFrame(arguments[0])")
                return value
            except (JavascriptException, NoSuchElementException, StaleElementReferenceException):
                # The page was left meanwhile.
                return False

        return wait_for(what, look)

    def look(self, width, dark):
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia",
                                    {"features": [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]})
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                                    {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500})

    def complaints(self):
        """Errors and warnings since the last time: of scripts, of the network, of the policy."""
        return [entry["message"] for entry in self.driver.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")]

    def origins(self):
        """Whom it has asked anything so far."""
        for entry in self.driver.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                parts = urllib.parse.urlsplit(message["params"]["request"]["url"])
                self.asked.add(f"{parts.scheme}://{parts.netloc}")
        # The browser's own first tab is none of the page's, and stays within the browser.
        self.asked = {origin for origin in self.asked if not origin.startswith(("chrome:", "chrome-untrusted:", "data:", "about:"))}
        return self.asked
