#!/usr/bin/env python3
"""No source file is longer than 400 lines: one that is holds more than one concept.

usage: file_length_test.py ROOT

Generated files and data are not source; neither are the tests' corpora.
"""
import pathlib
import sys

LIMIT = 400
FOLDERS = ("core", "server", "client", "proto", "deploy", "tests", "docs")
SUFFIXES = {".cc", ".h", ".proto", ".py", ".sh", ".mjs", ".js", ".cmake", ".html", ".css"}
NOT_SOURCE = {"node_modules", "generated", "data", "corpus", "google"}


def sources(root):
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in SUFFIXES and not NOT_SOURCE & set(path.relative_to(root).parts) and path.is_file():
                yield path


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    root = pathlib.Path(sys.argv[1]).resolve()
    lengths = {path: len(path.read_bytes().splitlines()) for path in sources(root)}
    if not lengths:
        sys.exit("no source files found")
    too_long = {path: lines for path, lines in lengths.items() if lines > LIMIT}
    for path, lines in too_long.items():
        print(f"{path.relative_to(root)}: {lines} lines; split it by concept: at most {LIMIT}")
    if too_long:
        sys.exit(1)
    print(f"{len(lengths)} files, the longest of {max(lengths.values())} lines")


if __name__ == "__main__":
    main()
