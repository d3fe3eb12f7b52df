"""Every relative link, anchor and path in the documents leads somewhere, as does every path to a document in the sources.

    python3 documents_test.py ROOT
"""

import os
import pathlib
import re
import sys

# Paths in `code` are checked if they begin with one of these.
FOLDERS = ("client", "core", "deploy", "docs", "proto", "server", "tests")
TEXTS = {".cc", ".h", ".py", ".sh", ".proto", ".txt", ".yml", ".yaml", ".json", ".mjs", ".js", ".in", ""}


def files(root):
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if not re.match(r"build|node_modules$|generated$|\.git$", name))
        yield from (pathlib.Path(folder) / name for name in sorted(names))


def without_code(text):
    """The lines of a text, empty in fenced and indented blocks of code."""
    lines, fenced, before = [], False, ""
    for line in text.splitlines():
        fence = re.match(r" *```", line)
        code = fence or fenced or (line.startswith("    ") and not before.strip())
        lines.append("" if code else line)
        if fence:
            fenced = not fenced
        # A block of code goes on until a line that is not indented.
        before = "" if code else line
    return lines


def anchors(path):
    """The anchors of a document's headings, as GitHub makes them."""
    found = set()
    for line in without_code(path.read_text()):
        heading = re.match(r"#+ (.+)", line)
        if not heading:
            continue
        text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading[1])
        anchor = base = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
        number = 0
        while anchor in found:
            number += 1
            anchor = f"{base}-{number}"
        found.add(anchor)
    return found


def broken_links(page, line):
    for link in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`]*`", "", line)):
        if re.match(r"[a-z]+:", link):
            continue
        target, _, anchor = link.partition("#")
        path = page.parent / target if target else page
        if not path.exists():
            yield f"{link}: there is no such file"
        elif anchor and anchor not in anchors(path):
            yield f"{link}: there is no such heading"


def broken_paths(root, line):
    for path in re.findall(rf"`((?:{'|'.join(FOLDERS)})/[\w./-]+)`", line):
        # A name in capitals stands for one of the reader's.
        if not re.search(r"\b[A-Z]+\b\.", path) and not (root / path).exists():
            yield f"`{path}`: there is no such file"


def faults_of_page(root, page):
    for number, line in enumerate(without_code(page.read_text()), start=1):
        problems = [*broken_links(page, line), *broken_paths(root, line)]
        yield from (f"{page.relative_to(root)}:{number}: {problem}" for problem in problems)


def faults_of_source(root, source):
    """Paths to documents: whole, or of a decision by its number."""
    for number, line in enumerate(source.read_text(errors="replace").splitlines(), start=1):
        for path, anchor in re.findall(r"\b(docs/[\w./-]+\.md)(?:#([\w-]+))?", line):
            if not (root / path).exists() or (anchor and anchor not in anchors(root / path)):
                yield f"{source.relative_to(root)}:{number}: {path}{'#' + anchor if anchor else ''} leads nowhere"
        for decision in re.findall(r"\bdocs/adr/(\d+)(?![\w-]*\.md)", line):
            if not any((root / "docs/adr").glob(f"{decision}*")):
                yield f"{source.relative_to(root)}:{number}: docs/adr/{decision} leads nowhere"


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    faults, pages = [], 0
    for path in files(root):
        if path.suffix == ".md":
            faults += faults_of_page(root, path)
            pages += 1
        elif path.suffix in TEXTS and path.parent != root / "tests/style":
            faults += faults_of_source(root, path)
    print("\n".join(faults) if faults else f"{pages} documents lead where they say")
    return 1 if faults or not pages else 0


if __name__ == "__main__":
    sys.exit(main())
