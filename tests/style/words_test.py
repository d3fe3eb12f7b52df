#!/usr/bin/env python3
"""Words that words.txt lists do not return: in names, comments, messages, documents.

usage: words_test.py ROOT [WORDS]
"""
import functools
import io
import pathlib
import re
import sys
import tokenize

FOLDERS = ("core", "server", "client", "proto", "deploy", "tests", "docs", ".ci")
TOP = ("README.md", "CONTRIBUTING.md", "CMakeLists.txt", "Dockerfile")
CODE = {".cc", ".h", ".proto", ".py", ".js", ".mjs"}
PROSE = {".sh", ".md", ".yml", ".yaml", ".html", ".css", ".cmake", ".in", ".json", ".svg", ".txt"}
PROSE |= {".man", ".bash", ".zsh", ".fish", ".service"}
# Published by others, or made from them; and this check's own list.
NOT_OURS = {"node_modules", "generated", "data", "corpus", "google", "grpc", "style", "package-lock.json"}
NO_EXTENSION = {"Dockerfile", "run", "changelog", "postinst", "postrm", "prerm"}
IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
# What has no identifiers of ours: included files, comments and strings; of JavaScript also templates.
NO_CODE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*[<"][^>"]*[>"]|//[^\n]*|"(?:\\.|[^"\\\n])*"', re.MULTILINE)
NO_SCRIPT = re.compile(
    r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|`(?:\\.|\$\{[^}`]*\}|[^`\\])*`', re.DOTALL
)
# A comment that goes on on the next line is one text.
LINE_BREAK = re.compile(r"[ \t]*\n[ \t]*(?://|\#|\*|--)?[ \t]*")


class Rule:
    """A line of words.txt."""

    def __init__(self, kind, word, instead, allowed=None):
        self.kind = kind
        self.instead = instead
        flags = 0 if kind == "name" else re.IGNORECASE
        self.word = re.compile(word if kind == "name" else rf"\b(?:{word})\b", flags)
        self.allowed = re.compile(allowed, flags) if allowed else None

    # Most identifiers occur in many files.
    @functools.cache
    def in_name(self, name):
        """The word, if an identifier is one or has one."""
        if self.allowed and self.allowed.fullmatch(name):
            return None
        if self.kind == "name":
            return name if self.word.fullmatch(name) else None
        # OnToldTwice as "On Told Twice", so that a word is a part or several.
        return name if self.word.search(" ".join(PART.findall(name))) else None

    def in_text(self, text):
        """(offset, word) of each place in a text."""
        for match in self.word.finditer(text):
            if not (self.allowed and self.allowed.match(text, match.start())):
                yield match.start(), match.group()


def read_rules(path):
    rules = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if not line or line.startswith("#"):
            continue
        fields = re.split(r"\s+\|\s+", line)
        if len(fields) not in (3, 4) or fields[0] not in ("name", "part", "text"):
            sys.exit(f"{path}:{number}: not KIND | WORD | WRITE INSTEAD [| EXCEPT]")
        rules.append(Rule(*fields))
    return rules


def files(root):
    for path in [root / name for name in TOP] + [p for folder in FOLDERS for p in sorted((root / folder).rglob("*"))]:
        ours = not NOT_OURS & set(path.relative_to(root).parts)
        if ours and path.is_file() and (path.suffix in CODE | PROSE or path.name in NO_EXTENSION):
            yield path


def joined(text):
    """The text with comments' line breaks as spaces of the same length, so that offsets stay."""
    return LINE_BREAK.sub(lambda match: " " + "\0" * (len(match.group()) - 1), text)


def identifiers(path, text):
    """(line, identifier) of each identifier in a file of code."""
    if path.suffix == ".py":
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.NAME:
                yield token.start[0], token.string
    elif path.suffix in CODE:
        others = NO_CODE if path.suffix in {".cc", ".h", ".proto"} else NO_SCRIPT
        code = others.sub(lambda match: re.sub(r"[^\n]", " ", match.group()), text)
        for number, line in enumerate(code.splitlines(), 1):
            yield from ((number, identifier) for identifier in IDENTIFIER.findall(line))


def violations(path, name, rules):
    """(line, word, instead) of one file; line 0 is its name."""
    text = path.read_text(errors="replace")
    names = [rule for rule in rules if rule.kind != "text"]
    for rule in names:
        if rule.kind == "part" and (word := rule.in_name(name)):
            yield 0, word, rule.instead
    flat = joined(text)
    # Runs of fillers are one space to a phrase; its place is kept.
    at = [i for i, char in enumerate(flat) if char != "\0"]
    plain = flat.replace("\0", "")
    for rule in rules:
        if rule.kind == "text":
            for offset, word in rule.in_text(plain):
                yield text.count("\n", 0, at[offset]) + 1, word, rule.instead
    for number, identifier in sorted(set(identifiers(path, text))):
        for rule in names:
            if word := rule.in_name(identifier):
                yield number, word, rule.instead


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    root = pathlib.Path(sys.argv[1]).resolve()
    rules = read_rules(pathlib.Path(sys.argv[2]) if len(sys.argv) == 3 else pathlib.Path(__file__).with_name("words.txt"))
    found = checked = 0
    for path in files(root):
        checked += 1
        where = path.relative_to(root)
        for line, word, instead in sorted(violations(path, path.stem, rules)):
            print(f"{where}{f':{line}' if line else ''}: \"{word}\": write {instead}")
            found += 1
    if not checked:
        sys.exit("no files found")
    if found:
        sys.exit(f"{found} words of tests/style/words.txt in {checked} files")
    print(f"{checked} files, none of {len(rules)} words")


if __name__ == "__main__":
    main()
