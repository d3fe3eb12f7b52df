"""fleet_pb2, with the messages of a fleet's streams, which clients do not have: made when this is imported."""

import pathlib
import subprocess
import sys
import tempfile

_protos = pathlib.Path(__file__).resolve().parents[3] / "proto"
# Removed at the end of the process.
_modules = tempfile.TemporaryDirectory(prefix="perceptrond-records.")
subprocess.run(["protoc", f"--proto_path={_protos}", f"--python_out={_modules.name}", *sorted(_protos.glob("perceptron/storage/v1/*.proto"))], check=True)
for _module in pathlib.Path(_modules.name).rglob("*.py"):
    # The messages of the API are the client's.
    _module.write_text(_module.read_text().replace("from perceptron.v1 import", "from perceptrond.v1 import"))
sys.path.append(_modules.name)

from perceptron.storage.v1 import fleet_pb2  # noqa: E402
