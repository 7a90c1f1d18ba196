# SPDX-License-Identifier: MIT
"""first_hour.py BUILD [FILE]: what to run first on a GPU that these kernels have not seen, at most
10 minutes, each step with a time limit of its own. After each step a JSON line goes to FILE
(BUILD/first-hour.jsonl) and onto the disk, so that a machine that is lost leaves what it had said.
Nothing is compiled; the step `clocks` wants `make CLOCKS=1 build/clocks/nvfp4_bench`.

At the end it prints a page: each question to the GPU, the answer, and what the answer sets.

first_hour.py --read FILE: the verdicts of such a file, that page, and which rows of
host/plan/proofs.def the verdicts are enough for to say `hardware`. Exit code 0 only if there are
any."""
import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import textwrap
import time

HERE = os.path.dirname(os.path.abspath(__file__))
VERSION = 3
LIBRARY = "libnvfp4gemm.so.0"
SHAPES = ("128x7168x16384 128x4096x7168 128x7168x2048 1x7168x16384 1x4096x7168 16x4096x7168 "
          "64x7168x2048 256x4096x7168 512x7168x2048 1024x4096x4096 2048x4096x4096 "
          "4096x4096x4096").split()

# Name, seconds at most, program of BUILD, its arguments. What is short comes before the whole
# suite; `@` is a file for JSON, which the step's line then holds.
STEPS = (
    ("info", 15, "nvfp4", ["info", "--json"]),
    ("selftest", 20, "nvfp4_test", ["[selftest]"]),
    ("probes", 30, "nvfp4_test", ["[probe]"]),
    ("questions", 30, "nvfp4_probes", []),
    ("variants", 20, "nvfp4_test", ["[variant]"]),
    ("cuts", 30, "nvfp4_test", ["[sanitize]"]),
    ("launches", 60, "nvfp4_test", ["[repeat]"]),
    ("pdl", 20, "nvfp4_test", ["[pdl]"]),
    ("random", 60, "check_random", ["--problems", "20000", "--seed", "1"]),
    ("suite", 200, "nvfp4_test", []),
    ("clocks", 25, "clocks/nvfp4_bench",
     ["clocks", *(word for shape in SHAPES[:4] for word in ("--shape", shape))]),
    ("bench", 90, "nvfp4_bench",
     ["gpu", "--json", "@", *(word for shape in SHAPES for word in ("--shape", shape))]),
)
# Right results speak for a mechanism; clocks, times and what a GPU answers to `questions` do not.
NEEDED = ("info", "selftest", "probes", "variants", "cuts", "launches", "pdl", "random", "suite")
# The GPU that a family's rows are about; 10.3 is served by another image.
FAMILIES = {"9.0": "sm90", "10.0": "sm100", "12.0": "sm120", "12.1": "sm120"}


def run(command, seconds):
    """Its exit status, or None where it had to be killed, with all of its group; its output. What
    it has started and taken out of the group may go on, and nothing here waits for that."""
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(command, stdout=said, stderr=subprocess.STDOUT,
                                   start_new_session=True)
        try:
            status = process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            status = None
        said.seek(0)
        return status, said.read().decode(errors="replace")


def why_not(program, status, output, seconds):
    """A sentence where the step is not good, else None. A suite is good if it says that tests
    passed: one that finds none to run ends well."""
    if status is None:
        return f"no end within {seconds} s"
    if status != 0:
        return f"exit status {status}"
    if program == "nvfp4_test" and not re.search(r"^[1-9]\d* passed, 0 failed", output, re.M):
        return "no test passed"
    return None


def result_of(name, output, kept):
    """The JSON that a step gives, if it gives any. ValueError or OSError where it is not there."""
    if name == "bench":
        with open(kept, encoding="utf-8") as file:
            return json.load(file)
    return json.loads(output) if name == "info" else None


def take(build, step):
    """The step's line."""
    name, seconds, program, arguments = step
    line = {"step": name, "command": " ".join([program, *arguments]), "library": sum_of(build)}
    path = os.path.join(build, program)
    if not os.access(path, os.X_OK):
        return {**line, "verdict": "skipped", "why": f"{path} was not built"}
    kept = os.path.join(build, f"first-hour-{name}.json")
    if os.path.exists(kept):
        os.remove(kept)  # of an earlier run
    start = time.monotonic()
    status, output = run([path, *(kept if word == "@" else word for word in arguments)], seconds)
    line["seconds"] = round(time.monotonic() - start, 1)
    line["output"] = output.splitlines()[-40:]
    why = why_not(program, status, output, seconds)
    if why is None:
        try:
            line["result"] = result_of(name, output, kept)
        except (OSError, ValueError) as error:
            why = f"no JSON: {error}"
    return {**line, "verdict": "ok"} if why is None else {**line, "verdict": "not ok", "why": why}


def sum_of(build):
    """Which library the programs of the folder find there."""
    try:
        with open(os.path.join(build, LIBRARY), "rb") as file:
            return hashlib.sha256(file.read()).hexdigest()[:16]
    except OSError:
        return None


def print_page(line):
    """The questions, what the GPU answered, and what each answer sets: a line each."""
    print("\nQuestions, answers, and what they set:")
    for text in line.get("output", []):
        print(textwrap.fill(text, 98, subsequent_indent="    "))


def write(file, line):
    file.write(json.dumps(line) + "\n")
    file.flush()
    os.fsync(file.fileno())


def first_hour(build, path):
    """True if no step failed."""
    good = True
    answers = {}
    with open(path, "w", encoding="utf-8") as file:
        write(file, {"nvfp4 first hour": VERSION, "date": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
                     "library": sum_of(build), "steps": [step[0] for step in STEPS]})
        for step in STEPS:
            print(f"{step[0]:9} at most {step[1]} s ...", end="", file=sys.stderr, flush=True)
            line = take(build, step)
            write(file, line)
            good = good and line["verdict"] != "not ok"
            if step[0] == "questions":
                answers = line
            why = f": {line['why']}" if "why" in line else ""
            print("", file=sys.stderr)
            print(f"{line['verdict']:8} {step[0]:9} {line.get('seconds', 0):6.1f} s{why}",
                  flush=True)
    print_page(answers)
    print(f"{path} holds it all")
    return good


def read(path):
    """The lines of the steps by name. ValueError, with a sentence, where there is no whole run of
    one library."""
    with open(path, encoding="utf-8") as file:
        try:
            lines = [json.loads(line) for line in file.read().split("\n") if line]
        except ValueError as error:
            raise ValueError(f"{path} is damaged: {error}") from error
    names = [step[0] for step in STEPS]
    head = lines[0] if lines and isinstance(lines[0], dict) else {}
    if head.get("nvfp4 first hour") != VERSION or head.get("steps") != names:
        raise ValueError(f"{path} is no first hour of version {VERSION}")
    for line in lines[1:]:
        if not isinstance(line, dict) or not {"step", "verdict", "library"} <= set(line):
            raise ValueError(f"{path} is damaged: a line without step, verdict or library")
    said = [line["step"] for line in lines[1:]]
    if said != names[:len(said)]:
        raise ValueError(f"{path} has other steps than {', '.join(names)}, or one twice")
    if len(said) < len(names):
        raise ValueError(f"{path} ends before {names[len(said)]}: the machine was lost, or time "
                         "was")
    if None in (sums := {line["library"] for line in lines[1:]}) or len(sums) > 1:
        raise ValueError(f"{path} is not of one library")
    return dict(zip(said, lines[1:]))


def family_of(steps):
    """A family, by what `nvfp4 info` said of the first device."""
    devices = (steps["info"].get("result") or {}).get("devices") or []
    if not devices:
        raise ValueError("nvfp4 info names no device")
    name, capability = devices[0]["name"], devices[0]["compute_capability"]
    if devices[0]["emulated"]:
        raise ValueError(f"{name} says nothing about hardware")
    if capability not in FAMILIES:
        raise ValueError(f"{name}, compute capability {capability}: the rows of "
                         f"host/plan/proofs.def are about {' and '.join(FAMILIES)}")
    return FAMILIES[capability]


def rows_of(family, steps):
    """The family's rows of proofs.def on GPUs that it serves first, (CTAs of a tile, parts), whose
    number of parts the step `cuts` has run; each of its variants ran, or that step fails."""
    with open(os.path.join(HERE, "../../host/plan/proofs.def"), encoding="utf-8") as file:
        rows = re.findall(rf"^PROOF\({family}, {family}, (\d+), (\d+),", file.read(), re.M)
    records = [json.loads(line) for line in steps["cuts"].get("output", []) if line.startswith("{")]
    if len(records) != 1 or "k_partitions" not in records[0]:
        raise ValueError("the step cuts has no record of its k_partitions")
    if not rows:
        raise ValueError(f"host/plan/proofs.def has no rows of {family}")
    return [(tile, parts) for tile, parts in rows if int(parts) in records[0]["k_partitions"]]


def judge(path):
    """True if the rows of proofs.def may say hardware."""
    steps = read(path)
    for name, line in steps.items():
        print(f"{line['verdict']:8} {name:9} {line.get('why', '')}")
    print_page(steps["questions"])
    family = family_of(steps)
    lacking = [name for name in NEEDED if steps[name]["verdict"] != "ok"]
    if lacking:
        print(f"host/plan/proofs.def stays as it is: {', '.join(lacking)}")
        return False
    rows = rows_of(family, steps)
    for tile, parts in rows:
        print(f"PROOF({family}, {family}, {tile}, {parts}, ...) may say hardware, by {path}")
    if not rows:
        print("host/plan/proofs.def stays as it is: none of its rows has such k_partitions")
    return bool(rows)


def main(arguments):
    if arguments[:1] == ["--read"] and len(arguments) == 2:
        try:
            return 0 if judge(arguments[1]) else 1
        except (OSError, ValueError) as error:
            sys.exit(f"first_hour.py: {error}")
    if len(arguments) not in (1, 2) or arguments[0].startswith("-"):
        sys.exit(__doc__)
    path = arguments[1] if len(arguments) == 2 else os.path.join(arguments[0], "first-hour.jsonl")
    return 0 if first_hour(arguments[0], path) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
