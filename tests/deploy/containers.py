"""Containers without an engine: each is a process with the command, environment, files and user that a compose file, or a pod, gives
it. All share a network in which each name has an address of its own, so that nobody's ports are taken or reached."""

import dataclasses
import fcntl
import json
import os
import pathlib
import re
import shlex
import socket
import struct
import sys

import yaml

from deployed import ROOT, image_environment
from processes import Program, wait_for

IN_OWN_NETWORK = "PERCEPTROND_TEST_IN_OWN_NETWORK"
SIOCSIFFLAGS = 0x8914
IFF_UP = 1
USER = "65532"


def enter_network(names):
    """Runs this script anew in a network where each of the names, or of the groups of names with blanks between them, has an address;
    returns there. As root."""
    if os.environ.get(IN_OWN_NETWORK):
        os.environ.pop(IN_OWN_NETWORK)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
            fcntl.ioctl(one, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", IFF_UP))
        return
    hosts = ["127.0.0.1 localhost", *(f"127.0.1.{i + 1} {name}" for i, name in enumerate(names))]
    # What is mounted here is seen by the processes below alone, and ends with them.
    script = f"""
mount -t tmpfs none /srv
mount -t tmpfs none /run
mkdir /srv/hosts.d
printf '%s\\n' {shlex.join(hosts)} > /srv/hosts.d/hosts
mount --bind /srv/hosts.d/hosts /etc/hosts
exec "$@"
"""
    os.environ[IN_OWN_NETWORK] = "yes"
    os.execvp("unshare", ["unshare", "--net", "--mount", "--propagation", "private", "sh", "-euc", script, "sh", sys.executable, *sys.argv])


@dataclasses.dataclass
class Container:
    """What an engine runs."""

    name: str
    command: list
    environment: dict
    # Path in the container: what stands there. The directory of a volume is its user's.
    mounts: dict

    def words(self):
        """The command that runs it."""
        lines = []
        for target, source in self.mounts.items():
            # Below what the network's script has mounted, or there already.
            if target.startswith(("/srv/", "/run/")):
                lines.append(f"mkdir -p {shlex.quote(str(pathlib.PurePath(target).parent))}")
                lines.append(f"mkdir -p {target}" if source.is_dir() else f": >> {target}")
            lines.append(f"mount --bind {shlex.quote(str(source))} {target}")
        script = "\n".join(["mount -t tmpfs none /run", "mount -t tmpfs none /srv", *lines, 'exec "$@"'])
        own = [f"{name}={value}" for name, value in self.environment.items()]
        return ["unshare", "--mount", "--propagation", "private", "sh", "-euc", script, "sh", "setpriv", f"--reuid={USER}", f"--regid={USER}",
                "--clear-groups", "env", "-i", f"PATH={os.environ['PATH']}", *own, *self.command]

    def start(self, log):
        return Program(self.words(), log)


def serving(program, healthy):
    """Waits until the program is healthy; fails at once if it has ended."""

    def look():
        if program.process.poll() is not None:
            raise AssertionError(f"it ended, saying:\n{program.log.read_text()[-4000:]}")
        return healthy()

    wait_for(f"{program.log.stem} serves", look)


def dockerfile(directory):
    """Its entry point, and what it copies."""
    text = (directory / "Dockerfile").read_text()
    (entry,) = re.findall(r"^ENTRYPOINT (\[.*\])$", text, re.MULTILINE)
    copied = re.findall(r"^COPY (?!--from)(\S+) (/\S+)$", text, re.MULTILINE)
    return json.loads(entry), {target: directory / source for source, target in copied}


class Compose:
    """A compose file's services, started with these programs in the place of their images'."""

    def __init__(self, path, perceptrond, directory, certificates):
        self.file = pathlib.Path(path)
        self.services = yaml.safe_load(self.file.read_text())["services"]
        self.secrets = yaml.safe_load(self.file.read_text()).get("secrets", {})
        self.perceptrond = str(pathlib.Path(perceptrond).resolve())
        self.directory = pathlib.Path(directory)
        # Where the secrets' files are, whose names they keep.
        self.certificates = certificates

    def volume(self, name):
        directory = self.directory / "volumes" / name
        if not directory.exists():
            directory.mkdir(parents=True)
            os.chown(directory, int(USER), int(USER))
        return directory

    def image(self, service):
        """Command, environment and files; of others' images nothing is known here."""
        if "build" not in service:
            return [], {}, {}
        context = (self.file.parent / service["build"]["context"]).resolve()
        if context == ROOT:
            return [self.perceptrond], image_environment(), {}
        command, copied = dockerfile(context)
        return command, {}, copied

    def container(self, name):
        service = self.services[name]
        command, environment, mounts = self.image(service)
        for volume in service.get("volumes", []):
            source, target = volume.split(":")[:2]
            mounts[target] = (self.file.parent / source).resolve() if source.startswith(".") else self.volume(source)
        for secret in service.get("secrets", []):
            mounts[f"/run/secrets/{secret}"] = self.certificates / pathlib.PurePath(self.secrets[secret]["file"]).name
        return Container(name, command, environment | service.get("environment", {}), mounts)

    def health(self, name):
        """The command of its health check, in its container."""
        container = self.container(name)
        kind, *container.command = [word.replace("$$", "$") for word in self.services[name]["healthcheck"]["test"]]
        assert kind == "CMD", kind
        return container.words()
