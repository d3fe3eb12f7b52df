"""Rows of the benchmarks are printed, and complete; how fast is not looked at: smoke_test.py BENCH some|all"""

import json
import math
import subprocess
import sys

# The number of rows, by options.
RUNS = {"some": {"--filter packed": 5},
        "all": {"": 27, "--matrix --filter name": 24, "--matrix --filter arow": 4, "--matrix --filter map_": 3}}

for options, count in RUNS[sys.argv[2]].items():
    run = subprocess.run([sys.argv[1], "--tiny", "--reps", "1", "--seconds", "0.02", "-o", "json", *options.split()],
                         stdout=subprocess.PIPE, check=True, text=True)
    rows = [json.loads(line) for line in run.stdout.splitlines()]
    assert len({row["name"] for row in rows}) == count, [row["name"] for row in rows]
    for row in rows:
        for field in ("value", "reference", "ratio", "worst"):
            assert math.isfinite(row[field]) and row[field] > 0, row
