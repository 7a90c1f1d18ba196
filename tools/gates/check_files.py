#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""check_files.py [FILE...]: the form that no compiler and no formatter looks at, of these files or
of all that git has. check_files.py --message FILE: a commit's subject. A line per finding; exit
code 1 if any."""
import os
import re
import subprocess
import sys

import check_english

CODE = re.compile(r"\.(c|cc|h|cu|cuh|py|sh|mk|rs)$|^Makefile$")
# A file that a comment names, and what stands for any name there.
NAMED = re.compile(r"(?<![\w/.$*<>}{-])((?:[\w.-]+/)*[\w-]{2,}\."
                   r"(?:cc|h|cu|cuh|py|sh|mk|def|md|txt|csv|svg))(?![\w*/(]|\.\w)")
STANDS_FOR = re.compile(r"(^|/)[A-Z]+\.\w+$")
COMMENT = re.compile(r"(?:^|\s)(//.*|/?\*.*)$|(?:^|\s)(#.*)$")
# Bare names that are no file's of this tree: other projects' and instructions'.
NO_FILES = {"add.cc", "eval_better_bench.py", "fast.cu", "mad.cc", "sub.cc"}
# Others' text, or text that a test made: as it came.
AS_IT_CAME = re.compile(r"^bench/results/|/golden/|\.inputs$")
# Limit for a line in CODE. Tables may be wider: what clang-format is told to leave alone, make's
# help, and raw strings, whose lines are PTX instructions.
COLUMNS = 100
# Programs, which may print a message and decide nothing by its words: those may change.
PROGRAMS = re.compile(r"^(host|bench|tools/(?!.*test/)|examples)/?.*\.(c|cc|h)$")
MESSAGE = r"(?:last_error\(\)|\.what\(\))"
DECIDES = re.compile(r"(?:str(?:n?cmp|str)|find|contains|starts_with|compare)\([^;]*" + MESSAGE +
                     "|" + MESSAGE + r"\)*\.r?(?:find|compare)")
TEST_NAME = re.compile(r'^[ \t]*(?:TEMPLATE_)?TEST_CASE\w*\(\s*((?:"(?:\\.|[^"\\])*"\s*)+)',
                       re.M)
# What a filter of Catch2 reads as "or", a tag, an escape, "not" and any text.
SIGNS_OF_FILTERS = re.compile(r'[,\[\]"\\]|^[~*]|\*$')
TABS = re.compile(r"(^|/)(Makefile|rules)$|\.(mk|md|awk)$")


def findings(name, paths):
    with open(name, "rb") as file:
        text = file.read()
    if b"\0" in text:
        return
    if text and not text.endswith(b"\n"):
        yield "its last line has no end"
    if b"\r" in text:
        yield "carriage returns"
    lines = text.split(b"\n")
    for number, line in enumerate(lines, 1):
        if line != line.rstrip():
            yield f"{number}: blanks at the end of the line"
        if b"\t" in line and not TABS.search(name):
            yield f"{number}: a tab"
    if CODE.search(name):
        yield from wide_lines(text.decode("utf-8"))
    if PROGRAMS.search(name):
        for number, line in enumerate(lines, 1):
            if DECIDES.search(line.decode("utf-8")):
                yield f"{number}: decides by the words of a message, which may change"
    shell = re.match(rb"#!/bin/(sh)\n|#!/usr/bin/env (bash)\n", text)
    if shell:
        parsed = subprocess.run([(shell[1] or shell[2]).decode(), "-n", name], capture_output=True,
                                text=True, check=False)
        if parsed.returncode:
            yield f"no script: {parsed.stderr.strip()}"
    if CODE.search(name) or name.endswith(".def"):
        yield from stale_paths(text.decode("utf-8"), *paths)
    if name.endswith(".cc"):
        yield from test_names(text.decode("utf-8"))
    if CODE.search(name) and b"SPDX-License-Identifier: MIT" not in b"\n".join(lines[:2]):
        yield "no licence in its first two lines"


def known_paths():
    """Every end of a path of the tree, and every folder."""
    listed = subprocess.run(["git", "ls-files"], capture_output=True, text=True, check=False)
    ends, folders = set(), set()
    for path in listed.stdout.splitlines():
        parts = path.split("/")
        ends.update("/".join(parts[at:]) for at in range(len(parts)))
        folders.update(parts[:-1])
    return ends, folders


def stale_paths(text, ends, folders):
    """Files that a comment names and nobody has: paths that begin in a folder of the tree, and bare
    names of sources other than headers, which may be a compiler's."""
    for number, line in enumerate(text.split("\n"), 1):
        comment = COMMENT.search(line)
        for path in NAMED.findall(comment[0]) if comment else ():
            folder, _, name = path.partition("/")
            ours = folder in folders if name else re.search(r"\.(cc|cu|cuh|py|mk|def)$", path)
            if ours and path not in ends and path not in NO_FILES and not STANDS_FOR.search(path):
                yield f"{number}: a comment names {path}, which is not there"


def test_names(text):
    """A test can be run by the name that its program prints."""
    for case in TEST_NAME.finditer(text):
        name = "".join(re.findall(r'"((?:\\.|[^"\\])*)"', case[1]))
        sign = SIGNS_OF_FILTERS.search(name)
        if sign:
            line = text.count("\n", 0, case.start()) + 1
            yield f"{line}: a filter of Catch2 reads {sign[0]} in a test's name as its own"


def wide_lines(text):
    table = raw = False
    for number, line in enumerate(text.split("\n"), 1):
        if "clang-format o" in line:
            table = "clang-format off" in line
        raw = raw or 'R"' in line
        if len(line) > COLUMNS and not (table or raw or "  ## " in line):
            yield f"{number}: {len(line)} columns; {COLUMNS} are the most"
        raw = raw and ')"' not in line.rpartition('R"')[2]


def message_findings(name, _):
    with open(name, encoding="utf-8") as file:
        subject = file.readline().rstrip("\n")
    if len(subject) > 72:
        yield f"a subject of {len(subject)} characters; 72 are the most"
    if not re.match(r"(Merge|Revert|fixup!|squash!) |[a-z0-9_]+(, [a-z0-9_]+)*: \S", subject):
        yield 'a subject begins with its area, as "kernel: what changed"'


def main(arguments):
    look = findings
    if arguments[:1] == ["--message"]:
        look, names = message_findings, arguments[1:]
    else:
        if not arguments and not os.path.exists(".git"):
            print("skipped: there is no git here to say which files there are")
            tell("0 passed, 0 failed, 1 skipped")
            return 0
        names = arguments or subprocess.run(["git", "ls-files"], check=True, capture_output=True,
                                            text=True).stdout.split("\n")[:-1]
        names = [name for name in names if not AS_IT_CAME.search(name)]
    paths = known_paths()
    found = {name: list(look(name, paths)) for name in names}
    for name, whats in found.items():
        for what in whats:
            print(f"{name}: {what}")
    failed = sum(map(bool, found.values()))
    if not arguments:  # counted over the whole tree
        for what in check_english.findings(names):
            print(what)
            failed += 1
    tell(f"{int(not failed)} passed, {int(failed > 0)} failed, 0 skipped")
    return 1 if failed else 0


def tell(total):
    if "NVFP4_TALLY" in os.environ:
        with open(os.environ["NVFP4_TALLY"], "a", encoding="utf-8") as tally:
            print(total, file=tally)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
