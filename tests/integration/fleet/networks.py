"""Where the programs of a fleet run, and the ways between them: on the loopback address with a proxy on every way, or each in a network
namespace of its own."""

import subprocess

from proxy import Faults, Proxies

HERE = "127.0.0.1"


class Loopback:
    """Ways are proxies."""

    flags = ()

    def __init__(self):
        self.proxies = Proxies()

    def host(self, _node):
        return HERE

    def command(self, _node, command):
        return command

    def way(self, _sources, _target, port):
        return self.proxies.add(port)

    def close(self):
        self.proxies.close()


class Way:
    """From some namespaces to a port in another one. A fault of it is one of all ports there, and of the ways back."""

    def __init__(self, network, sources, target, port):
        self._network, self._sources, self._target = network, sources, target
        self.address = f"{network.host(target)}:{port}"

    def fail(self, fault):
        assert fault == Faults.BLACK_HOLE, fault
        for source in self._sources:
            self._network.part(source, self._target)

    def heal(self):
        for source in self._sources:
            self._network.join(source, self._target)


class Namespaces:
    """Each node has an address of its own on a bridge, where the test reaches it whatever happens. Needs root; run in a network and mount
    namespace of the test's own (`unshare --net --mount`), which take everything with them."""

    # Without certificates: only the test is on this network.
    flags = ("--insecure",)
    NETWORK = "10.83.0"

    def __init__(self):
        self._nodes, self._parted = [], set()
        self._ip("link", "set", "lo", "up")
        self._ip("link", "add", "bridge", "type", "bridge")
        self._ip("address", "add", f"{self.NETWORK}.254/24", "dev", "bridge")
        self._ip("link", "set", "bridge", "up")

    @staticmethod
    def _ip(*arguments):
        subprocess.run(["ip", *arguments], check=True)

    def host(self, node):
        if node not in self._nodes:
            self._nodes.append(node)
            outside, at = f"to-{node}", f"{self.NETWORK}.{len(self._nodes)}/24"
            self._ip("netns", "add", node)
            self._ip("link", "add", outside, "type", "veth", "peer", "name", "eth0", "netns", node)
            self._ip("link", "set", outside, "master", "bridge", "up")
            self._ip("-n", node, "address", "add", at, "dev", "eth0")
            self._ip("-n", node, "link", "set", "eth0", "up")
            self._ip("-n", node, "link", "set", "lo", "up")
        return f"{self.NETWORK}.{self._nodes.index(node) + 1}"

    def command(self, node, command):
        self.host(node)
        return ["ip", "netns", "exec", node, *command]

    def way(self, sources, target, port):
        return Way(self, sources, target, port)

    def part(self, one, other):
        """Nothing comes through between two nodes, in either direction."""
        if (one, other) in self._parted or one == other:
            return
        self._parted |= {(one, other), (other, one)}
        self._ip("-n", one, "route", "add", "blackhole", f"{self.host(other)}/32")
        self._ip("-n", other, "route", "add", "blackhole", f"{self.host(one)}/32")

    def join(self, one, other):
        if (one, other) not in self._parted:
            return
        self._parted -= {(one, other), (other, one)}
        self._ip("-n", one, "route", "del", "blackhole", f"{self.host(other)}/32")
        self._ip("-n", other, "route", "del", "blackhole", f"{self.host(one)}/32")

    def close(self):
        for node in self._nodes:
            self._ip("netns", "del", node)
