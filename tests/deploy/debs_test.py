"""The Debian packages: what is in them, what they depend on, and that dpkg installs, upgrades, removes and purges them, in a
directory of its own; the programs in them run, and a program is built against the library in them.

    python3 debs_test.py BUILD CXX      # BUILD: a build directory with everything made; needs dpkg-dev, fakeroot, pkg-config

install_test.py has them run by systemd, on a Debian of its own.
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

from debs import make_packages, newer, run
from deployed import ROOT, UNIT, unit
from page_load import DIMENSION, Load
from processes import Server

BUILD, CXX = pathlib.Path(sys.argv[1]), sys.argv[2]
SERVER, CLIENT, DEVELOPMENT = NAMES = ("perceptrond", "perceptronctl", "libperceptrond-dev")
SETTINGS = "etc/default/perceptrond"
ENABLED = "etc/systemd/system/multi-user.target.wants/perceptrond.service"


class DebsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        """All in one tree, as they would be on a machine."""
        directory = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        # gzip, for the sake of time.
        cls.debs = make_packages(BUILD, directory / "made", "gzip")
        cls.tree = directory / "root"
        for deb in cls.debs.values():
            run("dpkg-deb", "-x", deb, cls.tree)

    def setUp(self):
        self.directory = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def field(self, name, field):
        return run("dpkg-deb", "-f", self.debs[name], field).strip()

    def content(self, name):
        """{path: (mode, owner)} of what is no directory."""
        listed = [line.split(maxsplit=5) for line in run("dpkg-deb", "-c", self.debs[name]).splitlines()]
        return {words[5].removeprefix("./"): (words[0], words[1]) for words in listed if not words[5].endswith("/")}

    def test_there_are_three_of_the_projects_version(self):
        version = re.search(r"CMAKE_PROJECT_VERSION:STATIC=(.*)", (BUILD / "CMakeCache.txt").read_text())[1]
        architecture = run("dpkg", "--print-architecture").strip()
        self.assertEqual({deb.name for deb in self.debs.values()}, {f"{name}_{version}_{architecture}.deb" for name in NAMES})
        for name in NAMES:
            self.assertEqual((self.field(name, "Version"), self.field(name, "Architecture")), (version, architecture))

    def test_each_holds_its_part_for_root_and_nothing_of_another(self):
        held = {name: self.content(name) for name in NAMES}
        for program, more in ((SERVER, {str(UNIT.name), "perceptrond"}), (CLIENT, {"perceptronctl-learn.1.gz"})):
            self.assertLessEqual({f"usr/bin/{program}", f"usr/share/man/man1/{program}.1.gz", f"usr/share/bash-completion/completions/{program}"}, set(held[program]))
            self.assertLessEqual(more, {path.rsplit("/", 1)[1] for path in held[program]})
        self.assertLessEqual({"usr/include/perceptrond/client/client.h", "usr/include/perceptrond/proto/perceptron/v1/model.pb.h",
                              "usr/share/perceptrond/proto/perceptron/v1/model.proto"}, set(held[DEVELOPMENT]))
        self.assertEqual([path for path in held[DEVELOPMENT] if "storage" in path], [])
        everything = [path for name in NAMES for path in held[name]]
        self.assertEqual(len(everything), len(set(everything)))
        # All pages of the build are packed.
        self.assertEqual({path.name for path in (BUILD / "manual/man").glob("*.gz")}, {path.rsplit("/", 1)[1] for path in everything if "/man1/" in path})
        for name in NAMES:
            for path, found in held[name].items():
                self.assertEqual(found, ("-rwxr-xr-x" if path.startswith("usr/bin/") else "-rw-r--r--", "root/root"), path)

    def test_they_depend_on_the_packages_of_what_they_load(self):
        for name in (SERVER, CLIENT):
            needed = re.findall(r"NEEDED +(\S+)", run("objdump", "-p", self.tree / "usr/bin" / name))
            paths = dict(re.findall(r"(\S+) => (\S+)", run("ldd", self.tree / "usr/bin" / name)))
            # The loader itself has no path; files that came before /lib was a link are known by their old names.
            real = [os.path.realpath(paths[library]) for library in needed if library in paths]
            self.assertGreater(len(real), 5)
            owners = {subprocess.run(["dpkg-query", "-S", path, path.removeprefix("/usr")], capture_output=True, text=True).stdout.split(":")[0] for path in real}
            depends = {word.split()[0] for word in self.field(name, "Depends").split(", ")}
            names = {owner: {owner, *re.findall(r"[\w.+-]+", run("dpkg-query", "-W", "-f", "${Provides}", owner))} for owner in owners}
            self.assertEqual([owner for owner, any_of in names.items() if not any_of & depends], [])

    def test_the_unit_finds_its_program_and_its_settings_which_are_configuration(self):
        run("dpkg-deb", "-e", self.debs[SERVER], self.directory / "control")
        self.assertEqual((self.directory / "control/conffiles").read_text(), f"/{SETTINGS}\n")
        self.assertEqual((self.tree / "usr/lib/systemd/system" / UNIT.name).read_text(), UNIT.read_text())
        self.assertEqual((unit()["ExecStart"], unit()["EnvironmentFile"]), (["/usr/bin/perceptrond"], [f"-/{SETTINGS}"]))

    def test_the_programs_run_and_others_are_built_against_library_and_protos(self):
        """With pkg-config; client_package does it with CMake."""
        (metadata,) = (self.tree / "usr/lib").glob("**/pkgconfig")
        flags = run("pkg-config", "--cflags", "--libs", "perceptrond", env=os.environ | {"PKG_CONFIG_PATH": str(metadata)}).split()
        run(CXX, "-std=c++20", ROOT / "tests/client/consumer/consumer.cc", *flags, "-o", self.directory / "consumer")
        with Server(self.tree / "usr/bin" / SERVER, self.directory / "data", self.directory / "log") as server:
            self.assertIn("updates", run(self.directory / "consumer", server.address))
            load = Load(self.tree / "usr/bin" / CLIENT, server, self.directory)
            load.call("create", "m", "--dimension", DIMENSION)
            self.assertIn("converged", load.learn("m", load.rows(100), "--until-converged"))
        protos = self.tree / "usr/share/perceptrond/proto"
        run("protoc", f"-I{protos}", "--descriptor_set_out=/dev/null", *sorted(str(path.relative_to(protos)) for path in protos.glob("**/*.proto")))

    def dpkg(self, *arguments):
        """dpkg's own word, without a Debian around: scripts run on this machine and work in that directory."""
        (self.directory / "var/lib/dpkg").mkdir(parents=True, exist_ok=True)
        (self.directory / "var/lib/dpkg/status").touch()
        run("fakeroot", "dpkg", f"--root={self.directory}", "--force-script-chrootless", "--force-depends", "--force-confold", "--log=/dev/null", *arguments)

    def present(self, *paths):
        return [os.path.lexists(self.directory / path) for path in paths]

    def test_from_install_to_purge(self):
        data, settings = "var/lib/private/perceptrond/CURRENT", self.directory / SETTINGS
        self.dpkg("-i", *self.debs.values())
        self.assertEqual(self.present("usr/bin/perceptrond", "usr/bin/perceptronctl", ENABLED, SETTINGS), [True] * 4)
        # Files that a run leaves, and an operator who has disabled it.
        (self.directory / data).parent.mkdir(parents=True)
        (self.directory / data).write_text("models")
        (self.directory / "var/lib/perceptrond").symlink_to("private/perceptrond")
        settings.write_text("PERCEPTROND_MEMORY_BUDGET=4GiB\n")
        (self.directory / ENABLED).unlink()

        with tempfile.TemporaryDirectory() as scratch:
            self.dpkg("-i", newer(self.debs[SERVER], pathlib.Path(scratch), SETTINGS))
        self.assertEqual((settings.read_text(), self.present(data, ENABLED)), ("PERCEPTROND_MEMORY_BUDGET=4GiB\n", [True, False]))

        self.dpkg("-r", SERVER)
        self.assertEqual(self.present("usr/bin/perceptrond", SETTINGS, data), [False, True, True])

        self.dpkg("-P", *NAMES)
        self.assertEqual([path for path in self.directory.glob("**/*perceptron*") if "var/lib/dpkg" not in str(path)], [])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
