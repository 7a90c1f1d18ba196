# SPDX-License-Identifier: MIT
"""mutate.py BUILD [NAME...]: puts each bug of mutants.txt (or those named) into a copy of the tree,
builds there, and wants the named test to fail. Prints a table; exit code 0 only if every bug was
found.

The copy takes the objects along with their times, so that a mutant rebuilds what it touches and no
more. Each test must pass in the untouched copy first: a test that always fails would find every
bug."""
import os
import shutil
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
SECONDS = 300  # for one test; a hang counts as found, but the table says so


class Mutant:
    def __init__(self, name, file):
        self.name, self.file = name, file
        self.test = self.filter = self.old = self.new = None


def read_mutants(path):
    mutants = []
    for number, line in enumerate(open(path), 1):
        words = line.split()
        if not words or line.startswith("#"):
            continue
        if not line.startswith(" "):
            if len(words) != 2:
                sys.exit(f"{path}:{number}: expected a name and a file")
            mutants.append(Mutant(*words))
            continue
        rest = line.strip()[len(words[0]):].strip()
        if words[0] == "test":
            mutants[-1].test, mutants[-1].filter = words[1], rest[len(words[1]):].strip()
        elif words[0] == "-":
            mutants[-1].old = rest
        elif words[0] == "+":
            mutants[-1].new = rest
        else:
            sys.exit(f"{path}:{number}: expected test, - or +")
    for m in mutants:
        if None in (m.test, m.old, m.new):
            sys.exit(f"{path}: {m.name} lacks its test, - or + line")
    return mutants


def mutated(text, mutant):
    """The text with the one line replaced. A line that is not there, or twice, is an error: the
    source has moved on and the mutant has to follow."""
    lines = text.split("\n")
    at = [i for i, line in enumerate(lines) if line.strip() == mutant.old]
    if len(at) != 1:
        sys.exit(f"{mutant.name}: found {len(at)} times in {mutant.file}: {mutant.old}")
    indent = lines[at[0]][: len(lines[at[0]]) - len(lines[at[0]].lstrip())]
    lines[at[0]] = indent + mutant.new
    return "\n".join(lines)


class Tree:
    """A copy of the project under BUILD/mutants."""

    def __init__(self, build):
        self.root = os.path.join(ROOT, build, "mutants")
        shutil.rmtree(self.root, ignore_errors=True)
        ignore = shutil.ignore_patterns(".git", ".venv", ".tools", "mutants", "__pycache__")
        shutil.copytree(ROOT, self.root, ignore=ignore, symlinks=True)
        for tool in (".venv", ".tools"):
            os.symlink(os.path.join(ROOT, tool), os.path.join(self.root, tool))

    def build(self):
        """True if the tree builds."""
        jobs = f"-j{os.cpu_count() or 1}"
        names = ("nvfp4_test", "test_host", "test_regression", "test_emulator",
                 "emulator_hw_test")
        programs = [f"build/{name}" for name in names]
        return self.run(["make", "-s", jobs, "B=build", "all", *programs], None) == 0

    def test(self, mutant):
        """Exit status of the mutant's test, or "hang"."""
        environment = dict(os.environ)
        environment["LD_LIBRARY_PATH"] = os.path.join(self.root, "build", "emulator")
        environment["NVFP4_BUILD"] = os.path.join(self.root, "build")
        if mutant.test == "oracle":
            command = [".venv/bin/python", "-m", "unittest", mutant.filter]
            environment["PYTHONPATH"] = os.path.join(self.root, "test", "oracle")
        else:
            # A comma in a Catch2 filter means "or".
            program, _, device = mutant.test.partition("@")
            if device:
                environment["EMU_DEVICE"], _, sms = device.partition("/")
                if sms:
                    environment["EMU_SMS"] = sms
            if program in ("nvfp4_test", "emulator_hw_test"):
                environment["EMU_FORMAL"] = "stop"  # as in test/run
            command = [os.path.join("build", program), mutant.filter.replace(",", "\\,")]
        return self.run(command, environment)

    def run(self, command, environment):
        try:
            done = subprocess.run(command, cwd=self.root, env=environment, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, timeout=SECONDS)
        except subprocess.TimeoutExpired:
            self.output = f"no end within {SECONDS} s"
            return "hang"
        self.output = done.stdout.decode(errors="replace")
        return done.returncode


def main():
    mutants = read_mutants(os.path.join(HERE, "mutants.txt"))
    for m in mutants:
        mutated(open(os.path.join(ROOT, m.file)).read(), m)  # all lines are there, before any work
    wanted = sys.argv[2:]
    unknown = set(wanted) - {m.name for m in mutants}
    if unknown:
        sys.exit(f"no such mutant: {', '.join(sorted(unknown))}")
    mutants = [m for m in mutants if not wanted or m.name in wanted]
    tree = Tree(sys.argv[1])
    if not tree.build():
        sys.exit(f"the copy does not build:\n{tree.output}")
    for m in {(m.test, m.filter): m for m in mutants}.values():
        if tree.test(m) != 0:
            sys.exit(f"without any bug this fails: {m.test} {m.filter}\n{tree.output[-2000:]}")

    survivors = 0
    width = max(len(m.name) for m in mutants)
    print(f"{'mutant':{width}}  {'found':8}  {'s':>5}  by", flush=True)
    for m in mutants:
        start = time.time()
        path = os.path.join(tree.root, m.file)
        clean = open(path).read()
        with open(path, "w") as out:
            out.write(mutated(clean, m))
        if not tree.build():
            sys.exit(f"{m.name} does not build:\n{tree.output}")
        status = tree.test(m)
        with open(path, "w") as out:
            out.write(clean)
        verdict = "NO" if status == 0 else "by hang" if status == "hang" else "yes"
        survivors += status == 0
        print(f"{m.name:{width}}  {verdict:8}  {time.time() - start:5.1f}  {m.filter}", flush=True)
    shutil.rmtree(tree.root)
    print(f"{len(mutants) - survivors} of {len(mutants)} found")
    return survivors > 0


if __name__ == "__main__":
    sys.exit(main())
