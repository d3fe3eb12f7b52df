#!/usr/bin/env python3
"""Plants faults in core/ and server/ and reports which of them the tests catch.

    python3 tests/mutation/mutate.py --seed 1 --count 200 --dry-run     # shows the faults, builds nothing
    python3 tests/mutation/mutate.py --seed 1 --count 200 --work ~/mutation
    python3 tests/mutation/mutate.py --count 30 --files 'core/convergence/*' --target core_test --test bin/core_test

All faults are in one build, behind one switch. The tool copies the tree to WORK/main, writes each fault there as a
choice (PERCEPTROND_MUTANT(17) ? fault : original), drops those that do not compile (-fsyntax-only, file by file),
builds once in WORK/main/build, and runs the test commands once without a fault and then for each fault with its number in
the environment. A fault is one of

    comparison   < for <=, == for !=, and so on, in the condition of an if or while or in a return
    off by one   + 1 becomes + 2, - 1 becomes - 0, = 0 becomes = 1
    statement    one line that is a whole statement, such as a counter's update, is left out
    check        "if (...) return ...;" or continue or break never happens

and each line has one at most. The run without a fault also records which faults each command executes; a command runs for
the faults that it executes alone, and a fault that no command executes is reported as "not executed", never as caught. A
command that fails, crashes or takes five times as long as without the fault (and 20 seconds more) has caught it. Faults in
equivalent code survive rightly: each survivor is to be judged.

The table goes to WORK/mutants.tsv, a line a fault as soon as it is known: number, file:line, kind, the line as it was, the
verdict, and the command. The same --seed, --count and --files on the same commit plant the same faults, so two suites
can be compared: run the tool once with each suite's commands. For nightly use and by hand; CI does not run it.

Limits: faults are found by regular expressions on single lines, not in templates' arguments, macros or constants. What runs
before main is never changed. Programs that a test starts inherit the switch, so that servers are covered too.
"""
import argparse
import concurrent.futures
import fnmatch
import json
import mmap
import os
import pathlib
import random
import re
import shlex
import shutil
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
HEADER = 'core/mutation_switch.h'
SWITCH = r'''// The faults of tests/mutation/mutate.py: which one is on, and which were executed.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>

namespace perceptrond_mutation {

inline int ActiveMutant() {
  const char* const number = std::getenv("PERCEPTROND_MUTANT");
  return number == nullptr ? 0 : std::atoi(number);
}
// One byte a fault, in a file that all processes share and that outlives a killed one; null: nobody asked.
inline volatile char* ReachedMutants() {
  const char* const path = std::getenv("PERCEPTROND_MUTANTS_REACHED");
  const int file = path == nullptr ? -1 : open(path, O_RDWR | O_CLOEXEC);
  if (file < 0) return nullptr;
  void* const bytes = mmap(nullptr, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  return bytes == MAP_FAILED ? nullptr : static_cast<volatile char*>(bytes);
}
inline const int active = ActiveMutant();
inline volatile char* const reached = ReachedMutants();

inline bool Is(int number) {
  if (reached != nullptr) reached[number] = 1;
  return active == number;
}

}  // namespace perceptrond_mutation

#define PERCEPTROND_MUTANT(number) (::perceptrond_mutation::Is(number))
'''

SWAPPED = {'<': '<=', '<=': '<', '>': '>=', '>=': '>', '==': '!=', '!=': '=='}
COMPARISON = re.compile(r' (<=|>=|==|!=|<|>) ')
EXIT = r'(?:return\b|continue;|break;)'
# A chain of names, members, calls and subscripts, without spaces outside brackets.
PLACE = r'[A-Za-z_][\w:]*(?:(?:\.|->)\w+|\[[^\]]*\]|\(\))*'
STATEMENT = re.compile(rf'(?:(?:\+\+|--){PLACE};|{PLACE} (?:[-+*/|&]?=) [^={{}}]+;|{PLACE}\(.*\);)$')
NO_STATEMENT = re.compile(r'(?:return|delete|throw|using|static_assert|case|default|public|private|protected|typedef|goto'
                          r'|co_\w+|EXPECT|ASSERT|ABSL|assert|sizeof|decltype|alignas|template|operator|static|const)\b')


class Mutant:
    def __init__(self, kind, file, line, before, after):
        self.kind, self.file, self.line, self.before, self.after = kind, file, line, before, after
        self.number = 0

    def text(self):
        return self.after.replace('MUTANT', f'PERCEPTROND_MUTANT({self.number})')


def without_comment(line):
    """The code of a line; None where a string or a character makes it unsafe to read."""
    if '"' in line or "'" in line.replace("'0", '') or line.rstrip().endswith('\\'):
        return None
    return line.split('//')[0].rstrip()


def closing(text, start):
    """The position of the bracket that closes the one at `start`; -1: it is on another line."""
    depth = 0
    for i in range(start, len(text)):
        depth += (text[i] in '([{') - (text[i] in ')]}')
        if depth == 0:
            return i
    return -1


def swapped(expression, rng):
    """With one comparison exchanged; None: it has none that is surely one (a < may open template arguments)."""
    found = [m for m in COMPARISON.finditer(expression)]
    if not found:
        return None
    one = rng.choice(found)
    return expression[:one.start(1)] + SWAPPED[one.group(1)] + expression[one.end(1):]


def candidates(file, lines, rng):
    """Every fault that the file's lines have room for; several of one line, of which one is taken."""
    previous = ';'
    for number, line in enumerate(lines):
        code = without_comment(line)
        if code is None or not code.strip() or code.lstrip().startswith('#'):
            if code is None:
                previous = '?'
            continue
        text = code.strip()
        indent = code[:len(code) - len(code.lstrip())]
        begins = previous[-1] in ';{}'
        previous = text
        if re.search(r'\b(constexpr|template|static_assert|consteval|constinit|enum|operator)\b|= (default|delete);', text):
            continue

        def mutant(kind, after):
            return Mutant(kind, file, number, text, indent + after)

        opened = re.match(r'(?:\} )?(?:else )?(if|while) \(', text)
        if opened and not text.startswith('if constexpr'):
            end = closing(text, opened.end() - 1)
            if end > 0:
                inside = text[opened.end():end]
                first, _, condition = inside.rpartition('; ')
                first += '; ' if first else ''
                rest = text[end + 1:].strip()
                head = text[:opened.end()] + first
                # A declaration cannot be part of a choice.
                if condition and not re.search(r'(?<![=!<>])=(?!=)', condition):
                    after = lines[number + 1].strip() if number + 1 < len(lines) else ''
                    if opened[1] == 'if' and (re.match(EXIT, rest) or (rest == '{' and re.match(EXIT, after))):
                        yield mutant('check', f'{head}!MUTANT && ({condition})) {rest}')
                    other = swapped(condition, rng)
                    if other:
                        yield mutant('comparison', f'{head}MUTANT ? ({other}) : ({condition})) {rest}')
        elif text.startswith('return ') and text.endswith(';'):
            value = text[len('return '):-1]
            other = swapped(value, rng)
            if other and closing('(' + value + ')', 0) == len(value) + 1 and '{' not in value and '?' not in value:
                yield mutant('comparison', f'return MUTANT ? ({other}) : ({value});')
        elif begins and STATEMENT.match(text) and not NO_STATEMENT.match(text) \
                and closing('(' + text[:-1] + ')', 0) == len(text):
            yield mutant('statement', f'if (!MUTANT) {text}')
        for found in re.finditer(r' (\+|-) 1\b(?![.\'])|(?<=\w) = 0(?=;)', text):
            if begins and (text.endswith(';') or text.endswith('{')):
                exchanged = {'+': ' + (MUTANT ? 2 : 1)', '-': ' - (MUTANT ? 0 : 1)', None: ' = (MUTANT ? 1 : 0)'}[found[1]]
                yield mutant('off by one', text[:found.start()] + exchanged + text[found.end():])


def choose(arguments):
    tracked = subprocess.run(['git', '-C', ROOT, 'ls-files', 'core', 'server'], check=True, capture_output=True,
                             text=True).stdout.split()
    files = [f for f in tracked if f.endswith(('.cc', '.h'))
             and any(fnmatch.fnmatch(f, pattern) for pattern in arguments.files)]
    rng = random.Random(arguments.seed)
    lines = {}
    for file in files:
        by_line = {}
        for mutant in candidates(file, (ROOT / file).read_text().split('\n'), rng):
            by_line.setdefault(mutant.line, []).append(mutant)
        for number, of_line in by_line.items():
            lines[file, number] = of_line
    places = sorted(lines)
    rng.shuffle(places)
    chosen = sorted((rng.choice(lines[place]) for place in places[:arguments.count]),
                    key=lambda mutant: (mutant.file, mutant.line))
    for i, mutant in enumerate(chosen):
        mutant.number = i + 1
    print(f'{len(places)} places in {len(files)} files; {len(chosen)} faults chosen')
    return chosen


def write_if_changed(path, text):
    if not path.exists() or path.read_text() != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def copy_tree(source):
    """Copies what git tracks, and leaves alone what has not changed, so that a second build is short."""
    names = subprocess.run(['git', '-C', ROOT, 'ls-files', '-z'], check=True, capture_output=True).stdout
    names = {name for name in names.decode().split('\0') if name and (ROOT / name).exists()}
    for old in source.rglob('*'):
        name = old.relative_to(source).as_posix()
        if not name.startswith('build/') and name != HEADER and old.is_file() and name not in names:
            old.unlink()
    for name in names:
        target = source / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_symlink() or not target.exists() \
                or (ROOT / name).read_bytes() != target.read_bytes():
            shutil.copy2(ROOT / name, target, follow_symlinks=True)


def write_mutants(source, mutants, files):
    by_file = {file: {} for file in files}
    for mutant in mutants:
        by_file[mutant.file][mutant.line] = mutant
    for file, of_line in by_file.items():
        lines = (ROOT / file).read_text().split('\n')
        for number, mutant in of_line.items():
            lines[number] = mutant.text()
        text = '\n'.join(lines)
        if of_line:
            # On the first line, so that lines keep their numbers.
            first = text.index('\n')
            text = f'#include "{HEADER}"  {text[:first]}' + text[first:] if text.startswith('//') else \
                f'#include "{HEADER}"\n#line 1\n{text}'
        write_if_changed(source / file, text)


def compile_commands(source):
    """What the product's files are compiled with, file by file, precompiled headers included: files rely on them. A batch of
    files (unity build) says it for each; a header takes the model's or the server's."""
    commands = {}
    for entry in json.loads((source / 'build/compile_commands.json').read_text()):
        command = shlex.split(entry['command'])
        own = command[:command.index('-o')] if '-o' in command else command[:command.index('-c')]
        unity = '/Unity/' in entry['file'] and pathlib.Path(entry['file']).exists()
        files = re.findall(r'#include "(.*)"', pathlib.Path(entry['file']).read_text()) if unity else [entry['file']]
        for file in files:
            commands[os.path.relpath(file, source)] = own
    commands['core'], commands['server'] = commands['core/model/model.cc'], commands['server/server.cc']
    return commands


def drop_what_does_not_compile(source, mutants, jobs):
    files = sorted({mutant.file for mutant in mutants})
    commands = compile_commands(source)

    def errors(file):
        own = commands.get(file) or commands[file.split('/')[0]]
        run = subprocess.run([*own, '-fsyntax-only', '-w', '-x', 'c++', file], cwd=source, capture_output=True, text=True)
        return run.returncode, run.stderr

    pending = files
    for _ in range(6):
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            results = dict(zip(pending, pool.map(errors, pending)))
        bad = {file: text for file, (code, text) in results.items() if code != 0}
        if not bad:
            break
        dropped = set()
        for file, text in bad.items():
            numbers = {int(n) - 1 for n in re.findall(rf'(?m)^(?:\./)?{re.escape(file)}:(\d+):', text)}
            guilty = {m for m in mutants if m.file == file and m.line in numbers}
            error = next((line for line in text.splitlines() if 'error' in line), text)
            print(f'{error}' if guilty else f'{file} does not compile alone, its faults are dropped: {error}')
            dropped |= guilty or {m for m in mutants if m.file == file}
        for mutant in sorted(dropped, key=lambda m: m.number):
            print(f'dropped, does not compile: {mutant.file}:{mutant.line + 1}: {mutant.after.strip()}')
        mutants = [m for m in mutants if m not in dropped]
        write_mutants(source, mutants, files)
        pending = sorted(bad)
    return mutants


def run(command, directory, timeout, environment):
    """(verdict, seconds); the verdict is empty if it passed."""
    began = time.monotonic()
    process = subprocess.Popen(command, shell=True, cwd=directory, env={**os.environ, **environment},
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        code = process.wait(timeout)
    except subprocess.TimeoutExpired:
        code = None
    # What it started and left behind, too.
    try:
        os.killpg(process.pid, 9)
    except ProcessLookupError:
        pass
    process.wait()
    if code is None:
        verdict = 'time-out'
    else:
        # 77: tests were skipped, none failed.
        verdict = '' if code in (0, 77) else f'signal {-code}' if code < 0 else f'exit {code}'
    return verdict, time.monotonic() - began


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--count', type=int, default=100, help='how many faults (default 100)')
    parser.add_argument('--files', action='append', help="a pattern, as 'core/model/*'; may be repeated (default: all)")
    parser.add_argument('--test', action='append', help='a command, run in the build directory; may be repeated '
                        '(default: the test programs in C++); the cheapest runs first')
    parser.add_argument('--target', action='append', help='what to build (default: the programs of the commands)')
    parser.add_argument('--work', type=pathlib.Path, default=ROOT.parent / 'mutation', help='where the copy goes')
    parser.add_argument('--cmake', action='append', default=[], help='a further argument of cmake, as -DX=Y')
    parser.add_argument('--jobs', type=int, default=os.cpu_count())
    parser.add_argument('--dry-run', action='store_true', help='shows the faults, builds nothing')
    arguments = parser.parse_args()
    arguments.files = arguments.files or ['*']
    commands = arguments.test or [f'bin/{program}' for program in
                                  ('core_test', 'learner_test', 'model_test', 'model_analysis_test', 'server_test', 'reference_test', 'storage_test',
                                   'client_test', 'integration_test', 'ctl_test')]
    targets = arguments.target or [re.search(r'bin/(\w+)', command)[1] for command in commands]

    mutants = choose(arguments)
    if arguments.dry_run:
        for mutant in mutants:
            print(f'{mutant.number}\t{mutant.file}:{mutant.line + 1}\t{mutant.kind}\t{mutant.before}\n\t\t\t'
                  f'{mutant.after.strip()}')
        return
    source = arguments.work / 'main'
    build = source / 'build'
    copy_tree(source)
    write_if_changed(source / HEADER, SWITCH.replace('BYTES', str(len(mutants) + 1)))
    subprocess.run(['cmake', '-S', source, '-B', build, '-G', 'Ninja', '-DCMAKE_BUILD_TYPE=Release',
                    '-DPERCEPTROND_TESTS=ON', *arguments.cmake], check=True, stdout=subprocess.DEVNULL)
    # Headers that are generated, of the API.
    subprocess.run(['cmake', '--build', build, '--target', 'perceptrond_proto', 'perceptrond_server_proto'], check=True)
    write_mutants(source, mutants, {mutant.file for mutant in mutants})
    mutants = drop_what_does_not_compile(source, mutants, arguments.jobs)
    subprocess.run(['cmake', '--build', build, '-j', str(arguments.jobs), '--target', *targets], check=True)

    data = {'PERCEPTROND_DATA': str(ROOT.parent / 'shared/data'), 'GTEST_FAIL_FAST': '1', 'GTEST_BRIEF': '1'}
    seconds, executed = {}, {}
    for command in commands:
        path = arguments.work / 'reached'
        path.write_bytes(bytes(mmap.PAGESIZE * (1 + (len(mutants) + 1000) // mmap.PAGESIZE)))
        verdict, seconds[command] = run(command, build, None, {**data, 'PERCEPTROND_MUTANTS_REACHED': str(path)})
        if verdict:
            sys.exit(f'{command} fails without a fault: {verdict}')
        bits = path.read_bytes()
        executed[command] = {m.number for m in mutants if bits[m.number]}
        print(f'{command}: {seconds[command]:.1f} s, executes {len(executed[command])} of {len(mutants)} faults', flush=True)

    commands.sort(key=lambda command: seconds[command])

    def judge(mutant):
        if not any(mutant.number in executed[command] for command in commands):
            return 'not executed', ''
        for command in commands:
            if mutant.number not in executed[command]:
                continue
            verdict, _ = run(command, build, 5 * seconds[command] + 20, {**data, 'PERCEPTROND_MUTANT': str(mutant.number)})
            if verdict:
                return f'caught ({verdict})', command
        return 'survived', ''

    counts = {}
    with open(arguments.work / 'mutants.tsv', 'w') as table, concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        for mutant, (verdict, command) in zip(mutants, pool.map(judge, mutants)):
            line = '\t'.join([str(mutant.number), f'{mutant.file}:{mutant.line + 1}', mutant.kind, mutant.before,
                              verdict, command])
            print(line, file=table, flush=True)
            print(line, flush=True)
            word = verdict.split(' (')[0]
            counts[word] = counts.get(word, 0) + 1
    caught, survived = counts.get('caught', 0), counts.get('survived', 0)
    print(f"{len(mutants)} faults: {caught} caught, {survived} survived, {counts.get('not executed', 0)} not executed; "
          f'{100 * caught / max(1, caught + survived):.0f} % of those executed, '
          f'{100 * caught / max(1, len(mutants)):.0f} % of all')


if __name__ == '__main__':
    main()
