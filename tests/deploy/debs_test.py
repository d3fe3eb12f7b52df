"""The Debian packages: what is in them, what they depend on, and that dpkg installs, upgrades, removes and purges them, in a
directory of its own; the programs in them run, and a program is built against the library in them.

    python3 debs_test.py BUILD CXX      # BUILD: a build directory with everything made; needs dpkg-dev, fakeroot, pkg-config

tests/deploy/install_test.py does it on a Debian of its own, with apt and systemd.
"""

import gzip
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

from debs import make_packages, newer, run
from deployed import ROOT, unit
from processes import Server

BUILD, CXX = pathlib.Path(sys.argv[1]), sys.argv[2]
SERVER, CLIENT, DEVELOPMENT = NAMES = ("perceptrond", "perceptronctl", "libperceptrond-dev")
UNIT = "usr/lib/systemd/system/perceptrond.service"
SETTINGS = "etc/default/perceptrond"


class Packages:
    """Made and unpacked, once."""

    def __init__(self, directory):
        # gzip, for the sake of time.
        self.debs = make_packages(BUILD, directory / "made", "gzip")
        # All in one tree, as they would be on a machine.
        self.root = directory / "root"
        self.control = {name: directory / "control" / name for name in self.debs}
        (directory / "control").mkdir()
        for name, deb in self.debs.items():
            run("dpkg-deb", "-x", deb, self.root)
            run("dpkg-deb", "-e", deb, self.control[name])

    def field(self, name, field):
        return run("dpkg-deb", "-f", self.debs[name], field).strip()

    def content(self, name):
        """{path: (mode, owner)} of what is no directory."""
        listed = [line.split(maxsplit=5) for line in run("dpkg-deb", "-c", self.debs[name]).splitlines()]
        return {words[5].removeprefix("./"): (words[0], words[1]) for words in listed if not words[5].endswith("/")}

    def program(self, name):
        return self.root / "usr/bin" / name


class ContentTest(unittest.TestCase):
    def test_there_are_three_of_the_projects_version(self):
        self.assertEqual(sorted(PACKAGES.debs), sorted(NAMES))
        version = re.search(r"CMAKE_PROJECT_VERSION:STATIC=(.*)", (BUILD / "CMakeCache.txt").read_text())[1]
        architecture = run("dpkg", "--print-architecture").strip()
        for name, deb in PACKAGES.debs.items():
            self.assertEqual(deb.name, f"{name}_{version}_{architecture}.deb")
            self.assertEqual((PACKAGES.field(name, "Version"), PACKAGES.field(name, "Architecture")), (version, architecture))
            changelog = gzip.decompress((PACKAGES.root / f"usr/share/doc/{name}/changelog.gz").read_bytes()).decode()
            self.assertTrue(changelog.startswith(f"perceptrond ({version}) "))
        self.assertTrue(run(PACKAGES.program(SERVER), "--version").startswith(f"perceptrond {version} "))
        self.assertEqual(run(PACKAGES.program(CLIENT), "--version"), f"perceptronctl {version}\n")

    def test_each_holds_its_part(self):
        both = ["usr/bin/{0}", "usr/share/man/man1/{0}.1.gz", "usr/share/bash-completion/completions/{0}",
                "usr/share/zsh/vendor-completions/_{0}", "usr/share/fish/vendor_completions.d/{0}.fish"]
        expected = {SERVER: [path.format(SERVER) for path in both] + [UNIT, SETTINGS],
                    CLIENT: [path.format(CLIENT) for path in both] + ["usr/share/man/man1/perceptronctl-learn.1.gz"],
                    DEVELOPMENT: ["usr/include/perceptrond/client/client.h", "usr/include/perceptrond/proto/perceptron/v1/model.pb.h",
                                  "usr/share/perceptrond/proto/perceptron/v1/model.proto"]}
        held = {name: PACKAGES.content(name) for name in NAMES}
        for name, paths in expected.items():
            self.assertLessEqual({*paths, f"usr/share/doc/{name}/copyright"}, set(held[name]))
        for one, other in ((SERVER, CLIENT), (SERVER, DEVELOPMENT), (CLIENT, DEVELOPMENT)):
            self.assertEqual(set(held[one]) & set(held[other]), set())
        self.assertEqual({path for path in held[SERVER] if path.startswith("usr/bin")}, {"usr/bin/perceptrond"})
        self.assertFalse([path for path in held[DEVELOPMENT] if "storage" in path])
        # Every page and every public header: what the build has is what is packed.
        pages = {page.name for page in (BUILD / "manual/man").glob("*.gz")}
        self.assertEqual(pages, {path.rsplit("/", 1)[1] for name in NAMES for path in held[name] if "/man1/" in path})

    def test_files_are_roots_and_writable_for_nobody_else(self):
        for name in NAMES:
            for path, (mode, owner) in PACKAGES.content(name).items():
                self.assertEqual((owner, mode), ("root/root", "-rwxr-xr-x" if path.startswith("usr/bin/") else "-rw-r--r--"), path)

    def test_they_depend_on_the_packages_of_what_they_load(self):
        for name in (SERVER, CLIENT):
            program = PACKAGES.program(name)
            needed = re.findall(r"NEEDED +(\S+)", run("objdump", "-p", program))
            self.assertGreater(len(needed), 5)
            paths = dict(re.findall(r"(\S+) => (\S+)", run("ldd", program)))
            owners = set()
            for library in needed:
                path = os.path.realpath(paths[library]) if library in paths else None
                # The loader itself has no path; files that came before /lib was a link are known by their old names.
                if path is None:
                    continue
                found = subprocess.run(["dpkg-query", "-S", path, path.removeprefix("/usr")], capture_output=True, text=True).stdout
                owners.add(found.split(":")[0])
            depends = {word.split()[0] for word in PACKAGES.field(name, "Depends").split(", ")}
            names = {owner: {owner, *re.findall(r"[\w.+-]+", run("dpkg-query", "-W", "-f", "${Provides}", owner))} for owner in owners}
            self.assertEqual([owner for owner, any_of in names.items() if not any_of & depends], [])

    def test_settings_are_configuration(self):
        self.assertEqual((PACKAGES.control[SERVER] / "conffiles").read_text(), f"/{SETTINGS}\n")

    def test_the_unit_finds_its_program_and_its_settings(self):
        text = (PACKAGES.root / UNIT).read_text()
        self.assertEqual(text, (ROOT / "deploy/systemd/perceptrond.service").read_text())
        self.assertEqual(unit()["ExecStart"], ["/usr/bin/perceptrond"])
        self.assertEqual(unit()["EnvironmentFile"], [f"-/{SETTINGS}"])


class UseTest(unittest.TestCase):
    """The programs and the library as they were packed."""

    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)

    def server(self):
        return Server(PACKAGES.program(SERVER), self.directory / "data", self.directory / "log")

    def test_the_programs_run(self):
        rows = self.directory / "rows.tsv"
        rows.write_text("".join((ROOT / "deploy/data/sms_spam.tsv").read_text().splitlines(keepends=True)[1:300]))
        predicted = []
        for first in (True, False):
            with self.server() as server:
                def ctl(*arguments):
                    return run(PACKAGES.program(CLIENT), "--server", server.address, *arguments)

                if first:
                    ctl("create", "spam", "--named", "--labels", "ham,spam")
                    self.assertIn("converged", ctl("learn", "spam", rows, "--format", "text", "--until-converged"))
                predicted.append(re.findall("(?m)^(?:ham|spam)\t.*", ctl("predict", "spam", rows, "--format", "text")))
        self.assertEqual(predicted[0], predicted[1])
        self.assertEqual(len(predicted[0]), 299)

    def test_a_program_is_built_against_the_library(self):
        """With pkg-config; client_package does it with CMake."""
        (metadata,) = (PACKAGES.root / "usr/lib").glob("**/pkgconfig")
        environment = os.environ | {"PKG_CONFIG_PATH": str(metadata)}
        flags = run("pkg-config", "--cflags", "--libs", "perceptrond", env=environment).split()
        consumer = self.directory / "consumer"
        run(CXX, "-std=c++20", ROOT / "tests/client/consumer/consumer.cc", *flags, "-o", consumer)
        with self.server() as server:
            self.assertIn("updates", run(consumer, server.address))

    def test_the_protos_are_complete(self):
        protos = PACKAGES.root / "usr/share/perceptrond/proto"
        names = sorted(str(path.relative_to(protos)) for path in protos.glob("**/*.proto"))
        self.assertIn("perceptron/v1/learning_service.proto", names)
        run("protoc", f"-I{protos}", "--descriptor_set_out=/dev/null", *names)


class DpkgTest(unittest.TestCase):
    """dpkg's own word, without a Debian around: scripts run on this machine and work in that directory."""

    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.root = pathlib.Path(directory.name) / "root"
        (self.root / "var/lib/dpkg").mkdir(parents=True)
        (self.root / "var/lib/dpkg/status").touch()
        self.scratch = pathlib.Path(directory.name)

    def dpkg(self, *arguments):
        return run("fakeroot", "dpkg", f"--root={self.root}", "--force-script-chrootless", "--force-depends", "--force-confold", "--log=/dev/null",
                   *arguments)

    def present(self, *paths):
        return [os.path.lexists(self.root / path) for path in paths]

    def test_from_install_to_purge(self):
        enabled = "etc/systemd/system/multi-user.target.wants/perceptrond.service"
        data = "var/lib/private/perceptrond/CURRENT"
        self.dpkg("-i", *PACKAGES.debs.values())
        self.assertEqual(self.present("usr/bin/perceptrond", "usr/bin/perceptronctl", enabled, SETTINGS), [True] * 4)
        # What running it would leave, and an operator.
        (self.root / data).parent.mkdir(parents=True)
        (self.root / data).write_text("models")
        (self.root / "var/lib/perceptrond").symlink_to("private/perceptrond")
        (self.root / SETTINGS).write_text("PERCEPTROND_MEMORY_BUDGET=4GiB\n")

        self.dpkg("-i", newer(PACKAGES.debs[SERVER], self.scratch, SETTINGS))
        self.assertEqual((self.root / SETTINGS).read_text(), "PERCEPTROND_MEMORY_BUDGET=4GiB\n")
        self.assertEqual(self.present(data, enabled), [True] * 2)

        self.dpkg("-r", SERVER)
        self.assertEqual(self.present("usr/bin/perceptrond", UNIT, SETTINGS, data), [False, False, True, True])

        self.dpkg("-P", *NAMES)
        self.assertEqual(self.present(SETTINGS, data, "var/lib/perceptrond", "var/lib/private/perceptrond", enabled, "usr/bin/perceptronctl"),
                         [False] * 6)
        left = [path for path in self.root.glob("**/*perceptron*") if "var/lib/dpkg" not in str(path)]
        self.assertEqual(left, [])

    def test_who_disabled_the_service_has_it_disabled_after_an_upgrade(self):
        enabled = "etc/systemd/system/multi-user.target.wants/perceptrond.service"
        self.dpkg("-i", PACKAGES.debs[SERVER])
        (self.root / enabled).unlink()
        self.dpkg("-i", newer(PACKAGES.debs[SERVER], self.scratch, SETTINGS))
        self.assertEqual(self.present(enabled), [False])


if __name__ == "__main__":
    for tool in ("cpack", "dpkg-shlibdeps", "fakeroot", "pkg-config", "protoc"):
        assert shutil.which(tool), f"{tool} is missing: sh deploy/install_packages.sh test"
    with tempfile.TemporaryDirectory() as made:
        PACKAGES = Packages(pathlib.Path(made))
        unittest.main(argv=sys.argv[:1] + sys.argv[3:])
