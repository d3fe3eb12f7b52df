#!/usr/bin/env python3
"""Clang's thread-safety analysis over every source file of core/, server/ and client/ that sees a lock.

usage: thread_safety_test.py ROOT BUILD [CLANG++]

BUILD holds the compile_commands.json of a build whose generated headers exist. The build itself is g++'s: this runs the
analysis alone, with the same include paths and definitions, and makes nothing. Files that the build compiles in a batch
are analysed in that batch.
"""
import concurrent.futures
import os
import pathlib
import shlex
import subprocess
import sys

from compilations import INCLUDE, compilations

KEPT_WITH_VALUE = {"-I", "-isystem", "-D"}
LOCKS = {"absl/base/thread_annotations.h", "absl/synchronization/mutex.h"}


class Includes:
    """Which files see a lock's declaration, through whatever headers of the project."""

    def __init__(self, root):
        self.root = root
        self.known = {}

    def see_locks(self, path):
        if path not in self.known:
            self.known[path] = False  # Two headers may include each other.
            names = INCLUDE.findall(path.read_text()) if path.is_file() else []
            self.known[path] = any(name in LOCKS or self.see_locks(self.root / name) for name in names)
        return self.known[path]


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
    entries = compilations(root, build)
    compiled = {path for _, paths in entries for path in paths}
    if not compiled:
        sys.exit(f"{build}/compile_commands.json names no file of {root}")
    includes = Includes(root)
    analysed = [entry for entry, paths in entries if any(includes.see_locks(pathlib.Path(path)) for path in paths)]
    if not analysed:
        sys.exit("no file sees a lock: LOCKS in this script must name the headers that declare them")
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        findings = [text for text in pool.map(lambda entry: analyse(entry, clang), analysed) if text]
    for text in findings:
        print(text)
    if findings:
        sys.exit(1)
    print(f"{len(compiled)} files in {len(analysed)} compilations that see locks, and keep them")


if __name__ == "__main__":
    main()
