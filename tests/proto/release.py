#!/usr/bin/python3
"""Writes down what the protos are at a release: from then on compatibility_test.py holds every change against it.

    python3 tests/proto/release.py

Refuses, and says why, if programs that were compiled from the release before would break. What must break goes into a package
of its own, perceptron.v2, beside the old one.
"""

import argparse
import pathlib
import sys

from google.protobuf import descriptor_pb2

import compatibility
import descriptors

RELEASED = pathlib.Path(__file__).resolve().parent / "released.binpb"


def released(path=RELEASED):
    return descriptor_pb2.FileDescriptorSet.FromString(path.read_bytes())


def write(present, path=RELEASED):
    """Writes the current descriptors, unless they break something: then returns what, and changes nothing."""
    broken = compatibility.breaking_changes(released(path), present) if path.exists() else []
    if not broken:
        path.write_bytes(descriptors.without_source_info(present).SerializeToString(deterministic=True))
    return broken


def main():
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    try:
        broken = write(descriptors.compile_protos())
    except descriptors.NotCompiled as error:
        print(f"release.py: protoc does not take the protos as they are:\n{error}", file=sys.stderr)
        return 1
    for what in broken:
        print(what, file=sys.stderr)
    if broken:
        print(f"release.py: nothing was written: these {len(broken)} changes break who was compiled from the last release", file=sys.stderr)
        return 1
    print(f"{RELEASED.name} holds the current protos; commit it")
    return 0


if __name__ == "__main__":
    sys.exit(main())
