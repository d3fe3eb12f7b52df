"""Memory, descriptors, threads and latencies of the server, once a second, and whether they stayed flat."""

import csv
import itertools
import os
import pathlib
import statistics
import threading
import time

PAGE = os.sysconf("SC_PAGE_SIZE")
# Of the last life of the server, which is half of the run, this part is not compared: caches fill.
WARM_UP_PART = 0.25
# With fewer samples of the rest nothing is compared but descriptors: whatever else the machine does shows.
LEAST_SAMPLES = 300
# What memory may grow by in the rest: a part of the median, or this many bytes.
MOST_GROWTH, MOST_GROWTH_BYTES = 0.10, 16 << 20
MOST_MORE_DESCRIPTORS = 8
MOST_SLOWER = 2.0

FIELDS = ["seconds", "life", "age", "resident_bytes", "descriptors", "threads", "data_bytes", "calls", "p50_ms", "p99_ms", "longest_ms"]


class Recorder:
    """Threads: latency() from any, the rest from one."""

    def __init__(self, path, server, data_dir):
        """server: has pid, life (which start it is) and started, or pid None while none runs."""
        self._server, self._data_dir = server, pathlib.Path(data_dir)
        self._file = open(path, "w", newline="")
        self._csv = csv.DictWriter(self._file, FIELDS)
        self._csv.writeheader()
        self._latencies, self._lock = [], threading.Lock()
        self._begin = time.monotonic()
        self._stop = threading.Event()
        self.samples = []
        self._thread = threading.Thread(target=self._run, name="recorder", daemon=True)

    def start(self):
        self._thread.start()

    def stop(self):
        self._stop.set()
        self._thread.join()
        self._file.close()

    def latency(self, seconds):
        with self._lock:
            self._latencies.append(seconds)

    def _run(self):
        while not self._stop.wait(1):
            sample = self._sample()
            if sample is not None:
                self.samples.append(sample)
                self._csv.writerow(sample)
                self._file.flush()

    def _sample(self):
        with self._lock:
            latencies, self._latencies = sorted(self._latencies), []
        pid, life, started = self._server.pid, self._server.life, self._server.started
        if pid is None:
            return None
        try:
            resident = int(pathlib.Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE
            descriptors = len(os.listdir(f"/proc/{pid}/fd"))
            threads = len(os.listdir(f"/proc/{pid}/task"))
        except OSError:
            return None
        now = time.monotonic()
        of = lambda share: round(1000 * latencies[min(len(latencies) - 1, int(share * len(latencies)))], 3) if latencies else None
        return {"seconds": round(now - self._begin, 1), "life": life, "age": round(now - started, 1), "resident_bytes": resident, "descriptors": descriptors,
                "threads": threads, "data_bytes": sum(_size(path) for path in self._data_dir.glob("*")), "calls": len(latencies), "p50_ms": of(0.5),
                "p99_ms": of(0.99), "longest_ms": of(1)}

    def evaluate(self):
        """Figures of the whole run, and what was not flat in the last life of the server. Memory: the Theil-Sen slope times its length.
        Descriptors and latency: the last third's median beside the first's."""
        last_life = [s for s in self.samples if s["life"] == self.samples[-1]["life"]] if self.samples else []
        warm = last_life[int(WARM_UP_PART * len(last_life)):]
        figures = {"samples": len(self.samples), "warm_samples": len(warm), "peak_resident_bytes": max((s["resident_bytes"] for s in self.samples), default=0),
                   "peak_descriptors": max((s["descriptors"] for s in self.samples), default=0), "calls": sum(s["calls"] for s in self.samples),
                   "trends_evaluated": len(warm) >= LEAST_SAMPLES, "not_flat": []}
        if len(warm) < 3:
            return figures
        median = statistics.median(s["resident_bytes"] for s in warm)
        growth = _slope(warm, "resident_bytes") * (warm[-1]["seconds"] - warm[0]["seconds"])
        third = len(warm) // 3
        of = lambda field: [statistics.median([s[field] for s in part if s[field] is not None] or [0]) for part in (warm[:third], warm[-third:])]
        figures |= {"median_resident_bytes": median, "growth_bytes_in_the_last_life": round(growth), "descriptors": of("descriptors"), "p50_ms": of("p50_ms"),
                    "p99_ms": of("p99_ms"), "data_bytes": of("data_bytes")}
        if figures["descriptors"][1] > figures["descriptors"][0] + MOST_MORE_DESCRIPTORS:
            figures["not_flat"].append("descriptors")
        if figures["trends_evaluated"] and growth > max(MOST_GROWTH * median, MOST_GROWTH_BYTES):
            figures["not_flat"].append("memory")
        if figures["trends_evaluated"] and figures["p99_ms"][1] > MOST_SLOWER * max(figures["p99_ms"][0], 1):
            figures["not_flat"].append("latency")
        return figures


def _slope(samples, field):
    # Every pair of up to 400 samples.
    some = samples[::max(1, len(samples) // 400)]
    slopes = [(b[field] - a[field]) / (b["seconds"] - a["seconds"]) for a, b in itertools.combinations(some, 2) if b["seconds"] - a["seconds"] >= 5]
    return statistics.median(slopes) if slopes else 0.0


def _size(path):
    try:
        return path.stat().st_size
    except OSError:
        return 0
