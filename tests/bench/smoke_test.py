"""Runs the benchmarks for a moment and looks at the shape of what they print: smoke_test.py BENCH [--matrix]"""

import json
import math
import subprocess
import sys

FIELDS = {"name", "value", "reference", "null", "callback", "cpu_ns", "server_cpu_ns", "bytes", "updates", "ratio", "worst",
          "spread", "goal", "met", "unit"}
# The rows of each run's options.
USUAL = {"": 30}
MATRIX = {"--matrix --filter packed": 8, "--matrix --filter name": 42, "--matrix --filter _2$": 26,
          "--matrix --filter map_": 3, "--matrix --filter composition": 1}


def check(bench: str, options: str, count: int) -> None:
    """Fails unless the run prints that many rows that are complete."""
    done = subprocess.run(
        [bench, "--tiny", "--reps", "1", "--seconds", "0.02", "-o", "json", *options.split()],
        stdout=subprocess.PIPE, check=True, text=True)
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(rows) == count, f"{options}: {len(rows)} rows, not {count}"
    assert len({row["name"] for row in rows}) == count, "two rows have one name"
    for row in rows:
        assert set(row) == FIELDS, row
        for field in ("value", "reference", "ratio", "worst"):
            assert math.isfinite(row[field]) and row[field] > 0, row
        assert isinstance(row["met"], bool), row
    print(f"{len(rows)} rows {options}")


for run, expected in (MATRIX if "--matrix" in sys.argv else USUAL).items():
    check(sys.argv[1], run, expected)
