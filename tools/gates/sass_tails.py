# SPDX-License-Identifier: MIT
"""What the sm_100a kernel's warps take from sums in tensor memory to D: loops known by what they
hold. A loop over sub-tiles of 32 tokens has one LDTM; rows of a share have none."""
from machine_code import cheapest_path, clocks, named

ROWS_OF_LANE = 8  # of 32: eight lanes take a row


def loops(instructions, labels):
    """(head, tail) of every loop that jumps back to its head by its last instruction, inner ones
    first."""
    index = {instruction.address: i for i, instruction in enumerate(instructions)}
    found = {}
    for tail, instruction in enumerate(instructions):
        head = index.get(labels.get(instruction.label, -1), tail + 1)
        if head <= tail and instruction.opcode.startswith("BRA"):
            found[head] = max(tail, found.get(head, 0))
    return sorted(found.items(), key=lambda loop: loop[1] - loop[0])


def trip(instructions, labels, loop, through):
    """Clocks of the cheapest way around a loop by these instructions."""
    path = []
    for start, goal in zip([loop[0], *through], [*through, loop[0]]):
        if start == goal:
            continue
        cost, part = cheapest_path(instructions, labels, start, goal, loop)
        if cost is None:
            return None
        path += part
    return clocks(instructions, path)


def inside(loop, other):
    return other != loop and loop[0] <= other[0] and other[1] <= loop[1]


def ways_out(instructions, loop):
    """Its stores to D: by TMA where it has them, else of 16 bytes by threads."""
    tma = named(instructions, loop, "UTMASTG")
    return tma[:1] or [i for i in named(instructions, loop, "STG.E.128")]


def sub_tile(instructions, labels, loop, rows):
    """(what, clocks) of a loop over sub-tiles; `rows`: of the loop over rows in it, if any."""
    load = named(instructions, loop, "LDTM")
    if rows:
        one = trip(instructions, labels, rows, named(instructions, rows, "LDS")[:1])
        around = trip(instructions, labels, loop, load + named(instructions, loop, "UTMASTG")[:1])
        return "general", around + (ROWS_OF_LANE - 1) * one
    if not named(instructions, loop, "F2FP"):
        return "put", trip(instructions, labels, loop, load)
    return "plain", trip(instructions, labels, loop, load + ways_out(instructions, loop))


def tail_rows(instructions, labels):
    every = loops(instructions, labels)
    tiles, rows = [], []
    for load in named(instructions, (0, len(instructions) - 1), "LDTM"):
        around = [loop for loop in every if loop[0] <= load <= loop[1]]
        if around:
            tiles.append(around[0])
    for loop in every:
        held = {name for name in ("LDS", "FADD", "MUFU", "STS", "LDTM", "UTCOMMA")
                if named(instructions, loop, name)}
        if {"LDS", "FADD"} <= held and not held & {"LDTM", "UTCOMMA"}:
            rows.append((loop, held))
    for tile in tiles:
        inner = [loop for loop, held in rows if inside(tile, loop) and "MUFU" in held]
        what, number = sub_tile(instructions, labels, tile, inner[0] if inner else None)
        yield f"clocks of a sub-tile, {what}", number
    for loop, held in rows:
        if any(inside(tile, loop) for tile in tiles):
            continue
        loads = named(instructions, loop, "LDS")
        if "MUFU" in held:
            yield "clocks of a stored row", trip(instructions, labels, loop, loads[:1])
        elif "STS" in held:
            yield "clocks of an added row", trip(instructions, labels, loop, loads)
