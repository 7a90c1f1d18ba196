# SPDX-License-Identifier: MIT
"""Machine code as nvdisasm -hex prints it: instructions with their control bits, loops, and the
cheapest ways through them.

An instruction of 128 bits says in bits 105 to 108 how many clocks its warp waits before it issues
the next one. The cost of a path is their sum; between two places the cheapest path counts, on which
no wait has to be repeated. `clocks` adds what the path waits for results that come at a time of
their own, through one of six scoreboards."""
import functools
import heapq
import re

# Clocks until a scoreboard is free again: of shared memory and constants about what a Hopper takes;
# of 32 columns of tensor memory twice `load_drain` of tools/model/parameters.def.
LATENCY = {"LDS": 30, "LDC": 30, "LDCU": 30, "LDTM": 80, "LDTM.x16": 40}
OTHERWISE = 12
LABEL = re.compile(r"`\((\S+?)\)")
COPY = re.compile(r"UBLKCP\S* \[\S+\], \[UR(\d+)\]")  # a bulk copy, and the pair with its address
SETS = re.compile(r"U\w+(\.\S+)? (?:UP\d, )?UR(\d+)(, UP\d)?")  # a carry goes to a predicate
TABLE = re.compile(r'BRANCH_TARGETS ([^"]*)"')
# What a line of nvdisasm -hex may be: an instruction with half of its code, the other half, a label
# or the name of a function.
LINE = re.compile(r"\s*(?:/\*(?P<address>[0-9a-f]{4,})\*/\s+(?P<text>\S.*)"
                  r"/\* 0x[0-9a-f]{16} \*/|/\* 0x(?P<high>[0-9a-f]{16}) \*/|"
                  r"\.text\.(?P<name>\S+):|(?P<label>\.L_\S+):)")


class Instruction:
    def __init__(self, address, text, high):
        self.address, self.text = address, text
        self.high, self.stall = high, high >> 41 & 15
        found = LABEL.search(text) if "`(" in text else None
        self.label = found[1] if found else None
        found = TABLE.search(text) if "BRANCH_TARGETS" in text else None  # of a jump by a table
        self.targets = found[1].split(",") if found else [self.label]
        self.predicated = text.startswith("@") or ".U " in text or ".DIV" in text
        words = text.split()
        self.opcode = next((w for w in words if w[0] != "@"), "").rstrip(";")

    # Scoreboards: which one its result sets, which one the reading of its operands, and those that
    # it waits for, a bit each.
    @property
    def sets(self):
        return [i for i in (self.high >> 46 & 7, self.high >> 49 & 7) if i != 7]

    @property
    def waits(self):
        return [i for i in range(6) if self.high >> 52 & 1 << i]


class Code(list):
    """The instructions of a function, in order."""
    @functools.cached_property
    def index(self):
        """Where the instruction of an address is; to be asked when all are there."""
        return {instruction.address: i for i, instruction in enumerate(self)}


def functions(listing):
    """{name: (instructions in order, {label: address})} of nvdisasm -hex."""
    found, name, instructions, labels, pending = {}, None, Code(), {}, []
    for line in listing.split("\n"):
        part = LINE.match(line)
        if part is None:
            continue
        if part["high"]:
            if instructions and isinstance(instructions[-1], list):
                instructions[-1] = Instruction(*instructions[-1], int(part["high"], 16))
        elif part["address"]:
            if name:
                address = int(part["address"], 16)
                instructions.append([address, part["text"].rstrip(" ;")])
                for text in pending:
                    labels[text] = address
                pending = []
        elif part["label"]:
            pending.append(part["label"])
        else:
            name, instructions, labels = part["name"], Code(), {}
            found[name] = (instructions, labels)
    return found


def following(instructions, labels, at):
    """Indices that may run after instruction `at`."""
    i, index = instructions[at], instructions.index
    ends = i.opcode.split(".")[0] in ("EXIT", "RET", "BPT", "WARPSYNC.EXIT")
    jump = i.opcode.split(".")[0] in ("BRA", "BRX", "JMP")
    after = []
    if jump:
        after += [index[labels[target]] for target in i.targets if target in labels]
    if not (jump and not i.predicated) and not (ends and not i.predicated):
        if at + 1 < len(instructions):
            after.append(at + 1)
    return after


def loops_around(instructions, labels, mark):
    """(head, tail) index ranges of loops that hold the mark, innermost first, one per head."""
    index = instructions.index
    marked = [i for i, instruction in enumerate(instructions)
              if instruction.opcode.startswith(mark)]
    ranges = {}
    for tail, instruction in enumerate(instructions):
        head = index.get(labels.get(instruction.label, -1), tail + 1)
        if head <= tail and any(head <= m <= tail for m in marked):
            ranges[head] = max(tail, ranges.get(head, 0))
    return sorted(((head, tail) for head, tail in ranges.items()), key=lambda r: r[1] - r[0])


def cheapest_path(instructions, labels, start, goal, inside):
    """(stall clocks, indices from `start` to before `goal`) of the cheapest path."""
    best, queue = {}, [(0, start, (), False)]
    while queue:
        cost, at, path, moved = heapq.heappop(queue)
        if at == goal and moved:
            return cost, path
        if best.get((at, moved), cost + 1) <= cost:
            continue
        best[at, moved] = cost
        for after in following(instructions, labels, at):
            if inside[0] <= after <= inside[1]:
                heapq.heappush(queue, (cost + instructions[at].stall, after, (*path, at), True))
    return None, ()


def cheapest(instructions, labels, start, goal, inside):
    """Stall clocks of the cheapest path from the issue of `start` to that of `goal`."""
    return cheapest_path(instructions, labels, start, goal, inside)[0]


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


def half_addresses(instructions):
    """Bulk copies from an address whose lower half a shift of 32 bits has set, alone: ptxas 13.0.88
    makes that of an address of 64 bits (docs/notebook.md)."""
    alone, copies = set(), 0
    for instruction in instructions:
        copy = COPY.search(instruction.text)
        copies += bool(copy and int(copy[1]) in alone)
        found = SETS.search(instruction.text)
        if found:
            first = int(found[2])
            wide = found[1] and ("WIDE" in found[1] or ".64" in found[1])
            alone -= {first, first - 1, *([first + 1] if wide else [])}
            if instruction.opcode == "ULEA" and not found[3]:
                alone.add(first)
    return copies


def clocks(instructions, path):
    """What a warp alone takes from the path's first instruction to behind its last."""
    now, free = 0, [0] * 6
    for instruction in (instructions[i] for i in path):
        now = max([now, *(free[i] for i in instruction.waits)])
        kind = instruction.opcode.split(".")[0]
        latency = LATENCY.get(instruction.opcode, LATENCY.get(kind, OTHERWISE))
        for i in instruction.sets:
            free[i] = max(free[i], now + latency)
        now += instruction.stall
    return now
