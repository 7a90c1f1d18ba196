#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""check_hacking.py: whether the lists of HACKING.md are complete. hacking.txt beside this file has,
for a section or a row of a table there, the files that the last change of that kind touched. Nine
of ten of them have to be named by that section, by one that it links to, or by a `git grep` in it.
A line per section that names fewer, and the files that it lacks; exit code 1 if any.

check_hacking.py COMMIT [WORD]: lines for hacking.txt: the files that this commit touched, or in
which it added lines with that word, in today's names."""
import fnmatch
import os
import re
import subprocess
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
TABLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "hacking.txt")
NAMED_AT_LEAST = 0.9


def git(*words):
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True,
                          check=True).stdout


def anchor(heading):
    return re.sub(r"[^\w\s-]", "", heading.lower()).strip().replace(" ", "-")


class Hacking:
    """The sections of "Where do I add ..", and the rows of its table, by their headings."""

    def __init__(self, text):
        chapter = text[text.index("\n## Where do I add"):]
        chapter = chapter[:chapter.index("\n## ", 1)]
        pieces = re.split(r"^### (.*)\n", chapter, flags=re.M)
        self.with_each, _, table = pieces[0].partition("\n\n| ")
        self.sections = dict(zip(pieces[1::2], pieces[2::2]))
        self.rows = dict(re.findall(r"^\| ([^|]+?) \| (.*) \|$", table, re.M))
        self.by_anchor = {anchor(heading): body for heading, body in self.sections.items()}

    def text_of(self, heading):
        """With the sections that it links to."""
        body = self.sections.get(heading) or self.rows.get(heading)
        if body is None:
            return None
        linked = [self.by_anchor[name] for name in re.findall(r"\]\(#([\w-]+)\)", body)
                  if name in self.by_anchor]
        return "\n\n".join([body, *linked])


class Names:
    """What a text names: files, patterns of files, folders, and what its `git grep` print."""

    def __init__(self, text, anywhere=False):
        self.anywhere = anywhere
        commands = [re.sub(r"\\\n|\s+", " ", command) for command in
                    re.findall(r"`(git grep [^`]*)`|^ {4}(git grep (?:.*\\\n)*.*)$", text, re.M)
                    for command in command if command]
        self.listed = set()
        for command in commands:
            self.listed |= set(printed(command))
        words = re.findall(r"`([^`\s]+)`", text)
        self.files = [word for word in words if not word.endswith("/")]
        self.folders = {word.rstrip("/") for word in words if word.endswith("/")}
        self.folders |= {os.path.dirname(word) for word in self.files if "/" in word}

    def has(self, file):
        folder = os.path.dirname(file)
        if file in self.listed or any(fnmatch.fnmatch(file, word) for word in self.files):
            return True
        # Which tests a change needs is its own affair; in which folder they belong is not.
        if re.search(r"(^|/)test/", file) and folder in self.folders:
            return True
        for word in self.files:
            if fnmatch.fnmatch(file, "*/" + word):
                rest = file[:-len(word) - 1] if "*" not in word else folder
                if self.anywhere or rest in self.folders:
                    return True
        return False


def printed(command):
    """The files that a `git grep` prints, whatever else its options ask for."""
    done = subprocess.run(command.replace("git grep", "git grep -l", 1), shell=True, cwd=ROOT,
                          capture_output=True, text=True, check=False)
    if done.stderr:
        sys.exit(f"HACKING.md: {command}\n{done.stderr}")
    return done.stdout.split()


def table():
    """Headings, each with its files; what stands after `-` is no longer touched."""
    kinds, files = {}, None
    with open(TABLE, encoding="utf-8") as lines:
        for line in lines:
            line = line.rstrip()
            if line.startswith("## "):
                files = kinds.setdefault(line[3:], [])
            elif line and line[0] not in "#-":
                files.append(line)
    return kinds


def findings(text, kinds):
    """A sentence for each kind whose section names too few of its files."""
    hacking = Hacking(text)
    with_each = Names(hacking.with_each, anywhere=True)
    for heading, files in kinds.items():
        section = hacking.text_of(heading)
        if section is None:
            yield f"{heading}: there is no such section, and no such row"
            continue
        names = Names(section)
        # A file that somebody has removed since cannot be forgotten.
        here = [file for file in files if os.path.exists(os.path.join(ROOT, file))]
        lacking = [file for file in here if not (names.has(file) or with_each.has(file))]
        if len(lacking) > (1 - NAMED_AT_LEAST) * len(here):
            yield (f"{heading}: names {len(here) - len(lacking)} of {len(here)} files. It lacks "
                   + ", ".join(lacking))


def check():
    with open(os.path.join(ROOT, "HACKING.md"), encoding="utf-8") as file:
        found = list(findings(file.read(), table()))
    print("\n".join("HACKING.md: " + sentence for sentence in found), end="\n" if found else "")
    if "NVFP4_TALLY" in os.environ:
        with open(os.environ["NVFP4_TALLY"], "a", encoding="utf-8") as tally:
            print(f"{int(not found)} passed, {int(bool(found))} failed, 0 skipped", file=tally)
    return len(found) > 0


def touched(commit, word=None):
    print("#", git("show", "-s", "--format=%h %s", commit).strip())
    now = {}
    for line in git("diff", "-M", "--name-status", commit, "HEAD").splitlines():
        status, *names = line.split("\t")
        now[names[0]] = names[-1] if status[0] != "D" else None
    for file in git("diff-tree", "--no-commit-id", "--name-only", "-r", commit).split():
        added = re.findall(r"^\+(?!\+\+)(.*)", git("show", commit, "--", file), re.M)
        if now.get(file, file) and (word is None or re.search(word, "\n".join(added))):
            print(now.get(file, file))


if __name__ == "__main__":
    sys.exit(touched(*sys.argv[1:]) if sys.argv[1:] else check())
