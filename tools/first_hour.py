# SPDX-License-Identifier: MIT
"""first_hour.py BUILD [FILE]: what to run first on a GPU that these kernels have not seen, at most
10 minutes, each step with a time limit of its own. After each step a JSON line goes to FILE
(BUILD/first-hour.jsonl) and onto the disk, so that a machine that is lost leaves what it had said.
Nothing is compiled.

first_hour.py --read FILE: the verdicts of such a file, and whether they are enough for the family's
rows of host/plan/proofs.def to say `hardware`. Exit code 0 only then."""
import json
import os
import signal
import subprocess
import sys
import time

VERSION = 1
SHAPES = ("128x7168x16384 128x4096x7168 128x7168x2048 1x7168x16384 1x4096x7168 16x4096x7168 "
          "64x7168x2048 256x4096x7168 512x7168x2048 1024x4096x4096 2048x4096x4096 "
          "4096x4096x4096").split()

# Name, seconds at most, program of BUILD, its arguments. What is short comes before the whole
# suite; `@` is a file for JSON, which the step's line then holds.
STEPS = (
    ("info", 15, "nvfp4", ["info", "--json"]),
    ("selftest", 20, "nvfp4_test", ["[selftest]"]),
    ("probes", 30, "nvfp4_test", ["[probe]"]),
    ("variants", 20, "nvfp4_test", ["[variant]"]),
    ("launches", 60, "nvfp4_test", ["[repeat]"]),
    ("pdl", 20, "nvfp4_test", ["[pdl]"]),
    ("random", 60, "check_random", ["--problems", "20000", "--seed", "1"]),
    ("suite", 240, "nvfp4_test", []),
    ("clocks", 25, "clocks/nvfp4_bench",
     ["clocks", *(word for shape in SHAPES[:4] for word in ("--shape", shape))]),
    ("bench", 110, "nvfp4_bench",
     ["gpu", "--json", "@", *(word for shape in SHAPES for word in ("--shape", shape))]),
)
# Right results speak for a mechanism; clocks and times do not.
NEEDED = ("info", "selftest", "probes", "variants", "launches", "pdl", "random", "suite")


def run(command, seconds):
    """Its exit status, or None where it had to be killed, with all that it started; its output."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               start_new_session=True)
    try:
        output, _ = process.communicate(timeout=seconds)
        return process.returncode, output.decode(errors="replace")
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, _ = process.communicate()
        return None, output.decode(errors="replace")


def take(build, step):
    """The step's line."""
    name, seconds, program, arguments = step
    line = {"step": name, "command": " ".join([program, *arguments])}
    path = os.path.join(build, program)
    if not os.access(path, os.X_OK):
        return {**line, "verdict": "skipped", "why": f"{path} was not built"}
    kept = os.path.join(build, f"first-hour-{name}.json")
    start = time.monotonic()
    status, output = run([path, *(kept if word == "@" else word for word in arguments)], seconds)
    line["seconds"] = round(time.monotonic() - start, 1)
    line["verdict"] = "ok" if status == 0 else "not ok"
    if status is None:
        line["why"] = f"no end within {seconds} s"
    elif status != 0:
        line["why"] = f"exit status {status}"
    line["output"] = output.splitlines()[-40:]
    if "@" in arguments and status == 0:
        with open(kept, encoding="utf-8") as file:
            line["result"] = json.load(file)
    elif name == "info" and status == 0:
        line["result"] = json.loads(output)
    return line


def write(file, line):
    file.write(json.dumps(line) + "\n")
    file.flush()
    os.fsync(file.fileno())


def first_hour(build, path):
    """True if no step failed."""
    good = True
    with open(path, "w", encoding="utf-8") as file:
        write(file, {"nvfp4 first hour": VERSION, "date": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
                     "steps": [step[0] for step in STEPS]})
        for step in STEPS:
            print(f"{step[0]:9} at most {step[1]} s ...", end="", file=sys.stderr, flush=True)
            line = take(build, step)
            write(file, line)
            good = good and line["verdict"] != "not ok"
            why = f": {line['why']}" if "why" in line else ""
            print("", file=sys.stderr)
            print(f"{line['verdict']:8} {step[0]:9} {line.get('seconds', 0):6.1f} s{why}",
                  flush=True)
    print(f"{path} holds it all")
    return good


def read(path):
    """The lines of the steps by name. ValueError, with a sentence, where there is no whole run."""
    with open(path, encoding="utf-8") as file:
        lines = file.read().split("\n")
    try:
        lines = [json.loads(line) for line in lines if line]
    except ValueError as error:
        raise ValueError(f"{path} is damaged: {error}") from error
    if not lines or lines[0].get("nvfp4 first hour") != VERSION:
        raise ValueError(f"{path} is no first hour of version {VERSION}")
    steps = {line["step"]: line for line in lines[1:]}
    lost = [name for name in lines[0]["steps"] if name not in steps]
    if lost:
        raise ValueError(f"{path} ends before {lost[0]}: the machine was lost, or time was")
    return steps


def family_of(steps):
    """sm90 or sm100, by what `nvfp4 info` said of the first device."""
    devices = steps["info"].get("result", {}).get("devices", [])
    if not devices:
        raise ValueError("nvfp4 info names no device")
    if devices[0]["emulated"]:
        raise ValueError(f"{devices[0]['name']} says nothing about hardware")
    family = {"9": "sm90", "10": "sm100"}.get(devices[0]["compute_capability"].split(".")[0])
    if family is None:
        raise ValueError(f"{devices[0]['name']} runs none of these kernels")
    return family


def judge(path):
    """True if the rows of proofs.def may say hardware."""
    steps = read(path)
    for name, line in steps.items():
        print(f"{line['verdict']:8} {name:9} {line.get('why', '')}")
    family = family_of(steps)
    lacking = [name for name in NEEDED if steps[name]["verdict"] != "ok"]
    if lacking:
        print(f"host/plan/proofs.def stays as it is: {', '.join(lacking)}")
        return False
    print(f"the rows of {family} in host/plan/proofs.def may say hardware, by {path}")
    return True


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
