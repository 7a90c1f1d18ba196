# SPDX-License-Identifier: MIT
"""What the result of a mutant depends on: its entry, its file, the headers which that file reaches,
and its test with the headers of the test folders. A comment is not a change, and another test case
of the same file is none either.

Every include is a path from the root (tools/check_layers.py), so the sources alone tell what
reaches what, and nothing has to be built first."""
import functools
import hashlib
import os
import re
import subprocess
import sys

import entries

INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)
FOLDERS = ("", "include", "tools/emulator/include")  # where quoted includes are looked for
# A string, a character or a comment: a comment sign inside a string is none.
TOKEN = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'|//[^\n]*|/\*.*?\*/', re.S)
CASE = re.compile(r"^[ \t]*(?:TEMPLATE_)?TEST_CASE\w*\(", re.M)
CASE_END = re.compile(r"^}$", re.M)  # as clang-format leaves it
TEST_FOLDER = r"(^|/)test/"
TEST_SOURCE = re.compile(r"(^|/)test.*\.cc$")
C_LIKE = re.compile(r"\.(c|cc|h|cu|cuh|def|rs)$")


def bare(text, file):
    """The text without comments and line breaks, as far as we know the file's comments."""
    if C_LIKE.search(file):
        text = TOKEN.sub(lambda m: " " if m[0][0] == "/" else m[0], text)
    return re.sub(r"\s+", " ", text)


class Tree:
    """The sources as they are."""

    def __init__(self, root=entries.ROOT):
        self.root, self.files, self.bare_texts = root, {}, {}

    def text(self, file):
        """None where there is no such file."""
        if file not in self.files:
            self.files[file] = self.read(file)
        return self.files[file]

    def bare(self, file):
        if file not in self.bare_texts:
            self.bare_texts[file] = bare(self.text(file) or "", file)
        return self.bare_texts[file]

    def read(self, file):
        try:
            return entries.text_of(file, self.root)
        except OSError:
            return None

    def names(self):
        """Every file of the tree but what is built."""
        for folder, folders, files in os.walk(self.root):
            folders[:] = sorted(f for f in folders if not f.startswith(".") and f != "build")
            for name in sorted(files):
                yield os.path.relpath(os.path.join(folder, name), self.root)

    @functools.lru_cache(None)
    def included(self, file):
        """The files that a file includes, by path from the root."""
        return list(self.find_included(file))

    def find_included(self, file):
        for name in INCLUDE.findall(self.text(file) or ""):
            for folder in FOLDERS:
                path = os.path.normpath(os.path.join(folder, name))
                if self.text(path) is not None:
                    yield path
                    break

    @functools.lru_cache(None)
    def reached(self, file, wanted=""):
        """The file and those that it includes, directly or not, whose path fits `wanted`."""
        found, left = {file}, [file]
        while left:
            new = {f for f in self.included(left.pop()) if re.search(wanted, f)} - found
            found |= new
            left += new
        return frozenset(found)

    @functools.cached_property
    def cases(self):
        """Every test case as (name or pattern of names, file, where it begins and ends)."""
        found = []
        for file in self.names():
            if TEST_SOURCE.search(file):
                text = self.text(file)
                for start in CASE.finditer(text):
                    end = CASE_END.search(text, start.end())
                    found.append((case_name(text[start.end():start.end() + 500]), file,
                                  start.start(), end.end() if end else len(text)))
        return found

    @functools.lru_cache(None)
    def test_of(self, program, name):
        """The file of a test, and the text of that file that concerns it: the test and what stands
        outside of all tests. None where there is no such test."""
        if program in entries.PYTHON:
            module = name.partition(".")[0] + ".py"
            files = [f"{folder}/{module}" for folder in entries.PYTHON[program]]
            return next(((f, self.text(f)) for f in files if self.text(f) is not None), None)
        own = [case for case in self.cases
               if (case[0] == name if isinstance(case[0], str) else case[0].fullmatch(name))]
        if not own:
            return None
        file, text = own[0][1], self.text(own[0][1])
        for case in reversed(self.cases):
            # One in a macro has no end that we know.
            if case[1] == file and case not in own and text[case[2]] == "T":
                text = text[:case[2]] + text[case[3]:]
        return file, bare(text, file)

    def key(self, mutant):
        """A hash of all that the mutant's result depends on."""
        test = self.test_of(mutant.program(), mutant.filter)
        places = [part.which(self.text(part.file) or "") for part in mutant.parts]
        parts = [mutant.text(), *places, test[1] if test else ""]
        files = set().union(*map(self.reached, mutant.files()))
        if test:
            files |= self.reached(test[0], TEST_FOLDER) - {test[0]}
        for file in sorted(files):
            parts += [file, self.bare(file)]
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]


def case_name(arguments):
    """The name that a test case's arguments begin with. Where a macro composes it, a pattern which
    anything fits in the macro's parts."""
    literal = r'"(?:\\.|[^"\\])*"'
    name = re.match(rf"(?:\s*(?:{literal}|[#\w]+))*", arguments)[0]
    parts = [re.sub(r"\\(.)", r"\1", text[1:-1]) if text else None
             for text in re.findall(rf"({literal})|[#\w]+", name)]
    if None not in parts:
        return "".join(parts)
    return re.compile("".join(".*" if part is None else re.escape(part) for part in parts))


class TreeOf(Tree):
    """The sources as they were at a commit."""

    def __init__(self, commit, now):
        super().__init__(now.root)
        self.commit, self.now = commit, now
        self.listed = set(self.git("ls-tree", "-r", "--name-only", commit).split("\n"))
        self.changed = set(self.git("diff", "--name-only", commit).split("\n"))

    def git(self, *words):
        done = subprocess.run(["git", *words], cwd=self.root, stdout=subprocess.PIPE)
        if done.returncode != 0:
            sys.exit(f"git {' '.join(words)} fails: is {self.commit} a commit?")
        return done.stdout.decode("utf-8", "replace")

    def names(self):
        return sorted(self.listed - {""})

    def read(self, file):
        if file not in self.listed:
            return None
        return self.git("show", f"{self.commit}:{file}") if file in self.changed else \
            self.now.text(file)


def changed_since(commit, mutants, root=entries.ROOT):
    """Those of the mutants whose result depends on something that has changed since the commit."""
    now = Tree(root)
    then = TreeOf(commit, now)
    before = {m.name: m for path in then.names() if os.path.basename(path) == "mutants.txt"
              for m in entries.parse(then.text(path), path)}
    return [m for m in mutants
            if m.name not in before or now.key(m) != then.key(before[m.name])]
