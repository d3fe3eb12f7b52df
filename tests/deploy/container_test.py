"""Builds the image from the Dockerfile and runs it: creates a model, kills the server, starts it again on the same volume, and finds the
model; then ends it as an engine would.

    sudo python3 tests/deploy/container_test.py [--given] [--work DIRECTORY]

For where neither an engine nor a registry is at hand: the image is built by buildah in a chroot, on a base made by debootstrap. As root; installs what is missing of deploy/packages.txt, section [container]. From nothing
it takes some 20 minutes and 10 GiB, most of it for compiling.

  --given     with the programs in build/bin instead of compiling them (the Dockerfile's BINARIES=given)
  --work      keeps the base there, and takes it from there
"""

import argparse
import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile

from deployed import ROOT
from processes import Program, descendant, wait_for

BASE = "debian:bookworm-slim"
IMAGE = "perceptrond"
VOLUME = "/var/lib/perceptrond"


def say(text):
    print(f"== {text}", flush=True)


def run(*command, **options):
    return subprocess.run([str(word) for word in command], check=True, text=True, stdin=subprocess.DEVNULL, **options)


class Buildah:
    """Images and containers in a directory of their own."""

    def __init__(self, directory):
        self.options = ["--root", directory / "storage", "--runroot", directory / "run", "--storage-driver", "vfs"]

    def command(self, *arguments):
        return ["buildah", *map(str, self.options), *map(str, arguments)]

    def __call__(self, *arguments):
        return run(*self.command(*arguments), stdout=subprocess.PIPE).stdout.strip()

    def has(self, image):
        return subprocess.run(self.command("inspect", "--type", "image", image), capture_output=True).returncode == 0


def make_base(buildah, directory):
    """Makes the image that the registry has under the digest in the Dockerfile."""
    with tempfile.TemporaryDirectory(dir=directory) as root:
        run("debootstrap", "--variant=minbase", "bookworm", root, stdout=subprocess.DEVNULL)
        container = buildah("from", "scratch")
        buildah("add", "--quiet", container, root, "/")
        buildah("commit", "--quiet", "--rm", container, BASE)


def build(buildah, given):
    revision = run("git", "-C", ROOT, "describe", "--always", "--dirty", stdout=subprocess.PIPE).stdout.strip()
    run(*buildah.command("build", "--isolation", "chroot", "--format", "docker", "--layers=false", "--pull=false",
                         "--build-arg", f"BASE={BASE}", "--build-arg", f"BINARIES={'given' if given else 'compiled'}", "--build-arg", f"REVISION={revision}",
                         "--tag", IMAGE, ROOT))
    return revision


class Image:
    def __init__(self, buildah):
        self.buildah = buildah
        inspected = json.loads(buildah("inspect", "--type", "image", IMAGE))
        self.config = inspected["Docker"]["config"]

    def check(self, revision):
        labels = self.config["Labels"]
        assert labels["org.opencontainers.image.licenses"] == "Apache-2.0", labels
        assert labels["org.opencontainers.image.revision"] == revision, labels
        assert self.config["User"] == "65532:65532", self.config
        assert self.config["Entrypoint"] == ["/usr/bin/perceptrond"], self.config
        assert self.config["Volumes"] == {VOLUME: {}}, self.config
        assert self.config["StopSignal"] == "SIGTERM", self.config
        assert self.config["Healthcheck"]["Test"][:3] == ["CMD", "/usr/bin/perceptronctl", "health"], self.config
        return labels["org.opencontainers.image.version"]

    @contextlib.contextmanager
    def root(self):
        container = self.buildah("from", "--pull=false", IMAGE)
        yield pathlib.Path(self.buildah("mount", container))
        self.buildah("rm", container)


class Container:
    """One made from the image: its server runs as the image says, with this directory as its volume."""

    def __init__(self, buildah, image, volume, directory):
        self.buildah = buildah
        self.image = image
        self.volume = volume
        self.directory = directory
        self.name = buildah("from", "--pull=false", IMAGE)
        # buildah would mount a volume of its own there too, above ours or below, as it happens; an engine puts ours in its place.
        buildah("config", "--volume", f"{VOLUME}-", self.name)
        self.environment = []
        self.pid = None

    def words(self, command):
        return self.buildah.command("run", "--isolation", "chroot", "--volume", f"{self.volume}:{VOLUME}", *self.environment, self.name, "--", *command)

    def start(self):
        """Ports as free as they come: the container has this machine's network."""
        self.environment = ["--env", "PERCEPTROND_ADDRESS=127.0.0.1:0", "--env", "PERCEPTROND_METRICS_ADDRESS=127.0.0.1:0"]
        log = self.directory / "server.log"
        log.unlink(missing_ok=True)
        self.program = Program(self.words(self.image.config["Entrypoint"]), log)
        address = self.program.said(r"info serving .*address=(\S+)")[1]
        self.environment = ["--env", f"PERCEPTROND_SERVER={address}"]
        self.pid = descendant(self.program.process.pid, "perceptrond")
        self.healthy()

    def healthy(self):
        """Asks as the engine would."""
        run(*self.words(self.image.config["Healthcheck"]["Test"][1:]), stdout=subprocess.DEVNULL)

    def ctl(self, *arguments):
        return run(*self.words(["perceptronctl", *arguments]), stdout=subprocess.PIPE).stdout

    def end(self, how):
        os.kill(self.pid, how)
        self.pid = None
        return self.program.process.wait()

    def remove(self):
        if self.pid is not None:
            os.kill(self.pid, signal.SIGKILL)
            self.program.process.wait()
        self.buildah("rm", self.name)


def main_job(container):
    container.start()
    # Only what the image brings, as the user it names.
    status = pathlib.Path(f"/proc/{container.pid}/status").read_text()
    assert "Uid:\t65532\t65532\t65532\t65532" in status, status
    container.ctl("create", "spam", "--named", "--labels", "ham,spam")
    assert container.end(signal.SIGKILL) != 0
    container.start()
    assert "ham" in container.ctl("get", "spam")
    assert container.end(signal.SIGTERM) == 0
    log = (container.directory / "server.log").read_text()
    assert "draining" in log and "stopped" in log, log
    say("it was killed, and had its model again on the same volume")


def drains_as_the_first_process(root):
    """An engine's entrypoint has the number 1, for which a signal that is not handled is none."""
    with tempfile.TemporaryDirectory() as directory:
        command = ["unshare", "--fork", "--pid", "--kill-child", "chroot", "--userspec=65532:65532", root, "/usr/bin/perceptrond",
                   "--address", "127.0.0.1:0", "--metrics-address", "off", "--journal", "memory"]
        with Program(command, f"{directory}/log") as program:
            program.said("info serving")
            os.kill(descendant(program.process.pid, "perceptrond"), signal.SIGTERM)
            assert wait_for("it ends", lambda: program.process.poll() is not None)
            assert program.process.returncode == 0, program.process.returncode
            assert "stopped" in pathlib.Path(f"{directory}/log").read_text()


def check_content(root, version):
    programs = sorted(path.name for path in (root / "usr/bin").iterdir())
    assert programs == ["perceptronctl", "perceptrond"], programs
    said = run("chroot", root, "/usr/bin/perceptrond", "--version", stdout=subprocess.PIPE).stdout
    assert said.startswith(f"perceptrond {version} "), said
    materials = json.loads((root / "usr/share/sbom/perceptrond.spdx.json").read_text())
    assert materials["packages"][0]["versionInfo"] == version, materials["packages"][0]
    megabytes = int(run("du", "-sm", root, stdout=subprocess.PIPE).stdout.split()[0])
    assert megabytes < 100, f"the image has {megabytes} MB"
    say(f"{said.strip()}, {megabytes} MB in all")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--given", action="store_true")
    parser.add_argument("--work", type=pathlib.Path)
    arguments = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("container_test.py needs root: buildah mounts, and makes a user's files")
    run("sh", ROOT / "deploy/install_packages.sh", "container")
    with contextlib.ExitStack() as stack:
        scratch = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="perceptrond-container.")))
        work = arguments.work or scratch
        work.mkdir(parents=True, exist_ok=True)
        buildah = Buildah(work.resolve())
        if not buildah.has(BASE):
            say("making the base")
            make_base(buildah, work)
        say("building the image")
        revision = build(buildah, arguments.given)
        image = Image(buildah)
        version = image.check(revision)
        with image.root() as root:
            check_content(root, version)
            drains_as_the_first_process(root)
        volume = scratch / "volume"
        volume.mkdir()
        os.chown(volume, 65532, 65532)
        container = Container(buildah, image, volume, scratch)
        try:
            main_job(container)
        finally:
            container.remove()
    say("passed")


if __name__ == "__main__":
    main()
