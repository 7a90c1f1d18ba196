# SPDX-License-Identifier: MIT
"""What the sm_100a kernel's warps take from sums in tensor memory to D: code known by what is in
it. A loop over sub-tiles loads 32 tokens from tensor memory; where a warp has one sub-tile there is
no loop. A loop over the partitions of a shared tile puts the rows that other CTAs store. Plain
entries have a way of their own for each type of D, those for D with scales have one, the others the
general epilogue: these take half a sub-tile at once."""
from machine_code import cheapest_path, clocks, named

CODES = "F2FP.SATFINITE.E2M1"
# Where the ways part: the rounding to a type of two bytes.
TYPES = {"f16": "F2FP.F16", "bf16": "F2FP.BF16"}


def loops(instructions, labels):
    """(head, tail) of every loop that jumps back to its head by its last instruction, inner ones
    first."""
    index = instructions.index
    found = {}
    for tail, instruction in enumerate(instructions):
        head = index.get(labels.get(instruction.label, -1), tail + 1)
        if head <= tail and instruction.opcode.startswith("BRA"):
            found[head] = max(tail, found.get(head, 0))
    return sorted(found.items(), key=lambda loop: loop[1] - loop[0])


def trip(instructions, labels, loop, through):
    """Clocks of the cheapest way around a loop by these instructions."""
    path = []
    if through[0] != loop[0]:
        through = [loop[0], *through]
    for start, goal in zip(through, [*through[1:], loop[0]]):
        cost, part = cheapest_path(instructions, labels, start, goal, loop)
        if cost is None:
            return None
        path += part
    return clocks(instructions, path)


def inside(loop, other):
    return other != loop and loop[0] <= other[0] and other[1] <= loop[1]


def way(instructions, labels, through, inside_of):
    """Clocks of the cheapest way from the first of these instructions to behind the last."""
    path = []
    for start, goal in zip(through, through[1:]):
        cost, part = cheapest_path(instructions, labels, start, goal, inside_of)
        if cost is None:
            return None
        path += part
    return clocks(instructions, path + through[-1:])


def stores_of_threads(instructions, part, rows):
    """Groups of stores of 16 bytes a lane of so many rows. Those of a width follow each other."""
    number = rows * 32 * 2 // 512
    groups, last = [], None
    for i in named(instructions, part, "STG.E.128"):
        between = range(last + 1, i) if last is not None else ()
        jumps = any(instructions[j].opcode == "BRA" and not instructions[j].predicated
                    for j in between)
        if last is None or jumps:
            groups.append([])
        groups[-1].append(i)
        last = i
    return [group for group in groups if len(group) == number] or [[]]


def sub_tile(instructions, labels, loop, load):
    """(type, clocks) of a sub-tile, in a loop or alone. It leaves by TMA where it has that way.
    fp32, which is no type here, may have a store of its own: another type's way through it is
    longer."""
    tma = [[store] for store in named(instructions, loop, "UTMASTG")]
    for kind, mark in TYPES.items():
        first = named(instructions, (load, loop[1]), mark)[:1]
        paths = [[load] + first + stores for stores in
                 (tma or stores_of_threads(instructions, (load, loop[1]), 32))]
        trips = [trip(instructions, labels, loop, path) for path in paths]
        ways = [way(instructions, labels, path, loop) for path in paths]
        found = trips if any(trips) else ways
        yield f"a sub-tile, {kind}", min(filter(None, found), default=None)


def rows_at(instructions, load):
    return int(instructions[load].opcode.rsplit(".x", 1)[1])


def share(instructions, labels, load, part, what):
    """(what, clocks) of rows of a share: from a load of what another CTA has sent, if that is one,
    or of tensor memory, and then each of their parts."""
    adding = [loop for loop in loops(instructions, labels)
              if load < loop[0] and loop[1] <= part[1] and named(instructions, loop, "FADD")]
    through = named(instructions, part, "LDS.128")[:1] + [load]
    if adding:
        parts = [named(instructions, adding[0], name)[0] for name in ("LDS.128", "FADD")]
        yield f"{what}, added", trip(instructions, labels, adding[0], parts)
        through = [load] + named(instructions, adding[0], "FADD")[-1:]
    stores = stores_of_threads(instructions, (load, part[1]), rows_at(instructions, load))
    for kind, mark in TYPES.items():
        first = named(instructions, (load, part[1]), mark)[:1]
        ways = [way(instructions, labels, through + first + group, part) for group in stores]
        yield f"{what}, {kind}", min(filter(None, ways), default=None)


def general_ways(instructions, loop):
    """(kind, instructions that half a sub-tile passes) in the loop of the general epilogue. The
    fast SiLU alone divides minus one; C is loaded before the sums are."""
    loads = named(instructions, loop, "LDTM")
    last = loads[-1:]
    silu = [i for i in named(instructions, loop, "MUFU.RCP") if ", -" in instructions[i].text]
    c = [i for i in named(instructions, (loop[0], loads[0]), "LDG.E.U16")
         if not instructions[i].predicated]  # of 16 rows that exist
    maxima = named(instructions, loop, "CREDUX")
    codes = named(instructions, loop, CODES)
    rounded = named(instructions, (loads[-1], loop[1]), "STS.U16")[:1]  # a D by rows
    if len(loads) == 2:
        yield "gated", loads + [silu[0], silu[-1]] + rounded
        return
    yield "SiLU", last + [silu[0], silu[-1]] + rounded
    yield "C", [c[0], c[-1]] + last + rounded
    yield "row maxima", last + [maxima[0], maxima[-1]] + rounded
    if codes:
        turned = named(instructions, (loads[-1], codes[0]), "LDS.128")
        first = [i for i in turned if codes[0] - i < 700][:1]
        yield "scales", last + first + codes[:1]


def general_rows(instructions, labels):
    for loop in loops(instructions, labels):
        loads = named(instructions, loop, "LDTM.x16")
        if not loads or not any(", -" in instructions[i].text
                                for i in named(instructions, loop, "MUFU.RCP")):
            continue
        tma = [[store] for store in named(instructions, loop, "UTMASTG")]
        stores = tma or stores_of_threads(instructions, (loads[-1], loop[1]), 16)
        for kind, path in general_ways(instructions, loop):
            trips = [trip(instructions, labels, loop, path + each)
                     for each in (stores if kind != "scales" else [[]])]
            yield f"clocks of half a sub-tile, {kind}", min(filter(None, trips), default=None)
        return


def plain_rows(instructions, labels):
    """One tensor memory load follows the other: of what a share sends, of what it keeps, of
    sub-tiles. A loop that waits for a barrier is one over tiles."""
    every = [loop for loop in loops(instructions, labels)
             if not named(instructions, loop, "SYNCS.PHASECHK")]
    whole = (0, len(instructions) - 1)
    loads = named(instructions, whole, "LDTM")
    put = fenced = None
    for before, load, after in zip([0, *loads], loads, [*loads[1:], whole[1]]):
        around = next((loop for loop in every if loop[0] <= load <= loop[1]), whole)
        alone = around[0] > before and around[1] < after
        part = around if alone else (before + 1, after - 1)
        if alone and not named(instructions, around, "FADD"):
            put = trip(instructions, labels, around, [load])
            fenced = (before, load)
            continue
        found = sub_tile(instructions, labels, part, load)
        if put is not None:
            received = named(instructions, part, "LDS.128")
            parts = 2 if received and received[0] < load else 4
            what = f"{rows_at(instructions, load)} rows of {parts} parts"
            yield (f"fences for the GPU before {what}",
                   len(named(instructions, fenced, "MEMBAR.ALL.GPU")))
            yield f"clocks of {what}, put", put
            found = share(instructions, labels, load, part, what)
            put = None
        for name, number in found:
            yield f"clocks of {name}", number


def tail_rows(name, instructions, labels):
    """An entry has the general epilogue, that of scales or the ways of the types."""
    ways = plain_rows if name.endswith("_plain") else general_rows
    return ways(instructions, labels)
