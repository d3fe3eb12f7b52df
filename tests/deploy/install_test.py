"""Installs the Debian packages on a Debian of its own, which systemd has booted: the service runs as its unit says, learns, is
killed, comes back; an upgrade keeps models and settings. debs_test.py has them removed and purged.

    python3 tests/deploy/install_test.py [--build DIRECTORY] [--base DIRECTORY]

As root; installs what is missing of deploy/packages.txt, sections [build] and [install]. From nothing it takes some 20 minutes and
4 GiB, most of it for compiling.

  --build     with what is made in there (cmake -DCMAKE_INSTALL_PREFIX=/usr), instead of cmake --workflow --preset deb
  --base      keeps the Debian there before anything is installed, and takes it from there
"""

import argparse
import contextlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from debs import make_packages, newer, run
from deployed import ROOT
from processes import wait_for

SERVER, CLIENT, _ = NAMES = ("perceptrond", "perceptronctl", "libperceptrond-dev")
SETTINGS = "etc/default/perceptrond"
DATA = "var/lib/private/perceptrond"
APT = ("env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-q", "-y", "--no-install-recommends", "-o", "Dpkg::Options::=--force-confold")


def say(text):
    print(f"== {text}", flush=True)


class Machine:
    """A Debian booted by systemd-nspawn, with no network but its own loopback. A context manager."""

    def __init__(self, root, log):
        self.root = root
        self.log = log

    def __enter__(self):
        with open(self.log, "wb") as log:
            self.nspawn = subprocess.Popen(["systemd-nspawn", "--quiet", "-D", self.root, "--boot", "--register=no", "--keep-unit",
                                            "--private-network", "--console=pipe"], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            self.first = wait_for("the machine has a first process", self.find_first)
            wait_for("systemd is up", lambda: self.try_("systemctl", "is-system-running").stdout.strip() in ("running", "degraded"))
        except AssertionError:
            self.end()
            raise
        return self

    def find_first(self):
        """Not one of those that prepare it."""
        assert self.nspawn.poll() is None, self.log.read_text()
        for child in pathlib.Path(f"/proc/{self.nspawn.pid}/task/{self.nspawn.pid}/children").read_text().split():
            with contextlib.suppress(OSError):
                if pathlib.Path(f"/proc/{child}/comm").read_text() == "systemd\n":
                    return child
        return None

    def __exit__(self, *_):
        self.end()

    def end(self):
        # It powers off; a second signal would not let it.
        self.nspawn.terminate()
        try:
            self.nspawn.wait(60)
        except subprocess.TimeoutExpired:
            self.nspawn.kill()
            self.nspawn.wait()

    def inside(self, command):
        return ["nsenter", "-t", self.first, "-m", "-u", "-i", "-n", "-p", *map(str, command)]

    def __call__(self, *command):
        return run(*self.inside(command))

    def try_(self, *command):
        return subprocess.run(self.inside(command), stdin=subprocess.DEVNULL, capture_output=True, text=True)

    def apt(self, *arguments):
        self(*APT, *arguments)

    def state(self):
        return self.try_("systemctl", "is-active", SERVER).stdout.strip(), self.try_("systemctl", "is-enabled", SERVER).stdout.strip()

    def main_pid(self):
        return int(self("systemctl", "show", "-P", "MainPID", SERVER))

    def serving(self):
        wait_for("the service serves", lambda: self.try_("perceptronctl", "health").returncode == 0)

    def metric(self, name):
        """Without curl."""
        page = self("bash", "-c", r"exec 3<>/dev/tcp/127.0.0.1/7601; printf 'GET /metrics HTTP/1.0\r\n\r\n' >&3; cat <&3")
        return float(re.search(rf"(?m)^{name} (\S+)", page)[1])

    def predictions(self):
        said = self("perceptronctl", "predict", "spam", "/rows/test.tsv", "--format", "text", "-o", "json")
        return [line for line in said.splitlines() if line.startswith("{")]


def build(given, scratch):
    """The packages; from the same source the same ones."""
    directory = given
    if given is None:
        say("compiling")
        run("cmake", "--workflow", "--preset", "deb", cwd=ROOT)
        directory = ROOT / "build-deb"
    packages, again = (make_packages(directory, scratch / name) for name in ("once", "twice"))
    assert [path.read_bytes() for path in packages.values()] == [again[name].read_bytes() for name in packages], "they differ"
    assert sorted(packages) == sorted(NAMES), packages
    say("lintian")
    run("lintian", "--allow-root", "--fail-on", "error,warning", *packages.values())
    return packages


def make_root(base, packages, scratch):
    """A Debian with the packages lying there, and with what they depend on downloaded."""
    if not base.exists():
        say("making a Debian")
        base.parent.mkdir(parents=True, exist_ok=True)
        run("debootstrap", "--variant=minbase", "--include=systemd,systemd-sysv,dbus", "bookworm", base)
    root = scratch / "root"
    run("cp", "-a", base, root)
    for directory in ("packages", "rows"):
        (root / directory).mkdir()
    for name, deb in packages.items():
        shutil.copy(deb, root / f"packages/{name}.deb")
    shutil.copy(newer(packages[SERVER], scratch, SETTINGS), root / "packages/newer.deb")
    lines = (ROOT / "deploy/data/sms_spam.tsv").read_text().splitlines(keepends=True)[1:]
    (root / "rows/train.tsv").write_text("".join(lines[:4459]))
    (root / "rows/test.tsv").write_text("".join(lines[4459:]))
    say("downloading what they depend on")
    run("chroot", root, "apt-get", "-q", "update")
    run("chroot", root, *APT, "install", "--download-only", *(f"/packages/{name}.deb" for name in NAMES))
    return root


def install(machine):
    machine.apt("install", *(f"/packages/{name}.deb" for name in (SERVER, CLIENT)))
    assert machine.state() == ("active", "enabled"), machine.state()
    machine.serving()
    uid = (pathlib.Path(machine.root) / DATA).stat().st_uid
    status = machine("cat", f"/proc/{machine.main_pid()}/status")
    assert uid != 0 and f"Uid:\t{uid}\t{uid}" in status, (uid, status)
    version = machine("dpkg-query", "-W", "-f", "${Version}", SERVER)
    assert machine("perceptrond", "--version").startswith(f"perceptrond {version} ")
    say(f"perceptrond {version} serves, as user {uid}")


def learn(machine):
    machine("perceptronctl", "create", "spam", "--text", "--labels", "ham,spam")
    said = machine("perceptronctl", "learn", "spam", "/rows/train.tsv", "--format", "text", "--until-converged")
    assert "converged" in said, said
    predictions = machine.predictions()
    assert len(predictions) == 1115
    killed = machine.main_pid()
    machine("systemctl", "kill", "--signal=KILL", SERVER)
    wait_for("systemd has started it again", lambda: machine.main_pid() not in (0, killed))
    machine.serving()
    assert machine.predictions() == predictions
    say("it has learned, was killed, and predicts the same")
    return predictions


def configure_and_upgrade(machine, predictions):
    settings = pathlib.Path(machine.root) / SETTINGS
    settings.write_text(re.sub("(?m)^#PERCEPTROND_MEMORY_BUDGET=.*", "PERCEPTROND_MEMORY_BUDGET=123MiB", settings.read_text()))
    written = settings.read_text()
    machine("systemctl", "restart", SERVER)
    machine.serving()
    assert machine.metric("perceptrond_memory_budget_bytes") == 123 << 20
    before = machine.main_pid()
    machine.apt("install", "/packages/newer.deb")
    assert machine("dpkg-query", "-W", "-f", "${Version}", SERVER) == "99.0"
    assert machine.state() == ("active", "enabled") and machine.main_pid() != before
    machine.serving()
    assert settings.read_text() == written
    assert machine.metric("perceptrond_memory_budget_bytes") == 123 << 20
    assert machine.predictions() == predictions
    say("an upgrade has kept models and settings")


def serve_securely(machine):
    """Follows docs/secure.md, with a key and an access file that only root can read."""
    said = (ROOT / "docs/secure.md").read_text().split("`systemctl edit perceptrond`, and\n\n")[1].split("\n\n")[0]
    settings = "".join(line.strip() + "\n" for line in said.splitlines())
    credentials = {name: pathlib.Path(machine.root) / path[1:] for name, path in re.findall(r"LoadCredential=(\S+):(\S+)", settings)}
    certificate, key, access = (credentials[name] for name in ("server.pem", "server.key", "access"))
    for path in credentials.values():
        path.parent.mkdir(parents=True, exist_ok=True)
    run("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost",
        "-keyout", key, "-out", certificate)
    token = machine("perceptrond", "--new-token", "/root/owner.token")
    access.write_text(f'principal {{ name: "owner" {token} allow {{ role: ADMIN models: "" }} right: HEALTH }}\n')
    for path in (key, access):
        path.chmod(0o600)
    dropped = pathlib.Path(machine.root) / f"etc/systemd/system/{SERVER}.service.d/override.conf"
    dropped.parent.mkdir()
    dropped.write_text(settings)
    machine("systemctl", "daemon-reload")
    machine("systemctl", "restart", SERVER)
    trusted = "/" + str(certificate.relative_to(machine.root))
    # Nobody in there knows the name localhost.
    encrypted = ("perceptronctl", "--tls-server-name", "localhost", "--tls-ca", trusted)
    authenticated = (*encrypted, "--token-file", "/root/owner.token")
    wait_for("it serves with TLS", lambda: machine.try_(*authenticated, "health").returncode == 0)
    refused = machine.try_(*encrypted, "list")
    assert refused.returncode != 0 and "UNAUTHENTICATED" in refused.stderr, refused
    assert "spam" in machine(*authenticated, "list")
    assert machine.try_("perceptronctl", "--timeout", "1", "health").returncode != 0, "without TLS too"
    shutil.rmtree(dropped.parent)
    access.unlink()
    access.parent.rmdir()
    machine("systemctl", "daemon-reload")
    machine("systemctl", "restart", SERVER)
    machine.serving()
    say("it serves with a key and an access file that only root can read")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path)
    parser.add_argument("--base", type=pathlib.Path)
    arguments = parser.parse_args()
    run("sh", ROOT / "deploy/install_packages.sh", "build", "install")
    with contextlib.ExitStack() as stack:
        scratch = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="perceptrond-install.")))
        packages = build(arguments.build, scratch)
        root = make_root(arguments.base or scratch / "base", packages, scratch)
        say("booting it")
        with Machine(root, scratch / "log") as machine:
            install(machine)
            predictions = learn(machine)
            configure_and_upgrade(machine, predictions)
            serve_securely(machine)
    say("passed")


if __name__ == "__main__":
    if os.geteuid() != 0:
        sys.exit("install_test.py needs root: it makes a Debian and boots it")
    main()
