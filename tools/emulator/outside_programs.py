# SPDX-License-Identifier: MIT
"""outside_programs.py FOLDER --runtime ARCHIVE --library LIBCUDA: builds the programs of
test/outside/programs.txt whose sources FOLDER has, as FOLDER/NAME.run, with the few calls of the
CUDA runtime that test/outside has. What is there and newer than its sources stays."""
import argparse
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent / "test/outside"
# Headers of all samples; those of CUTLASS's examples.
INCLUDED = ["cuda-samples/Common", "cutlass/include", "cutlass/tools/util/include",
            "cutlass/examples/common"]
ARCH = ["-arch=compute_90", "-code=compute_90"]


def parse():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--runtime", type=Path, required=True)
    parser.add_argument("--library", type=Path, required=True)
    parser.add_argument("--cuda", type=Path,
                        default=Path(os.environ.get("CUDA_HOME", "/usr/local/cuda")))
    parser.add_argument("--list", type=Path, default=HERE / "programs.txt")
    return parser.parse_args()


def rows(path):
    for line in path.read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            name, sources, words, *arguments = line.split()
            yield name, sources, [] if words == "-" else words.split(","), arguments


def sources_of(args, folder):
    if folder.startswith("./"):
        return [HERE / folder]
    where = args.folder / folder
    if where.suffix == ".cu":
        return [where] if where.exists() else []
    return sorted([*where.glob("*.cu"), *where.glob("*.cpp")])


def write_script(run, program, arguments):
    run.write_text("#!/bin/sh\nexec '%s' %s\n" % (program.resolve(), " ".join(arguments)))
    run.chmod(0o755)


def build(args, name, folder, words, arguments):
    """None: it is there. Else what went wrong."""
    sources = sources_of(args, folder)
    if not sources:
        return "its sources are not there"
    program = args.folder / (name + ".bin")
    inputs = [*sources, args.runtime]
    if program.exists() and all(p.stat().st_mtime < program.stat().st_mtime for p in inputs):
        return None
    program.parent.mkdir(parents=True, exist_ok=True)
    arch = [] if any(word.startswith("-arch") for word in words) else ARCH
    included = [word for each in INCLUDED for word in ("-I", args.folder / each)]
    command = [args.cuda / "bin/nvcc", "-std=c++17", "-O1", "-w", "-Xcompiler", "-w",
               *arch, "-cudart", "none", *words, "-I", args.cuda / "include/cccl", *included,
               *sources, args.runtime, "-L", args.library.parent, "-l:libcuda.so.1", "-o", program]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        return "nvcc: " + (done.stderr or done.stdout).strip()[:600]
    write_script(args.folder / (name + ".run"), program, arguments)
    return None


def main():
    args = parse()
    there = 0
    for name, folder, words, arguments in rows(args.list):
        wrong = build(args, name, folder, words, arguments)
        there += wrong is None
        if wrong:
            print(f"{name}: not built, {wrong}")
    print(f"{there} programs built")
    return 0


if __name__ == "__main__":
    sys.exit(main())
