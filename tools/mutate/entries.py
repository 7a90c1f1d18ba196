# SPDX-License-Identifier: MIT
"""The mutants.txt files: what they hold, read and checked. mutate.py describes the format."""
import os
import re
import sys

import place

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
DEFAULT_DEVICE = "B200"  # the emulator's
MODELS = ".models"  # the environment of `make setup-models`
# {program: folders of its tests in Python}.
PYTHON = {"oracle": ("test/oracle", "tools/python/test"),
          "models": ("tools/python/test/models", "tools/python/test")}


class Part:
    """One place that a bug changes."""
    def __init__(self, file):
        self.file = file
        self.function = self.old = self.new = None

    def which(self, text):
        """How often the code stands in the file's text before the place that is meant."""
        try:
            start, _ = place.place(text, self.function, self.old, self.file)
        except place.Lost:
            return "lost"
        return str(len(place.loose(self.old).findall(text, 0, start)))

    def mutated(self, text):
        """The file's text with the bug. Raises place.Lost where the code is not there, or twice."""
        start, end = place.place(text, self.function, self.old, self.file)
        return text[:start] + self.new + text[end:]


class Mutant:
    def __init__(self, name, file):
        self.name, self.parts = name, [Part(file)]
        self.test = self.filter = None
        self.tiles = ""

    @property
    def file(self):
        """That of the first part, whose folder's mutants.txt has the entry."""
        return self.parts[0].file

    def files(self):
        return sorted({part.file for part in self.parts})

    def text(self):
        """All that the entry says but the functions, which only tell equal code apart."""
        parts = [(part.file, part.old, part.new) for part in self.parts]
        return "\n".join(map(str, (self.name, parts[0][0], self.test, self.filter, self.tiles,
                                   *parts[0][1:], *parts[1:])))

    def mutated(self, texts):
        """The texts of files(), by file, with the bug."""
        texts = dict(texts)
        for part in self.parts:
            texts[part.file] = part.mutated(texts[part.file])
        return texts

    def clean_test(self):
        """What has to pass without the bug: program and device, filter, tiles."""
        return self.test, self.filter, self.tiles

    def python(self):
        """The Python that runs its test; None where the test would be skipped, or fail, since it
        has no PyTorch."""
        if self.program() == "models":
            python = os.path.join(MODELS, "bin/python")
            return python if os.path.exists(os.path.join(ROOT, python)) else None
        if "torch" in self.filter.lower():
            return os.environ.get("TORCH_PYTHON")
        return ".venv/bin/python"

    def program(self):
        return self.test.partition("@")[0]


def files_of_mutants(root=ROOT):
    """The mutants.txt files below a folder, by their paths from there."""
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(f for f in folders if not f.startswith(".") and f != "build")
        if "mutants.txt" in files:
            yield os.path.relpath(os.path.join(folder, "mutants.txt"), root)


def joined(lines, line):
    return line if lines is None else lines + "\n" + line


def parse(text, path):
    """The mutants of a mutants.txt with this text and this path from the root."""
    mutants, folder, test = [], os.path.dirname(path), (None, None)
    for number, line in enumerate(text.split("\n"), 1):
        words = line.split()
        if not words or line.startswith("#"):
            continue
        rest = line.strip()[len(words[0]):].strip()
        if words[0] == "test":
            named = words[1], rest[len(words[1]):].strip()
            if line.startswith(" "):
                mutants[-1].test, mutants[-1].filter = named
            else:
                test = named
            continue
        if not line.startswith(" "):
            if len(words) != 2:
                sys.exit(f"{path}:{number}: expected a name and a file")
            mutants.append(Mutant(words[0], os.path.normpath(os.path.join(folder, words[1]))))
            mutants[-1].test, mutants[-1].filter = test
        elif words[0] == "tiles":
            mutants[-1].tiles = " ".join(words[1:])
        elif words[0] == "in":
            mutants[-1].parts[-1].function = rest
        elif words[0] == "and":
            mutants[-1].parts.append(Part(os.path.normpath(os.path.join(folder, rest))))
        elif words[0] == "-":
            mutants[-1].parts[-1].old = joined(mutants[-1].parts[-1].old, rest)
        elif words[0] == "+":
            mutants[-1].parts[-1].new = joined(mutants[-1].parts[-1].new, rest)
        else:
            sys.exit(f"{path}:{number}: expected test, tiles, in, and, - or +")
    for m in mutants:
        if m.test is None or None in (part.old for part in m.parts):
            sys.exit(f"{path}: {m.name} lacks its test or - line")
        for part in m.parts:
            if part.new is None:
                part.new = ";"
    return mutants


def text_of(file, root=ROOT):
    with open(os.path.join(root, file), encoding="utf-8") as source:
        return source.read()


def read_mutants(root=ROOT):
    mutants = [m for path in files_of_mutants(root) for m in parse(text_of(path, root), path)]
    twice = {m.name for m in mutants if sum(other.name == m.name for other in mutants) > 1}
    if twice:
        sys.exit(f"two mutants of one name: {', '.join(sorted(twice))}")
    return mutants


def sms_of_few():
    """By tag and device the EMU_SMS with which test/jobs.txt runs tests that want few SMs."""
    jobs = re.findall(r"^ *\d+ (.*?) \S*/nvfp4_test (.*)$", text_of("test/jobs.txt"), re.M)
    return {(tag, (re.search(r"EMU_DEVICE=(\w+)", settings) or [0, DEFAULT_DEVICE])[1]):
            re.search(r"EMU_SMS=(\d+)", settings)[1]
            for settings, tests in jobs if "EMU_SMS=" in settings
            for tag in re.findall(r"(?<!~)\[(\w+)\]", tests)}


def lost(mutants):
    """A sentence for each mutant that can no longer be planted."""
    for m in mutants:
        try:
            texts = {file: text_of(file) for file in m.files()}
            if m.mutated(texts) == texts:
                yield f"{m.name}: no bug at all"
        except (place.Lost, OSError) as where:
            yield f"{m.name}: {where}"
