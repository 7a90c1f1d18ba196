#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""check_layers.py [--draw FILE.svg]: the import rules of HACKING.md. Every #include of a source
that git tracks is a path from the repository root (but those of the two public headers and of the
system), and leads to a room that its own room may use; a folder of host/ has at most 15 sources.
Ends with the number of faults, which must be 0, and appends "1 passed, 0 failed, 0 skipped" or its
opposite to the file that NVFP4_TALLY names."""
import argparse
import os
import re
import subprocess
import sys
from collections import Counter

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
EMU = "tools/emulator/"
PUBLIC = {"nvfp4_gemm.h": "include/nvfp4_gemm.h", "nvfp4emu.h": EMU + "include/nvfp4emu.h"}

MOST_SOURCES = 15

# Room: the rooms that it may include besides itself. The longest prefix of a path is its room.
def grounded(order, ground):
    """Rooms in the order of a tower: each may use those before it, and the ground."""
    return {room: list(order[:i]) + ground for i, room in enumerate(order)}


KERNEL_PLAIN = ["kernel/common/", "kernel/sm80/", "kernel/sm90/", "kernel/sm100/",
                "kernel/sm120/", "kernel/quantize/"]
HOST = grounded(
    ["host/" + room + "/" for room in ("base", "problem", "plan", "driver", "family", "run", "pack",
                                       "words", "api")],
    ["include/", "host/cuda/"] + KERNEL_PLAIN)
HOST["host/reference/"] = ["include/", "host/base/", "host/problem/"]
for above in ("run", "api"):
    HOST[f"host/{above}/"].append("host/reference/")
# Tables of the public fields and enumerations, from which programs make theirs, too.
FIELDS = ["host/problem/" + table for table in ("fields.def", "field_rows.h", "enumeration.def")]
LIBRARY = {
    "include/": [],
    **{table: ["include/", *FIELDS] for table in FIELDS},
    "host/cuda/": [],
    "kernel/ptx/": [],
    "kernel/common/": ["kernel/ptx/"],
    "kernel/helpers/": ["kernel/common/", "kernel/ptx/"],
    "kernel/sm80/": ["kernel/common/", "kernel/ptx/"],
    "kernel/sm90/": ["kernel/common/", "kernel/ptx/"],
    "kernel/sm100/": ["kernel/common/", "kernel/ptx/"],
    "kernel/sm120/": ["kernel/common/", "kernel/ptx/"],
    "kernel/quantize/": ["kernel/helpers/", "kernel/common/", "kernel/ptx/"],
    **{room: may + FIELDS for room, may in HOST.items()},
}
EMULATOR = {
    "include/": [],
    "base/": [],
    "ptx/": ["base/"],
    "memory/": ["base/"],
    "arithmetic/": ["memory/", "base/"],
    "hardware/": ["arithmetic/", "memory/", "base/"],
    "machine/": ["hardware/", "arithmetic/", "memory/", "ptx/", "base/"],
    "op/": ["machine/", "hardware/", "arithmetic/", "memory/", "ptx/", "base/"],
    "order/": ["machine/", "hardware/", "arithmetic/", "memory/", "ptx/", "base/"],
    "trace/": ["machine/", "hardware/", "memory/", "ptx/", "base/"],
    "driver/": ["include/", "trace/", "order/", "op/", "machine/", "hardware/", "memory/", "ptx/",
                "base/"],
}
PROGRAMS = {
    "tools/testing/": [],
    "tools/harness/": ["include/", "host/cuda/", *FIELDS],
    "tools/nvfp4/": ["include/", "host/cuda/", "tools/harness/", EMU + "include/", *FIELDS],
    "tools/draw/": ["kernel/common/", "kernel/sm100/"],
    "tools/probe/": ["host/cuda/", "kernel/ptx/", "kernel/common/", "kernel/sm100/",
                     "tools/harness/"],
    "tools/model/": ["kernel/common/", "kernel/sm90/", "kernel/sm100/", "tools/testing/",
                    "bench/experts.def"],
    "bench/experts.def": [],  # a table of layers: model and bench read it
    "bench/": ["bench/experts.def", "include/", "host/cuda/", "kernel/common/", "tools/harness/",
               EMU + "include/"],
    "test/": ["include/", "host/cuda/", "kernel/ptx/", *KERNEL_PLAIN, *HOST, *FIELDS, "bench/",
              "tools/harness/", "tools/nvfp4/", "tools/testing/", EMU + "include/"],
    EMU + "test/": [EMU + room for room in EMULATOR] + ["tools/testing/"],
    EMU + "bench/": [EMU + "include/"],
}
RULES = {**LIBRARY, **PROGRAMS,
         **{EMU + room: [EMU + other for other in may] for room, may in EMULATOR.items()}}


def room_of(path):
    return max((room for room in RULES if path.startswith(room)), key=len, default=None)


def includes():
    """(file, line, what stands between the quotes) of every #include "..." that git tracks."""
    files = subprocess.check_output(["git", "-C", ROOT, "ls-files"], text=True).split("\n")
    for file in files:
        if not re.search(r"\.(c|cc|h|cu|cuh|def|S)$", file) or file.startswith("examples/"):
            continue
        with open(os.path.join(ROOT, file), encoding="utf-8") as text:
            for number, line in enumerate(text, 1):
                found = re.match(r'\s*#\s*include\s+"([^"]+)"', line)
                if found:
                    yield file, number, found[1]


def judge():
    """What is wrong, in words, and how many includes lead from room to room."""
    wrong, edges = [], Counter()
    for file, number, name in includes():
        target = PUBLIC.get(name, name)
        at = f"{file}:{number}: "
        if not os.path.exists(os.path.join(ROOT, target)):
            wrong.append(at + f'"{name}" is no path from the repository root')
            continue
        here, there = room_of(file), room_of(target)
        if here is None or there is None:
            wrong.append(at + f"{file if here is None else target} lies in no room of HACKING.md")
        elif here != there:
            edges[here, there] += 1
            if there not in RULES[here]:
                wrong.append(at + f"{here} may not include {there} ({name})")
        if here in LIBRARY and name in PUBLIC.values():
            own = os.path.basename(name)
            wrong.append(at + f'a public header is included as users do: "{own}"')
    return wrong + crowded(), edges


def crowded():
    """Folders of host/ with more sources than HACKING.md allows; tables (.def) do not count."""
    files = subprocess.check_output(["git", "-C", ROOT, "ls-files", "host"], text=True).split()
    folders = Counter(os.path.dirname(f) for f in files if f.endswith((".cc", ".h")))
    return [f"{folder}: {count} sources; at most {MOST_SOURCES} in a folder of host/"
            for folder, count in sorted(folders.items()) if count > MOST_SOURCES]


def draw(edges, path):
    """The rooms as columns of boxes, a line per pair of rooms with its number of includes."""
    depth = {}

    def level(room):
        if room not in depth:
            below = [there for here, there in edges if here == room]
            depth[room] = 1 + max((level(other) for other in below), default=-1)
        return depth[room]

    rooms = sorted({room for edge in edges for room in edge}, key=lambda r: (level(r), r))
    width, height, row = 190, 30, 70
    columns = Counter()
    at = {}
    for room in rooms:
        at[room] = (20 + columns[level(room)] * (width + 30), level(room))
        columns[level(room)] += 1
    deepest = max(depth.values())
    size = (20 + max(columns.values()) * (width + 30), 40 + (deepest + 1) * row)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{size[0]}" height="{size[1]}" '
           'font-family="sans-serif" font-size="11">',
           f'<rect width="{size[0]}" height="{size[1]}" fill="white"/>']
    place = {room: (x, 20 + (deepest - y) * row) for room, (x, y) in at.items()}
    for (here, there), count in sorted(edges.items()):
        (x1, y1), (x2, y2) = place[here], place[there]
        out.append(f'<line x1="{x1 + width / 2}" y1="{y1 + height}" x2="{x2 + width / 2}" '
                   f'y2="{y2}" '
                   f'stroke="#99aabb" stroke-width="{min(4, 0.5 + count / 20):.1f}">'
                   f"<title>{here} -&gt; {there}: {count}</title></line>")
    for room, (x, y) in place.items():
        out.append(f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="4" fill="#eef3f8" '
                   f'stroke="#446688"/><text x="{x + 8}" y="{y + 19}">{room}</text>')
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(out + ["</svg>\n"]))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draw", metavar="FILE.svg",
                        help="write the rooms and their includes as a picture")
    arguments = parser.parse_args()
    wrong, edges = judge()
    for line in wrong:
        print(line)
    if arguments.draw:
        draw(edges, arguments.draw)
    print(f"{sum(edges.values())} includes from room to room, {len(wrong)} faults")
    if "NVFP4_TALLY" in os.environ:
        with open(os.environ["NVFP4_TALLY"], "a", encoding="utf-8") as tally:
            print(f"{int(not wrong)} passed, {int(bool(wrong))} failed, 0 skipped", file=tally)
    return len(wrong) > 0


if __name__ == "__main__":
    sys.exit(main())
