#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""check_english.py: two habits of the text, counted in all that git has. english.txt beside this
script has how many of each are left from before; more of them than that is a failure. With --update
the counts that have fallen are written there, and none ever rises. With --list every one is shown.

  of    sentences of comments that begin with "Of "
  wide  lines of Markdown beyond 100 columns; tables, links alone and code may be wider"""
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
COUNTS = os.path.join(HERE, "english.txt")
SLASHES = re.compile(r"\.(c|cc|h|cu|cuh|def|rs)$")
HASHES = re.compile(r"\.(py|sh|mk)$|^Makefile$|/mutants\.txt$")
SENTENCE = re.compile(r"(^|[.:?!]\s+)Of\s")
COLUMNS = 100


def comments(text, name):
    """(first line, words) of every run of comment lines. One after code is a run of its own."""
    sign = re.compile(r"(.*?)//(.*)" if SLASHES.search(name) else r"(.*?)(?<![\w$&{'\"])#(?!!)(.*)")
    run, first = [], 0
    for number, line in enumerate(text.split("\n"), 1):
        found = sign.match(line)
        if run and (not found or found[1].strip()):
            yield first, " ".join(run)
            run = []
        if found:
            first = first if run else number
            run.append(found[2].strip())
    if run:
        yield first, " ".join(run)


def of_sentences(text, name):
    if SLASHES.search(name) or HASHES.search(name):
        for line, words in comments(text, name):
            for _ in SENTENCE.finditer(words):
                yield line


def wide_lines(text, name):
    code = False
    for number, line in enumerate(text.split("\n") if name.endswith(".md") else (), 1):
        code ^= line.lstrip().startswith("```")
        table = line.lstrip().startswith("|")
        if len(line) > COLUMNS and not (code or table) and " " in line.strip("-*> "):
            yield number


RULES = {"of": of_sentences, "wide": wide_lines}


def found_in(names):
    """For each rule the places, as FILE:LINE."""
    found = {rule: [] for rule in RULES}
    for name in names:
        with open(name, encoding="utf-8", errors="replace") as file:
            text = file.read()
        for rule, look in RULES.items():
            found[rule] += [f"{name}:{line}" for line in look(text, name)]
    return found


def read_counts():
    with open(COUNTS, encoding="utf-8") as file:
        rows = [line.split() for line in file if line.strip() and not line.startswith("#")]
    return {rule: int(count) for rule, count in rows}


def lower_counts(found):
    """Writes the counts that have fallen; none rises."""
    counts = {rule: min(count, len(found[rule])) for rule, count in read_counts().items()}
    with open(COUNTS, encoding="utf-8") as file:
        head = [line for line in file if line.startswith("#")]
    with open(COUNTS, "w", encoding="utf-8") as file:
        file.writelines(head + [f"{rule} {count}\n" for rule, count in sorted(counts.items())])


def findings(names):
    """A sentence for each rule that is broken more often than before."""
    allowed = read_counts()
    for rule, places in found_in(names).items():
        if len(places) > allowed[rule]:
            yield (f"{rule}: {len(places)} places, {allowed[rule]} are left from before; "
                   "tools/gates/check_english.py --list shows all")


def main(arguments):
    names = [n for n in subprocess.run(["git", "ls-files"], check=True, capture_output=True,
                                       text=True).stdout.split("\n") if os.path.isfile(n)]
    found = found_in(names)
    if arguments == ["--list"]:
        print("\n".join(f"{place}: {rule}" for rule in RULES for place in found[rule]))
    if arguments == ["--update"]:
        lower_counts(found)
    broken = list(findings(names))
    print("\n".join(broken + [f"{rule}: {len(found[rule])}" for rule in RULES]))
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
