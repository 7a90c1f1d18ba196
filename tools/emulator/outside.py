# SPDX-License-Identifier: MIT
"""outside.py FOLDER [--write]: runs what others wrote and compares with the verdicts that are
committed, test/outside.txt. Every .ptx file under the folder is loaded on a device of its target;
every program (an executable file named *.run) runs under `nvfp4emu run`. A verdict is `loads`, the
words of the refusal, or a program's exit status with the classes of its reports and whether it took
more than 30 processor seconds. The processor seconds of every program are printed, longest first.
What the folder lacks is named and not compared; --write puts what was found into the list. Exit
status 1: a verdict differs, or a file has none."""
import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from pathlib import Path

import load

HERE = Path(__file__).resolve().parent
LIST = HERE / "test/outside.txt"
SECONDS = 600
PROCESSOR_SECONDS = 30
APART = "  "


def parse():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--library", type=Path, default=load.HERE / "build/emulator/libcuda.so.1")
    parser.add_argument("--list", type=Path, default=LIST)
    parser.add_argument("--write", action="store_true")
    return parser.parse_args()


def loads(args, files):
    """By file: `loads`, or why not."""
    by_device = defaultdict(list)
    for file in files:
        text = file.read_text(errors="replace")
        by_device[load.device_of(load.target(text))].append(str(file))
    said = {}
    for device, of_device in by_device.items():
        said.update(load.load(args, device, of_device))
    return {file: load.reason(words) if words else "loads" for file, words in said.items()}


def processor_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def runs(args, program):
    """Its verdict, and its processor seconds."""
    with tempfile.TemporaryDirectory() as folder:
        reports = os.path.join(folder, "reports")
        before = processor_seconds()
        try:
            done = subprocess.run([HERE / "nvfp4emu", "run", "--json", reports, program],
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                  timeout=SECONDS, check=False,
                                  env=dict(os.environ, NVFP4EMU_LIBRARY=args.library.parent))
        except subprocess.TimeoutExpired:
            return f"no end in {SECONDS} s", processor_seconds() - before
        with open(reports) as lines:
            classes = Counter(json.loads(line)["class"] for line in lines)
    verdict = f"exit {done.returncode}" + "".join(f", {c}" for c in sorted(set(classes) - {"note"}))
    took = processor_seconds() - before
    return verdict + f", more than {PROCESSOR_SECONDS} s" * (took > PROCESSOR_SECONDS), took


def found(args):
    """By file its verdict, and of programs their processor seconds."""
    def name(file):
        return str(Path(file).relative_to(args.folder))
    verdicts = {name(file): said
                for file, said in loads(args, sorted(args.folder.rglob("*.ptx"))).items()}
    took = {}
    for program in sorted(args.folder.rglob("*.run")):
        if os.access(program, os.X_OK):
            verdicts[name(program)], took[name(program)] = runs(args, program.resolve())
    return verdicts, took


def print_seconds(took):
    for program, seconds in sorted(took.items(), key=lambda each: -each[1]):
        print(f"{seconds:7.1f} s  {program}")


def known(path):
    lines = path.read_text().splitlines() if path.exists() else []
    return dict(line.split(APART, 1) for line in lines if line and not line.startswith("#"))


def main():
    args = parse()
    if not args.library.exists():
        raise SystemExit(f"{args.library} does not exist: make emulator")
    (now, took), before = found(args), known(args.list)
    print_seconds(took)
    if not now:
        raise SystemExit(f"{args.folder} has no .ptx and no .run file")
    if args.write:
        all_of_them = {**before, **now}
        head = "# What outside.py finds of others' files: a file, two blanks, its verdict.\n"
        lines = (f"{file}{APART}{verdict}\n" for file, verdict in sorted(all_of_them.items()))
        args.list.write_text(head + "".join(lines))
        return 0
    differ = [f for f in now if now[f] != before.get(f)]
    for file in differ:
        print(f"{file}: {now[file]}, the list says {before.get(file, 'nothing')}")
    missing = sorted(set(before) - set(now))
    if missing:
        print(f"{len(missing)} files of the list are not there, the first is {missing[0]}")
    print(f"{len(now)} files, {len(differ)} differ")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
