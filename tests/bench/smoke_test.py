"""Rows of the benchmarks are printed, and complete; how fast is not looked at: smoke_test.py BENCH some|all"""

import json
import math
import subprocess
import sys

COUNT = {"some": 5, "all": 26}
OPTIONS = {"some": ["--filter", "packed"], "all": []}

run = subprocess.run([sys.argv[1], "--tiny", "--reps", "1", "--seconds", "0.02", "-o", "json", *OPTIONS[sys.argv[2]]],
                     stdout=subprocess.PIPE, check=True, text=True)
rows = [json.loads(line) for line in run.stdout.splitlines()]
assert len({row["name"] for row in rows}) == COUNT[sys.argv[2]], [row["name"] for row in rows]
for row in rows:
    for field in ("value", "reference", "ratio", "worst"):
        assert math.isfinite(row[field]) and row[field] > 0, row
