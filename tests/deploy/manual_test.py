"""The manual and the completions: what --help names stands in each, and nothing else; troff and mandoc find nothing wrong; bash,
zsh and fish complete as somebody at the keyboard would see it.

    python3 manual_test.py PERCEPTROND PERCEPTRONCTL MANUAL     # MANUAL: where the build made them; needs groff, mandoc, zsh, fish
"""

import os
import pathlib
import pty
import re
import select
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

from processes import DEADLINE_SECONDS, Server

PROGRAMS = {"perceptrond": sys.argv[1], "perceptronctl": sys.argv[2]}
MANUAL = pathlib.Path(sys.argv[3]).resolve()
CLEAN = {name: value for name, value in os.environ.items() if not name.startswith("PERCEPTRON")}


def help_of(program, subcommand=None):
    command = [PROGRAMS[program], *([subcommand] if subcommand else []), "--help"]
    return subprocess.run(command, check=True, capture_output=True, text=True, env=CLEAN).stdout


def flags_of_help(text):
    """Those that begin a line under "Options:"."""
    options = text.split("Options:\n")[1]
    names = [found for line in options.splitlines() for found in re.findall(r"^  ((?:-\w,)?--[^ ]+)", line)]
    return {re.sub(r"\{.*", "", name) for line in names for name in line.split(",")}


def subcommands():
    lines = help_of("perceptronctl").split("Subcommands:\n")[1].split("\n\n")[0].splitlines()
    return [line.split()[0] for line in lines if re.match(r"  \w", line)]


HELP = {("perceptrond", None): help_of("perceptrond"), ("perceptronctl", None): help_of("perceptronctl"),
        **{("perceptronctl", name): help_of("perceptronctl", name) for name in subcommands()}}
FLAGS = {key: flags_of_help(text) for key, text in HELP.items()}
GLOBAL = FLAGS["perceptronctl", None] - {"--version"}


def page_of(program, subcommand):
    return MANUAL / "man" / f"{program}{'-' + subcommand if subcommand else ''}.1"


def all_flags(key):
    """Of a subcommand the program's too."""
    return FLAGS[key] | (GLOBAL if key[1] else set())


def rendered(page):
    text = subprocess.run(["groff", "-mandoc", "-Tutf8", "-P-cbou", page], check=True, capture_output=True, text=True).stdout
    return re.sub("\u2010\n *", "", text).replace("\u2010", "-")


class PageTest(unittest.TestCase):
    def test_there_is_a_page_for_each_command(self):
        self.assertGreater(len(HELP), 16)
        self.assertEqual({page.name for page in (MANUAL / "man").glob("*.1")}, {page_of(*key).name for key in HELP})

    def test_the_formatters_have_nothing_to_say(self):
        pages = sorted((MANUAL / "man").glob("*.1"))
        groff = ["groff", "-mandoc", "-ww", "-z"]
        for command in (groff, [*groff, "-Tutf8"], ["mandoc", "-Tlint", "-Wwarning"]):
            said = subprocess.run([*command, *pages], capture_output=True, text=True)
            self.assertEqual((said.returncode, said.stdout + said.stderr), (0, ""))

    def test_the_flags_are_those_of_help(self):
        for key, flags in FLAGS.items():
            heads = [found[1] for found in re.finditer(r"^\.TP\n(\\fB\\-.*)$", page_of(*key).read_text(), re.M)]
            named = {flag.replace("\\", "") for head in heads for flag in re.findall(r"\\fB(\\-.*?)\\fR", head)}
            self.assertEqual(named, flags, key)

    def test_the_text_of_each_flag_is_that_of_help(self):
        """Word by word, whatever the lines."""
        for key, text in HELP.items():
            page = re.sub(r"\s+", "", rendered(page_of(*key)))
            options = re.split(r"\n\n(?! )", text.split("Options:\n")[1])[0]
            for entry in re.split(r"\n  (?=-)", options)[1:]:
                # The text begins on the next line or, of a short option, in column 30.
                body = entry.split("\n", 1)[1] if "\n" in entry else entry[28:]
                words = re.sub(r"\s+", "", body.split("\n\n")[0])
                self.assertIn(words[:60], page, key)

    def test_every_page_says_what_a_reader_looks_for(self):
        sections = ["NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "EXIT STATUS", "SEE ALSO", "EXAMPLES"]
        for key in HELP:
            text = rendered(page_of(*key))
            for section in sections:
                self.assertRegex(text, f"(?m)^{section}$", key)
        self.assertIn("1MiB to 1024TiB; default 1GiB", re.sub(r"\s+", " ", rendered(page_of("perceptrond", None))))
        self.assertIn("PERCEPTROND_MEMORY_BUDGET", rendered(page_of("perceptrond", None)))

    def test_the_exit_codes_are_those_of_help(self):
        codes = re.search(r"Exit codes: (.*?)\.\n", HELP["perceptronctl", None], re.S)[1].split(";")
        page = rendered(page_of("perceptronctl", None)).split("EXIT STATUS")[1]
        for code in codes:
            number, meaning = code.split(maxsplit=1)
            self.assertRegex(page, rf"(?m)^ +{number} +{re.escape(' '.join(meaning.split()))}")


class SettingsTest(unittest.TestCase):
    """The service's settings file."""

    def setUp(self):
        self.text = (MANUAL / "default/perceptrond").read_text()

    def test_it_names_every_flag_but_the_units_own(self):
        named = set(re.findall(r"(?m)^#(PERCEPTROND_\w+)=", self.text))
        flags = {re.search(r"Env:(\w+)", line)[1] for line in HELP["perceptrond", None].splitlines() if "(Env:" in line}
        self.assertEqual(named, flags - {"PERCEPTROND_DATA_DIR", "PERCEPTROND_CONFIG"})

    def test_its_values_are_the_defaults(self):
        values = dict(re.findall(r"(?m)^#(PERCEPTROND_\w+)=(.*)$", self.text))
        config = [subprocess.run([PROGRAMS["perceptrond"], "--print-config"], check=True, capture_output=True, text=True,
                                 env=CLEAN | more).stdout for more in ({}, values)]
        self.assertEqual(config[0], config[1])


def bash(*lines):
    """What is offered at the end of each of these lines; COMP_WORDS as bash splits them."""
    script = 'source "$1"; shift; for line in "$@"; do\n' \
             'COMP_LINE=$line COMP_POINT=${#line}; mapfile -t COMP_WORDS < <(printf %s "$line" | grep -oE "[=:]|[^ =:]+");\n' \
             'if [[ $line == *" " ]]; then COMP_WORDS+=(""); fi; COMP_CWORD=$((${#COMP_WORDS[@]} - 1));\n' \
             '_${COMP_WORDS[0]}; printf "%s " "${COMPREPLY[@]}"; echo; done'
    source = MANUAL / "bash" / lines[0].split()[0]
    said = subprocess.run(["bash", "--norc", "-c", script, "bash", source, *lines], check=True, capture_output=True, text=True, env=SHELL)
    assert not said.stderr, said.stderr
    return [line.split() for line in said.stdout.splitlines()]


def fish(*lines):
    script = "source $argv[1]; for line in $argv[2..-1]; complete -C $line; echo ==; end"
    source = MANUAL / "fish" / (lines[0].split()[0] + ".fish")
    said = subprocess.run(["fish", "--no-config", "-c", script, source, *lines], check=True, capture_output=True, text=True, env=SHELL)
    assert not said.stderr, said.stderr
    return [[entry.split("\t")[0] for entry in part.splitlines() if entry] for part in said.stdout.split("==\n")[:-1]]


class Terminal:
    """A shell at a keyboard: types a line up to where Tab is pressed, and reads what has become of it."""

    def __init__(self, *command):
        self.pid, self.master = pty.fork()
        if self.pid == 0:
            os.execvpe(command[0], command, SHELL | {"TERM": "dumb", "PS1": "AWAITS> ", "HISTFILE": "/dev/null"})

    def says(self, text, until):
        os.write(self.master, text.encode())
        said, end = "", time.monotonic() + DEADLINE_SECONDS
        while not re.search(until, said):
            assert time.monotonic() < end, said
            if select.select([self.master], [], [], 1)[0]:
                said += os.read(self.master, 65536).decode(errors="replace")
        return said

    def tab(self, line):
        """Control-A and the command in front print the line instead of running it; the mark is typed so that the echo is not it."""
        said = self.says(f"{line}\t\x01printf 'DO'NE'<%s>' \n", r"(?s)DONE<.*AWAITS> ")
        return re.findall(r"DONE<(.*?)>", said)

    def close(self):
        os.close(self.master)
        os.waitpid(self.pid, 0)


class CompletionTest(unittest.TestCase):
    def test_every_flag_of_help_is_offered_and_no_other(self):
        keys = list(HELP)
        for shell in (bash, fish):
            for program in PROGRAMS:
                mine = [key for key in keys if key[0] == program]
                offered = shell(*[f"{program} {key[1] + ' ' if key[1] else ''}--" for key in mine])
                for key, flags in zip(mine, offered):
                    self.assertEqual({flag for flag in flags if flag != "-"}, {f for f in all_flags(key) if f.startswith("--")}, (shell, key))

    def test_zsh_has_every_flag_of_help_and_no_other(self):
        for key in HELP:
            text = (MANUAL / "zsh" / f"_{key[0]}").read_text()
            if key[1]:
                text = re.search(rf"(?ms)^  {key[1]}\)\n(.*?);;", text)[1]
            elif key[0] == "perceptronctl":
                text = text.split("_arguments -C")[1].split("->rest")[0]
            found = set(re.findall(r"'(?:\*|\([^)]*\))(--?[a-z0-9-]+)[=+]?\[", text))
            self.assertEqual(found, all_flags(key), key)

    def test_values_of_the_server(self):
        expected = [["auto", "sync", "interval", "none", "replicated"], ["sync"], ["rocksdb", "memory"], ["off"], [], ["trace"]]
        for shell in (bash, fish):
            with self.subTest(shell=shell.__name__):
                offered = shell("perceptrond --durability ", "perceptrond --durability s", "perceptrond --address x:1 --journal ",
                                "perceptrond --metrics-address ", "perceptrond --memory-budget ", "perceptrond --log-level t")
                self.assertEqual([sorted(one) for one in offered], [sorted(one) for one in expected])

    def test_values_of_the_command_line(self):
        learners = re.search(r"--learner TEXT:\{(.*?)\}", HELP["perceptronctl", "create"])[1].split(",")
        self.assertGreater(len(learners), 9)
        for shell in (bash, fish):
            with self.subTest(shell=shell.__name__):
                offered = shell("perceptronctl create m --learner ", "perceptronctl -o json create m --tie p", "perceptronctl list -o ",
                                "perceptronctl learn m x --format s", "perceptronctl --timeout 3 dr", "perceptronctl learn m x --passes ",
                                "perceptronctl draw m --x-range 0 1 --wh")
                self.assertEqual([sorted(one) for one in offered],
                                 [sorted(learners), ["positive"], ["json", "text"], ["svmlight"], ["draw"], [], ["--what"]])

    def test_values_behind_an_equals_sign(self):
        self.assertEqual(bash("perceptronctl create m --learner=mar", "perceptronctl --output=j"), [["margin-perceptron"], ["json"]])
        self.assertEqual(fish("perceptronctl create m --learner=mar"), [["--learner=margin-perceptron"]])

    def test_bash_at_a_keyboard(self):
        with tempfile.TemporaryDirectory() as directory:
            (pathlib.Path(directory) / "rows of today.svm").touch()
            terminal = Terminal("bash", "--norc", "--noprofile")
            terminal.says(f"cd {directory}; for p in perceptrond perceptronctl; do source {MANUAL}/bash/$p; done; complete -p perceptronctl\n",
                          r"complete -F _perceptronctl perceptronctl\s")
            self.assertEqual(terminal.tab("perceptronctl create m --learner=mar"), ["perceptronctl", "create", "m", "--learner=margin-perceptron"])
            self.assertEqual(terminal.tab("perceptronctl lea"), ["perceptronctl", "learn"])
            self.assertEqual(terminal.tab("perceptronctl learn m ro"), ["perceptronctl", "learn", "m", "rows of today.svm"])
            self.assertEqual(terminal.tab("perceptronctl create m --start-weights ro")[-1], "rows of today.svm")
            self.assertEqual(terminal.tab("perceptrond --durab"), ["perceptrond", "--durability"])
            terminal.close()

    def test_zsh_at_a_keyboard(self):
        with tempfile.TemporaryDirectory() as directory:
            (pathlib.Path(directory) / "rows of today.svm").touch()
            terminal = Terminal("zsh", "-f")
            terminal.says(f"cd {directory}; fpath=({MANUAL}/zsh $fpath); autoload -U compinit; compinit -u -D; "
                          "bindkey -e; print REA'DY'\n", r"READY\s")
            self.assertEqual(terminal.tab("perceptronctl create m --learner=mar"), ["perceptronctl", "create", "m", "--learner=margin-perceptron"])
            self.assertEqual(terminal.tab("perceptronctl -o json lea"), ["perceptronctl", "-o", "json", "learn"])
            self.assertEqual(terminal.tab("perceptronctl learn m ro"), ["perceptronctl", "learn", "m", "rows of today.svm"])
            self.assertEqual(terminal.tab("perceptronctl learn m x --until-c"), ["perceptronctl", "learn", "m", "x", "--until-converged"])
            self.assertEqual(terminal.tab("perceptrond --durability in"), ["perceptrond", "--durability", "interval"])
            terminal.close()


class ModelsTest(unittest.TestCase):
    """Names of models, asked of a server."""

    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.TemporaryDirectory()
        path = pathlib.Path(cls.directory.name)
        cls.server = Server(PROGRAMS["perceptrond"], path / "data", path / "log", ["--journal", "memory"])
        for name in ("spam", "Spam.2", "iris"):
            subprocess.run([PROGRAMS["perceptronctl"], "--server", cls.server.address, "create", name, "--dimension", "2"], check=True,
                           stdout=subprocess.DEVNULL)

    @classmethod
    def tearDownClass(cls):
        cls.server.kill()
        cls.directory.cleanup()

    def test_all_shells_offer_them(self):
        at = f"perceptronctl --server {self.server.address}"
        for shell in (bash, fish):
            with self.subTest(shell=shell.__name__):
                offered = shell(f"{at} get ", f"{at} get ir", f"perceptronctl learn --server={self.server.address} i")
                self.assertEqual([sorted(one) for one in offered], [["Spam.2", "iris", "spam"], ["iris"], ["iris"]])
        self.assertEqual(bash(f"{at} create m --compose iris,sp"), [["iris,spam"]])
        terminal = Terminal("zsh", "-f")
        terminal.says(f"fpath=({MANUAL}/zsh $fpath); autoload -U compinit; compinit -u -D; bindkey -e; print REA'DY'\n", r"READY\s")
        self.assertEqual(terminal.tab(f"{at} get ir")[-1], "iris")
        self.assertEqual(terminal.tab(f"perceptronctl get --server={self.server.address} ir")[-1], "iris")
        terminal.close()

    def test_without_a_server_nothing_is_said(self):
        line = "perceptronctl --server unix:/nonexistent/socket get "
        self.assertEqual((bash(line), fish(line)), ([[]], [[]]))

    def test_a_name_that_a_shell_would_run_is_not_offered(self):
        with tempfile.TemporaryDirectory() as directory:
            liar = pathlib.Path(directory) / "perceptronctl"
            liar.write_text("#!/bin/sh\nprintf 'NAME\\n$(touch\\n`id`\\n--x\\nok\\n'\n")
            liar.chmod(0o755)
            path = SHELL["PATH"]
            SHELL["PATH"] = f"{directory}:{path}"
            try:
                self.assertEqual((bash("perceptronctl get "), fish("perceptronctl get ")), ([["ok"]], [["ok"]]))
            finally:
                SHELL["PATH"] = path


if __name__ == "__main__":
    for tool in ("groff", "mandoc", "zsh", "fish"):
        assert shutil.which(tool), f"{tool} is missing: sh deploy/install_packages.sh test"
    with tempfile.TemporaryDirectory() as home:
        # The completions call the program by its name.
        SHELL = CLEAN | {"HOME": home, "PATH": f"{pathlib.Path(PROGRAMS['perceptronctl']).resolve().parent}:{os.environ['PATH']}"}
        unittest.main(argv=sys.argv[:1] + sys.argv[4:])
