# SPDX-License-Identifier: MIT
"""mutate.py BUILD [NAME...]: puts each bug of the mutants.txt files (or those named; kernel/sm90/
names those of a folder) into a copy of the tree, builds there, and wants the named test to fail.
Prints a table; exit code 0 only if every bug was found. JOBS=8 in the environment: eight copies,
side by side. With --list: names, files and tests.

A mutants.txt lies beside the code that it attacks and holds, per mutant,

    name       file, from that folder
      test     program and its filter; program@H200 runs it with EMU_DEVICE=H200,
               @H200/3 with EMU_SMS=3 besides
      in       the function; left out where the file has no functions or the code stands once in it
      -        code that stands once there, white space aside; may take several lines
      +        the same code with the bug

The copy takes the objects along with their times, so that a mutant rebuilds what it touches and its
test uses, and no more: of the kernels' images the PTX that the test's device loads, since the
emulator runs PTX. Each test must pass in the untouched copy first: a test that always fails would
find every bug."""
import concurrent.futures
import glob
import os
import queue
import shutil
import subprocess
import sys
import time

import place

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
SECONDS = 300  # for one test; a hang counts as found, but the table says so


class Mutant:
    def __init__(self, name, file):
        self.name, self.file = name, file
        self.test = self.filter = self.function = self.old = self.new = None


def files_of_mutants():
    for folder, folders, files in os.walk(ROOT):
        folders[:] = sorted(f for f in folders if not f.startswith(".") and f != "build")
        if "mutants.txt" in files:
            yield os.path.join(folder, "mutants.txt")


def joined(lines, line):
    return line if lines is None else lines + "\n" + line


def read_file(path):
    mutants, folder = [], os.path.relpath(os.path.dirname(path), ROOT)
    with open(path) as text:
        lines = text.readlines()
    for number, line in enumerate(lines, 1):
        words = line.split()
        if not words or line.startswith("#"):
            continue
        if not line.startswith(" "):
            if len(words) != 2:
                sys.exit(f"{path}:{number}: expected a name and a file")
            mutants.append(Mutant(words[0], os.path.normpath(os.path.join(folder, words[1]))))
            continue
        rest = line.strip()[len(words[0]):].strip()
        if words[0] == "test":
            mutants[-1].test, mutants[-1].filter = words[1], rest[len(words[1]):].strip()
        elif words[0] == "in":
            mutants[-1].function = rest
        elif words[0] == "-":
            mutants[-1].old = joined(mutants[-1].old, rest)
        elif words[0] == "+":
            mutants[-1].new = joined(mutants[-1].new, rest)
        else:
            sys.exit(f"{path}:{number}: expected test, in, - or +")
    for m in mutants:
        if None in (m.test, m.old, m.new):
            sys.exit(f"{path}: {m.name} lacks its test, - or + line")
    return mutants


def read_mutants():
    mutants = [m for path in files_of_mutants() for m in read_file(path)]
    twice = {m.name for m in mutants if sum(other.name == m.name for other in mutants) > 1}
    if twice:
        sys.exit(f"two mutants of one name: {', '.join(sorted(twice))}")
    return mutants


def images(mutant):
    """The PTX, by the start of its name, that the mutant's file goes into and its test's device
    loads."""
    folder = os.path.dirname(mutant.file).split(os.sep)
    if folder[0] != "kernel":
        return ()
    gemm = "gemm_sm90" if "@H200" in mutant.test else "gemm_sm100"
    if folder[1:2] == ["quantize"]:
        return ("quantize",)
    return (gemm,) if folder[1:2] in (["sm90"], ["sm100"]) else (gemm, "quantize")


def targets(mutant):
    """What make builds for the mutant's test."""
    program = mutant.test.partition("@")[0]
    if program == "oracle":
        return ["all"]
    return ["build/libnvfp4gemm.so", "emulator", f"build/{program}"]


def text_of(mutant, root=ROOT):
    with open(os.path.join(root, mutant.file)) as source:
        return source.read()


def mutated(text, mutant):
    """The text with the bug. Raises Lost where the code is not there, or twice."""
    start, end = place.place(text, mutant.function, mutant.old, mutant.file)
    return text[:start] + mutant.new + text[end:]


class Tree:
    """A copy of the project under BUILD/mutants."""

    def __init__(self, build, number, jobs):
        self.root = os.path.join(ROOT, build, "mutants", str(number))
        self.jobs = jobs
        shutil.rmtree(self.root, ignore_errors=True)
        ignore = shutil.ignore_patterns(".git", ".venv", ".tools", "mutants", "__pycache__")
        shutil.copytree(ROOT, self.root, ignore=ignore, symlinks=True)
        for tool in (".venv", ".tools"):
            os.symlink(os.path.join(ROOT, tool), os.path.join(self.root, tool))

    def built(self, *pattern):
        """Files of the tree's build folder that match the pattern."""
        return glob.glob(os.path.join(self.root, "build", *pattern))

    def build(self, mutant, wanted=()):
        """True if what the mutant's test uses builds. Of the images only those wanted are made."""
        stay = self.built("kernel", "*.cubin*") + self.built("test", "*.ptx")
        stay += [p for p in self.built("kernel", "*.ptx")
                 if not os.path.basename(p).startswith(wanted or "/")]
        keep = [word for path in stay for word in ("-o", os.path.relpath(path, self.root))]
        return self.run(["make", "-s", f"-j{self.jobs}", "B=build", "PACK=balance", *keep, *targets(mutant)],
                        None) == 0

    def test(self, mutant):
        """Exit status of the mutant's test, or "hang"."""
        environment = dict(os.environ)
        environment["LD_LIBRARY_PATH"] = os.path.join(self.root, "build", "emulator")
        environment["NVFP4_BUILD"] = os.path.join(self.root, "build")
        if mutant.test == "oracle":
            command = [".venv/bin/python", "-m", "unittest", mutant.filter]
            environment["PYTHONPATH"] = os.pathsep.join(
                os.path.join(self.root, folder) for folder in ("test/oracle", "tools/python/test"))
        else:
            # A comma in a Catch2 filter means "or".
            program, _, device = mutant.test.partition("@")
            if device:
                environment["EMU_DEVICE"], _, sms = device.partition("/")
                if sms:
                    environment["EMU_SMS"] = sms
            if program in ("nvfp4_test", "emulator_hw_test"):
                environment["EMU_FORMAL"] = "stop"  # as in test/jobs.txt
            command = [os.path.join("build", program), mutant.filter.replace(",", "\\,")]
        return self.run(command, environment)

    def plant(self, mutant):
        """What the mutant's test says of it, as test() does, or "broken", and the seconds."""
        start = time.time()
        path = os.path.join(self.root, mutant.file)
        clean = text_of(mutant, self.root)
        made = {}
        for name in images(mutant):
            for image in self.built("kernel", name + "*.ptx*"):
                with open(image, "rb") as content:
                    made[image] = content.read()
        with open(path, "w") as out:
            out.write(mutated(clean, mutant))
        try:
            if not self.build(mutant, images(mutant)):
                return "broken", time.time() - start
            return self.test(mutant), time.time() - start
        finally:
            with open(path, "w") as out:
                out.write(clean)
            # Newer than their source: the next mutant's build links them again, and makes no other.
            for image in sorted(made):
                with open(image, "wb") as content:
                    content.write(made[image])

    def run(self, command, environment):
        try:
            done = subprocess.run(command, cwd=self.root, env=environment, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, timeout=SECONDS)
        except subprocess.TimeoutExpired:
            self.output = f"no end within {SECONDS} s"
            return "hang"
        self.output = done.stdout.decode(errors="replace")
        return done.returncode


def wanted(mutants, names):
    """The mutants of these names, all of which can still be planted, before any work."""
    folders = tuple(name for name in names if name.endswith("/"))
    unknown = set(names) - {m.name for m in mutants} - set(folders)
    if unknown:
        sys.exit(f"no such mutant: {', '.join(sorted(unknown))}")
    lost = []
    for m in mutants:
        try:
            mutated(text_of(m), m)
        except place.Lost as where:
            lost.append(f"{m.name}: {where}")
    if lost:
        sys.exit("\n".join(lost))
    return [m for m in mutants if not names or m.name in names or m.file.startswith(folders)]


def main():
    if len(sys.argv) < 2 or sys.argv[1] in ("-h", "--help"):
        sys.exit(__doc__)
    mutants = read_mutants()
    if sys.argv[1] == "--list":
        for m in mutants:
            print(f"{m.name:40} {m.file:40} {m.test} {m.filter}")
        return 0
    mutants = wanted(mutants, sys.argv[2:])
    copies = int(os.environ.get("JOBS") or 1)
    free = queue.Queue()
    for i in range(copies):
        free.put(Tree(sys.argv[1], i, max(1, (os.cpu_count() or 1) // copies)))

    def in_a_tree(work):
        """work(tree) in the next tree that is free."""
        def of(mutant):
            tree = free.get()
            try:
                return work(tree, mutant)
            finally:
                free.put(tree)
        return of

    def passes(tree, mutant):
        if tree.build(mutant) and tree.test(mutant) == 0:
            return True
        print(f"without any bug this fails: {mutant.test} {mutant.filter}\n{tree.output[-2000:]}",
              flush=True)
        return False

    found = 0
    width = max(len(m.name) for m in mutants)
    with concurrent.futures.ThreadPoolExecutor(copies) as pool:
        tests = {(m.test, m.filter): m for m in mutants}
        useless = {test for test, passed in zip(tests, pool.map(in_a_tree(passes), tests.values()))
                   if not passed}
        print(f"{'mutant':{width}}  {'found':8}  {'s':>5}  by", flush=True)
        # Those of one file in a row: the next one's build finds most objects as they should be.
        planted = {pool.submit(in_a_tree(Tree.plant), m): m for m in mutants
                   if (m.test, m.filter) not in useless}
        for done in concurrent.futures.as_completed(planted):
            m, (status, seconds) = planted[done], done.result()
            verdict = {0: "NO", "broken": "NO BUILD", "hang": "by hang"}.get(status, "yes")
            found += not verdict.startswith("NO")
            print(f"{m.name:{width}}  {verdict:8}  {seconds:5.1f}  {m.filter}", flush=True)
    shutil.rmtree(os.path.join(ROOT, sys.argv[1], "mutants"))
    print(f"{found} of {len(mutants)} found")
    return found < len(mutants)


if __name__ == "__main__":
    sys.exit(main())
