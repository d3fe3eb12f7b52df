#!/usr/bin/env python3
"""Writes COUNT inputs for a fuzzer to FOLDER, always the same ones: parts of two seeds of CORPUS with some bytes changed, and random bytes.

    python3 inputs.py CORPUS FOLDER COUNT

For fuzzers whose coverage differs from run to run, because of threads or addresses: what libFuzzer makes of it then differs, too.
"""
import pathlib
import random
import sys

corpus, folder, count = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), int(sys.argv[3])
chance = random.Random(1)
seeds = [path.read_bytes() for path in sorted(corpus.iterdir())]
folder.mkdir(parents=True, exist_ok=True)
for number in range(count):
    first, second = chance.choice(seeds), chance.choice(seeds)
    made = bytearray(first[:chance.randint(0, len(first))] + second[chance.randint(0, len(second)):])
    if number % 4 == 0:
        made = bytearray(chance.randbytes(chance.randint(1, 512)))
    for _ in range(chance.randint(1, 8)):
        at = chance.randint(0, len(made))
        made[at:at + chance.randint(0, 2)] = chance.randbytes(chance.randint(0, 2))
    (folder / f'{number:04}').write_bytes(made[:4096])
