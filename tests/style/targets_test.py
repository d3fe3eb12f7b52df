#!/usr/bin/env python3
"""Every .cc file of core/, server/ and client/ is in a target: no compiler, no test and no analysis sees another.

usage: targets_test.py ROOT BUILD

BUILD is configured; nothing of it need be built.
"""
import pathlib
import sys

from compilations import LAYERS, compilations


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    root, build = (pathlib.Path(argument).resolve() for argument in sys.argv[1:])
    compiled = {path for _, paths in compilations(root, build) for path in paths}
    sources = {str(path) for layer in LAYERS for path in (root / layer).rglob("*.cc")}
    missing = sorted(sources - compiled)
    for path in missing:
        print(f"{path}: in no target of {build}")
    if missing or not sources:
        sys.exit(1)
    print(f"{len(sources)} files, each in a target")


if __name__ == "__main__":
    main()
