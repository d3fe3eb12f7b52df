"""What protoc makes of proto files: a FileDescriptorSet, with comments and places."""

import pathlib
import subprocess
import tempfile

from google.protobuf import descriptor_pb2

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PROTO = ROOT / "proto"


class NotCompiled(Exception):
    """protoc refused a file, or had something to say of it; the text says what."""


def compile_protos(directory=PROTO):
    """All proto files below the directory. What they import from protobuf itself is not among them."""
    files = sorted(str(path.relative_to(directory)) for path in pathlib.Path(directory).rglob("*.proto"))
    with tempfile.NamedTemporaryFile() as out:
        done = subprocess.run(["protoc", f"--proto_path={directory}", "--include_source_info", f"--descriptor_set_out={out.name}", *files],
                              capture_output=True, text=True)
        if done.returncode != 0 or done.stderr:
            raise NotCompiled(done.stderr)
        return descriptor_pb2.FileDescriptorSet.FromString(out.read())


def without_source_info(descriptors):
    """The same without comments and places: what programs on the wire depend on."""
    bare = descriptor_pb2.FileDescriptorSet()
    bare.CopyFrom(descriptors)
    for file in bare.file:
        file.ClearField("source_code_info")
    return bare
