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


@unittest.skipUnless(os.geteuid() == 0, "collect.sh makes another user's files")
class MaterialsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.directory.cleanup)
        programs = pathlib.Path(cls.directory.name) / "programs"
        programs.mkdir()
        for program in sys.argv[1:3]:
            shutil.copy(program, programs)
        cls.root = pathlib.Path(cls.directory.name) / "root"
        subprocess.run(["sh", ROOT / "deploy/image/collect.sh", programs, cls.root], check=True, stdout=subprocess.DEVNULL)
        cls.materials = json.loads((cls.root / "usr/share/sbom/perceptrond.spdx.json").read_text())
        cls.packages = {package["name"]: package for package in cls.materials["packages"]}

    def linked(self, how):
        named = {package["SPDXID"]: name for name, package in self.packages.items()}
        return {named[one["relatedSpdxElement"]] for one in self.materials["relationships"] if one["relationshipType"] == how}

    def test_each_library_that_a_program_loads_is_of_a_package_in_the_bill(self):
        loaded = subprocess.run(["ldd", *sys.argv[1:3]], check=True, capture_output=True, text=True).stdout
        for path in set(re.findall(r"(/\S+) \(0x", loaded)):
            real = str(pathlib.Path(path).resolve())
            said = subprocess.run(["dpkg", "-S", real], capture_output=True, text=True).stdout
            said = said or subprocess.run(["dpkg", "-S", real.removeprefix("/usr")], check=True, capture_output=True, text=True).stdout
            self.assertIn(said.split(":")[0], self.linked("DYNAMIC_LINK"), path)

    def test_libraries_without_a_file_of_their_own_in_the_image_are_named_too(self):
        within = {"librocksdb-dev", "coinor-libclp-dev", "libhwy-dev", "libspdlog-dev", "libcli11-dev", "libjs-chart.js"}
        self.assertLessEqual(within, self.linked("STATIC_LINK"))

    def test_a_scanner_finds_each_package_by_its_url_at_the_version_that_is_installed(self):
        for name, package in self.packages.items():
            if name == "perceptrond":
                continue
            version = subprocess.run(["dpkg-query", "-W", "-f", "${Version}", name], check=True, capture_output=True, text=True).stdout
            self.assertEqual(package["versionInfo"], version)
            (reference,) = package["externalRefs"]
            self.assertRegex(reference["referenceLocator"], r"^pkg:deb/debian/[\w.%-]+@[\w.%-]+\?arch=\w+&distro=debian-\d+$")

    def test_identifiers_are_valid_distinct_and_all_that_relationships_name(self):
        elements = [*self.materials["packages"], *self.materials["files"]]
        identifiers = {element["SPDXID"] for element in elements} | {"SPDXRef-DOCUMENT"}
        self.assertEqual(len(identifiers), len(elements) + 1)
        for identifier in identifiers:
            self.assertRegex(identifier, r"^SPDXRef-[A-Za-z0-9.-]+$")
        for one in self.materials["relationships"]:
            self.assertLessEqual({one["spdxElementId"], one["relatedSpdxElement"]}, identifiers)

    def test_the_programs_hashes_are_those_of_the_files_in_the_image(self):
        self.assertEqual(len(self.materials["files"]), 2)
        for file in self.materials["files"]:
            content = (self.root / file["fileName"]).read_bytes()
            said = {one["algorithm"]: one["checksumValue"] for one in file["checksums"]}
            self.assertEqual(said, {"SHA1": hashlib.sha1(content).hexdigest(), "SHA256": hashlib.sha256(content).hexdigest()})


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
