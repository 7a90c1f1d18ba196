# SPDX-License-Identifier: MIT
"""mutate.py BUILD [--since REV] [--all] [NAME...]: puts each bug of the mutants.txt files (or those
named; kernel/sm90/ names those of a folder) into a copy of the tree, builds there, and wants the
named test to fail. Prints a table; exit code 0 only if every bug was found. JOBS=8 in the
environment: eight copies, side by side. TORCH_PYTHON=PATH: a Python with PyTorch, without which the
mutants that need it are named and left out, as are those of `make test-models` without `make
setup-models`; `make test-long` runs the tests of the former.

  --since REV  only mutants whose result depends on something that has changed since the commit:
               the entry, its file, a header which that file reaches, the test, or a header of the
               test folders which that reaches; a comment is not a change
  --all        also those that were found before and depend on nothing that has changed since then
               (BUILD/mutants.found); a mutant that is named is always planted
  --check      instead of BUILD: that every mutant can be planted and its test is there
  --list       instead of BUILD: names, files and tests; with --since REV those alone

A mutants.txt lies beside the code that it attacks and holds

    test       program and its filter, for the mutants below up to the next such line; program@H200
               runs it with EMU_DEVICE=H200, @H200/3 with EMU_SMS=3 besides
    name       file, from that folder
      test     where a mutant needs another test than those around it
      tiles    where the test repeats itself for each tile, those that it takes (NVFP4_TILES); the
               others are not even compiled
      in       the function; only where the code stands more than once in the file
      and      another file, or the same: a further place that the bug changes, with its own lines
               in, - and +
      -        code that stands once there, white space aside; may take several lines
      +        the same code with the bug; left out where the bug is that the statement is missing

The copy takes the objects along with their times, so that a mutant rebuilds what it touches and its
test uses, and no more: of the kernels' images the PTX, since the emulator runs PTX, of what the
test loads without the bug; of the Hopper and the Blackwell kernel the tiles that it runs. Each test
must pass in the untouched copy first: a test that always fails would find every bug. Where a bug
makes the library ask for a tile that was left out, all are built and the test runs again."""
import argparse
import concurrent.futures
import os
import queue
import shutil
import sys

import copies
import entries
import reach


def selected(mutants, arguments):
    """The mutants that these arguments mean; all can still be planted, before any work."""
    names = arguments.names
    folders = tuple(name for name in names if name.endswith("/"))
    unknown = set(names) - {m.name for m in mutants} - set(folders)
    if unknown:
        sys.exit(f"no such mutant: {', '.join(sorted(unknown))}")
    lost = list(entries.lost(mutants))
    if lost:
        sys.exit("\n".join(lost))
    if arguments.since:
        mutants = reach.changed_since(arguments.since, mutants)
    return [m for m in mutants if not names or m.name in names or m.file.startswith(folders)]


class Found:
    """The keys (reach.py) of the mutants that were found, a line each with the name."""

    def __init__(self, path):
        self.path, self.keys = path, set()
        if os.path.exists(path):
            with open(path, encoding="utf-8") as text:
                self.keys = {line.split()[0] for line in text if line.strip()}

    def add(self, key, name):
        with open(self.path, "a", encoding="utf-8") as out:
            print(key, name, file=out)


class Run:
    """Plants mutants in several copies side by side."""

    def __init__(self, build, count, sources):
        self.free, self.count = queue.Queue(), count
        self.sources = sources
        for i in range(count):
            jobs = max(1, (os.cpu_count() or 1) // count)
            self.free.put(copies.Copy(build, i, jobs, sources))

    def in_a_copy(self, work):
        """work(copy, ..) in the next copy that is free."""
        def of(*arguments):
            copy = self.free.get()
            try:
                return work(copy, *arguments)
            finally:
                self.free.put(copy)
        return of

    def clean(self, copy, mutant):
        loaded = copy.clean(mutant)
        if loaded is None:
            print(f"without any bug this fails: {mutant.test} {mutant.filter}\n"
                  f"{copy.output[-2000:]}", flush=True)
        return loaded

    def results(self, mutants):
        """Each mutant with its verdict and seconds, as they come."""
        with concurrent.futures.ThreadPoolExecutor(self.count) as pool:
            tests = {m.clean_test(): m for m in mutants}
            loaded = dict(zip(tests, pool.map(self.in_a_copy(self.clean), tests.values())))
            # Those of one file in a row: the next one's build finds most objects as they should be.
            planted = {pool.submit(self.in_a_copy(copies.Copy.plant), m, loaded[m.clean_test()]): m
                       for m in mutants if loaded[m.clean_test()] is not None}
            for done in concurrent.futures.as_completed(planted):
                status, seconds = done.result()
                verdict = {0: "NO", "broken": "NO BUILD", "hang": "by hang"}.get(status, "yes")
                yield planted[done], verdict, seconds


def plant_all(build, mutants, sources, found):
    """How many were found. Prints the table."""
    width = max(len(m.name) for m in mutants)
    count = min(len(mutants), int(os.environ.get("JOBS") or 1))
    print(f"{'mutant':{width}}  {'found':8}  {'s':>5}  by", flush=True)
    total = 0
    for m, verdict, seconds in Run(build, count, sources).results(mutants):
        print(f"{m.name:{width}}  {verdict:8}  {seconds:5.1f}  {m.filter}", flush=True)
        if not verdict.startswith("NO"):
            total += 1
            found.add(sources.key(m), m.name)
    shutil.rmtree(os.path.join(entries.ROOT, build, "mutants"))
    return total


def untested(mutants, sources):
    """A sentence for each mutant whose test is not there, or runs with other SMs in `make test`:
    where a CTA has a single tile, a bug on the way from one to the next stays unseen."""
    few = entries.sms_of_few()
    tags = {tag for tag, _ in few}
    for m in mutants:
        test = sources.test_of(m.program(), m.filter)
        device, _, sms = m.test.partition("@")[2].partition("/")
        device = device or entries.DEFAULT_DEVICE
        if test is None:
            yield f"{m.name}: no test is called {m.filter}"
            continue
        for tag in sorted(tags):
            wanted = few.get((tag, device))
            if f"[{tag}]" in test[1] and sms != wanted:
                yield f"{m.name}: test/jobs.txt has EMU_SMS={wanted} for its test on {device}"


def check(mutants):
    findings = list(entries.lost(mutants)) + list(untested(mutants, reach.Tree()))
    print("\n".join(findings) or f"{len(mutants)} mutants can be planted")
    return len(findings) > 0


def arguments_of(words):
    if not words or words[0] in ("-h", "--help"):
        sys.exit(__doc__)
    parser = argparse.ArgumentParser(usage="mutate.py BUILD [--since REV] [--all] [NAME...]")
    parser.add_argument("--since")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("names", nargs="*")
    return parser.parse_args(words)


def main():
    arguments = arguments_of(sys.argv[1:])
    mutants = entries.read_mutants()
    if arguments.check:
        return check(mutants)
    build = None if arguments.list else arguments.names.pop(0)
    mutants = selected(mutants, arguments)
    if arguments.list:
        for m in mutants:
            print(f"{m.name:40} {m.file:40} {m.test} {m.filter}")
        return 0
    sources = reach.Tree()
    found = Found(os.path.join(entries.ROOT, build, "mutants.found"))
    left = [m for m in mutants if arguments.all or arguments.names
            or sources.key(m) not in found.keys]
    if len(left) < len(mutants):
        print(f"{len(mutants) - len(left)} were found before, and nothing of theirs has changed")
    apart = [m for m in left if m.program() in entries.PYTHON and not m.python()]
    if apart:
        left = [m for m in left if m not in apart]
        print("not planted, TORCH_PYTHON is not set or `make setup-models` did not run: "
              + ", ".join(m.name for m in apart))
    total = plant_all(build, left, sources, found) if left else 0
    print(f"{total} of {len(left)} found")
    return total < len(left)


if __name__ == "__main__":
    sys.exit(main())
