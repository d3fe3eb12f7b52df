#!/usr/bin/env python3
"""Two types of one namespace never share a name, whatever programs they are in: the linker would take one's functions for
the other's, and says nothing.

    python3 one_definition_test.py [ROOT]
"""
import collections
import pathlib
import re
import subprocess
import sys

OPENS = re.compile(r'(?:inline )?namespace ([\w:]*) ?\{')
CLOSES = re.compile(r'\}  // namespace')
DEFINES = re.compile(r'(?:class|struct|union|enum class|enum) (?:ABSL_\w+(?:\([^)]*\))? )?(\w+)(?: final)?(?: :[^;]*)?(?: \{.*|)$')

root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parents[2])
names = subprocess.run(['git', '-C', root, 'ls-files', '*.h', '*.cc'], check=True, capture_output=True, text=True).stdout
defined = collections.defaultdict(list)
for name in names.split():
    # A test's own types are in a namespace without a name, or in its program alone.
    if name.startswith('tests/') and not name.startswith('tests/support/'):
        continue
    inside = []
    for number, line in enumerate((root / name).read_text().splitlines(), 1):
        if opened := OPENS.match(line):
            inside.append(opened[1])
        elif CLOSES.match(line) and inside:
            inside.pop()
        elif (found := DEFINES.match(line)) and '' not in inside:
            defined['::'.join([*inside, found[1]])].append(f'{name}:{number}')
assert len(defined) > 300, f'only {len(defined)} types were found'
twice = {name: places for name, places in defined.items() if len(places) > 1}
for name, places in twice.items():
    print(f'{name} is defined twice: {", ".join(places)}', file=sys.stderr)
sys.exit(1 if twice else 0)
