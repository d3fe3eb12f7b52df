"""One journal, replayed by every vector unit that this machine has, gives the same weights and answers, bit for bit; learning
the same rows again by each gives the same journal. And both are what expected.txt says, which is the same on every machine.

usage: replay_test.py PROGRAM [RUNNER...]      RUNNER: what runs the program, as qemu-aarch64 does
       replay_test.py --write PROGRAM          writes expected.txt anew, where a change of the bits is meant

Answers of models with random Fourier features go through the C library's cos, sin and log, whose last digits it may choose. Where
they are not the same they are compared as numbers, relative to the largest score of the model."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).parent
EXPECTED = HERE / "expected.txt"
# All units that Highway compiles for x86-64; other machines have one.
X86 = ["AVX3", "AVX2", "SSE4", "SSSE3", "SCALAR"]
FOURIER_TOLERANCE = 1e-5

COMMAND = []


def replay(*arguments):
    run = subprocess.run([*COMMAND, *map(str, arguments)], capture_output=True, text=True)
    if run.returncode != 0:
        raise AssertionError(f"{arguments}: {run.stderr}")
    return run.stdout.splitlines()


def parts(line):
    """What must be equal, and numbers that must be close."""
    exact, _, numbers = line.partition(" answers ")
    return exact, [float(number) for number in numbers.split()]


class ReplayTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.TemporaryDirectory()
        cls.units = replay("units")
        cls.journal = pathlib.Path(cls.directory.name) / "journal"
        cls.recorded = replay(cls.units[0], "record", cls.journal)
        for unit in X86:
            if unit not in cls.units:
                print(f"skipped: this machine has no {unit}", file=sys.stderr)

    @classmethod
    def tearDownClass(cls):
        cls.directory.cleanup()

    def assert_same(self, lines):
        self.assertEqual(len(lines), len(self.recorded))
        for one, other in zip(lines, self.recorded):
            self.assertEqual(one, other)

    def test_every_unit_replays_the_journal_to_the_same_bits(self):
        for unit in self.units:
            with self.subTest(unit=unit):
                self.assert_same(replay(unit, "replay", self.journal))

    def test_every_unit_records_the_same_journal(self):
        for unit in self.units:
            with self.subTest(unit=unit):
                again = self.journal.with_name(unit)
                self.assert_same(replay(unit, "record", again))
                self.assertTrue(again.read_bytes() == self.journal.read_bytes(), "other journals")

    def test_the_bits_are_those_of_every_machine(self):
        expected = EXPECTED.read_text().splitlines()
        self.assertEqual(len(self.recorded), len(expected))
        for line, wanted in zip(self.recorded, expected):
            (found, numbers), (exact, close) = parts(line), parts(wanted)
            self.assertEqual(found, exact)
            scale = max(map(abs, close), default=0)
            for one, other in zip(numbers, close):
                self.assertLessEqual(abs(one - other), FOURIER_TOLERANCE * scale, wanted)

    def test_a_unit_that_the_machine_lacks_is_refused(self):
        run = subprocess.run([*COMMAND, "NONE", "replay", self.journal], capture_output=True, text=True)
        self.assertEqual(run.returncode, 3)


def main():
    global COMMAND
    write = sys.argv[1] == "--write"
    program, *runner = sys.argv[2 if write else 1:]
    COMMAND = [*runner, program]
    if write:
        with tempfile.TemporaryDirectory() as directory:
            EXPECTED.write_text("\n".join(replay(replay("units")[0], "record", f"{directory}/journal")) + "\n")
        return
    unittest.main(argv=sys.argv[:1])


if __name__ == "__main__":
    main()
