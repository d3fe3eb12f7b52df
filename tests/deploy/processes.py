"""Programs under test: started, waited for by what they say, and ended with the test."""

import contextlib
import pathlib
import re
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

HOLDERS = []


def wait_for(what, condition, seconds=3600):
    """The first true value of condition(). Whoever runs the test ends it if that never comes: this says what it waits for."""
    begin, said = time.monotonic(), False
    while not (value := condition()):
        waited = time.monotonic() - begin
        if waited > seconds:
            raise AssertionError(f"not within {seconds} s: {what}")
        if waited > 60 and not said:
            print(f"waits for this: {what}", file=sys.stderr, flush=True)
            said = True
        time.sleep(0.001)
    return value


def get(url):
    """The page, or None while nobody answers or is ready."""
    try:
        with urllib.request.urlopen(url, timeout=60) as response:
            return response.read().decode()
    except (urllib.error.URLError, ConnectionError, TimeoutError):
        return None


def free_ports(count):
    """Ports of the loopback address that the system gives to nobody else, whoever runs tests there: this process holds them, bound without
    listening, until it ends. A program that sets SO_REUSEADDR can listen at one, as OwnPort in tests/support says."""
    holders = [socket.socket() for _ in range(count)]
    for holder in holders:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind(("127.0.0.1", 0))
    HOLDERS.extend(holders)
    return [holder.getsockname()[1] for holder in holders]


def descendant(pid, name):
    """The one process of that name among those that a process has started, and these have."""
    found, waiting = [], [pid]
    while waiting:
        process = pathlib.Path(f"/proc/{waiting.pop()}")
        with contextlib.suppress(OSError):
            waiting += [child for children in process.glob("task/*/children") for child in children.read_text().split()]
            if (process / "comm").read_text() == f"{name}\n":
                found.append(int(process.name))
    assert len(found) == 1, found
    return found[0]


@contextlib.contextmanager
def logs_on_failure(directory):
    """Prints what programs said last in the logs there, which go with the test, if the block fails."""
    try:
        yield
    except BaseException:
        for log in sorted(pathlib.Path(directory).glob("*.log")):
            last = log.read_text(errors="replace").splitlines()[-20:]
            print(f"== {log.name}", *last, sep="\n", file=sys.stderr, flush=True)
        raise


class Program:
    """Runs until it is killed; what it says goes to a file. A context manager."""

    def __init__(self, command, log):
        self.log = pathlib.Path(log)
        with open(self.log, "ab") as out:
            self.process = subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=out, stderr=out)

    def said(self, pattern):
        """Waits for a line that matches, and returns the match."""
        compiled = re.compile(pattern)

        def look():
            found = compiled.search(self.log.read_text(errors="replace"))
            if not found and self.process.poll() is not None:
                raise AssertionError(f"it ended, saying:\n{self.log.read_text(errors='replace')}")
            return found

        return wait_for(f"'{pattern}' in {self.log}", look)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()


class Server(Program):
    """perceptrond on free ports, or on those given."""

    def __init__(self, binary, data_dir, log, flags=(), address="127.0.0.1:0", metrics="127.0.0.1:0"):
        pathlib.Path(log).unlink(missing_ok=True)
        super().__init__([binary, "--data-dir", data_dir, "--address", address, "--metrics-address", metrics, *flags], log)
        try:
            serving = self.said(r"info serving .*address=(\S+).*metrics_port=(\d+)")
        except AssertionError:
            self.kill()
            raise
        self.address = serving[1]
        self.metrics = f"127.0.0.1:{serving[2]}"


class Prometheus(Program):
    """A real one, on a free port, with this configuration file."""

    def __init__(self, config, data_dir, log):
        # It says which port it took only in the log.
        super().__init__(["prometheus", "--config.file", config, "--storage.tsdb.path", data_dir,
                          "--web.listen-address", "127.0.0.1:0", "--log.level", "info"], log)
        try:
            self.url = "http://" + self.said(r"Listening on.*address=(127\.0\.0\.1:\d+)")[1]
            wait_for("Prometheus is ready", lambda: get(self.url + "/-/ready"))
        except AssertionError:
            self.kill()
            raise
