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


class Mutant:
    def __init__(self, name, file):
        self.name, self.file = name, file
        self.test = self.filter = self.function = self.old = self.new = None
        self.tiles = ""

    def text(self):
        """All that the entry says but the function, which only tells equal code apart."""
        return "\n".join(map(str, (self.name, self.file, self.test, self.filter, self.tiles,
                                   self.old, self.new)))

    def which(self, text):
        """How often the code stands in the file's text before the place that is meant."""
        try:
            start, _ = place.place(text, self.function, self.old, self.file)
        except place.Lost:
            return "lost"
        return str(len(place.loose(self.old).findall(text, 0, start)))

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

    def mutated(self, text):
        """The file's text with the bug. Raises place.Lost where the code is not there, or twice."""
        start, end = place.place(text, self.function, self.old, self.file)
        return text[:start] + self.new + text[end:]


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
            mutants[-1].function = rest
        elif words[0] == "-":
            mutants[-1].old = joined(mutants[-1].old, rest)
        elif words[0] == "+":
            mutants[-1].new = joined(mutants[-1].new, rest)
        else:
            sys.exit(f"{path}:{number}: expected test, tiles, in, - or +")
    for m in mutants:
        if None in (m.test, m.old):
            sys.exit(f"{path}: {m.name} lacks its test or - line")
        if m.new is None:
            m.new = ";"
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
    """By device the EMU_SMS with which test/jobs.txt runs the tests of many tiles."""
    jobs = re.findall(r"^ *\d+ (.*?) \S*/nvfp4_test ", text_of("test/jobs.txt"), re.M)
    return {(re.search(r"EMU_DEVICE=(\w+)", settings) or [0, DEFAULT_DEVICE])[1]:
            re.search(r"EMU_SMS=(\d+)", settings)[1]
            for settings in jobs if "EMU_SMS=" in settings}


def lost(mutants):
    """A sentence for each mutant that can no longer be planted."""
    for m in mutants:
        try:
            if m.mutated(text_of(m.file)) == text_of(m.file):
                yield f"{m.name}: no bug at all"
        except (place.Lost, OSError) as where:
            yield f"{m.name}: {where}"
