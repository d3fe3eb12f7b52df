"""The image's bill of materials names every library that the programs load or have within them, and the programs by their hashes.

    python3 materials_test.py PERCEPTROND PERCEPTRONCTL        # as root, as the image's build runs
"""

import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

from deployed import ROOT


def said(*command):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout


@unittest.skipUnless(os.geteuid() == 0, "collect.sh makes another user's files")
class MaterialsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        directory = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        (directory / "programs").mkdir()
        for program in sys.argv[1:3]:
            shutil.copy(program, directory / "programs")
        cls.root = directory / "root"
        subprocess.run(["sh", ROOT / "deploy/image/collect.sh", directory / "programs", cls.root], check=True, stdout=subprocess.DEVNULL)
        cls.materials = json.loads((cls.root / "usr/share/sbom/perceptrond.spdx.json").read_text())
        cls.packages = {package["name"]: package for package in cls.materials["packages"]}

    def linked(self, how):
        named = {package["SPDXID"]: name for name, package in self.packages.items()}
        return {named[one["relatedSpdxElement"]] for one in self.materials["relationships"] if one["relationshipType"] == how}

    def test_the_libraries_that_the_programs_load_or_have_within_them_are_of_packages_in_the_bill(self):
        loaded = {os.path.realpath(path) for path in re.findall(r"(/\S+) \(0x", said("ldd", *sys.argv[1:3]))}
        # Files that came before /lib was a link are known by their old names.
        owners = {line.split(":")[0] for line in said("dpkg", "-S", *loaded, *(path.removeprefix("/usr") for path in loaded)).splitlines()}
        self.assertGreater(len(owners), 20)
        self.assertLessEqual(owners, self.linked("DYNAMIC_LINK"))
        self.assertLessEqual({"librocksdb-dev", "coinor-libclp-dev", "libhwy-dev", "libspdlog-dev", "libcli11-dev", "libjs-chart.js"}, self.linked("STATIC_LINK"))

    def test_a_scanner_finds_each_package_by_its_url_at_the_version_that_is_installed(self):
        installed = dict(line.split() for line in said("dpkg-query", "-W", "-f", "${Package} ${Version}\n").splitlines())
        for name in self.packages.keys() - {"perceptrond"}:
            package = self.packages[name]
            self.assertEqual(package["versionInfo"], installed[name])
            (reference,) = package["externalRefs"]
            self.assertRegex(reference["referenceLocator"], r"^pkg:deb/debian/[\w.%-]+@[\w.%-]+\?arch=\w+&distro=debian-\d+$")

    def test_the_programs_hashes_are_those_of_the_files_in_the_image(self):
        self.assertEqual(len(self.materials["files"]), 2)
        for file in self.materials["files"]:
            content = (self.root / file["fileName"]).read_bytes()
            found = {one["algorithm"]: one["checksumValue"] for one in file["checksums"]}
            self.assertEqual(found, {"SHA1": hashlib.sha1(content).hexdigest(), "SHA256": hashlib.sha256(content).hexdigest()})


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
