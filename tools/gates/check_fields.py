#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""check_fields.py [FIELD...]: in how many files each field of nvfp4_gemm_desc stands, as a word or
as an option of the command line: in all, and in those that the rows of host/problem/fields.def
serve. A field in more of these than the limit was written by hand where its row would do. Ends with
the number of such fields, which must be 0, and appends "1 passed, 0 failed, 0 skipped" or its
opposite to the file that NVFP4_TALLY names. Of a field that is named it lists the files."""
import os
import re
import subprocess
import sys

# What the rows serve; the header's rules are written by hand.
SERVED = re.compile(r"(host/(problem(?!/check)|words|api)|tools/(nvfp4|harness|python/nvfp4gemm))/")
LIMIT = 12
# Words that mean something else as well: of plans, tiles, quantizers or operators of torch.
OTHERS = {"a_type", "b2", "d_ld", "d_type", "operand_format", "struct_size", "workspace_bytes"}
LIMIT_OF_OTHERS = 24
# Too general to be counted: letters, and words of one part.
COUNTED = re.compile(r"\w+_\w+|[a-z]+2|pdl")


def words_of(path):
    with open(path, encoding="utf-8", errors="ignore") as file:
        return {word.lower().replace("-", "_") for word in re.findall(r"\w+(?:-\w+)*", file.read())}


def main():
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
    with open("host/problem/fields.def", encoding="utf-8") as table:
        names = set(re.findall(r"^GEMM_FIELD\(\w+, (\w+)", table.read(), re.MULTILINE))
    names = {name for name in names if COUNTED.fullmatch(name)}
    files = subprocess.check_output(["git", "ls-files", ":!*mutants.txt"], text=True).split("\n")
    found = {name: [] for name in names}
    for path in filter(None, files):
        for name in names & words_of(path):
            found[name].append(path)
    wrong = 0
    for name, paths in sorted(found.items(), key=lambda each: -len(each[1])):
        served = [path for path in paths if SERVED.match(path)]
        limit = LIMIT_OF_OTHERS if name in OTHERS else LIMIT
        wrong += len(served) > limit
        more = f", {limit} are the most" if len(served) > limit else ""
        print(f"{len(paths):4} files, {len(served):2} that rows serve: {name}{more}")
        if name in sys.argv[1:]:
            print("".join(f"       {path}\n" for path in paths), end="")
    print(f"{wrong} fields in too many files")
    if "NVFP4_TALLY" in os.environ:
        with open(os.environ["NVFP4_TALLY"], "a", encoding="utf-8") as tally:
            print(f"{int(not wrong)} passed, {int(bool(wrong))} failed, 0 skipped", file=tally)
    return wrong != 0


if __name__ == "__main__":
    sys.exit(main())
