"""The figures in docs/learners.md are those that learners_table prints: learners_document_test.py LEARNERS_TABLE DATA

DATA is the directory of the data sets, unless PERCEPTROND_DATA names one. A table whose data set is not there is left
out, and the test exits with 77, which ctest reports as skipped.
"""

import os
import pathlib
import re
import subprocess
import sys

DOCUMENT = (pathlib.Path(__file__).resolve().parents[2] / "docs/learners.md").read_text()
# The data set of the table under a heading that begins so.
SETS = {"sms_tfidf": "sms_tfidf", "elec2": "elec2", "Several": "digits_mc"}


def main():
    program, data = sys.argv[1:]
    data = os.environ.get("PERCEPTROND_DATA", data)
    skipped = 0
    for section in DOCUMENT.split("\n### ")[1:]:
        name = SETS[re.match(r"\w+", section)[0]]
        if not list(pathlib.Path(data).glob(f"{name}.*")):
            print(f"{name} skipped: not in {data}; set PERCEPTROND_DATA")
            skipped += 1
            continue
        rows = re.findall(r"^\| .*\|$", section, re.MULTILINE)
        assert len(rows) > 1, section
        learners = [row.strip("| ").split(" | ")[0] for row in rows[1:]]
        printed = subprocess.run([program, data, name, *learners], check=True, capture_output=True, text=True).stdout.splitlines()
        figures = [f"### {section.partition(chr(10))[0]}", *rows, *re.findall(r"^Repeating.*?\.(?= |$)", section, re.MULTILINE)]
        missing = [line for line in figures if line not in printed]
        assert not missing, "\n".join([f"{name}: learners_table does not print:", *missing])
    return 77 if skipped else 0


if __name__ == "__main__":
    sys.exit(main())
