"""What a build compiles of core/, server/ and client/, from its compile_commands.json."""
import json
import os
import pathlib
import re

INCLUDE = re.compile(r'^#include "([^"]+)"', re.MULTILINE)
LAYERS = ("core", "server", "client")
BATCH = "/Unity/unity_"


def sources_of(entry):
    """The files that one compilation compiles: a batch includes its files."""
    path = entry["file"]
    return INCLUDE.findall(pathlib.Path(path).read_text()) if BATCH in path else [path]


def compilations(root, build):
    """Each compilation, with the files of the layers among those it compiles."""
    layers = tuple(str(root / layer) + os.sep for layer in LAYERS)
    return [
        (entry, [path for path in sources_of(entry) if path.startswith(layers)])
        for entry in json.loads((build / "compile_commands.json").read_text())
    ]
