#!/usr/bin/env python3
"""Clang's thread-safety analysis over every source file of core/, server/ and client/.

usage: thread_safety_test.py ROOT BUILD [CLANG++]

BUILD holds the compile_commands.json of a build whose generated headers exist. The build itself is g++'s: this runs the
analysis alone, with the same include paths and definitions, and makes nothing.
"""
import concurrent.futures
import json
import os
import pathlib
import shlex
import subprocess
import sys

KEPT_WITH_VALUE = {"-I", "-isystem", "-D"}


def command_for(entry, clang):
    """The analysis of one file, from the way it is compiled."""
    words = shlex.split(entry["command"])
    kept = []
    for i, word in enumerate(words):
        if word in KEPT_WITH_VALUE:
            kept += [word, words[i + 1]]
        elif word.startswith(("-I", "-isystem", "-D")) or word.startswith("-std="):
            kept.append(word)
    return [clang, *kept, "-Wno-everything", "-fsyntax-only", "-Wthread-safety", "-Werror=thread-safety", entry["file"]]


def analyse(entry, clang):
    """None, or what clang has to say."""
    done = subprocess.run(command_for(entry, clang), cwd=entry["directory"], capture_output=True, text=True)
    return None if done.returncode == 0 else done.stderr


def main():
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    root = pathlib.Path(sys.argv[1]).resolve()
    build = pathlib.Path(sys.argv[2]).resolve()
    clang = sys.argv[3] if len(sys.argv) == 4 else "clang++-14"
    layers = tuple(str(root / layer) + os.sep for layer in ("core", "server", "client"))
    entries = {
        entry["file"]: entry
        for entry in json.loads((build / "compile_commands.json").read_text())
        if entry["file"].startswith(layers)
    }
    if not entries:
        sys.exit(f"{build}/compile_commands.json names no file of {root}")
    # A file that is in no target would be in no analysis either.
    sources = {str(path) for layer in layers for path in pathlib.Path(layer).rglob("*.cc")}
    missing = sorted(sources - entries.keys())
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        findings = [text for text in pool.map(lambda entry: analyse(entry, clang), entries.values()) if text]
    for text in findings:
        print(text)
    for path in missing:
        print(f"{path}: in no target of {build}")
    if findings or missing:
        sys.exit(1)
    print(f"{len(entries)} files keep their locks")


if __name__ == "__main__":
    main()
