#!/usr/bin/env python3
"""No class has more than 20 public methods: one that has does more than one job.

usage: public_methods_test.py ROOT

Counts the member functions that a header declares public, overloads each; constructors, destructors, operators, friends
and overrides are not counted: what overrides is counted where it is declared first. Reads the headers of core/, server/ and client/ by their braces, without a compiler.
"""
import pathlib
import re
import sys

LIMIT = 20
FOLDERS = ("core", "server", "client")
# What is no code, or no part of a declaration's shape. A preprocessor line may go on on the next one.
NO_CODE = re.compile(
    r'//[^\n]*|/\*.*?\*/|^[ \t]*\#(?:\\\n|[^\n])*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'', re.DOTALL | re.MULTILINE
)
CLASS = re.compile(r"\b(class|struct)\s+(?:(?:ABSL_\w+(?:\([^)]*\))?|alignas\([^)]*\)|\[\[[^\]]*\]\])\s+)*(\w+)[^;()=]*$")
ACCESS = re.compile(r"^\s*(public|protected|private)\s*:")
NO_METHOD = re.compile(r"^(?:using|typedef|friend|static_assert|enum|template\s*<[^{]*>\s*(?:friend|using|class|struct))\b")
FUNCTION = re.compile(r"([~\w]+)\s*\(")
ANNOTATION = re.compile(r"\b(?:ABSL_\w+|alignas|decltype|noexcept|explicit|__attribute__)\s*\([^()]*(?:\([^()]*\)[^()]*)*\)|\[\[[^\]]*\]\]")


class Body:
    """A pair of braces: of a class with its access, or of anything else."""

    def __init__(self, name=None, access=None):
        self.name = name
        self.access = access
        self.methods = 0


def is_method(statement, name):
    """Whether a statement of a class's body declares a member function that counts."""
    statement = ANNOTATION.sub("", statement).strip()
    if NO_METHOD.match(statement) or "operator" in statement or re.search(r"\)[^()]*\boverride\b", statement):
        return False
    head = statement.split("=", 1)[0] if "(" in statement.split("=", 1)[0] else ""
    # A member that is a std::function has its parentheses between angle brackets.
    while (flat := re.sub(r"<[^<>]*>", "", head)) != head:
        head = flat
    function = FUNCTION.search(head)
    return bool(function) and function.group(1).lstrip("~") != name


def classes(text):
    """(name, line, public methods) of each class that a header defines."""
    code = NO_CODE.sub(lambda match: re.sub(r"[^\n]", " ", match.group()), text)
    bodies = []
    statement = ""
    for at, char in enumerate(code):
        body = bodies[-1] if bodies else None
        if char == "{":
            opened = CLASS.search(statement)
            if opened and "enum" not in statement.split():
                bodies.append(Body(opened.group(2), "private" if opened.group(1) == "class" else "public"))
                bodies[-1].line = code.count("\n", 0, at) + 1
            else:
                if body and body.name and body.access == "public" and is_method(statement, body.name):
                    body.methods += 1
                bodies.append(Body())
            statement = ""
        elif char == "}":
            if body and body.name:
                yield body.name, body.line, body.methods
            if bodies:
                bodies.pop()
            statement = ""
        elif char == ";":
            if body and body.name and body.access == "public" and is_method(statement, body.name):
                body.methods += 1
            statement = ""
        else:
            statement += char
            access = ACCESS.match(statement) if char == ":" and body and body.name else None
            if access:
                body.access = access.group(1)
                statement = ""


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    root = pathlib.Path(sys.argv[1]).resolve()
    found = [
        (methods, name, f"{path.relative_to(root)}:{line}")
        for folder in FOLDERS
        for path in sorted((root / folder).rglob("*.h"))
        for name, line, methods in classes(path.read_text())
    ]
    if not found:
        sys.exit("no classes found")
    too_many = [entry for entry in sorted(found, reverse=True) if entry[0] > LIMIT]
    for methods, name, where in too_many:
        print(f"{where}: {name} has {methods} public methods; split it by job: at most {LIMIT}")
    if too_many:
        sys.exit(1)
    methods, name, _ = max(found)
    print(f"{len(found)} classes; the most public methods has {name}: {methods}")


if __name__ == "__main__":
    main()
