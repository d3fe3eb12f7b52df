"""A network whose kernel loses packets: each host is a network namespace with a link to that of the test, which routes between them. As
root, with iproute2."""

import ctypes
import itertools
import os
import pathlib
import subprocess

from cluster import SIZE
from processes import wait_for

CLONE_NEWNET = 0x40000000
SUBNET = "10.77.0"
ROUTER, ROUTER_LINK = f"{SUBNET}.1", "02:00:00:00:00:01"
NUMBERS = itertools.count(2)


def run(*words):
    subprocess.run(words, check=True)


def enter():
    """Gives this process, which must not have begun threads, a network of its own."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "no network namespace can be made")
    run("ip", "link", "set", "lo", "up")
    pathlib.Path("/proc/sys/net/ipv4/ip_forward").write_text("1", encoding="utf-8")


class Host:
    """An address, which stays while programs there come and go."""

    def __init__(self):
        number = next(NUMBERS)
        self.link, self.address, self.ports = f"host{number}", f"{SUBNET}.{number}", (7600, 7601, 7602)
        self._holder = subprocess.Popen(["setpriv", "--pdeathsig=KILL", "unshare", "--net", "sleep", "infinity"])
        namespace = f"/proc/{self._holder.pid}/ns/net"
        wait_for("a network namespace", lambda: os.readlink(namespace) != os.readlink("/proc/self/ns/net"))
        # What a command there begins with.
        self.enter = ["nsenter", f"--net={namespace}"]
        run("ip", "link", "add", self.link, "address", ROUTER_LINK, "type", "veth", "peer", "name", "eth0", "netns", str(self._holder.pid))
        run("ip", "address", "add", ROUTER, "peer", self.address, "dev", self.link)
        self.connect()
        run(*self.enter, "ip", "link", "set", "lo", "up")
        run(*self.enter, "ip", "address", "add", self.address, "peer", ROUTER, "dev", "eth0")
        run(*self.enter, "ip", "link", "set", "eth0", "up")
        # It does not find out that the router is away, and needs no time to find it again.
        run(*self.enter, "ip", "neighbour", "add", ROUTER, "lladdr", ROUTER_LINK, "dev", "eth0", "nud", "permanent")
        run(*self.enter, "ip", "route", "add", "default", "via", ROUTER)
        # No proxy of the caller's is asked for it.
        os.environ["no_proxy"] = os.environ["NO_PROXY"] = f"{os.environ.get('no_proxy', '')},{self.address}"

    def connect(self):
        run("ip", "link", "set", self.link, "up")

    def disconnect(self):
        """Nobody reaches it, and it reaches nobody."""
        run("ip", "link", "set", self.link, "down")

    def close(self):
        self._holder.kill()
        self._holder.wait()


class Way:
    """What some hosts send to others, and these back. A cut holds on return."""

    def __init__(self, sources, targets, address):
        self.address, self._targets = address, targets
        pairs = list(itertools.product(sources, targets))
        self._pairs = pairs, [(target, source) for source, target in pairs]
        self._lost, self._is_slow = [], False

    def cut(self, to=True, back=True):
        """Packets to the targets, or back, are lost until it is healed."""
        for pair in itertools.chain(*itertools.compress(self._pairs, (to, back))):
            self._lost.append(pair)
            self._rule("add", *pair)

    def delay(self, seconds):
        """The targets' links are so slow that packets wait up to so long, and what would wait for longer is lost."""
        self._is_slow = True
        self._queue("tbf", "rate", "2mbit", "burst", "10kb", "latency", f"{seconds}s")

    def heal(self, broken=False):
        """With `broken` only once the kernel has given up all connections that were cut."""
        for source, target in self._lost if broken else ():
            wait_for("connections are given up", lambda: not self._connections(source, target) and not self._connections(target, source))
        for pair in self._lost:
            self._rule("del", *pair)
        if self._is_slow:
            self._queue("noqueue")
        self._lost, self._is_slow = [], False

    def _rule(self, what, source, target):
        run("ip", "rule", what, "from", source.address, "to", target.address, "blackhole")

    def _queue(self, *words):
        for target in self._targets:
            run("tc", "qdisc", "replace", "dev", target.link, "root", *words)

    @staticmethod
    def _connections(host, other):
        return subprocess.run([*host.enter, "ss", "-Htn", "state", "established", "dst", other.address], capture_output=True, check=True).stdout


class Network:
    """The hosts of one fleet, and the ways between them."""

    def __init__(self):
        self._hosts = []

    def hosts(self, count=SIZE):
        added = [Host() for _ in range(count)]
        self._hosts += added
        return added

    database_hosts = hosts

    def fleet_ways(self, hosts):
        return [Way([other for other in hosts if other is not host], [host], f"{host.address}:{host.ports[1]}") for host in hosts]

    def database_ways(self, hosts, database):
        targets = [server.host for server in database.servers]
        return [Way([host], targets, ",".join(target.address for target in targets)) for host in hosts]

    def close(self):
        for host in self._hosts:
            host.close()
