# SPDX-License-Identifier: MIT
"""load.py FOLDER...: loads every .ptx file under the folders into the emulator, each on a device of
its .target. Says per folder how many load and in which words the others are refused; exits with 1
if any is. With --ptxas, files that ptxas refuses as well are counted apart."""
import argparse
import ctypes
import os
import re
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path

HERE = Path(__file__).resolve().parents[2]
DEVICES = {"sm_103": "B300", "sm_107": "RUBIN", "sm_101": "THOR", "sm_10": "B200", "sm_11": "THOR",
           "sm_121": "GB10", "sm_12": "RTX5090", "sm_9": "H200", "sm_86": "A40", "sm_87": "RTX4090",
           "sm_88": "RTX4090", "sm_89": "RTX4090", "sm_8": "A100", "sm_7": "T4"}
NEWEST = "13050"  # the driver of the newest PTX
ERROR_LOG, ERROR_LOG_BYTES = 5, 6  # of CUjit_option


def parse(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path, metavar="folder")
    parser.add_argument("--library", default=HERE / "build/emulator/libcuda.so.1")
    parser.add_argument("--ptxas", help="path of ptxas, the judge of what should load")
    parser.add_argument("--all", action="store_true", help="name every refused file")
    parser.add_argument("--on", help=argparse.SUPPRESS)  # in the process of one device
    return parser.parse_args(arguments)


def target(text):
    found = re.search(r"^\s*\.target\s+(\w+)", text, re.M)
    return found[1] if found else ""


def device_of(target):
    return next((name for arch, name in DEVICES.items() if target.startswith(arch)), "B200")


def check(status, what):
    if status:
        raise SystemExit(f"{what}: status {status}")


def load_here(library, files):
    """In the process of one device: a line per file, what the loader said or nothing."""
    cuda = ctypes.CDLL(str(library))
    check(cuda.cuInit(0), "cuInit")
    device, context = ctypes.c_int(), ctypes.c_void_p()
    check(cuda.cuDeviceGet(ctypes.byref(device), 0), "cuDeviceGet")
    check(cuda.cuCtxCreate_v2(ctypes.byref(context), 0, device), "cuCtxCreate")
    for file in files:
        log = ctypes.create_string_buffer(4096)
        options = (ctypes.c_int * 2)(ERROR_LOG, ERROR_LOG_BYTES)
        values = (ctypes.c_void_p * 2)(ctypes.addressof(log), len(log))
        module = ctypes.c_void_p()
        status = cuda.cuModuleLoadDataEx(ctypes.byref(module), Path(file).read_bytes() + b"\0", 2,
                                         options, values)
        if status == 0:
            cuda.cuModuleUnload(module)
        words = " ".join(log.value.decode(errors="replace").split())
        print(f"{file}\t{words or f'status {status}' if status else ''}", flush=True)


def load(args, device, files):
    """What the loader said, by file. A crash is the answer of the file that crashed it."""
    said = {}
    while files:
        run = subprocess.run([sys.executable, __file__, "--on", device, "--library", args.library,
                              *files],
                             env={"EMU_DRIVER_VERSION": NEWEST, **os.environ, "EMU_DEVICE": device},
                             stdout=subprocess.PIPE, text=True, check=False)
        for line in run.stdout.splitlines():
            file, words = line.split("\t", 1)
            said[file] = words
        files = [f for f in files if f not in said]
        if files:
            said[files.pop(0)] = f"the loader ended with status {run.returncode}"
    return said


def accepted_by(ptxas, file, target):
    return subprocess.run([ptxas, f"-arch={target}", "-O0", "-o", os.devnull, file],
                          capture_output=True, check=False).returncode == 0


def reason(words):
    """Without places, names and numbers, so that the same gap counts as one."""
    words = re.sub(r"^(\S*?\bptx\b\S*|line)?\s*:?\s*\d+:\d+:?\s*", "", words)
    words = re.sub(r"%[\w$.]+", "%r", words)
    words = re.sub(r"\b(0x[0-9a-fA-F]+|\d+)\b", "N", words)
    return re.sub(r"\b_Z\w+|\$\w+", "name", words)[:160]


def main():
    args = parse()
    if args.on:
        return load_here(args.library, map(str, args.folders))
    if not Path(args.library).exists():
        raise SystemExit(f"{args.library} does not exist: make emulator")
    texts = {str(f): f.read_text(errors="replace")
             for folder in args.folders for f in sorted(folder.rglob("*.ptx"))}
    by_device = defaultdict(list)
    for file, text in texts.items():
        by_device[device_of(target(text))].append(file)
    said = {}
    for device, files in by_device.items():
        said.update(load(args, device, files))
    table, reasons, examples = defaultdict(Counter), Counter(), {}
    for file, text in texts.items():
        row = table[str(Path(file).parent)]
        row["files"] += 1
        row["kernels"] += len(re.findall(r"^\s*(?:\.\w+\s+)*\.entry\b", text, re.M))
        if not said[file]:
            row["loaded"] += 1
        elif args.ptxas and not accepted_by(args.ptxas, file, target(text)):
            row["ptxas refuses"] += 1
        else:
            why = reason(said[file])
            reasons[why] += 1
            examples.setdefault(why, f"{file}: {said[file][:300]}")
            if args.all:
                print(f"{file}: {said[file]}")
    columns = ["files", "kernels", "loaded"] + ["ptxas refuses"] * bool(args.ptxas)
    print(f"{'folder':50}" + "".join(f"{c:>14}" for c in columns))
    total = Counter()
    for folder, row in sorted(table.items()):
        total.update(row)
        print(f"{folder[-50:]:50}" + "".join(f"{row[c]:14}" for c in columns))
    print(f"{'all':50}" + "".join(f"{total[c]:14}" for c in columns))
    for why, count in reasons.most_common():
        print(f"{count:5}  {why}\n       {examples[why]}")
    return 1 if reasons else 0


if __name__ == "__main__":
    sys.exit(main())
