"""The figures in docs/learners.md are those that learners_table prints.

    python3 learners_document_test.py LEARNERS_TABLE DATA

DATA is the directory of the data sets, unless PERCEPTROND_DATA names one. Tables whose data sets are not there are
left out, and it exits with 77, which ctest reports as skipped. Only the rows that the document has are printed: a whole
table takes minutes.
"""

import os
import pathlib
import re
import subprocess
import sys

DOCUMENT = (pathlib.Path(__file__).resolve().parent.parent.parent / "docs/learners.md").read_text()
# What learners_table calls the table under a heading that begins so, and the files that it reads for it.
TABLES = {
    "sms_tfidf": ("sms_tfidf", ["sms_tfidf.train", "sms_tfidf.test"]),
    "elec2": ("elec2", ["elec2.stream"]),
    "Several": ("classes", ["digits_mc.train", "digits_mc.test", "elec2.stream"]),
}


def documented():
    """Heading, rows, and sentences about the data, of each table of figures."""
    for section in DOCUMENT.split("\n### ")[1:]:
        heading, _, text = section.partition("\n")
        sentences = re.split(r"(?<=\.)\s+", re.sub(r"^\|.*$", "", text, flags=re.MULTILINE).strip())
        yield (f"### {heading}", re.findall(r"^\| .*\|$", text, re.MULTILINE),
               [sentence for sentence in sentences if re.search(r"\d %", sentence)])


def main():
    program, data = sys.argv[1:]
    data = os.environ.get("PERCEPTROND_DATA", data)
    compared = skipped = 0
    for heading, rows, sentences in documented():
        name, files = TABLES[re.match(r"### (\w+)", heading)[1]]
        absent = [file for file in files if not pathlib.Path(data, file).exists()]
        if absent:
            print(f"{name} skipped: no {', '.join(absent)} in {data}; set PERCEPTROND_DATA")
            skipped += 1
            continue
        learners = [row.strip("| ").split(" | ")[0] for row in rows[1:]]
        table = subprocess.run([program, data, name, *learners], check=True, capture_output=True, text=True)
        printed = table.stdout.splitlines()
        figures = [heading, *rows, *sentences]
        missing = [line for line in figures if line not in printed]
        if len(rows) < 2 or missing:
            print(f"{name}: learners_table does not print:", *missing, sep="\n")
            return 1
        compared += len(figures)
    print(f"{compared} lines are as printed")
    if skipped:
        return 77
    return 0 if compared else 1


if __name__ == "__main__":
    sys.exit(main())
