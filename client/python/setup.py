"""Adds the modules of the protos to the package: messages (_pb2, with their types in .pyi) and stubs (_pb2_grpc).

Everything else is in pyproject.toml. Needs protoc and its plugin for Python; on Debian protobuf-compiler,
protobuf-compiler-grpc and libprotobuf-dev.
"""

import pathlib
import re
import shutil
import subprocess
import tempfile

from setuptools import setup
from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist

HERE = pathlib.Path(__file__).resolve().parent
# In a source distribution the protos are beside this file.
PROTOS = next(path for path in (HERE / "proto", HERE.parent.parent / "proto") if path.is_dir())
# Not the journal's records: they are no part of the API.
PACKAGES = {"google/rpc": "google_rpc", "perceptron/v1": "v1"}


def generate(package: pathlib.Path) -> None:
    """Makes the modules below this folder, where their names clash with no others."""
    plugin = shutil.which("grpc_python_plugin")
    if not plugin or not shutil.which("protoc"):
        raise SystemExit("perceptrond: the build needs protoc and grpc_python_plugin: install protobuf-compiler and protobuf-compiler-grpc")
    with tempfile.TemporaryDirectory() as made:
        files = [file for folder in PACKAGES for file in sorted((PROTOS / folder).glob("*.proto"))]
        subprocess.run(["protoc", f"--proto_path={PROTOS}", f"--python_out={made}", f"--pyi_out={made}", f"--plugin=protoc-gen-grpc_python={plugin}",
                        f"--grpc_python_out={made}", *files], check=True)
        for folder, name in PACKAGES.items():
            (package / name).mkdir(parents=True, exist_ok=True)
            for module in sorted((pathlib.Path(made) / folder).iterdir()):
                text = module.read_text()
                # One without a service has an empty module of stubs.
                if not module.stem.endswith("_grpc") or "Stub" in text:
                    (package / name / module.name).write_text(with_package_names(text))


def with_package_names(module: str) -> str:
    for folder, name in PACKAGES.items():
        module = re.sub(rf"^from {re.escape(folder.replace('/', '.'))}(?=[. ])", f"from perceptrond.{name}", module, flags=re.M)
    return module


class Build(build_py):
    def run(self) -> None:
        super().run()
        generate((HERE if getattr(self, "editable_mode", False) else pathlib.Path(self.build_lib)) / "perceptrond")


class SourceDistribution(sdist):
    def make_release_tree(self, base_dir: str, files: "list[str]") -> None:
        super().make_release_tree(base_dir, files)
        for folder in PACKAGES:
            shutil.copytree(PROTOS / folder, pathlib.Path(base_dir, "proto", folder), dirs_exist_ok=True)


setup(cmdclass={"build_py": Build, "sdist": SourceDistribution})
