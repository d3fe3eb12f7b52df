"""The figures in docs/learners.md are those that learners_table prints.

    python3 learners_document_test.py LEARNERS_TABLE DATA

DATA is the directory of the data sets, unless PERCEPTROND_DATA names one; without them it exits with 77, which ctest
reports as skipped. Only the rows that the document has are printed: a whole table takes minutes.
"""

import os
import pathlib
import re
import subprocess
import sys

DOCUMENT = (pathlib.Path(__file__).resolve().parent.parent.parent / "docs/learners.md").read_text()
# What learners_table calls the table under a heading that begins so.
TABLES = {"sms_tfidf": "sms_tfidf", "elec2": "elec2", "Several": "classes"}


def documented():
    """Heading and rows of each table of figures."""
    for section in DOCUMENT.split("\n### ")[1:]:
        heading, _, text = section.partition("\n")
        yield f"### {heading}", re.findall(r"^\| .*\|$", text, re.MULTILINE)


def main():
    program, data = sys.argv[1:]
    data = os.environ.get("PERCEPTROND_DATA", data)
    if not pathlib.Path(data, "sms_tfidf.train").exists():
        print(f"skipped: there are no data sets in {data}; set PERCEPTROND_DATA")
        return 77
    compared = 0
    for heading, rows in documented():
        name = TABLES[re.match(r"### (\w+)", heading)[1]]
        learners = [row.strip("| ").split(" | ")[0] for row in rows[1:]]
        table = subprocess.run([program, data, name, *learners], check=True, capture_output=True, text=True)
        printed = table.stdout.splitlines()
        missing = [line for line in [heading, *rows] if line not in printed]
        if len(rows) < 2 or missing:
            print(f"{name}: learners_table does not print:", *missing, sep="\n")
            return 1
        compared += len(rows)
    print(f"{compared} rows are as printed")
    return 0 if compared else 1


if __name__ == "__main__":
    sys.exit(main())
