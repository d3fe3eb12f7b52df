"""Runs the benchmarks for a moment and looks at the shape of what they print: smoke_test.py BENCH"""

import json
import math
import subprocess
import sys

FIELDS = {"name", "value", "reference", "ratio", "spread", "goal", "met", "unit"}
ROWS = 25

done = subprocess.run(
    [sys.argv[1], "--tiny", "--reps", "1", "--seconds", "0.02", "-o", "json"],
    stdout=subprocess.PIPE, check=True, text=True)
rows = [json.loads(line) for line in done.stdout.splitlines()]
assert len(rows) == ROWS, f"{len(rows)} rows, not {ROWS}"
assert len({row["name"] for row in rows}) == ROWS, "two rows have one name"
for row in rows:
    assert set(row) == FIELDS, row
    for field in ("value", "reference", "ratio"):
        assert math.isfinite(row[field]) and row[field] > 0, row
    assert isinstance(row["met"], bool), row
print(f"{len(rows)} rows")
