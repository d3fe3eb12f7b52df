#!/usr/bin/env python3
"""No source file is longer than 400 lines: one that is holds more than one concept.

usage: file_length_test.py ROOT

Generated files and data are not source; neither are the tests' corpora, nor the files and folders of EXCEPTIONS.
"""
import pathlib
import sys

LIMIT = 400
FOLDERS = ("core", "server", "client", "proto", "deploy", "tests", "docs")
SUFFIXES = {".cc", ".h", ".proto", ".py", ".sh", ".mjs", ".js", ".cmake", ".html", ".css", ".json", ".svg", ".yml", ".yaml"}
NOT_SOURCE = {"node_modules", "generated", "data", "corpus", "google"}
EXCEPTIONS = {
    "deploy/grafana/dashboards/perceptrond.json": "one dashboard is one file, in the form that Grafana exports",
    "docs/pictures": "pictures are drawn by programs",
    "client/node/package-lock.json": "npm writes it",
}


def is_exception(path):
    return any(str(one) in EXCEPTIONS for one in (path, *path.parents))


def sources(root):
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            name = path.relative_to(root)
            if path.suffix in SUFFIXES and not NOT_SOURCE & set(name.parts) and not is_exception(name) and path.is_file():
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
