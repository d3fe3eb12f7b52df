"""Makes the pictures of docs/status_page.md, with the build in build/ and the data in deploy/data.

    /usr/bin/python3 docs/pictures/status_page.py [DIRECTORY]     (default: docs/pictures)
"""

import base64
import pathlib
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests/deploy"))

from browser import PHONE, Browser  # noqa: E402
from page_load import Load  # noqa: E402
from processes import Server  # noqa: E402

BINARIES = ROOT / "build/bin"


def teach(load):
    messages = (ROOT / "deploy/data/sms_spam.tsv").read_text().split("\n", 1)[1]
    for name, passes in (("spam", 12), ("spam-first-pass", 1)):
        load.call("create", name, "--text", "--labels", "ham,spam", "--description", "SMS messages")
        load.call("learn", name, "-", "--format", "text", "--passes", passes, text=messages)
    for name in ("lines", "turned"):
        load.call("create", name, "--dimension", 8)
    rows = load.rows(4000)
    load.learn("lines", rows)
    load.learn("turned", rows + load.rows(400, flipped=True))


def main():
    out = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs/pictures"
    with tempfile.TemporaryDirectory() as scratch:
        directory = pathlib.Path(scratch)
        with Server(BINARIES / "perceptrond", directory / "data", directory / "log") as server, Browser(directory / "profile") as browser:
            teach(Load(BINARIES / "perceptronctl", server, scratch))
            for path, name, width, dark, height in (("/models/spam", "status-page", 1240, False, 1100),
                                                    ("/", "status-page-phone", PHONE, True, 760)):
                browser.look(width, dark)
                browser.open(f"http://{server.metrics}{path}")
                shot = browser.driver.execute_cdp_cmd("Page.captureScreenshot", {
                    "captureBeyondViewport": True, "clip": {"x": 0, "y": 0, "scale": 1, "width": width, "height": height}})
                (out / f"{name}.png").write_bytes(base64.b64decode(shot["data"]))


if __name__ == "__main__":
    main()
