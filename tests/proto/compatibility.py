#!/usr/bin/python3
"""Checks that the protos break no program that was compiled from the last release: one on the wire, its stored data, or its
sources.

    python3 tests/proto/compatibility.py              # exits with 1, and says what breaks
    python3 tests/proto/compatibility.py --release    # makes the protos as they are the last release: released.binpb

A change that must break something goes into a package of its own, perceptron.v2, beside the old one.
"""

import argparse
import pathlib
import subprocess
import sys
import tempfile

from google.protobuf import descriptor_pb2

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
RELEASED = pathlib.Path(__file__).resolve().parent / "released.binpb"
Field = descriptor_pb2.FieldDescriptorProto


def breaking_changes(released, present):
    """["what breaks"], in the order of what was released; empty if nothing does. What was added breaks nothing."""
    now, found = properties(present), []
    for name, old in properties(released).items():
        if name not in now:
            found.append(f"{name}: is gone, and sources use it: mark it deprecated instead, since whoever reuses its number or name misreads what was written before")
            continue
        for what, value in old.items():
            if now[name].get(what) != value:
                found.append(f"{name}: {what}: {value} became {now[name].get(what, 'nothing')}")
    return found


def properties(descriptors):
    """{full name: {property: value}} of all that programs, stored data and sources rely on."""
    found = {}

    def take(scope, messages, enums):
        for enum in enums:
            name = f"{scope}.{enum.name}"
            found[name] = reserved(enum)
            for value in enum.value:
                written = next(one.name for one in enum.value if one.number == value.number)
                found[f"{name}.{value.name}"] = {"number": value.number, "name in JSON": written}
        for message in messages:
            name = f"{scope}.{message.name}"
            found[name] = reserved(message)
            found.update({f"{name}.{field.name}": of_field(field, message) for field in message.field})
            take(name, message.nested_type, message.enum_type)

    for file in descriptors.file:
        found[file.name] = {"package, by which types and methods are called on the wire": file.package, "syntax": file.syntax}
        take(file.package, file.message_type, file.enum_type)
        for service in file.service:
            found[f"{file.package}.{service.name}"] = {}
            for method in service.method:
                found[f"{file.package}.{service.name}.{method.name}"] = {
                    "request": (method.input_type, "a stream" if method.client_streaming else "one"),
                    "response": (method.output_type, "a stream" if method.server_streaming else "one")}
    return found


def of_field(field, message):
    in_oneof = field.HasField("oneof_index") and not field.proto3_optional
    return {"number": field.number, "name in JSON": field.json_name, "type": field.type_name or Field.Type.Name(field.type),
            "label": Field.Label.Name(field.label), "presence": "optional" if field.proto3_optional else "implicit",
            "oneof": message.oneof_decl[field.oneof_index].name if in_oneof else "none"}


def reserved(thing):
    """What was reserved once stays so: the reason does not go away."""
    numbers = [f"reserved numbers {each.start} to {each.end}" for each in thing.reserved_range]
    return {each: "reserved" for each in numbers + [f"reserved name {name}" for name in thing.reserved_name]}


def compiled(directory=ROOT / "proto"):
    """The descriptors of all proto files below a directory, without those that they import from protobuf itself."""
    files = sorted(str(path.relative_to(directory)) for path in directory.rglob("*.proto"))
    with tempfile.NamedTemporaryFile() as out:
        subprocess.run(["protoc", f"--proto_path={directory}", f"--descriptor_set_out={out.name}", *files], check=True)
        return descriptor_pb2.FileDescriptorSet.FromString(out.read())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--release", action="store_true", help="write released.binpb, if nothing breaks")
    release = parser.parse_args().release
    present = compiled()
    released = descriptor_pb2.FileDescriptorSet.FromString(RELEASED.read_bytes())
    broken = breaking_changes(released, present)
    for what in broken:
        print(what, file=sys.stderr)
    if broken:
        print(f"{len(broken)} changes break programs that were compiled from the last release", file=sys.stderr)
        return 1
    if release:
        RELEASED.write_bytes(present.SerializeToString(deterministic=True))
        print(f"{RELEASED.name} holds the current protos; commit it")
    else:
        print(f"the protos of {len(present.file)} files work with the last release")
    return 0


if __name__ == "__main__":
    sys.exit(main())
