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
TYPE = {value: name.removeprefix("TYPE_").lower() for name, value in Field.Type.items()}
LABEL = {value: name.removeprefix("LABEL_").lower() for name, value in Field.Label.items()}


def breaking_changes(released, present):
    """["what breaks"], in the order of what was released; empty if nothing does. What was added breaks nothing."""
    old, new = _Named(released), _Named(present)
    found = []
    for file in released.file:
        found += _files(file, new)
    for name, message in old.messages.items():
        found += _messages(name, message, new)
    for name, enum in old.enums.items():
        found += _enums(name, enum, new)
    for name, service in old.services.items():
        found += _services(name, service, new)
    return found


class _Named:
    """Everything in a set of files by its full name."""

    def __init__(self, descriptors):
        self.files, self.messages, self.enums, self.services = {}, {}, {}, {}
        for file in descriptors.file:
            self.files[file.name] = file
            self._take(file.package, file.message_type, file.enum_type)
            self.services.update({f"{file.package}.{service.name}": service for service in file.service})

    def _take(self, scope, messages, enums):
        self.enums.update({f"{scope}.{enum.name}": enum for enum in enums})
        for message in messages:
            name = f"{scope}.{message.name}"
            self.messages[name] = message
            self._take(name, message.nested_type, message.enum_type)


def _files(file, new):
    present = new.files.get(file.name)
    if present is None:
        return [f"{file.name}: the file is gone; sources import it"]
    found = []
    if present.package != file.package:
        found.append(f"{file.name}: package {file.package} became {present.package}; methods and types are called by it on the wire")
    if present.syntax != file.syntax:
        found.append(f"{file.name}: syntax {file.syntax} became {present.syntax}")
    return found


def _messages(name, message, new):
    present = new.messages.get(name)
    if present is None:
        return [f"{name}: the message is gone"]
    fields = {field.number: field for field in present.field}
    found = []
    for field in message.field:
        now = fields.get(field.number)
        if now is None:
            found += _removed(f"{name}.{field.name}", field, present, _in_ranges)
        else:
            found += _field(f"{name}.{field.name}", message, field, present, now)
    return found + _still_reserved(name, message, present, "field")


def _field(name, message, field, present, now):
    found = []
    if now.name != field.name:
        found.append(f"{name}: number {field.number} is called {now.name} now; sources and JSON have the old name, or the number was reused")
    elif now.json_name != field.json_name:
        found.append(f"{name}: in JSON {field.json_name} became {now.json_name}")
    if (now.type, now.type_name) != (field.type, field.type_name):
        found.append(f"{name}: {_type(field)} became {_type(now)}")
    if now.label != field.label:
        found.append(f"{name}: {LABEL[field.label]} became {LABEL[now.label]}")
    if now.proto3_optional != field.proto3_optional:
        found.append(f"{name}: {'gained' if now.proto3_optional else 'lost'} field presence")
    if _oneof(message, field) != _oneof(present, now):
        found.append(f"{name}: moved from {_oneof(message, field) or 'no oneof'} to {_oneof(present, now) or 'no oneof'}")
    return found


def _type(field):
    return field.type_name.removeprefix(".") or TYPE[field.type]


def _oneof(message, field):
    if not field.HasField("oneof_index") or field.proto3_optional:
        return ""
    return message.oneof_decl[field.oneof_index].name


def _enums(name, enum, new):
    present = new.enums.get(name)
    if present is None:
        return [f"{name}: the enum is gone"]
    names = {}
    for value in present.value:
        names.setdefault(value.number, value.name)
    found = []
    for value in enum.value:
        if value.number not in names:
            found += _removed(f"{name}.{value.name}", value, present, _in_closed_ranges)
        elif names[value.number] != value.name:
            found.append(f"{name}.{value.name}: number {value.number} is called {names[value.number]} now")
    return found + _still_reserved(name, enum, present, "value")


def _removed(name, thing, present, in_ranges):
    """Something with a name and a number is gone: that breaks sources; unless both are reserved, also what comes later."""
    found = [f"{name}: removed; sources use it. Mark it deprecated instead"]
    if not in_ranges(thing.number, present.reserved_range):
        found.append(f"{name}: number {thing.number} is not reserved; who reuses it misreads what was written before")
    if thing.name not in present.reserved_name:
        found.append(f"{name}: its name is not reserved; who reuses it misreads JSON that was written before")
    return found


def _in_ranges(number, ranges):
    return any(each.start <= number < each.end for each in ranges)


def _in_closed_ranges(number, ranges):
    return any(each.start <= number <= each.end for each in ranges)


def _still_reserved(name, message, present, what):
    """What was reserved once stays so: the reason does not go away."""
    now = {(each.start, each.end) for each in present.reserved_range}
    found = [f"{name}: {what} numbers from {each.start} are no longer reserved" for each in message.reserved_range if (each.start, each.end) not in now]
    return found + [f"{name}: {what} name {each} is no longer reserved" for each in message.reserved_name if each not in present.reserved_name]


def _services(name, service, new):
    present = new.services.get(name)
    if present is None:
        return [f"{name}: the service is gone"]
    methods = {method.name: method for method in present.method}
    found = []
    for method in service.method:
        now = methods.get(method.name)
        if now is None:
            found.append(f"{name}.{method.name}: the method is gone")
        elif _signature(now) != _signature(method):
            found.append(f"{name}.{method.name}: {_signature(method)} became {_signature(now)}")
    return found


def _signature(method):
    def one(streaming, type_name):
        return ("stream " if streaming else "") + type_name.removeprefix(".")

    return f"({one(method.client_streaming, method.input_type)}) returns ({one(method.server_streaming, method.output_type)})"


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
