"""One journal, replayed by a vector unit, gives the same weights and answers, bit for bit, as by the best one that this machine
has; learning the same rows again by it gives the same journal. And both are what expected.txt says, which is the same on every
machine.

usage: replay_test.py [--unit UNIT] PROGRAM                  of one unit, or of each; exits with 77 if the machine lacks it
       replay_test.py --journal FILE PROGRAM [RUNNER...]     a journal recorded on another machine; RUNNER: qemu-aarch64, say
       replay_test.py --write PROGRAM                        writes expected.txt anew, where a change of the bits is meant

Answers of models with random Fourier features go through the C library's cos, sin and log, whose last digits it may choose. Where
they are not the same they are compared as numbers, relative to the largest score of the model."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).parent
EXPECTED = HERE / "expected.txt"
FOURIER_TOLERANCE = 1e-5

MACHINE_LACKS_UNIT = 77

COMMAND = []
# Empty: each that the machine has.
UNIT = ""
# Of another machine.
JOURNAL = None


def replay(*arguments):
    run = subprocess.run([*COMMAND, *map(str, arguments)], capture_output=True, text=True)
    if run.returncode != 0:
        raise AssertionError(f"{arguments}: {run.stderr}")
    return run.stdout.splitlines()


def parts(line):
    """What must be equal, and numbers that must be close."""
    exact, _, numbers = line.partition(" answers ")
    return exact, [float(number) for number in numbers.split()]


class Compared(unittest.TestCase):
    def assert_expected(self, lines, also_recorded_with_cos):
        """Lines of models with Fourier features have other states where other features were learned."""
        expected = EXPECTED.read_text().splitlines()
        self.assertEqual(len(lines), len(expected))
        for line, wanted in zip(lines, expected):
            (found, numbers), (exact, close) = parts(line), parts(wanted)
            if close and not also_recorded_with_cos:
                continue
            self.assertEqual(found, exact)
            scale = max(map(abs, close), default=0)
            for one, other in zip(numbers, close):
                self.assertLessEqual(abs(one - other), FOURIER_TOLERANCE * scale, wanted)


@unittest.skipIf("--journal" in sys.argv, "of this machine")
class ReplayTest(Compared):

    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.TemporaryDirectory()
        units = replay("units")
        cls.units = [UNIT] if UNIT else units
        cls.journal = pathlib.Path(cls.directory.name) / "journal"
        replay(units[0], "record", cls.journal)

    @classmethod
    def tearDownClass(cls):
        cls.directory.cleanup()

    def test_the_unit_replays_the_journal_to_the_same_bits(self):
        for unit in self.units:
            with self.subTest(unit=unit):
                self.assert_expected(replay(unit, "replay", self.journal), True)

    def test_the_unit_records_the_same_journal(self):
        for unit in self.units:
            with self.subTest(unit=unit):
                again = self.journal.with_name(unit)
                self.assert_expected(replay(unit, "record", again), True)
                self.assertTrue(again.read_bytes() == self.journal.read_bytes(), "other journals")


@unittest.skipUnless("--journal" in sys.argv, "needs the journal of another machine")
class OtherMachineTest(Compared):
    def test_the_journal_is_replayed_to_the_same_bits(self):
        for unit in replay("units"):
            self.assert_expected(replay(unit, "replay", JOURNAL), True)

    def test_the_same_rows_are_learned_to_the_same_bits(self):
        with tempfile.TemporaryDirectory() as directory:
            for unit in replay("units"):
                self.assert_expected(replay(unit, "record", f"{directory}/journal"), False)


def main():
    global COMMAND, JOURNAL, UNIT
    arguments = sys.argv[1:]
    mode = arguments.pop(0) if arguments[0].startswith("--") else ""
    if mode == "--journal":
        JOURNAL = arguments.pop(0)
    if mode == "--unit":
        UNIT = arguments.pop(0)
    program, *runner = arguments
    COMMAND = [*runner, program]
    if mode == "--write":
        with tempfile.TemporaryDirectory() as directory:
            EXPECTED.write_text("\n".join(replay(replay("units")[0], "record", f"{directory}/journal")) + "\n")
        return
    if UNIT and UNIT not in replay("units"):
        print(f"this machine has no {UNIT}")
        sys.exit(MACHINE_LACKS_UNIT)
    unittest.main(argv=sys.argv[:1])


if __name__ == "__main__":
    main()
