"""The manual, the settings file and bash's completion name what --help names, and nothing else.

    python3 manual_test.py PERCEPTROND PERCEPTRONCTL MANUAL     # MANUAL: where the build made them; needs groff
"""

import os
import pathlib
import re
import subprocess
import sys
import unittest

PROGRAMS = {"perceptrond": sys.argv[1], "perceptronctl": sys.argv[2]}
MANUAL = pathlib.Path(sys.argv[3]).resolve()
COMPLETION = pathlib.Path(__file__).resolve().parents[2] / "deploy/manual/completion.bash"
CLEAN = {name: value for name, value in os.environ.items() if not name.startswith("PERCEPTRON")}
PATH = f"{pathlib.Path(PROGRAMS['perceptronctl']).resolve().parent}:{os.environ['PATH']}"


def help_of(program, *subcommand):
    return subprocess.run([PROGRAMS[program], *subcommand, "--help"], check=True, capture_output=True, text=True, env=CLEAN).stdout


def flags_of(text):
    """Flags that begin a line under "Options:"."""
    names = re.findall(r"(?m)^  ((?:-\w,)?--\S+)", text.split("Options:\n")[1])
    return {re.sub(r"\{.*", "", name) for one in names for name in one.split(",")}


SUBCOMMANDS = re.findall(r"(?m)^  (\w+)", help_of("perceptronctl").split("Subcommands:\n")[1].split("\n\n")[0])
HELP = {("perceptrond",): help_of("perceptrond"), ("perceptronctl",): help_of("perceptronctl"),
        **{("perceptronctl", name): help_of("perceptronctl", name) for name in SUBCOMMANDS}}
FLAGS = {command: flags_of(text) for command, text in HELP.items()}


def bash(*lines):
    """The completions at the end of each of these lines; COMP_WORDS as bash splits them."""
    script = 'source "$1"; shift; for line in "$@"; do\n' \
             'COMP_LINE=$line COMP_POINT=${#line}; mapfile -t COMP_WORDS < <(printf %s "$line" | grep -oE "[=:]|[^ =:]+");\n' \
             'if [[ $line == *" " ]]; then COMP_WORDS+=(""); fi; COMP_CWORD=$((${#COMP_WORDS[@]} - 1));\n' \
             '_perceptrond "${COMP_WORDS[0]}" "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"; echo "${COMPREPLY[@]}"; done'
    said = subprocess.run(["bash", "--norc", "-c", script, "bash", COMPLETION, *lines], check=True, capture_output=True, text=True, env=CLEAN | {"PATH": PATH})
    assert not said.stderr, said.stderr
    return [line.split() for line in said.stdout.splitlines()]


class ManualTest(unittest.TestCase):
    def test_each_command_has_a_page_with_its_flags(self):
        self.assertEqual({page.name for page in (MANUAL / "man").glob("*.1")}, {"-".join(command) + ".1" for command in HELP})
        for command, flags in FLAGS.items():
            heads = re.findall(r"(?m)^\.TP\n(\\fB\\-.*)$", (MANUAL / "man" / ("-".join(command) + ".1")).read_text())
            # Excluded and needed flags follow a colon.
            named = {flag.replace("\\", "") for head in heads for flag in re.findall(r"\\fB(\\-.*?)\\fR", re.split("(Excludes|Needs):", head)[0])}
            self.assertEqual(named, flags, command)

    def test_groff_has_nothing_to_say(self):
        said = subprocess.run(["groff", "-mandoc", "-ww", "-W", "break", "-z", *sorted((MANUAL / "man").glob("*.1"))], capture_output=True, text=True)
        self.assertEqual((said.returncode, said.stdout + said.stderr), (0, ""))

    def test_the_settings_file_has_every_flag_but_the_unit_s_own_with_its_default(self):
        values = dict(re.findall(r"(?m)^#(PERCEPTROND_\w+)=(.*)$", (MANUAL / "default/perceptrond").read_text()))
        variables = set(re.findall(r"\(Env:(\w+)", HELP["perceptrond",]))
        self.assertEqual(set(values), variables - {"PERCEPTROND_DATA_DIR", "PERCEPTROND_CONFIG"})
        without, with_all = (subprocess.run([PROGRAMS["perceptrond"], "--print-config"], check=True, capture_output=True, text=True, env=CLEAN | more).stdout
                             for more in ({}, values))
        self.assertEqual(without, with_all)


class CompletionTest(unittest.TestCase):
    def test_every_flag_of_help_is_offered_and_no_other(self):
        for command, offered in zip(HELP, bash(*[f"{' '.join(command)} --" for command in HELP])):
            self.assertEqual(set(offered), {flag for flag in FLAGS[command] | FLAGS[command[:1]] if flag.startswith("--")}, command)

    def test_values_are_offered(self):
        self.assertEqual(bash("perceptrond --durability s", "perceptrond --address x:1 --journal r", "perceptrond --memory-budget "), [["sync"], ["rocksdb"], []])
        self.assertEqual(bash("perceptronctl create m --learner=mar", "perceptronctl -o json create m --tie p", "perceptronctl --timeout 3 wa"),
                         [["margin-perceptron"], ["positive"], ["watch"]])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[4:])
