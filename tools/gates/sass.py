#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""sass.py COMPILER FAMILY CUBIN [update]: what a trip through each kernel's main loop costs to
issue, read from the machine code's control bits, beside the figures of tools/gates/sass.txt; larger
ones
fail. Another compiler than the one of that file makes other code, so then nothing is compared.

An instruction of 128 bits says in bits 105 to 108 how many clocks its warp waits before it issues
the next one. The cost of a path is their sum; between two places the cheapest path counts, on which
no wait has to be repeated. A trip of sm_100 is one filling: the wait, its four steps one after the
other, the commit, the next stage."""
import heapq
import importlib.metadata
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
# What the main loop of a family is known by: a multiplication, and what else it holds. On sm_100 a
# filling gives its stage back, which the loop over the steps of an incomplete one does not.
MARK = {"sm100": ("UTCOMMA", "UTCBAR"), "sm90": ("HGMMA", "HGMMA")}


class Instruction:
    def __init__(self, address, text, high):
        self.address, self.text = address, text
        self.stall = high >> 41 & 15
        found = re.search(r"`\((\S+?)\)", text)
        self.label = found[1] if found else None
        self.predicated = text.startswith("@") or ".U " in text or ".DIV" in text
        words = text.split()
        self.opcode = next((w for w in words if not w.startswith("@")), "").rstrip(";")


def functions(listing):
    """{name: (instructions in order, {label: address})} of nvdisasm -hex."""
    found, name, instructions, labels, pending = {}, None, [], {}, []
    for line in listing.split("\n"):
        start = re.match(r"\.text\.(\S+):", line.strip())
        if start:
            name, instructions, labels = start[1], [], {}
            found[name] = (instructions, labels)
            continue
        label = re.match(r"(\.L_\S+):", line.strip())
        if label:
            pending.append(label[1])
            continue
        code = re.match(r"\s*/\*([0-9a-f]{4,})\*/\s+(.*?)\s*;?\s*/\* 0x([0-9a-f]{16}) \*/", line)
        if code and name:
            instructions.append([int(code[1], 16), code[2]])
            for text in pending:
                labels[text] = int(code[1], 16)
            pending = []
            continue
        second = re.match(r"\s*/\* 0x([0-9a-f]{16}) \*/", line)
        if second and instructions and isinstance(instructions[-1], list):
            instructions[-1] = Instruction(*instructions[-1], int(second[1], 16))
    return found


def following(instructions, labels, at):
    """Indices that may run after instruction `at`."""
    index = {instruction.address: i for i, instruction in enumerate(instructions)}
    i = instructions[at]
    ends = i.opcode.split(".")[0] in ("EXIT", "RET", "BPT", "WARPSYNC.EXIT")
    jump = i.opcode.split(".")[0] in ("BRA", "BRX", "JMP")
    after = []
    if jump and i.label in labels:
        after.append(index[labels[i.label]])
    if not (jump and not i.predicated) and not (ends and not i.predicated):
        if at + 1 < len(instructions):
            after.append(at + 1)
    return after


def loops_around(instructions, labels, mark):
    """(head, tail) index ranges of loops that hold the mark, innermost first, one per head."""
    index = {instruction.address: i for i, instruction in enumerate(instructions)}
    marked = [i for i, instruction in enumerate(instructions)
              if instruction.opcode.startswith(mark)]
    ranges = {}
    for tail, instruction in enumerate(instructions):
        head = index.get(labels.get(instruction.label, -1), tail + 1)
        if head <= tail and any(head <= m <= tail for m in marked):
            ranges[head] = max(tail, ranges.get(head, 0))
    return sorted(((head, tail) for head, tail in ranges.items()), key=lambda r: r[1] - r[0])


def cheapest(instructions, labels, start, goal, inside):
    """Stall clocks of the cheapest path from the issue of `start` to that of `goal`."""
    best, queue = {}, [(0, start, False)]
    while queue:
        cost, at, moved = heapq.heappop(queue)
        if at == goal and moved:
            return cost
        if best.get((at, moved), cost + 1) <= cost:
            continue
        best[at, moved] = cost
        for after in following(instructions, labels, at):
            if inside[0] <= after <= inside[1]:
                heapq.heappush(queue, (cost + instructions[at].stall, after, True))
    return None


def round_trip(instructions, labels, head, inside, through):
    """Stall clocks of the cheapest trip from a loop's head back to it by way of these
    instructions."""
    cost = 0
    for start, goal in zip([head, *through], [*through, head]):
        part = cheapest(instructions, labels, start, goal, inside) if start != goal else 0
        if part is None:
            return None
        cost += part
    return cost


def named(instructions, inside, opcode):
    return [i for i in range(inside[0], inside[1] + 1) if instructions[i].opcode.startswith(opcode)]


def loop_rows(family, instructions, labels):
    mark, also = MARK[family]
    loops = [loop for loop in loops_around(instructions, labels, mark)
             if named(instructions, loop, also)]
    if not loops:
        return
    trip = loops[0]
    steps = named(instructions, trip, mark)
    yield "R2UR in the loop", len(named(instructions, trip, "R2UR"))
    if mark == also:
        yield "stall clocks of the loop", round_trip(instructions, labels, trip[0], trip, steps)
        return
    everything = (0, len(instructions) - 1)
    load = named(instructions, everything, "UTMALDG")[0]
    yield "stall clocks before the first load", cheapest(instructions, labels, 0, load, everything)
    whole = round_trip(instructions, labels, trip[0], trip,
                       steps + named(instructions, trip, also)[:1])
    between = [cheapest(instructions, labels, a, b, trip) for a, b in zip(steps, steps[1:])]
    if whole is None or None in between or not between:
        yield "stall clocks a step", None
        return
    yield "steps of a filling", len(steps)
    yield "stall clocks of a filling", whole
    yield "stall clocks from step to step", round(sum(between) / len(between))
    yield "stall clocks a step", round(whole / len(steps))


def figures(family, listing):
    """[(what, clocks or count)] of each kernel of a family."""
    rows = []
    for name, (instructions, labels) in sorted(functions(listing).items()):
        local = sum(i.opcode.split(".")[0] in ("LDL", "STL") for i in instructions)
        rows.append((f"{name} local-memory instructions", local))
        # More of them: a loop of copies whose thread ptxas no longer knows to be its warp's only one.
        moves = named(instructions, (0, len(instructions) - 1), "R2UR")
        rows.append((f"{name} R2UR in all", len(moves)))
        rows += [(f"{name} {what}", number) for what, number in
                 loop_rows(family, instructions, labels)]
    return rows


def nvdisasm():
    for file in importlib.metadata.files("nvidia-cuda-nvdisasm"):
        if file.name == "nvdisasm":
            return str(file.locate())
    sys.exit("sass: nvidia-cuda-nvdisasm has no nvdisasm")


def committed(path):
    """(compiler, {what: figure}) of tools/gates/sass.txt."""
    compiler, most = "", {}
    with open(path, encoding="utf-8") as text:
        for line in text:
            if line.startswith("compiler "):
                compiler = line.split()[1]
            elif line.strip() and not line.startswith("#"):
                what, number = line.rsplit(None, 1)
                most[what] = int(number)
    return compiler, most


def main():
    compiler, family, cubin = sys.argv[1:4]
    listing = subprocess.check_output([nvdisasm(), "-hex", "-c", cubin], text=True)
    rows = figures(family, listing)
    if sys.argv[4:] == ["update"]:
        print("\n".join(f"{what} {number}" for what, number in rows))
        return 0
    known, most = committed(os.path.join(HERE, "sass.txt"))
    if compiler != known:
        print(f"sass: the figures are of ptxas {known}, this is {compiler}: nothing compared")
        return 0
    worse = [(what, number) for what, number in rows
             if number is None or number > most.get(what, -1)]
    for what, number in worse:
        print(f"sass: {what}: {number}, at most {most.get(what)} committed in tools/gates/sass.txt")
    of_family = {what for what in most if what.startswith(f"nvfp4_gemm_{family}_")}
    gone = of_family - {what for what, _ in rows}
    for what in sorted(gone):
        print(f"sass: {what} is committed, but {cubin} has no such loop")
    steps = [f"{number} {what.split('_')[-1].split()[0]}" for what, number in rows
             if what.endswith(("clocks a step", "clocks of the loop"))]
    print(f"{cubin}: stall clocks {'a trip' if family == 'sm90' else 'a step'}: {', '.join(steps)}")
    return len(worse) + len(gone) > 0


if __name__ == "__main__":
    sys.exit(main())
