#!/usr/bin/python3
"""Sessions with perceptronctl, as a user has them, compared with what they print.

usage: transcripts_test.py [--accept] DIRECTORY FILE...

DIRECTORY has perceptrond and perceptronctl. A file is prose and, indented by two spaces, commands after "$ ", continued after
"> ", each followed by what it prints, both streams, and by [CODE] unless it ends with 0. The commands run one after the other in
an empty directory; "perceptrond FLAGS &" starts a server of the file's own, which the later commands talk to. What differs each
time is replaced (see VARIABLE). --accept writes what is printed today into the files.
"""
import difflib
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import threading

INDENT = '  '
SERVER_FLAGS = ' --address 127.0.0.1:0 --metrics-address off --journal memory'
VARIABLE = ((r'\d{4}-\d\d-\d\dT[\d:.]+(Z|[+-]\d\d:\d\d)', 'TIME'),
            (r'\b\d+(\.\d+)?(e-\d+)? ?(s|ms|us|µs)\b', 'DURATION'),
            (r'[\d,.]+/s\b', 'RATE'),
            (r'("?etag"?:? +"?)[^"\s,]+', r'\1ETAG'))


class Session:
    def __init__(self, programs, directory):
        self.directory = directory
        self.server = None
        self.address = None
        self.environment = {'PATH': f'{programs}:/usr/bin:/bin', 'HOME': directory, 'LC_ALL': 'C.UTF-8', 'COLUMNS': '100'}

    def serve(self, command):
        """Starts the server; returns once it serves."""
        self.server = subprocess.Popen(['/bin/sh', '-c', 'exec ' + command.rstrip('& ') + SERVER_FLAGS], cwd=self.directory,
                                       env=self.environment, stderr=subprocess.PIPE, text=True)
        log = []
        for line in self.server.stderr:
            log.append(line)
            serving = re.search(r' serving .*\baddress=(\S+)', line)
            if serving:
                self.address = self.environment['PERCEPTROND_SERVER'] = serving[1]
                threading.Thread(target=self.server.stderr.read, daemon=True).start()
                return
        raise RuntimeError('the server did not start:\n' + ''.join(log))

    def run(self, lines):
        """Runs the command in these lines and returns its output as lines of the file."""
        command = '\n'.join(line[len(INDENT) + 2:] for line in lines)
        if command.startswith('perceptrond ') and command.endswith('&'):
            self.serve(command)
            return []
        done = subprocess.run(['/bin/sh', '-c', command], cwd=self.directory, env=self.environment, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        printed = done.stdout.decode()
        if self.address:
            printed = printed.replace(self.address, 'localhost:7600')
        for pattern, name in VARIABLE:
            printed = re.sub(pattern, name, printed)
        code = [f'[{done.returncode}]'] if done.returncode != 0 else []
        return [(INDENT + line).rstrip() for line in printed.splitlines() + code]

    def close(self):
        if self.server is not None:
            self.server.terminate()
            self.server.wait()


def transcribed(programs, text):
    """The text with what its commands print today."""
    today, command = [], []
    with tempfile.TemporaryDirectory() as directory:
        session = Session(programs, directory)
        try:
            for line in text.splitlines() + ['']:
                if command and line.startswith(INDENT + '> '):
                    command.append(line)
                    continue
                if command:
                    today += command + session.run(command)
                    command = []
                if line.startswith(INDENT + '$ '):
                    command = [line]
                elif not line.startswith(INDENT):
                    today.append(line)
        finally:
            session.close()
    return '\n'.join(today)


def main(arguments):
    accept = arguments[:1] == ['--accept']
    programs, *files = arguments[1:] if accept else arguments
    different = False
    for path in map(pathlib.Path, files):
        expected = path.read_text()
        today = transcribed(os.path.abspath(programs), expected)
        if accept:
            path.write_text(today)
            continue
        for line in difflib.unified_diff(expected.splitlines(), today.splitlines(), str(path), 'today', lineterm=''):
            different = True
            print(line)
    return 1 if different else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
